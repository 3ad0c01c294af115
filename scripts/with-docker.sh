#!/usr/bin/env bash
# Runs a command with CLAWSMITH_TEST_DOCKER naming the socket of a Docker engine: the one that is named already, or a
# private one that lives as long as the command. Where none can be had the command runs without, and its tests say
# that they were skipped; with CLAWSMITH_TEST_DOCKER=required that is a failure instead.
#
#   scripts/with-docker.sh cargo test --package claw-sandbox
set -euo pipefail

promised=${CLAWSMITH_TEST_DOCKER:-}
if [ -n "$promised" ] && [ "$promised" != required ]; then
    exec "$@"
fi
scripts=$(dirname "$(realpath "$0")")
directory=$(mktemp -d /var/tmp/claw-docker.XXXXXX)
trap '"$scripts/docker.sh" down "$directory" 2>/dev/null || rm -rf "$directory"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
code=0
socket=$("$scripts/docker.sh" up "$directory") || code=$?
if [ "$code" -eq 0 ]; then
    export CLAWSMITH_TEST_DOCKER=$socket
elif [ -z "$promised" ]; then
    echo "the tests of Docker are skipped: see above" >&2
    unset CLAWSMITH_TEST_DOCKER
else
    exit "$code"
fi
"$@"
