#!/usr/bin/env bash
# Play a Molecule scenario on booted hosts: tools/molecule.sh SCENARIO [COMMAND [OPTIONS]], by default `test`.
# MOLECULE_ENGINE=docker and MOLECULE_IMAGE=IMAGE (systemd and python3 in it) take another engine and image than podman
# and what tools/booted-image.sh makes.
set -euo pipefail
cd "$(dirname "$0")/.."
scenario=${1:?usage: tools/molecule.sh SCENARIO [COMMAND [OPTIONS]]}
command=${2:-test}
shift $(($# < 2 ? $# : 2))

export MOLECULE_ENGINE=${MOLECULE_ENGINE:-podman} MOLECULE_PROJECT_DIRECTORY=$PWD
MOLECULE_RUN=$(printf %s "$PWD" | sha256sum | cut -c 1-6) # two checkouts don't meet
state=${XDG_CACHE_HOME:-$HOME/.cache}/flink-gpu-discovery/molecule-$MOLECULE_RUN
export MOLECULE_RUN MOLECULE_EPHEMERAL_DIRECTORY=$state/$scenario
mkdir -p "$MOLECULE_EPHEMERAL_DIRECTORY" "$state/bin"
if [[ $MOLECULE_ENGINE == podman ]]; then
  settings=$(tools/booted-image.sh) # which ends with what lacks where podman can't be used
  while IFS= read -r setting; do export "${setting?}"; done <<<"$settings"
  OCI_RUNTIME=$(podman info --format '{{.Host.OCIRuntime.Path}}')
  export OCI_RUNTIME
  ln -sfn "$PWD/tests/role/docker.sh" "$state/bin/docker" # what Ansible's connection calls
  PATH=$state/bin:$PATH
fi
ANSIBLE_COLLECTIONS_PATH=$PWD/.venv/collections:$(.venv/bin/python -m tools.fetch_collections)
export ANSIBLE_COLLECTIONS_PATH PATH=$PWD/.venv/bin:$PATH
# Nothing of the machine's own Ansible gets in.
export ANSIBLE_HOME=$state/ansible

if [[ $command != test ]]; then exec molecule "$command" --scenario-name "$scenario" "$@"; fi
code=0
molecule test --scenario-name "$scenario" --destroy never "$@" || code=$?
if [[ $code -ne 0 ]]; then molecule/shared/diagnose.sh >&2 || true; fi
molecule destroy --scenario-name "$scenario" >/dev/null || code=${code/#0/1}
exit "$code"
