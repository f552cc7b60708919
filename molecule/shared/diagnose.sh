#!/usr/bin/env bash
# What the hosts of a scenario look like after a failure: what failed, their journals (and Flink's logs), ledgers and cgroups.
set -euo pipefail
for file in "$MOLECULE_EPHEMERAL_DIRECTORY"/*.id; do
  [[ -e $file ]] || continue
  echo "== $(basename "$file" .id)"
  # shellcheck disable=SC2016 # it is for the shell there
  "$MOLECULE_ENGINE" exec "$(<"$file")" sh -c '
    systemctl --no-pager --failed --plain --no-legend
    for ledger in /run/flink-gpu-discovery/ledger /run/flink-gpu-discovery/root/ledger; do
      if [ -e "$ledger" ]; then echo "-- $ledger"; head -n 100 "$ledger"; fi
    done
    echo "-- cgroups"
    systemd-cgls --no-pager | head -n 150
    find /sys/fs/cgroup -type d -name "flink-gpu-*"
    units=$(systemctl list-units --all --plain --no-legend --type=service "*flink*" "*taskmanager*" "*executor*" "*probe*" "accelerated*")
    for unit in $(systemctl list-units --all --plain --no-legend --state=failed | cut -d" " -f1) $(echo "$units" | cut -d" " -f1); do
      echo "-- journal of $unit"
      journalctl --no-pager --lines=40 --unit="$unit"
    done
    echo "-- journal"
    journalctl --no-pager --lines=400 | grep -vE "^ |ansible|sudo\[" | tail -n 100
    tail -n 40 /var/log/flink/* 2>/dev/null' </dev/null || true
done
