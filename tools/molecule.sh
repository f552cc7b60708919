#!/usr/bin/env bash
# Play a Molecule scenario on booted hosts: tools/molecule.sh SCENARIO [COMMAND [OPTIONS]], by default `test`.
# MOLECULE_ENGINE=docker and MOLECULE_IMAGE=IMAGE (systemd and python3 in it) take another engine and image than podman
# and what tools/booted-image.sh makes. Ends with 69 and a line that says what lacks where no host can be booted.
set -euo pipefail
cd "$(dirname "$0")/.."

limit=1200 # seconds that a scenario may take

unusable() {
  echo "no Molecule here: $1" >&2
  exit 69
}

scenario=${1:-}
if [[ ! -e molecule/$scenario/molecule.yml ]]; then
  echo "usage: tools/molecule.sh SCENARIO [COMMAND [OPTIONS]], SCENARIO one of: $(cd molecule && echo */molecule.yml | sed 's,/molecule.yml,,g')" >&2
  exit 64
fi
command=${2:-test}
shift $(($# < 2 ? $# : 2))

[[ -x .venv/bin/molecule ]] || unusable "no .venv/bin/molecule; run 'make setup'"
command -v gcc >/dev/null || unusable "no gcc; 'make setup' installs it on Debian (package gcc)"
if [[ $scenario == flink ]]; then
  command -v javac >/dev/null || unusable "no javac; 'make setup' installs it on Debian (package openjdk-17-jdk-headless)"
fi
export MOLECULE_ENGINE=${MOLECULE_ENGINE:-podman} MOLECULE_PROJECT_DIRECTORY=$PWD
MOLECULE_RUN=$(printf %s "$PWD" | sha256sum | cut -c 1-6) # two checkouts don't meet
state=${XDG_CACHE_HOME:-$HOME/.cache}/flink-gpu-discovery/molecule-$MOLECULE_RUN
export MOLECULE_RUN MOLECULE_EPHEMERAL_DIRECTORY=$state/$scenario
mkdir -p "$MOLECULE_EPHEMERAL_DIRECTORY" "$state/bin"
case $MOLECULE_ENGINE in
podman)
  settings=$(tools/booted-image.sh) # which ends with 69 and what lacks where podman can't be used
  while IFS= read -r setting; do export "${setting?}"; done <<<"$settings"
  OCI_RUNTIME=$(podman info --format '{{.Host.OCIRuntime.Path}}')
  export OCI_RUNTIME
  ln -sfn "$PWD/tests/role/docker.sh" "$state/bin/docker" # what Ansible's connection calls
  PATH=$state/bin:$PATH
  ;;
docker)
  command -v docker >/dev/null || unusable "no docker; install it, or leave MOLECULE_ENGINE out to take podman"
  said=$(docker ps 2>&1) || unusable "docker's daemon does not answer: ${said##*$'\n'}"
  [[ -n ${MOLECULE_IMAGE:-} ]] || unusable "with docker MOLECULE_IMAGE must name an image with systemd, python3 and sudo"
  ;;
*) unusable "MOLECULE_ENGINE is '$MOLECULE_ENGINE'; allowed: podman, docker" ;;
esac
ANSIBLE_COLLECTIONS_PATH=$PWD/.venv/collections:$(.venv/bin/python -m tools.fetch_collections)
# Nothing of the machine's own Ansible gets in.
export ANSIBLE_COLLECTIONS_PATH ANSIBLE_HOME=$state/ansible PATH=$PWD/.venv/bin:$PATH

[[ -t 1 ]] || export NO_COLOR=1 PY_COLORS=0 ANSIBLE_NOCOLOR=1 ANSIBLE_FORCE_COLOR=0
molecule=(molecule --base-config .config/molecule/config.yml)

if [[ $command != test ]]; then exec "${molecule[@]}" "$command" --scenario-name "$scenario" "$@"; fi

exec 9>"$MOLECULE_EPHEMERAL_DIRECTORY.lock"
flock --nonblock 9 || unusable "$scenario is being played in this checkout; wait until it has ended"

destroy() {
  local said
  said=$("${molecule[@]}" destroy --scenario-name "$scenario" 2>&1 9>&-) || { echo "$said" >&2 && return 1; }
}
finish() {
  local code=$?
  trap '' INT TERM # it takes seconds
  kill -- "-$test" 2>/dev/null || true # all of it, where this was interrupted
  wait "$test" || true
  if [[ ! $code =~ ^(0|130|143)$ ]]; then molecule/shared/diagnose.sh >&2 || true; fi
  destroy || code=${code/#0/1}
  if [[ $code -ne 0 ]]; then echo "$scenario: FAILED with exit code $code; its hosts were as shown above, and are gone" >&2; fi
  exit "$code"
}
# What a run before left that was killed: `--destroy never`, for the diagnosis, passes over the first destroy, too.
destroy
setsid timeout --kill-after=30 "$limit" "${molecule[@]}" test --scenario-name "$scenario" --destroy never "$@" 9>&- &
test=$!
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
wait "$test"
