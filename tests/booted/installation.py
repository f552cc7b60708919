"""What an administrator sets up by hand on a booted host, as docs/security.md says; and GPUs that are simulated."""

from __future__ import annotations

from tests.isolation.installation import ROOT_SCRIPT, SCRIPT, sudo_rules

HOME = "/opt/flink-gpu-discovery"
SUDOERS = "/etc/sudoers.d/flink-gpu-discovery"
POLICY = "/etc/dbus-1/system.d/flink-gpu-discovery.conf"
USERS = {"flink": 7001, "other": 7002}
GPUS = range(4)
NODES = tuple(f"/dev/nvidia{index}" for index in GPUS)

POLICY_TEXT = """\
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <policy user="flink">
    <deny send_destination="org.freedesktop.systemd1"
          send_interface="org.freedesktop.systemd1.Manager" send_member="AttachProcessesToUnit"/>
    <deny send_destination="org.freedesktop.systemd1"
          send_interface="org.freedesktop.systemd1.Service" send_member="AttachProcesses"/>
    <deny send_destination="org.freedesktop.systemd1"
          send_interface="org.freedesktop.systemd1.Scope" send_member="AttachProcesses"/>
  </policy>
</busconfig>
"""

_SETTINGS = f"""\
[flink-gpu-discovery]
backend = simulated:{len(GPUS)},nodes=/dev/nvidia%d
isolate = yes
check-dead = yes
max-gpus-per-owner = 2
resources = gpu
"""

FILES = {
    SUDOERS: (0o440, sudo_rules(("flink",))),
    "/etc/flink-gpu-discovery.conf": (0o644, _SETTINGS),
    POLICY: (0o644, POLICY_TEXT),
}

COMMANDS = "\n".join(
    (
        *(f"id {name} >/dev/null 2>&1 || useradd --uid {uid} --create-home {name}" for name, uid in USERS.items()),
        f"ln -sf {HOME}/bin/flink-gpu-discovery {SCRIPT}",
        f"mkdir -p {ROOT_SCRIPT.rpartition('/')[0]}",
        f"ln -sf {HOME}/bin/flink-gpu-discovery-root {ROOT_SCRIPT}",
        *(f"[ -e {node} ] || mknod --mode=0666 {node} c 195 {index}" for index, node in enumerate(NODES)),
        "[ -e /dev/nvidiactl ] || mknod --mode=0666 /dev/nvidiactl c 195 255",
    )
)
