#!/usr/bin/env bash
# Adds rustfmt and clippy to the toolchain, where a minimal one lacks them.
set -euo pipefail

for component in rustfmt clippy; do
    # Asked by running it: rustup leaves a stand-in where a component is missing.
    "${CARGO:-cargo}" "${component/rustfmt/fmt}" --version >/dev/null 2>&1 && continue
    command -v rustup >/dev/null || { echo "\`$component\` is missing; add it to your toolchain" >&2; exit 1; }
    rustup component add "$component"
done
