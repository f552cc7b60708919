#!/usr/bin/env bash
# What the hosts of this run look like: each TaskManager's journal, the ledgers, the cgroups.
set -euo pipefail
"$MOLECULE_ENGINE" ps --filter "name=flink-gpu-$MOLECULE_RUN-" --format '{{.Names}}' | while IFS= read -r name; do
  echo "== $name"
  "$MOLECULE_ENGINE" exec "$name" sh -c '
    systemctl --no-pager --failed --plain
    journalctl --no-pager --lines=100 --unit="flink*" --unit="taskmanager*"
    head -n 100 /run/flink-gpu-discovery/ledger /run/flink-gpu-discovery/root/ledger 2>/dev/null
    systemd-cgls --no-pager --all | head -n 100' </dev/null || true
done
