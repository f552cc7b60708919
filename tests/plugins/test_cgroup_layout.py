"""What a host's cgroups offer, told from trees as kernels and distributions have them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils import cgroup_layout

RELEASE = "6.1.0-13-amd64"
V2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
UNIFIED = "31 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
DEVICES = "32 24 0:28 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n"
OWN = f"33 24 0:27 / {cgroup_layout.OWN_MOUNT} rw - cgroup2 cgroup2 rw\n"
OTHER = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n23 24 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
CONTROLLERS = "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t1\t1\t1\ndevices\t2\t1\t1\n"
BPF = "CONFIG_BPF_SYSCALL=y\nCONFIG_CGROUP_BPF=y\n"
NO_BPF = "CONFIG_BPF_SYSCALL=y\n# CONFIG_CGROUP_BPF is not set\n"


def host(
    folder: Path, mounts: str, *, config: str = BPF, cmdline: str = "quiet", controllers: str = CONTROLLERS
) -> str:
    """A tree with what the kernel tells."""
    files = {
        "proc/self/mountinfo": OTHER + mounts,
        "proc/filesystems": "nodev\tcgroup\nnodev\tcgroup2\n\text4\n",
        "proc/cmdline": f"BOOT_IMAGE=/vmlinuz {cmdline}\n",
        "proc/cgroups": controllers,
        f"boot/config-{RELEASE}": config,
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(folder)


@pytest.mark.parametrize(
    ("mounts", "config", "expected"),
    [
        (V2, BPF, ("v2", "v2", False)),
        (UNIFIED + DEVICES, BPF, ("hybrid", "v2", False)),
        (UNIFIED + DEVICES, NO_BPF, ("hybrid", "v1", False)),
        (DEVICES, BPF, ("v1", "v1", False)),
        (DEVICES, NO_BPF, ("v1", "v1", False)),
        ("", BPF, ("none", "v2", True)),
        (OWN, BPF, ("none", "v2", True)),
        (OWN + DEVICES, BPF, ("v1", "v2", False)),
    ],
)
def test_the_version_that_serves_and_what_has_to_be_mounted(
    tmp_path: Path, mounts: str, config: str, expected: tuple[str, str, bool]
) -> None:
    found = cgroup_layout.look(host(tmp_path, mounts, config=config), RELEASE)
    assert (found["layout"], found["usable"], found["mount"]) == expected
    assert found["lacks"] == []


def test_a_kernel_without_device_programs_and_v1_is_told_what_it_lacks(tmp_path: Path) -> None:
    found = cgroup_layout.look(host(tmp_path, V2, config=NO_BPF), RELEASE)
    assert found["usable"] == ""
    assert found["lacks"] == [
        f"the kernel {RELEASE} was built without CONFIG_CGROUP_BPF",
        "cgroup v1's devices controller is not mounted (systemd mounts it, unless it was told not to)",
    ]


@pytest.mark.parametrize("word", ["cgroup_disable=memory,devices", "cgroup_no_v1=all"])
def test_a_controller_that_the_command_line_switches_off_is_named(tmp_path: Path, word: str) -> None:
    found = cgroup_layout.look(host(tmp_path, V2, config=NO_BPF, cmdline=word), RELEASE)
    assert f"cgroup v1's devices controller is switched off on the kernel's command line ({word})" in str(
        found["lacks"]
    )


def test_a_kernel_without_the_controller_is_told(tmp_path: Path) -> None:
    found = cgroup_layout.look(host(tmp_path, V2, config=NO_BPF, controllers="cpu\t1\t1\t1\n"), RELEASE)
    assert "CONFIG_CGROUP_DEVICE" in str(found["lacks"])


def test_a_kernel_that_knows_no_v2_is_told(tmp_path: Path) -> None:
    root = host(tmp_path, "")
    (tmp_path / "proc/filesystems").write_text("nodev\tcgroup\n")
    assert "Linux 4.15" in str(cgroup_layout.look(root, RELEASE)["lacks"])


def test_the_running_kernels_own_account_counts_before_the_file_in_boot(tmp_path: Path) -> None:
    root = host(tmp_path, V2, config=BPF)
    (tmp_path / "proc/config.gz").write_bytes(gzip.compress(NO_BPF.encode()))
    assert cgroup_layout.look(root, RELEASE)["usable"] == ""


def test_in_a_container_the_file_in_boot_says_nothing(tmp_path: Path) -> None:
    root = host(tmp_path, V2, config=NO_BPF)
    (tmp_path / "run").mkdir()
    (tmp_path / "run/.containerenv").touch()
    assert cgroup_layout.look(root, RELEASE)["usable"] == "v2"


def test_an_unknown_configuration_is_no_obstacle(tmp_path: Path) -> None:
    root = host(tmp_path, V2)
    (tmp_path / f"boot/config-{RELEASE}").unlink()
    assert cgroup_layout.look(root, RELEASE)["usable"] == "v2"
