#!/bin/sh
# Holds a booted host: host.sh NAME IMAGE LAYOUT [words for podman run]. Prints "ready" when systemd has been started.
# The host lasts until standard input closes, which it does however the test run ends; then all of it is removed.
set -u
trap '' HUP INT TERM PIPE
tool=$(dirname "$0")/../../tools/booted-host.sh
"$tool" start "$@" && echo ready
cat >/dev/null
exec "$tool" remove "$1"
