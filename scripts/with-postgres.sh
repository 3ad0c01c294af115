#!/usr/bin/env bash
# Runs a command with CLAWSMITH_TEST_POSTGRES naming a PostgreSQL: the one that is named already, or a private
# one that lives as long as the command.
#
#   scripts/with-postgres.sh cargo test --package claw-store
set -euo pipefail

if [ -n "${CLAWSMITH_TEST_POSTGRES:-}" ]; then
    exec "$@"
fi
scripts=$(dirname "$(realpath "$0")")
directory=$(mktemp -d /tmp/claw-pg.XXXXXX)
trap '"$scripts/postgres.sh" down "$directory" || rm -rf "$directory"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
CLAWSMITH_TEST_POSTGRES=$("$scripts/postgres.sh" up "$directory")
export CLAWSMITH_TEST_POSTGRES
"$@"
