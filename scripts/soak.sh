#!/usr/bin/env bash
# Runs tests many times in random order, to find those that fail now and then.
#
#   scripts/soak.sh [-n RUNS] [-t TIER] [PACKAGE...]
#
# Each test binary is built once. Half of the runs share the machine with two busy loops per core, the
# other half have GOMAXPROCS=1. Without packages, all of the tier run (tests, sandboxes or race; see
# scripts/test.sh, which also sets up what they need). Each failure is printed with its seed and
# how to repeat it. The exit status is 1 if there was one.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }

runs=20 tier=tests
while getopts n:t:h option; do
  case $option in
    n) runs=$OPTARG ;;
    t) tier=$OPTARG ;;
    *) usage ;;
  esac
done
shift $((OPTIND - 1))
[[ $runs =~ ^[1-9][0-9]*$ && $tier =~ ^(tests|sandboxes|race)$ ]] || usage

export CGO_ENABLED=0
scripts/test.sh setup "$tier"
race=
jobs=$(getconf _NPROCESSORS_ONLN)
case $tier in
  sandboxes) export RETORT_SANDBOXES=1 ;;
  race) export CGO_ENABLED=1 race=-race ;;
esac

dir=$(mktemp -d)
loops=()
stop_loops() {
  [[ ${#loops[@]} == 0 ]] || kill "${loops[@]}" 2>/dev/null || true
  loops=()
}
trap 'stop_loops; [[ -s $dir/failed ]] || rm -rf "$dir"' EXIT

# Lines of $dir/tests: package, folder, pattern of tests, binary.
echo "soak: building" >&2
selected=" $(if [[ $# -gt 0 ]]; then go list "$@"; fi | tr '\n' ' ')"
while IFS=$'\t' read -r package pattern; do
  [[ $# == 0 || $selected == *" $package "* ]] || continue
  binary=$dir/${package//\//.}.test
  [[ -e $binary ]] || go test $race -c -o "$binary" "$package" 2>"$dir/build" || { cat "$dir/build" >&2; exit 1; }
  [[ ! -e $binary ]] || printf '%s\t%s\t%s\t%s\n' "$package" "$(go list -f '{{.Dir}}' "$package")" "$pattern" "$binary" >>"$dir/tests"
done < <(scripts/test.sh list "$tier")
[[ -s $dir/tests ]] || { echo "soak: no tests in: $*" >&2; exit 2; }

# run_one NUMBER PACKAGE FOLDER PATTERN BINARY runs one binary in its folder, as go test does.
run_one() {
  local log="$dir/$1-${2//\//.}.log" seed
  cd "$3"
  if ! "$5" -test.timeout=60m -test.shuffle=on -test.run="$4" >"$log" 2>&1; then
    seed=$(sed -n 's/^-test.shuffle //p' "$log" | head -n 1)
    {
      printf 'FAILED in run %s (%s): %s, seed %s, log %s\n' "$1" "$mode" "$2" "$seed" "$log"
      grep -E -A 8 '^ *--- FAIL|^panic:|^fatal error:' "$log" | head -n 40 || tail -n 20 "$log"
      printf 'repeat: go test%s -count=1 -shuffle=%s -run %q %s\n' "${race:+ $race}" "$seed" "$4" "$2"
    } | tee -a "$dir/failed"
  else
    rm -f "$log"
  fi
}
export -f run_one
export dir race

# run_all NUMBER runs each binary once.
run_all() {
  local start=$SECONDS before=0
  [[ ! -e $dir/failed ]] || before=$(grep -c '^FAILED' "$dir/failed")
  tr '\t' '\n' <"$dir/tests" | xargs -d '\n' -n 4 -P "$jobs" bash -c 'run_one "$0" "$@"' "$1" || true
  local after=0
  [[ ! -e $dir/failed ]] || after=$(grep -c '^FAILED' "$dir/failed")
  echo "soak: run $1 of $runs, $mode: $(wc -l <"$dir/tests") packages, $((after - before)) failed, $((SECONDS - start)) s" >&2
}

export mode="beside busy loops"
for ((i = 0; i < 2 * $(getconf _NPROCESSORS_ONLN); i++)); do
  while :; do :; done &
  loops+=($!)
done
for ((run = 1; run <= (runs + 1) / 2; run++)); do run_all "$run"; done
stop_loops
mode="GOMAXPROCS=1"
export GOMAXPROCS=1
for ((; run <= runs; run++)); do run_all "$run"; done

if [[ -s $dir/failed ]]; then
  echo "soak: $(grep -c '^FAILED' "$dir/failed") failures, logs in $dir" >&2
  exit 1
fi
echo "soak: $runs runs without a failure" >&2
