#!/usr/bin/env bash
# Installs what benchmarks are compared with: `rg` for files, `bwrap` for commands. Does nothing where both are there.
set -euo pipefail

command -v rg >/dev/null && command -v bwrap >/dev/null && exit 0
if ! command -v apt-get >/dev/null; then
    echo "missing: ripgrep or bubblewrap; install it with your package manager and try again" >&2
    exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "missing: ripgrep or bubblewrap; install it as root" >&2; exit 1; }
    as_root=(sudo)
fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends ripgrep bubblewrap
