#!/bin/sh
# Holds a booted host: host.sh NAME IMAGE LAYOUT [words for podman run]. Prints "ready" when systemd has been started.
# The host lasts until standard input closes, which it does however the test run ends; then all of it is removed.
set -u
trap '' HUP INT TERM PIPE
name=$1 image=$2 layout=$3
shift 3

# What runs in the container as PID 1, before it becomes systemd.
# shellcheck disable=SC2016
init='
set -e
case $1 in
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
case $1 in v1) set -- systemd.legacy_systemd_cgroup_controller=1 ;; *) set -- ;; esac
exec /lib/systemd/systemd "$@"
'

# Not --privileged: such a host would change the settings of the real kernel. Below a parent of its own, and with no
# cgroup for podman'\''s monitor, every folder it leaves behind is known to be its own.
podman --cgroup-manager=cgroupfs run --detach --name "$name" --hostname "$name" --add-host "$name:127.0.0.1" \
  --network=host --systemd=always --cgroupns=private --cgroups=no-conmon "--cgroup-parent=/$name" \
  --cap-add=SYS_ADMIN --cap-add=SYS_PTRACE --cap-add=BPF --cap-add=MKNOD \
  --security-opt=seccomp=unconfined --security-opt=apparmor=unconfined '--device-cgroup-rule=a *:* rwm' \
  "$@" "$image" /bin/sh -c "$init" init "$layout" >/dev/null && echo ready
cat >/dev/null

podman rm --force --ignore --time 0 --volumes "$name" >/dev/null
left() {
  for folder in "/sys/fs/cgroup/$name" "/sys/fs/cgroup/"*"/$name"; do
    if [ -d "$folder" ]; then echo "$folder"; fi
  done
}
for _ in $(seq 100); do
  left | while read -r folder; do find "$folder" -depth -type d -exec rmdir {} + 2>/dev/null; done
  [ -n "$(left)" ] || exit 0
  sleep 0.1
done
echo "cgroups of $name can't be removed" >&2
exit 1
