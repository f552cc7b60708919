"""What the caller's environment shows."""

from __future__ import annotations

import pytest

from flink_gpu_discovery.errors import UsageError
from flink_gpu_discovery.models import Gpu
from flink_gpu_discovery.visibility import narrow
from tests.support.samples import gpu

UUIDS = ["GPU-aaaa1111-0000", "GPU-aaaa2222-0000", "GPU-bbbb0000-0000", "GPU-cccc0000-0000"]
NVIDIA = tuple([gpu(index, uuid=uuid) for index, uuid in enumerate(UUIDS)])
AMD = tuple([gpu(index, uuid=uuid, vendor="amd") for index, uuid in enumerate(UUIDS)])
MIG = tuple(
    [
        Gpu(uuid=f"MIG-{place}", index=f"1:{place}", pci_address="0000:01:00.0", name="MIG", vendor="nvidia")
        for place in range(2)
    ]
)


def shown(gpus: tuple[Gpu, ...], **environment: str) -> list[str]:
    return [gpu.index for gpu in narrow(gpus, environment)[0]]


@pytest.mark.parametrize(
    ("value", "indexes"),
    [
        ("all", ["0", "1", "2", "3"]),
        ("0", ["0"]),
        ("3,1", ["1", "3"]),
        (" 3 , 1 ", ["1", "3"]),
        (" all ", ["0", "1", "2", "3"]),
        ("1,1", ["1"]),
        ("", []),
        ("none", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("0,-1,1", ["0"]),
        ("0,9", ["0"]),
        ("GPU-bbbb0000-0000", ["2"]),
        ("GPU-bbbb", ["2"]),
        ("gpu-BBBB".replace("gpu", "GPU"), ["2"]),
        ("GPU-aaaa1,GPU-cccc,0", ["0", "3"]),
        ("GPU-dddd", []),
        ("MIG-0", []),
    ],
)
@pytest.mark.parametrize("variable", ["NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"])
def test_nvidias_variables_narrow(variable: str, value: str, indexes: list[str]) -> None:
    assert shown(NVIDIA, **{variable: value}) == indexes


@pytest.mark.parametrize("value", ["void", "/var/run/nvidia-container-devices"])
def test_in_a_container_that_was_given_its_gpus_by_other_means_those_are_what_it_may_use(value: str) -> None:
    assert narrow(NVIDIA, {"NVIDIA_VISIBLE_DEVICES": value}) == (NVIDIA, ())
    assert shown(NVIDIA, NVIDIA_VISIBLE_DEVICES=value, CUDA_VISIBLE_DEVICES="1") == ["1"]


def test_void_hides_all_from_cuda() -> None:
    assert shown(NVIDIA, CUDA_VISIBLE_DEVICES="void") == []


def test_together_they_narrow_further() -> None:
    assert shown(NVIDIA, NVIDIA_VISIBLE_DEVICES="0,1,2", CUDA_VISIBLE_DEVICES="2,3") == ["2"]


def test_each_vendor_has_its_own_variables() -> None:
    assert shown(AMD, CUDA_VISIBLE_DEVICES="0") == ["0", "1", "2", "3"]
    assert shown(NVIDIA, ROCR_VISIBLE_DEVICES="0") == ["0", "1", "2", "3"]
    assert shown(AMD, ROCR_VISIBLE_DEVICES="GPU-bbbb,0") == ["0", "2"]


def test_nothing_set_shows_everything_without_a_note() -> None:
    assert narrow(NVIDIA, {"PATH": "/bin"}) == (NVIDIA, ())


def test_a_note_says_what_was_hidden_and_what_is_not_there() -> None:
    assert narrow(NVIDIA, {"CUDA_VISIBLE_DEVICES": "0,7"})[1] == (
        "CUDA_VISIBLE_DEVICES='0,7' shows 1 of 4 GPUs; not on this host: 7",
    )


@pytest.mark.parametrize(
    ("value", "indexes"), [("MIG-1", ["1:1"]), ("1:0", ["1:0"]), ("1", ["1:0", "1:1"]), ("0", ["0"]), ("1:7", [])]
)
def test_mig_instances_are_named_by_uuid_by_place_or_by_their_gpu(value: str, indexes: list[str]) -> None:
    assert shown((NVIDIA[0], *MIG), CUDA_VISIBLE_DEVICES=value) == indexes


@pytest.mark.parametrize("value", ["abc", "0,abc", "0;1", "0,,1", "GPU", "٣", "all,0", "0x1", "1.5", ","])
def test_an_entry_that_means_nothing_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match="CUDA_VISIBLE_DEVICES has the entry"):
        shown(NVIDIA, CUDA_VISIBLE_DEVICES=value)


def test_an_ambiguous_start_of_a_uuid_is_refused() -> None:
    with pytest.raises(UsageError, match="the start of 2 UUIDs"):
        shown(NVIDIA, CUDA_VISIBLE_DEVICES="GPU-aaaa")
