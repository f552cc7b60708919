#!/usr/bin/env bash
# Everything that `make test` runs, part by part, with each part's wall time at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
pytest=.venv/bin/pytest
times=()

part() {
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  "$@"
  times+=("$(printf '%-32s %4d s' "$name" $((SECONDS - start)))")
}

part "fetch Flink (once)" .venv/bin/python tools/fetch_flink.py 1.20.5 2.3.0
part "lint" tools/lint.sh
part "units, commands, backends" "$pytest" -n 2 -m 'not flink and not booted' --ignore=tests/crash --ignore=tests/model --ignore=tests/races --ignore=tests/isolation --ignore=tests/crash_isolation
part "ledger: crashes, model, races" "$pytest" -n 2 tests/crash tests/model tests/races
part "isolation: the real kernel" "$pytest" -n 2 tests/isolation tests/crash_isolation
part "booted hosts" "$pytest" -n 2 -m booted tests/booted
part "the role on booted hosts" "$pytest" -n 2 --dist loadscope -m 'booted and not flink' tests/role
part "Molecule" tools/molecule-all.sh
part "real Flink" "$pytest" -m flink

printf '\n%s\n' "${times[@]}"
