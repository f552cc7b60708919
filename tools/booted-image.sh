#!/usr/bin/env bash
# Make, once, the image of a host that boots systemd, from this machine's own Debian mirror; nothing is pulled.
#   usage: tools/booted-image.sh [SUITE [PACKAGE...]]        bookworm if none is named; an image with further packages
# Prints what to export before calling podman, one NAME=VALUE a line; BOOTED_IMAGE is the image.
# Ends with 69 and a line that says what lacks where podman can't be used. State: $BOOTED_STATE, or a cache folder.
set -euo pipefail

suite=${1:-bookworm}
shift $(($# < 1 ? $# : 1))
tag=$(IFS=-; echo "$suite${*:+-$*}")
image=localhost/flink-gpu-systemd:$tag
state=${BOOTED_STATE:-${XDG_CACHE_HOME:-$HOME/.cache}/flink-gpu-discovery/booted}
packages=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,python3,sudo,procps
case $suite in buster | bullseye) packages+=,policykit-1 ;; *) packages+=,polkitd ;; esac
packages+=$(printf ',%s' "$@" | sed 's/^,$//')
recipe="$suite $packages"

unusable() {
  echo "no booted hosts here: $1" >&2
  exit 69
}

[[ $(id -u) -eq 0 ]] || unusable "only root can give them device nodes and cgroups"
for tool in podman mmdebstrap flock; do
  command -v "$tool" >/dev/null || unusable "no $tool; 'make setup' installs it on Debian (package ${tool/#flock/util-linux})"
done
mkdir -p "$state"
exec 9>"$state/lock"
flock 9 # one at a time makes it, the others find it

# podman's own settings serve, but for root without CAP_SYS_RESOURCE (bit 24), which can't raise limits, and where
# cgroup v2 keeps controllers beside v1, which crun refuses.
settings=()
if grep -qs . /sys/fs/cgroup/unified/cgroup.controllers || ! grep -qE '^CapEff:.*[13579bdf].{6}$' /proc/self/status; then
  command -v runc >/dev/null || unusable "no runc; 'make setup' installs it on Debian (package runc)"
  run=/dev/shm/flink-gpu-booted-$(printf %s "$state" | sha256sum | cut -c 1-8) # a file system that a reboot empties
  files=$(ulimit -Hn)
  processes=$(ulimit -Hu)
  if [[ $processes == unlimited || $processes -gt 32768 ]]; then processes=32768; fi
  keep() { cat >"$1.new" && mv "$1.new" "$1"; }
  printf '%s\n' '[engine]' 'runtime = "runc"' 'cgroup_manager = "cgroupfs"' 'events_logger = "file"' \
    "tmp_dir = \"$run/libpod\"" '[containers]' 'pids_limit = 0' \
    "default_ulimits = [\"nofile=$files:$files\", \"nproc=$processes:$processes\"]" | keep "$state/containers.conf"
  printf '%s\n' '[storage]' 'driver = "overlay"' "graphroot = \"$state/storage\"" "runroot = \"$run/storage\"" |
    keep "$state/storage.conf"
  settings=("CONTAINERS_CONF=$state/containers.conf" "CONTAINERS_STORAGE_CONF=$state/storage.conf")
  export "${settings[@]}"
fi

said=$(podman info 2>&1 9>&-) || unusable "podman does not work: ${said##*$'\n'}; see 'podman info', and the packages in tools/system-packages.sh"
made=$(podman image inspect --format '{{index .Labels "recipe"}}' "$image" 2>/dev/null 9>&- || true)
if [[ $made != "$recipe" ]]; then
  # shellcheck disable=SC2016 # apt's own variable
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 2>/dev/null | grep -v security | head -n 1 || true)
  [[ -n $mirror ]] || unusable "no Debian mirror is set up for apt"
  root=$state/$tag.tar
  trap 'rm -f "$root"' EXIT
  mmdebstrap --quiet --variant=minbase --include="$packages" --format=tar "$suite" "$root" "$mirror" >&2
  podman import --quiet --change "LABEL recipe=\"$recipe\"" "$root" "$image" >/dev/null 9>&-
fi

probe=flink-gpu-probe-$$
words=(--rm --network=none --cgroups=no-conmon "--cgroup-parent=/$probe" --cap-add=SYS_ADMIN --security-opt=seccomp=unconfined)
fault=
said=$(podman --cgroup-manager=cgroupfs run "${words[@]}" "$image" true 2>&1 9>&-) || fault="podman can't run a container: ${said##*$'\n'}; see 'podman info', and the packages in tools/system-packages.sh"
rmdir /sys/fs/cgroup/*/"$probe" "/sys/fs/cgroup/$probe" 2>/dev/null || true
[[ -z $fault ]] || unusable "$fault"
printf '%s\n' "${settings[@]}" "BOOTED_IMAGE=$image"
