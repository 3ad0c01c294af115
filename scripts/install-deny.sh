#!/usr/bin/env bash
# Puts cargo-deny into .cache/tools, once. docs/decisions/0007 says why it is built from source.
set -euo pipefail

version=0.20.2
cd "$(dirname "$0")/.."
tools="$PWD/.cache/tools"

if "$tools/bin/cargo-deny" --version 2>/dev/null | grep -qx "cargo-deny $version"; then
    exit 0
fi
echo "building cargo-deny $version into .cache/tools: a few minutes, once"
# Its own target directory: what it is built from must not stay in ours.
CARGO_TARGET_DIR="$PWD/.cache/deny-build" \
    "${CARGO:-cargo}" install cargo-deny --locked --version "$version" --root "$tools" --quiet
rm -rf .cache/deny-build
