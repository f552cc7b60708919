"""The scenario file: mistakes in it are loud, and the Python values render what the parser reads."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from .nvml.faults import crash, fail, first_inits, first_ms, hang, sleep
from .nvml.probe import Probe
from .nvml.scenario import EccCount, Gpu, MigInstance, Process, RemappedRows, Scenario, gpus, render

pytestmark = pytest.mark.timeout(60)

MISTAKES = {
    "gpuu GPU-1": 'unknown word "gpuu"',
    "gpu": 'too little follows "gpu"',
    "gpu GPU-1 GPU-2": 'too much follows "gpu"',
    "minor 3": 'no "gpu" line stands before "minor"',
    "gpu GPU-1\nminor three": 'not a number "three"',
    "gpu GPU-1\nminor -1": 'not a number "-1"',
    "gpu GPU-1\nminor 99999999999999999999": "not a number",
    "gpu GPU-1\npci 41:00.0": 'not a PCI address "41:00.0"',
    "gpu GPU-1\npci 0000:41:20.0": "not a PCI address",
    "gpu GPU-1\npci 0000:41:20": "not a PCI address",
    "gpu GPU-1\nslot 1": 'no "mig" line stands before "slot"',
    "gpu GPU-1\nmig MIG-1 1 0\nminor 2": 'a MIG instance has no word (move it before the GPU\'s "mig" lines)',
    "gpu GPU-1\nmig MIG-1 1": 'too little follows "mig"',
    "gpu GPU-1\nmemory 10 20": "more memory used than there is",
    "gpu GPU-1\npersistence perhaps": 'unknown value "perhaps"',
    "gpu GPU-1\necc volatile uncorrected 3": '"ecc" wants LIFETIME KIND PLACE COUNT',
    "gpu GPU-1\necc volatile uncorrected moon 3": 'unknown value "moon"',
    "gpu GPU-1\nremapped-rows 1 2": '"remapped-rows" wants four words',
    "gpu GPU-1\nname": 'too little follows "name"',
    "gpu GPU-1\ngpu GPU-1": "two devices have the uuid GPU-1",
    "gpu GPU-1\nminor 4\ngpu GPU-2\nminor 4": "have the same minor",
    "gpu GPU-1\npci 0000:01:00.0\ngpu GPU-2\npci 0000:01:00.0": "have the same PCI address",
    "gpu GPU-1\nmig MIG-1 1 0\nmig MIG-2 2 0\nslot 0": "have the same slot",
    "gpu GPU-1\nmig MIG-1 1 0\nslot 7": "beyond its GPU's 7 slots",
    "fail nvmlInit NVML_ERROR_UNKNOWN": 'no such call "nvmlInit"',
    "fail nvmlInit_v2 NVML_ERROR_ODD": 'no such NVML error "NVML_ERROR_ODD"',
    "fail nvmlInit_v2": 'too little follows "fail"',
    "fail nvmlErrorString NVML_ERROR_UNKNOWN": "returns no error",
    "hang nvmlInit_v2 0\ngpu GPU-1": "this call concerns no single GPU",
    "hang nvmlDeviceGetUUID 1\ngpu GPU-1": 'no GPU or MIG instance "1"',
    "hang nvmlDeviceGetUUID first-inits": "no GPU or MIG instance",
    "hang nvmlDeviceGetUUID first-inits x": 'not a number "x"',
    "sleep nvmlDeviceGetUUID long": 'not a number "long"',
    "no-gpus 3": '"no-gpus" takes first-inits N or first-ms T',
    "open-nodes maybe": 'unknown value "maybe"',
}


@pytest.mark.parametrize(("text", "complaint"), MISTAKES.items(), ids=[repr(text) for text in MISTAKES])
def test_a_mistake_ends_the_process_with_one_line(nvml: Probe, text: str, complaint: str) -> None:
    file = nvml.folder / "scenario"
    file.write_text(f"# a comment\n\n{text}\n", encoding="ascii")
    result = nvml.run(file, "nvml.nvmlInit()")
    assert result.returncode == -signal.SIGABRT
    assert result.stderr.startswith(f"nvml stand-in: {file}:")
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_mistake_is_told_with_its_line(nvml: Probe) -> None:
    file = nvml.folder / "scenario"
    file.write_text("gpu GPU-1\n\n  # a comment\n  colour red\n", encoding="ascii")
    assert f"{file}:4: unknown word" in nvml.run(file, "nvml.nvmlInit()").stderr


def test_a_missing_file_ends_the_process(nvml: Probe) -> None:
    result = nvml.run(nvml.folder / "nowhere", "nvml.nvmlInit()")
    assert result.returncode == -signal.SIGABRT
    assert result.stderr == f"nvml stand-in: {nvml.folder / 'nowhere'}: No such file or directory\n"


def test_a_folder_in_place_of_the_file_ends_the_process(nvml: Probe) -> None:
    result = nvml.run(nvml.folder, "nvml.nvmlInit()")
    assert (result.returncode, "Is a directory" in result.stderr) == (-signal.SIGABRT, True)


def test_an_unset_variable_ends_the_process(nvml: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STANDIN_NVML_SCENARIO", raising=False)
    result = nvml.run(None, "nvml.nvmlInit()")
    assert result.returncode == -signal.SIGABRT
    assert result.stderr == "nvml stand-in: STANDIN_NVML_SCENARIO is not set\n"


def test_loading_the_library_alone_reads_nothing(nvml: Probe) -> None:
    code = "import ctypes; ctypes.CDLL('libnvidia-ml.so.1'); print('loaded')"
    assert nvml.run(None, code).stdout == "loaded\n"


def test_indentation_tabs_and_line_ends_do_not_matter(nvml: Probe) -> None:
    file = nvml.folder / "scenario"
    file.write_bytes(b"gpu\tGPU-1\r\n\t  minor\t 5 \r\n  gpu GPU-2")
    assert nvml.evaluate(file, "[uuids(), nvml.nvmlDeviceGetMinorNumber(gpu(0))]") == [["GPU-1", "GPU-2"], 5]


FULL = Scenario(
    gpus=(
        Gpu(
            "GPU-1",
            minor="unsupported",
            pci="0000:41:00.0",
            name="A name with spaces",
            nodes=("/dev/one", "/dev/two"),
            memory_mib=100,
            memory_used_mib=1,
            persistence=True,
            mig_mode=True,
            mig_mode_pending=False,
            mig_slots=4,
            ecc=(EccCount("volatile", "uncorrected", 3, "dram"),),
            remapped_rows=RemappedRows(1, 2, pending=True),
            retired_pages_pending=True,
            temperature=80,
            utilization=(1, 2),
            power_milliwatts="unsupported",
            processes=(Process(1, None),),
            instances=(MigInstance("MIG-1", 1, 2, slot=3, name="Slice", nodes=("/dev/cap",)),),
        ),
        Gpu("GPU-2", ecc="unsupported", remapped_rows="unsupported", retired_pages_pending="unsupported"),
    ),
    faults=(
        fail("nvmlDeviceGetName", "NVML_ERROR_UNKNOWN", 0),
        sleep("nvmlDeviceGetCount_v2", 5, window=first_ms(1)),
        hang("nvmlDeviceGetIndex", "MIG-1"),
        hang("nvmlDeviceGetIndex", 1, hard=True),
        crash("*", 1, window=first_inits(0)),
    ),
    no_gpus=first_inits(0),
    open_nodes="no-permission",
    driver="1.2",
    nvml="3.4",
    cuda=5,
)

FULL_TEXT = """\
driver 1.2
nvml 3.4
cuda 5
open-nodes no-permission
no-gpus first-inits 0
fail nvmlDeviceGetName 0 NVML_ERROR_UNKNOWN
sleep nvmlDeviceGetCount_v2 5 first-ms 1
hang nvmlDeviceGetIndex MIG-1
hang-hard nvmlDeviceGetIndex 1
crash * 1 first-inits 0
gpu GPU-1
  minor unsupported
  pci 0000:41:00.0
  name A name with spaces
  node /dev/one
  node /dev/two
  process 1 unknown compute
  memory 100 1
  persistence yes
  mig-mode yes no
  mig-slots 4
  ecc volatile uncorrected dram 3
  remapped-rows 1 2 yes no
  retired-pages-pending yes
  temperature 80
  utilization 1 2
  power unsupported
  mig MIG-1 1 2
    slot 3
    name Slice
    node /dev/cap
gpu GPU-2
  ecc unsupported
  remapped-rows unsupported
  retired-pages-pending unsupported
"""


def test_the_values_render_every_word(nvml: Probe) -> None:
    assert render(FULL) == FULL_TEXT
    assert nvml.ask(FULL, "uuids()") == ["GPU-1", "GPU-2"]


def test_every_word_of_the_parser_is_rendered_by_the_values() -> None:
    folder = Path(__file__).parent / "nvml"
    sources = "".join((folder / name).read_text() for name in ("parse.c", "parse_devices.c", "parse_faults.c"))
    entries = (line.strip() for line in sources.splitlines())
    words = {line.split('"')[1] for line in entries if line.startswith('{"')}
    rendered = {line.split()[0] for line in render(FULL).splitlines()}
    # "state" names a file, which a golden text can't.
    assert words - {"state"} == rendered


def test_every_word_is_documented() -> None:
    folder = Path(__file__).parent / "nvml"
    manual = (folder / "README.md").read_text(encoding="utf-8")
    rendered = {line.split()[0] for line in render(FULL).splitlines()} | {"state"}
    assert [word for word in sorted(rendered) if f"`{word}" not in manual] == []


def test_made_up_gpus_differ_and_may_have_nodes() -> None:
    made = gpus(3, node="/dev/nvidia%d")
    assert len({gpu.uuid for gpu in made}) == 3
    assert [gpu.nodes for gpu in made] == [("/dev/nvidia0",), ("/dev/nvidia1",), ("/dev/nvidia2",)]
