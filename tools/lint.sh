#!/usr/bin/env bash
# Every static check, in one place for `make`, CI and pre-commit.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin

"$bin/ruff" check --quiet .
"$bin/ruff" format --quiet --check .
"$bin/mypy" --no-error-summary
"$bin/lint-imports" --no-cache >/dev/null || "$bin/lint-imports" --no-cache
# What runs on managed hosts needs no more than Python 3.9.
"$bin/vermin" --quiet --no-tips --target=3.9- --violations --eval-annotations discovery/flink_gpu_discovery discovery/bin/flink-gpu-discovery discovery/bin/flink-gpu-discovery-root \
  plugins/modules plugins/module_utils
git ls-files -z -- '*.yml' '*.yaml' | xargs -0 -r "$bin/yamllint" --strict
git ls-files -z -- '*.sh' .ci/run | xargs -0 -r "$bin/shellcheck"
# It ends with 0 though it can't find a module, or read one's documentation.
words=(PATH="$PWD/$bin:$PATH" ANSIBLE_COLLECTIONS_PATH="$PWD/.venv/collections" ansible-lint --nocolor -q)
if ! said=$(env "${words[@]}" 2>&1) || grep -qE '^(WARNING|\[ERROR\])' <<<"$said"; then
  echo "$said" >&2
  exit 1
fi
echo "lint: clean"
