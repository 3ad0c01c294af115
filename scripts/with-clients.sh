#!/usr/bin/env bash
# Runs a command with Python, Node and the clients and servers of other people that the tests talk to, in .cache/clients.
# CLAWSMITH_TEST_PYTHON names the interpreter that has them, CLAWSMITH_TEST_NODE_MODULES the directory of Node packages.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(openai==3.49.0 websockets==17.4 mcp==2.3.0 schemathesis==4.32.5 jsonschema==4.26.0)
node_packages=(
    @modelcontextprotocol/server-everything@2026.8.31 @modelcontextprotocol/sdk@1.32.2 openai@7.53.0
    # The conformance suite and the inspector need a newer Node than Debian's.
    node@24.21.0 @modelcontextprotocol/conformance@0.2.0-alpha.12 @modelcontextprotocol/inspector@2.12.0
)
home=$PWD/.cache/clients
wanted="$home/.installed"

missing=()
command -v python3 >/dev/null || missing+=(python3)
python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
# The tests end processes by their ids, make repositories and certificates, and talk to the gateway as a shell does.
[ -x /bin/kill ] || [ -x /usr/bin/kill ] || missing+=(procps)
for program in git openssl curl; do
    command -v "$program" >/dev/null || missing+=("$program")
done
if [ ${#missing[@]} -gt 0 ]; then
    command -v apt-get >/dev/null || { echo "missing: ${missing[*]}; install them with your package manager" >&2; exit 1; }
    as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}"
fi

if [ "$(cat "$wanted" 2>/dev/null)" != "${packages[*]} ${node_packages[*]}" ]; then
    rm -rf "$home"
    python3 -m venv "$home"
    "$home/bin/pip" install --quiet --disable-pip-version-check "${packages[@]}"
    mkdir -p "$home/node"
    npm install --prefix "$home/node" --no-audit --no-fund --loglevel=error "${node_packages[@]}"
    echo "${packages[*]} ${node_packages[*]}" >"$wanted"
fi

export CLAWSMITH_TEST_PYTHON="$home/bin/python"
export CLAWSMITH_TEST_NODE_MODULES="$home/node/node_modules"
exec "$@"
