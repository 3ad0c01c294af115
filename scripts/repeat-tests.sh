#!/usr/bin/env bash
# Runs tests that wait for processes again and again, with busy loops beside them, and reports what failed.
#
#   scripts/repeat-tests.sh [TIMES [PACKAGE FILTER...]]
#
# Without a package: every test that waits for processes. BUSY is the number of busy loops (2). Tests of PostgreSQL and
# Docker return early without one: `make repeat` brings both.
# Each failure's output is kept in .cache/repeat; the exit code is 1 if anything failed.
set -euo pipefail
cd "$(dirname "$0")/.."

times=${1:-30}
busy=${BUSY:-2}
out=.cache/repeat
rm -rf "$out"
mkdir -p "$out"

# Package, then the beginnings of the names of its tests.
suites=(
  "claw-sandbox shell:: left_behind:: children:: programs:: transactions:: meanwhile:: escape:: docker::"
  "claw-cli background:: processes:: terminal:: restart:: exec:: mcp runs:: chat:: gateway:: reload:: connect docker:: approvals:: api:: client_tools:: custom_tools:: logs:: own_address:: proxies:: traces:: without_namespaces:: sessions:: db_copy::"
  "claw-agent kill:: workers:: aborting:: parking:: resuming:: order::"
  "claw-store kill:: kill_memory:: postgres:: rotation:: backup:: together::"
)
if [ $# -ge 2 ]; then
  suites=("${*:2}")
fi

loops=()
stop() {
  for pid in "${loops[@]}"; do kill "$pid" 2>/dev/null || true; done
}
trap stop EXIT

# The binaries of `make test`: built with the features of the whole workspace, as the tests there are.
if ! "${CARGO:-cargo}" test --workspace --no-run --message-format=json >"$out/built.json" 2>"$out/build.log"; then
  echo "the tests did not build:"
  tail -20 "$out/build.log"
  exit 1
fi
declare -A binaries
for suite in "${suites[@]}"; do
  package=${suite%% *}
  binaries[$package]=$(grep "crates/$package#" "$out/built.json" | sed -n 's/.*"executable":"\([^"]*\/it-[0-9a-f]*\)".*/\1/p' | tail -1)
  if [ -z "${binaries[$package]}" ]; then
    echo "$package has no integration tests"
    exit 1
  fi
done

for ((i = 0; i < busy; i++)); do
  (while :; do :; done) &
  loops+=($!)
done

failed=0
for suite in "${suites[@]}"; do
  read -ra words <<<"$suite"
  package=${words[0]}
  for ((round = 1; round <= times; round++)); do
    log=$out/$package-$round.log
    if (cd "crates/$package" && "${binaries[$package]}" "${words[@]:1}") >"$log" 2>&1; then
      passed=$(sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1/p' "$log")
      if [ "${passed:-0}" -eq 0 ]; then
        echo "$package: no test is named like ${words[*]:1}"
        exit 1
      fi
      echo "$package $round/$times: $passed passed"
      rm "$log"
    else
      failed=$((failed + 1))
      echo "$package $round/$times: FAILED ($log)"
      sed -n '/^failures:$/,$p' "$log" | sed -n 's/^    \([a-z_:0-9]*\)$/  \1/p' | sort -u
    fi
  done
done
echo "$failed rounds failed"
[ "$failed" -eq 0 ]
