"""The real command without a ledger: FLIP-108's default script."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.script import MODULE, PATH, ROOT, SCRIPT, run

SIMULATED = ("--backend", "simulated:4")


@pytest.mark.parametrize("words", [("2",), ("allocate", "2"), ("2", "null"), ("allocate", "2", "null")])
def test_exactly_the_amount_lowest_indexes_first(words: tuple[str, ...]) -> None:
    result = run(*words, *SIMULATED)
    assert (result.code, result.out, result.err) == (0, "0,1\n", "")


def test_uuids_on_request() -> None:
    first, second = run("2", *SIMULATED, "--id", "uuid").out.strip().split(",")
    assert first.startswith("GPU-")
    assert first != second


def test_too_few_fails_and_prints_no_gpu() -> None:
    result = run("5", *SIMULATED)
    assert (result.code, result.out) == (69, "")
    assert result.err.startswith("flink-gpu-discovery: too few GPUs: 5 asked for, 4 seen, 4 healthy")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("words", [("0",), ("allocate", "0"), ("0", "null"), ("0", "--isolate")])
def test_nothing_asked_for_is_nothing_done(tmp_path: Path, words: tuple[str, ...]) -> None:
    result = run(*words, *SIMULATED, "--ledger", str(tmp_path / "folder" / "ledger"))
    assert (result.code, result.out, result.err) == (0, "", "")
    assert not (tmp_path / "folder").exists()


@pytest.mark.parametrize(
    "words", [("deallocateAll",), ("deallocateAll", "null"), ("release", "2"), ("release", "2", "null")]
)
def test_giving_back_does_nothing_without_coordination(words: tuple[str, ...]) -> None:
    result = run(*words, *SIMULATED)
    assert (result.code, result.out, result.err) == (0, "", "")


BAD_AMOUNTS = ["", "-1", "+1", "1.5", "two", "9" * 30, "٣", b"\xff", b"2\xff", "2\n", "--", "x" * 100_000]


@pytest.mark.parametrize("form", [(), ("allocate",), ("release",)], ids=["bare", "allocate", "release"])
@pytest.mark.parametrize("amount", BAD_AMOUNTS, ids=lambda amount: repr(amount)[:20])
def test_bad_amounts_are_bad_usage(form: tuple[str, ...], amount: str | bytes) -> None:
    result = run(*form, amount, *SIMULATED)
    assert (result.code, result.out) == (64, "")
    assert result.err.startswith("flink-gpu-discovery: ")
    assert result.err.count("\n") == 1
    assert len(result.err) < 300


@pytest.mark.parametrize(
    "words",
    [
        ("--enable-coordination",),
        ("--frob",),
        (b"--\xff",),
        ("--wait", "1", "--wait", "1"),
        ("--ledger",),
        ("--ledger", b"\xff"),
        ("--ledger", "relative"),
        ("--resource", b"\xff"),
        ("--backend", "simulated:-1"),
        ("--backend", "simulated:"),
        ("--backend", "simulated:99999"),
        ("--backend", "simulated:4,"),
        ("--backend", "simulated:4,nodes=x"),
        ("--backend", "simulated:4,nodes=/dev/x%s"),
        ("--backend", "simulated:4,nodes=/dev/x%d%d"),
        ("--owner-pid", "1", "--ledger", "/nowhere/x"),
        ("--owner-pid", "4194304", "--ledger", "/nowhere/x"),
        ("--id", "ordinal"),
        ("--coordinate", "--enable-coordination-mode"),
        ("--enable-coordination-mode", "--coordinate"),
        ("--help",),
    ],
)
def test_bad_options_are_bad_usage(words: tuple[str | bytes, ...]) -> None:
    simulated = () if "--backend" in words else SIMULATED
    result = run("2", *words, *simulated)
    assert (result.code, result.out) == (64, ""), result.err
    assert result.err.startswith("flink-gpu-discovery: ")
    assert result.err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="without root it goes through sudo")
def test_gpus_without_a_device_node_are_not_isolated(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    result = run("2", *SIMULATED, "--isolate", "--ledger", str(ledger))
    assert (result.code, result.out) == (71, "")
    assert "has no device node" in result.err
    assert not ledger.exists()


def test_help_and_version() -> None:
    assert run("--help").out.startswith("flink-gpu-discovery: tell Apache Flink")
    assert run("allocate", "--help").out.startswith("flink-gpu-discovery allocate AMOUNT")
    assert run("--version").out.startswith("flink-gpu-discovery 0.")
    assert run().code == 64


def test_it_runs_from_a_checkout_as_a_module() -> None:
    assert run("2", *SIMULATED, program=MODULE).out == "0,1\n"


def test_it_runs_through_a_symbolic_link(tmp_path: Path) -> None:
    link = tmp_path / "discovery"
    link.symlink_to(SCRIPT)
    assert run("2", *SIMULATED, program=(str(link),)).out == "0,1\n"


def test_it_needs_neither_home_nor_path() -> None:
    done = subprocess.run([SCRIPT, "2", *SIMULATED], env={}, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout) == (0, "0,1\n")
    done = subprocess.run([SCRIPT, "2"], env={}, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode in (0, 69, 71), done.stderr


def test_the_environment_does_not_reach_the_interpreter(tmp_path: Path) -> None:
    (tmp_path / "os.py").write_text("raise SystemExit('hijacked')")
    result = run("2", *SIMULATED, env={"PYTHONPATH": str(tmp_path), "PYTHONHOME": str(tmp_path)})
    assert (result.code, result.out) == (0, "0,1\n")


def test_what_needs_no_output_works_without_it(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    run("1", *SIMULATED, "--ledger", str(ledger))
    closed = ("/bin/sh", "-c", 'exec "$@" >&-', "sh", str(SCRIPT))
    assert run("0", *SIMULATED, program=closed).code == 0
    assert run("deallocateAll", "--ledger", str(ledger), program=closed).code == 0
    assert ledger.read_bytes().endswith(b"#end 0\n")
    assert run("status", "--ledger", str(ledger), program=closed).code == 74


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_closed_standard_streams(tmp_path: Path, closed: int) -> None:
    """Without descriptor 1 no answer can be given, so none is recorded; the ledger never takes its number."""
    ledger = tmp_path / "ledger"
    command = f'exec "$@" {closed}<&-' if closed == 0 else f'exec "$@" {closed}>&-'
    words = ["/bin/sh", "-c", command, "sh", str(SCRIPT), "2", *SIMULATED, "--ledger", str(ledger)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=20, env={"PATH": PATH}, check=False)
    if closed == 1:
        assert done.returncode == 74
        assert "cannot write to standard output" in done.stderr
        assert ledger.read_bytes().endswith(b"#end 0\n")
    else:
        assert (done.returncode, done.stdout) == (0, "0,1\n")
        assert ledger.read_bytes().endswith(b"#end 2\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")  # noqa: PTH110
@pytest.mark.parametrize("target", ["full", "closed pipe"])
def test_an_answer_that_cannot_be_delivered_is_taken_back(tmp_path: Path, target: str) -> None:
    ledger = tmp_path / "ledger"
    reader, writer = os.pipe()
    os.close(reader)
    if target == "full":
        os.close(writer)
        writer = os.open("/dev/full", os.O_WRONLY)
    done = subprocess.run(
        [SCRIPT, "2", *SIMULATED, "--ledger", ledger], stdout=writer, stderr=subprocess.PIPE, timeout=20, check=False
    )
    os.close(writer)
    assert done.returncode == 74
    assert b"cannot write to standard output" in done.stderr
    assert ledger.read_bytes().endswith(b"#end 0\n")


@pytest.mark.parametrize(
    "words",
    [
        ("--frob" + "\x07é\u202e" * 20_000,),
        ("--ledger", "/" + "😀" * 900),
        ("--config", "/" + "😀" * 900),
        ("--backend", "simulated:" + "\u202e" * 900),
    ],
    ids=["option", "ledger", "config", "backend"],
)
def test_hostile_output_is_one_short_printable_line_with_its_mend(words: tuple[str, ...]) -> None:
    result = run("2", *words, *(() if "--backend" in words else SIMULATED))
    assert result.code in (64, 74, 78)
    assert len(result.err) < 1100
    assert result.err.isascii()
    assert result.err.count("\n") == 1
    assert "; " in result.err[-400:]


def test_many_notes_are_summed_up(tmp_path: Path) -> None:
    tool = tmp_path / "nvidia-smi"
    line = "0, GPU-00000000-0000-4000-8000-000000000000, 00000000:01:00.0, [N/A], GPU"
    tool.write_text(f"#!/bin/sh\nfor i in 1 2 3 4 5 6; do echo ERR! $i; done; echo '{line}'\n")
    tool.chmod(0o755)
    result = run("1", "--backend", "nvidia-smi", env={"PATH": f"{tmp_path}:{PATH}"})
    assert (result.code, result.out) == (0, "0\n")
    assert result.err.count("\n") == 3
    assert result.err.endswith("4 more notes, see 'inventory --json'\n")


@pytest.mark.parametrize("kind", ["index", "uuid", "ordinal"])
def test_an_answer_that_flink_could_not_read_is_refused(tmp_path: Path, kind: str) -> None:
    ledger = tmp_path / "ledger"
    result = run("4000", "--backend", "simulated:4096", "--ledger", str(ledger), "--id", kind)
    assert (result.code, result.out) == (64, "")
    assert "4096 at most" in result.err
    assert not ledger.exists()


def test_an_internal_error_is_one_line_and_with_debug_a_whole_traceback() -> None:
    code = (
        "import os, sys\n"
        f"sys.path.insert(0, {str(ROOT / 'discovery')!r})\n"
        "from flink_gpu_discovery import allocation, cli, host\n"
        "def broken(*arguments):\n"
        "    raise LookupError('the very cause')\n"
        "allocation.first_healthy = broken\n"
        "sys.exit(cli.main(sys.argv[1:], os.environ, host.Host()))\n"
    )
    for words, lines in ((SIMULATED, 1), ((*SIMULATED, "--debug"), 5)):
        done = subprocess.run([sys.executable, "-c", code, "1", *words], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert "internal error: LookupError: the very cause" in done.stderr.splitlines()[-1]
        assert len(done.stderr.splitlines()) >= lines
        assert ("Traceback" in done.stderr) == ("--debug" in words)


# What makes the start slow; see CONTRIBUTING.md.
HEAVY = ["argparse", "collections", "configparser", "contextlib", "ctypes", "dataclasses", "enum", "functools"]
HEAVY += [
    "inspect",
    "json",
    "logging",
    "pathlib",
    "pynvml",
    "re",
    "signal",
    "subprocess",
    "threading",
    "typing",
]


@pytest.mark.parametrize("coordinated", [False, True], ids=["default", "coordinated"])
def test_the_path_of_allocate_imports_nothing_heavy(tmp_path: Path, coordinated: bool) -> None:
    words = ["2", *SIMULATED, *(["--ledger", str(tmp_path / "ledger"), "--check-dead"] if coordinated else [])]
    code = (
        "import os, sys\n"
        f"sys.path.insert(0, {str(ROOT / 'discovery')!r})\n"
        "from flink_gpu_discovery.cli import main\n"
        "from flink_gpu_discovery.host import Host\n"
        f"code = main({words!r}, os.environ, Host())\n"
        f"print(code, [name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    interpreter = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable  # noqa: PTH110
    done = subprocess.run([interpreter, "-IS", "-c", code], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "0,1\n0 []\n"
