#!/usr/bin/env bash
# Install the Debian packages that the tests need, where this is root on a Debian machine; else say what lacks.
set -euo pipefail

# package=probe: a command, or a file by absolute path
wanted=(
  dbus-daemon=dbus-daemon
  gcc=gcc
  libc6-dev=/usr/include/stdlib.h
  mmdebstrap=mmdebstrap
  mount=mount
  openjdk-17-jdk-headless=javac
  podman=podman
  procps=ps
  python3=/usr/bin/python3
  runc=runc
  strace=strace
  sudo=sudo
  util-linux=nsenter
)

missing=()
for entry in "${wanted[@]}"; do
  probe=${entry#*=}
  if [[ $probe == /* ]]; then [[ -e $probe ]] || missing+=("${entry%%=*}"); else
    command -v "$probe" >/dev/null || missing+=("${entry%%=*}")
  fi
done
"${PYTHON:-python3}" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
[[ ${#missing[@]} -eq 0 ]] && exit 0

if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null; then
  echo "missing packages (Debian names): ${missing[*]}; install them, then try again" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -qq --yes --no-install-recommends "${missing[@]}" >/dev/null
