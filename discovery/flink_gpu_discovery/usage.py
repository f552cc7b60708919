"""The texts of ``--help``: short enough for one screen each."""

from __future__ import annotations

PROGRAM = """\
flink-gpu-discovery: tell Apache Flink which GPUs a TaskManager may use, and keep
those of the TaskManagers on one host apart.

  flink-gpu-discovery AMOUNT [OPTIONS]            as every released Flink calls it
  flink-gpu-discovery allocate AMOUNT [OPTIONS]   the same, by FLIP-108's name
  flink-gpu-discovery deallocateAll [OPTIONS]     give back all GPUs of the caller
  flink-gpu-discovery release AMOUNT [OPTIONS]    the same, by its earlier name

  flink-gpu-discovery inventory [--json]          the GPUs of this host
  flink-gpu-discovery status [--json]             who holds which GPU
  flink-gpu-discovery reclaim [--json]            free the GPUs of ended owners
  flink-gpu-discovery doctor [--quick] [--json]   would a task executor get its GPUs?

  flink-gpu-discovery COMMAND --help              options of one command
  flink-gpu-discovery --version

In Flink's configuration:

  external-resources: gpu
  external-resource.gpu.amount: 2
  external-resource.gpu.driver-factory.class:
      org.apache.flink.externalresource.gpu.GPUDriverFactory
  external-resource.gpu.param.discovery-script.path:
      /usr/local/bin/flink-gpu-discovery
  external-resource.gpu.param.discovery-script.args: --coordinate --check-dead

Exit codes: 0 done, 64 bad usage, 65 damaged ledger, 69 too few GPUs, 71 the system
refused (no driver, no confinement), 74 input/output error, 75 no answer in time,
77 permission denied, 78 bad settings file, 1 internal error.
"""

_ALLOCATE = """\
flink-gpu-discovery allocate AMOUNT [OPTIONS]
flink-gpu-discovery AMOUNT [OPTIONS]

Print the ids of exactly AMOUNT GPUs (0 to 9999) on one line, comma-separated,
ascending by index, or fail and print none. A repeated call of the same task executor
returns the same GPUs.

"""

_DEALLOCATE = """\
flink-gpu-discovery deallocateAll [OPTIONS]
flink-gpu-discovery release AMOUNT [OPTIONS]

Remove all of the owner's GPUs from the ledger. Without --coordinate there is nothing
to do. Takes the options of allocate, since Flink hands the same ones to both.

"""

_FLINK_OPTIONS = """\
  --backend B         where to look for GPUs: auto (the default), nvml, nvidia-smi,
                      rocm-smi, amd-sysfs, or simulated:N[,nodes=/dev/NAME%d] for
                      trying out
  --coordinate        record in the ledger who holds which GPU, so that the task
                      executors of a host get disjoint ones
  --ledger PATH       the ledger, /run/flink-gpu-discovery/ledger if not given; implies
                      --coordinate (also: --coordination-file)
  --check-dead        when too few GPUs are free, take over those of owners that are
                      proven to have ended; implies --coordinate
  --take-busy         take them over even if processes left behind still use them
  --enable-coordination-mode
                      as in Flink's own script: --coordinate --check-dead, and takes over
                      its coordination file
  --isolate           confine the owner to its GPUs with a device cgroup, enforced by the
                      kernel; implies --coordinate, in a ledger of root's; without root
                      it goes through sudo, and all but --resource stands in the settings
  --wait SECONDS      keep trying for so long while there are too few GPUs (0)
  --deadline SECONDS  give up, changing nothing, so long after the start (8)
  --owner-pid PID     the task executor, if it isn't the caller; in a wrapper script
                      either 'exec' this program or pass --owner-pid $PPID
  --resource NAME     which of Flink's external resources this is (gpu)
  --id KIND           what to print: index (the default), uuid, or ordinal, the position
                      among the owner's own GPUs in PCI order (the default with --isolate)
  --config FILE       settings file, /etc/flink-gpu-discovery.conf if it exists
  --debug             show the traceback of an internal error

NVIDIA_VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES of the caller
narrow what is handed out.
"""

_COMMON = """\
  --config FILE       settings file, /etc/flink-gpu-discovery.conf if it exists
  --deadline SECONDS  give up so long after the start (8)
  --json              for programs
  --debug             show the traceback of an internal error
"""

_LEDGER = """\
  --ledger PATH       the ledger, /run/flink-gpu-discovery/ledger if not given
  --isolate           that of isolation, /run/flink-gpu-discovery/root/ledger
"""

_BACKEND = """\
  --backend B         where to look for GPUs: auto (the default), nvml, nvidia-smi,
                      rocm-smi, amd-sysfs, or simulated:N
"""

_COMMANDS = {
    "allocate": _ALLOCATE + _FLINK_OPTIONS,
    "deallocateAll": _DEALLOCATE + _FLINK_OPTIONS,
    "release": _DEALLOCATE + _FLINK_OPTIONS,
    "inventory": """\
flink-gpu-discovery inventory [OPTIONS]

List the GPUs that the backend sees, their health, and whether the environment
(CUDA_VISIBLE_DEVICES and its like) shows them.

"""
    + _BACKEND
    + _COMMON,
    "status": """\
flink-gpu-discovery status [OPTIONS]

List the GPUs that are recorded in the ledger, whether they are still there, and their
owners: alive, dead (proven), or unprovable (another PID namespace, a hidden /proc),
which counts as alive. Of confined owners it asks the kernel, as root, whether their
confinement is in force.

"""
    + _LEDGER
    + _BACKEND
    + _COMMON,
    "doctor": """\
flink-gpu-discovery doctor [OPTIONS]

Look at what a task executor that starts here and now would meet: the driver, the GPUs'
nodes, the ledger, and with --isolate sudo, the cgroup and ways out of a confinement.
Changes nothing; ends with 0, or with the exit code that a call would end with. For
systemd: ExecStartPre=/usr/local/bin/flink-gpu-discovery doctor --quick

  --quick             don't wait for a driver that has to be woken (in under 300 ms)
  --coordinate        look at the ledger, too; --ledger and --isolate imply it
"""
    + _LEDGER
    + _BACKEND
    + _COMMON,
    "reclaim": """\
flink-gpu-discovery reclaim [OPTIONS]

Free the GPUs of every owner that is proven to have ended, and say which. Those that
processes it left behind still use are kept. With --isolate also renew the confinement
of the owners that live, and remove empty cgroups. For systemd:
ExecStopPost=+/usr/local/bin/flink-gpu-discovery reclaim

  --owner PID         only those of this owner, all of them or none
  --gpu ID            only this one, by today's index or by UUID
  --force             what --owner or --gpu names, even if its owner is alive: that
                      owner goes on using it, so end it first
  --take-busy         even if processes left behind still use them
"""
    + _LEDGER
    + _BACKEND
    + _COMMON,
}


def text(topic: str) -> str:
    """The help of one command, or of the program where ``topic`` is empty."""
    return _COMMANDS[topic] if topic else PROGRAM
