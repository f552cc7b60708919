#!/usr/bin/env bash
# Play all of Molecule's scenarios, two at a time; prints of each how it ended and its wall time, and all it said if it failed.
set -euo pipefail
cd "$(dirname "$0")/.."

play() {
  local scenario=$1 log=$2/$1.log start=$SECONDS code=0
  tools/molecule.sh "$scenario" >"$log" 2>&1 || code=$?
  if [[ $code -eq 0 ]]; then
    printf 'molecule %-20s ok     %4d s\n' "$scenario" $((SECONDS - start))
  else
    printf 'molecule %-20s FAILED %4d s, exit code %d:\n%s\n' "$scenario" $((SECONDS - start)) "$code" "$(sed "s/^/$scenario: /" "$log")"
    return 1
  fi
}

if [[ $# -eq 2 ]]; then # called by itself, below
  play "$@"
  exit
fi
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
# The longest come first, so that none is left to run alone in the end.
mapfile -t scenarios < <(printf '%s\n' flink platforms resilience molecule/*/molecule.yml | sed 's,^molecule/\(.*\)/.*,\1,' | awk '!seen[$0]++')
printf '%s\n' "${scenarios[@]}" | xargs -I '{}' -P 2 "$0" '{}' "$logs"
