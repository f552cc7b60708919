#!/bin/sh
# A host that boots systemd as PID 1, as a container on this machine's kernel:
#   booted-host.sh start NAME IMAGE LAYOUT [words for the engine's run]     prints nothing; systemd then boots
#   booted-host.sh restart NAME                                            as a reboot does: /run, /dev and cgroups go
#   booted-host.sh remove NAME                                             with all the cgroups that it leaves behind
# LAYOUT is that of its cgroups: v2 alone; hybrid, what the engine gives on a machine with both versions; v1, the same
# without v2; engine, whatever the engine gives. BOOTED_ENGINE is podman, or docker.
set -eu
engine=${BOOTED_ENGINE:-podman}
if [ "$engine" = podman ]; then engine="podman --cgroup-manager=cgroupfs"; fi
verb=$1 name=$2

# What runs in the container as PID 1, before it becomes systemd.
# shellcheck disable=SC2016
init='
set -e
layout=$1
if [ "$layout" = engine ]; then
  if [ -d /sys/fs/cgroup/devices ]; then layout=hybrid; else layout=v2; fi
fi
case $layout in
v2)
  umount -R /sys/fs/cgroup
  mount -t cgroup2 cgroup2 /sys/fs/cgroup
  ;;
hybrid | v1)
  mount -o remount,bind,rw /sys/fs/cgroup/devices
  # podman lays the machine'\''s own tree of names over that of the container.
  umount /sys/fs/cgroup/systemd/release_agent /sys/fs/cgroup/systemd 2>/dev/null || true
  mount -o remount,bind,rw /sys/fs/cgroup/systemd
  ;;
esac
# On hybrid it mounts cgroup v2 beside v1 by itself, unless it is told not to.
case $layout in v1) set -- systemd.legacy_systemd_cgroup_controller=1 ;; *) set -- ;; esac
exec /lib/systemd/systemd "$@"
'

start() {
  image=$3 layout=$4
  shift 4
  # Not --privileged: such a host would change the settings of the real kernel. Below a parent of its own, and with no
  # cgroup for podman's monitor, every folder it leaves behind is known to be its own.
  case $engine in
  podman*) set -- --cgroups=no-conmon "--cgroup-parent=/$name" --systemd=always "$@" ;;
  *) set -- --tmpfs=/run --tmpfs=/run/lock --tmpfs=/tmp --stop-signal=SIGRTMIN+3 "$@" ;;
  esac
  $engine run --detach --name "$name" --hostname "$name" --add-host "$name:127.0.0.1" \
    --network=host --cgroupns=private --cap-add=SYS_ADMIN --cap-add=SYS_PTRACE --cap-add=BPF --cap-add=MKNOD \
    --security-opt=seccomp=unconfined --security-opt=apparmor=unconfined '--device-cgroup-rule=a *:* rwm' \
    "$@" "$image" /bin/sh -c "$init" init "$layout" >/dev/null
}

left() {
  for folder in "/sys/fs/cgroup/$name" "/sys/fs/cgroup/"*"/$name"; do
    if [ -d "$folder" ]; then echo "$folder"; fi
  done
}

sweep() {
  for _ in $(seq 100); do
    left | while read -r folder; do find "$folder" -depth -type d -exec rmdir {} + 2>/dev/null; done || true
    [ -n "$(left)" ] || return 0
    sleep 0.1
  done
  echo "cgroups of $name can't be removed" >&2
  return 1
}

restart() {
  $engine stop --time 30 "$name" >/dev/null
  sweep
  $engine start "$name" >/dev/null
}

remove() {
  case $engine in
  podman*) podman rm --force --ignore --time 0 --volumes "$name" >/dev/null ;;
  *) $engine rm --force --volumes "$name" >/dev/null ;;
  esac
  sweep
}

"$verb" "$@"
