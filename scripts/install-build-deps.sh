#!/usr/bin/env bash
# Installs what building and testing need beyond a Rust toolchain. Does nothing where all of it is there.
set -euo pipefail

missing=()
command -v make >/dev/null || missing+=(make)
command -v cc >/dev/null || missing+=(gcc libc6-dev)

if [ ${#missing[@]} -gt 0 ]; then
    if ! command -v apt-get >/dev/null; then
        echo "missing: ${missing[*]}; install them with your package manager and try again" >&2
        exit 1
    fi
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || { echo "missing: ${missing[*]}; install them as root" >&2; exit 1; }
        as_root=(sudo)
    fi
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"
fi

if ! command -v cargo >/dev/null; then
    echo "no Rust toolchain found; install one (1.95 or newer) from https://rustup.rs and try again" >&2
    exit 1
fi
