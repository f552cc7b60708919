"""``doctor``'s look at the user namespace, where the kernel under test can't show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flink_gpu_discovery.operations.doctor import _knows_users


@pytest.mark.parametrize(
    ("uid_map", "known"),
    [
        ("         0          0 4294967295\n", True),
        ("         0     100000      65536\n", True),  # a container's
        ("         0          0          1\n      7001       7001          1\n", False),  # PrivateUsers=yes
        (None, True),  # a kernel without user namespaces has no such file
    ],
    ids=["the-hosts", "a-containers", "a-sandboxs", "none"],
)
def test_users_that_sudo_needs(tmp_path: Path, uid_map: str | None, known: bool) -> None:
    (tmp_path / "self").mkdir()
    if uid_map is not None:
        (tmp_path / "self/uid_map").write_text(uid_map)
    assert _knows_users(str(tmp_path)) is known
