#!/bin/sh
# Makes the private host of one lab, in a mount namespace of its own whose mounts are all private, then holds it until
# standard input ends. Arguments: a folder (a tmpfs is put over it), the view, where the machine has cgroup v2 (or
# nothing), "ro" or "rw" for the cgroups, the NVML library (or nothing). -n: no word to /run/mount, which is the machine's.
set -eu
folder=$1 view=$2 unified=$3 cgroups=$4 library=$5
umask 022
mount -n -t tmpfs -o mode=755 lab "$folder"
cd "$folder"

overlay() { # NAME LOWER TARGET: what is written to TARGET stays in the tmpfs
  mkdir "upper-$1" "work-$1"
  mount -n -t overlay -o "lowerdir=$2,upperdir=upper-$1,workdir=work-$1" "lab-$1" "$3"
}

replace() { # STAGED TARGET: leave nothing beneath that mountinfo would go on telling of
  if mountpoint -q "$2"; then umount -n -R -l "$2"; fi
  mount -n --move "$1" "$2"
}

mkdir sys dev run
overlay sys /sys sys
rm -rf sys/bus/pci/devices sys/class/drm sys/class/kfd sys/devices/virtual/kfd # this machine's GPUs are not the lab's
mkdir -p sys/bus/pci/devices sys/class/drm
if [ "$view" = v2 ]; then
  mount -n --bind "$unified" sys/fs/cgroup # bound, since a new mount would change the hierarchy's options for everybody
else
  mount -n --rbind /sys/fs/cgroup sys/fs/cgroup
  if [ "$view" = v1 ] && [ -n "$unified" ]; then umount -n "sys${unified#/sys}"; fi
fi

mount -n -t tmpfs -o mode=755,nosuid dev dev
mkdir dev/pts dev/shm
mount -n --bind /dev/pts dev/pts
mount -n -t tmpfs -o mode=1777,nosuid,nodev shm dev/shm
for entry in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0 ptmx:5:2; do
  numbers=${entry#*:}
  mknod -m 666 "dev/${entry%%:*}" c "${numbers%:*}" "${numbers#*:}"
done
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr

mount -n -t tmpfs -o mode=755,nosuid,nodev run run
mkdir -m 711 run/sudo
mkdir -m 1777 run/lock

replace sys /sys
replace dev /dev
replace run /run
overlay etc /etc /etc
overlay local /usr/local /usr/local
mount -n -t tmpfs -o mode=755 opt /opt
mkdir /opt/nvml
mount -n -t tmpfs -o mode=755 driver /proc/driver

if [ "$cgroups" = ro ]; then
  awk '$5 ~ "^/sys/fs/cgroup(/|$)" {print $5}' /proc/self/mountinfo >points
  while read -r point; do mount -n -o remount,bind,ro "$point"; done <points
  rm points
fi
if [ -n "$library" ]; then
  cp "$library" /usr/local/lib/
  mkdir -p /etc/ld.so.conf.d
  echo /usr/local/lib >/etc/ld.so.conf.d/00-lab.conf
  if [ -d /var/cache/ldconfig ]; then overlay cache /var/cache/ldconfig /var/cache/ldconfig; fi
  ldconfig -X
fi
echo ready
exec cat >/dev/null
