#!/usr/bin/env bash
# Runs tests many times in random order, to find flaky ones.
#
#   scripts/soak.sh [-n RUNS] [-t TIER] [PACKAGE...]
#
# Builds each test binary once. Half of the runs compete with two busy loops per core, the other half
# have GOMAXPROCS=1. TIER is tests, sandboxes or race; see scripts/test.sh, which installs what it needs.
# If no PACKAGE is given, all packages of the tier run. Prints each failure with its seed and the
# command that repeats it. Exits with status 1 if a test failed.
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

export CGO_ENABLED=0 GOFLAGS=-trimpath
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

# Each line of $dir/tests has these fields, separated by tabs: package, folder, -run pattern, binary.
echo "soak: building" >&2
selected=" $(if [[ $# -gt 0 ]]; then go list "$@"; fi | tr '\n' ' ')"
while IFS=$'\t' read -r package pattern; do
  [[ $# == 0 || $selected == *" $package "* ]] || continue
  binary=$dir/${package//\//.}.test
  [[ -e $binary ]] || go test $race -c -o "$binary" "$package" 2>"$dir/build" || { cat "$dir/build" >&2; exit 1; }
  [[ ! -e $binary ]] || printf '%s\t%s\t%s\t%s\n' "$package" "$(go list -f '{{.Dir}}' "$package")" "$pattern" "$binary" >>"$dir/tests"
done < <(scripts/test.sh list "$tier")
[[ -s $dir/tests ]] || { echo "soak: no tests in: $*" >&2; exit 2; }

# run_one NUMBER PACKAGE FOLDER PATTERN BINARY runs a test binary in the folder of its package, as go test does.
run_one() {
  local log="$dir/$1-${2//\//.}.log" seed
  cd "$3"
  if ! "$5" -test.timeout=60m -test.shuffle=on -test.run="$4" >"$log" 2>&1; then
    seed=$(sed -n 's/^-test.shuffle //p' "$log" | head -n 1)
    {
      printf 'FAILED in run %s (%s): %s, seed %s, log %s\n' "$1" "$mode" "$2" "$seed" "$log"
      grep -E -A 8 '^ *--- FAIL|^panic:|^fatal error:' "$log" | head -n 40 || tail -n 20 "$log"
      printf 'repeat: cd %s && %s%s -test.run %q -test.shuffle=%s\n' "$3" "$environment" "$5" "$4" "$seed"
    } | tee -a "$dir/failed"
  else
    rm -f "$log"
  fi
}
export -f run_one
export dir

# run_all NUMBER runs each binary once.
run_all() {
  local start=$SECONDS before=0
  [[ ! -e $dir/failed ]] || before=$(grep -c '^FAILED' "$dir/failed")
  tr '\t' '\n' <"$dir/tests" | xargs -d '\n' -n 4 -P "$jobs" bash -c 'run_one "$0" "$@"' "$1" || true
  local after=0
  [[ ! -e $dir/failed ]] || after=$(grep -c '^FAILED' "$dir/failed")
  echo "soak: run $1 of $runs, $mode: $(wc -l <"$dir/tests") packages, $((after - before)) failed, $((SECONDS - start)) s" >&2
}

export mode="beside busy loops" environment="${RETORT_SANDBOXES:+RETORT_SANDBOXES=1 }"
for ((i = 0; i < 2 * $(getconf _NPROCESSORS_ONLN); i++)); do
  while :; do :; done &
  loops+=($!)
done
for ((run = 1; run <= (runs + 1) / 2; run++)); do run_all "$run"; done
stop_loops
mode="GOMAXPROCS=1" environment="GOMAXPROCS=1 $environment"
export GOMAXPROCS=1
for ((; run <= runs; run++)); do run_all "$run"; done

if [[ -s $dir/failed ]]; then
  echo "soak: $(grep -c '^FAILED' "$dir/failed") failures, logs in $dir" >&2
  exit 1
fi
echo "soak: $runs runs without a failure" >&2
