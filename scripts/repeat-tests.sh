#!/usr/bin/env bash
# Runs tests that wait for processes again and again, with busy loops beside them, and reports what failed.
#
#   scripts/repeat-tests.sh [TIMES [PACKAGE FILTER...]]
#
# Without a package: every test that waits for processes. BUSY is the number of busy loops (2), JOBS the number of
# rounds that run side by side (1). Tests of PostgreSQL and Docker return early without one: `make repeat` brings both.
# Each failure's output is kept in .cache/repeat; the exit code is 1 if anything failed.
set -euo pipefail
# Every round and loop is a process group, which can be ended as one and hears Ctrl-C as a program at a terminal does.
set -m
cd "$(dirname "$0")/.."

times=${1:-30}
busy=${BUSY:-2}
side_by_side=${JOBS:-1}
out=.cache/repeat
rm -rf "$out"
mkdir -p "$out"

# Package, then the arguments of its test binary: the beginnings of names, or what to skip.
suites=(
  "claw-sandbox"
  "claw-cli --skip config:: --skip db:: --skip embedding:: --skip help:: --skip ledger:: --skip scrub:: --skip shell:: --skip tour::"
  "claw-agent kill:: workers:: aborting:: parking:: resuming:: order::"
  "claw-host attack:: skills:: trees::"
  "claw-mcp conformance::"
  "claw-store kill:: kill_memory:: postgres:: rotation:: backup:: together:: copy::"
)
# A test file with one of these starts a process.
starts='Command::new|Gateway::|Terminal::|Waiting::|\.spawn\('
all=yes
if [ $# -ge 2 ]; then
  suites=("${*:2}")
  all=no
fi

stop() {
  for pid in $(jobs -p); do kill -- "-$pid" 2>/dev/null || true; done
}
trap stop EXIT

# The binaries of `make test`: built with the features of the whole workspace, as the tests there are.
if ! "${CARGO:-cargo}" test --workspace --no-run --message-format=json >"$out/built.json" 2>"$out/build.log"; then
  echo "the tests did not build:"
  tail -20 "$out/build.log"
  exit 1
fi

# Prints the modules in which a binary would run tests.
modules() {
  "$@" --list --format terse | sed -n 's/::.*: test$//p' | sort -u
}

declare -A binaries
for suite in "${suites[@]}"; do
  read -ra words <<<"$suite"
  package=${words[0]}
  binary=$(grep "crates/$package#" "$out/built.json" | sed -n 's/.*"executable":"\([^"]*\/it-[0-9a-f]*\)".*/\1/p' | tail -1)
  if [ -z "$binary" ]; then
    echo "$package has no integration tests"
    exit 1
  fi
  binaries[$package]=$binary
  chosen=$(modules "$binary" "${words[@]:1}")
  if [ -z "$chosen" ]; then
    echo "$package: no test is named like ${words[*]:1}"
    exit 1
  fi
  [ "$all" = yes ] || continue
  started=$({ grep -rlE "$starts" "crates/$package/tests/it" --include='*.rs' || true; } |
    sed -E "s|^crates/$package/tests/it/([a-z_]+).*|\1|" | sort -u)
  missing=$(comm -12 <(echo "$started") <(modules "$binary") | comm -23 - <(echo "$chosen"))
  if [ -n "$missing" ]; then
    echo "$package: these test files start processes, and no filter of scripts/repeat-tests.sh runs them:"
    echo "$missing"
    exit 1
  fi
done

for ((i = 0; i < busy; i++)); do
  (while :; do :; done) &
done

run_round() {
  local package=$1 round=$2 log=$out/$1-$2.log
  if (cd "crates/$package" && "${binaries[$package]}" "${@:3}") >"$log" 2>&1 </dev/null; then
    echo "$package $round/$times: $(sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1/p' "$log") passed"
    rm "$log"
  else
    # One write, so that rounds side by side do not mix their lines.
    echo "$package $round/$times: FAILED ($log)
$(sed -n '/^failures:$/,$p' "$log" | sed -n 's/^    \([a-z_:0-9]*\)$/  \1/p' | sort -u)"
    return 1
  fi
}

failed=0
running=0
# Waits for one round; the busy loops do not end.
end_one() {
  wait -n || failed=$((failed + 1))
  running=$((running - 1))
}

for suite in "${suites[@]}"; do
  read -ra words <<<"$suite"
  for ((round = 1; round <= times; round++)); do
    run_round "${words[0]}" "$round" "${words[@]:1}" &
    running=$((running + 1))
    if [ "$running" -ge "$side_by_side" ]; then end_one; fi
  done
  while [ "$running" -gt 0 ]; do end_one; done
done
echo "$failed rounds failed"
[ "$failed" -eq 0 ]
