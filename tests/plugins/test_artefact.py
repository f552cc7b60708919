"""The shipped archive: the same bytes for the same input, and nothing in it that doesn't belong there."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils import artefact, artefact_pynvml
from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import ReleaseError, sha256

from tests.plugins.releasing import DISCOVERY, PYNVML
from tests.support.script import PATH, ROOT


@pytest.fixture(scope="module")
def archive() -> bytes:
    return _archive(DISCOVERY)


@pytest.fixture
def discovery(tmp_path: Path) -> Path:
    """A copy of the collection's folder."""
    return _copy(tmp_path / "discovery")


_SCANDIR = os.scandir


class Backwards:
    """The entries of a folder, the last one first."""

    def __init__(self, path: str) -> None:
        self._left = list(_SCANDIR(path))

    def __enter__(self) -> Backwards:
        return self

    def __exit__(self, *_: object) -> None:
        self._left.clear()

    def __next__(self) -> os.DirEntry[str]:
        if not self._left:
            raise StopIteration
        return self._left.pop()


def _archive(discovery: Path) -> bytes:
    found: bytes = artefact.build(discovery, PYNVML).archive()
    return found


def _copy(target: Path) -> Path:
    return shutil.copytree(DISCOVERY, target, ignore=shutil.ignore_patterns("__pycache__", ".*", "*.egg-info"))


def test_a_copy_with_other_times_modes_and_links_gives_the_same_bytes(archive: bytes, discovery: Path) -> None:
    for number, path in enumerate(sorted(discovery.rglob("*"))):
        path.chmod(0o700)
        os.utime(path, (number, number))
    os.link(discovery / "flink_gpu_discovery/cli.py", discovery.parent / "elsewhere")
    assert _archive(discovery) == archive


def test_what_tools_leave_beside_the_sources_is_not_shipped(archive: bytes, discovery: Path) -> None:
    for name in ("__pycache__/cli.cpython-311.pyc", ".cache/x", ".cli.py.swp", "x.egg-info/PKG-INFO"):
        path = discovery / "flink_gpu_discovery" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("left")
    (discovery / "other").mkdir()
    assert _archive(discovery) == archive


def test_the_order_of_folders_and_the_umask_do_not_matter(
    archive: bytes, discovery: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "scandir", Backwards)
    before = os.umask(0o077)
    try:
        assert _archive(discovery) == archive
    finally:
        os.umask(before)


def test_locale_and_time_zone_do_not_matter(archive: bytes, tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, locale; locale.setlocale(locale.LC_ALL, '');"
        "from ansible_collections.flinkops.gpu.plugins.module_utils import artefact;"
        f"sys.stdout.buffer.write(artefact.build(pathlib.Path({str(DISCOVERY)!r}), {PYNVML!r}).archive())"
    )
    environment = {"PATH": PATH, "LC_ALL": "C", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", code]
    environment["PYTHONPATH"] = str(ROOT / ".venv/collections")
    done = subprocess.run(command, capture_output=True, env=environment, cwd=tmp_path, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == archive


@pytest.mark.slow
def test_the_collection_that_ansible_galaxy_installs_gives_the_same_bytes(archive: bytes, tmp_path: Path) -> None:
    galaxy: list[str | Path] = [ROOT / ".venv/bin/ansible-galaxy", "collection"]
    environment = {"PATH": PATH, "ANSIBLE_HOME": str(tmp_path / "home"), "LC_ALL": "C.UTF-8"}
    building: list[str | Path] = ["build", ROOT, "--output-path", tmp_path]
    installing: list[str | Path] = ["install", "--offline", "-p", tmp_path / "to"]
    for words in (building, installing):
        built = list(tmp_path.glob("flinkops-gpu-*.tar.gz"))
        done = subprocess.run(
            [*galaxy, *words, *built], capture_output=True, env=environment, umask=0o077, timeout=50, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
    assert _archive(tmp_path / "to/ansible_collections/flinkops/gpu/discovery") == archive


def test_it_is_an_uncompressed_tar_archive_of_plain_files_of_roots(archive: bytes) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as members:
        found = members.getmembers()
        manifest = members.extractfile("MANIFEST")
        assert manifest is not None
        lines = manifest.read().decode().splitlines()
    assert [member.name for member in found] == ["MANIFEST", *(line.split("  ")[2] for line in lines)]
    assert {(member.type, member.uid, member.gid, member.mtime) for member in found} == {(tarfile.REGTYPE, 0, 0, 0)}
    assert {member.mode for member in found if member.name.startswith("bin/")} == {0o755}
    assert {member.mode for member in found if not member.name.startswith("bin/")} == {0o644}


def test_the_manifest_names_each_file_by_hash_and_mode_and_the_release_by_both() -> None:
    made = artefact.build(DISCOVERY, PYNVML)
    assert f"{sha256(PYNVML)}  0644  pynvml.py\n" in made.manifest
    script = (DISCOVERY / "bin/flink-gpu-discovery").read_bytes()
    assert f"{sha256(script)}  0755  bin/flink-gpu-discovery\n" in made.manifest
    assert made.name == f"0.1.0-{sha256(made.manifest.encode())[:12]}"
    assert artefact.build(DISCOVERY, None).name != made.name
    assert "pynvml" not in artefact.build(DISCOVERY, None).manifest.replace("gpus/", "")


@pytest.mark.parametrize("kind", ["link to a file", "link to a folder", "pipe"])
def test_what_is_neither_file_nor_folder_is_refused(discovery: Path, kind: str) -> None:
    odd = discovery / "flink_gpu_discovery/odd"
    if kind == "pipe":
        os.mkfifo(odd)
    else:
        odd.symlink_to("cli.py" if kind == "link to a file" else "gpus")
    with pytest.raises(ReleaseError, match="flink_gpu_discovery/odd is neither a file nor a folder: remove it"):
        _archive(discovery)


def test_a_name_that_hosts_would_refuse_is_refused_here(discovery: Path) -> None:
    (discovery / "flink_gpu_discovery/copy of cli.py").write_text("")
    with pytest.raises(ReleaseError, match=r"'flink_gpu_discovery/copy of cli\.py' can't be shipped"):
        _archive(discovery)


def test_a_script_that_hosts_could_not_start_is_refused(discovery: Path) -> None:
    (discovery / "bin/other").write_text("#!/bin/sh\n")
    with pytest.raises(ReleaseError, match=r"a script in bin/ starts with b'#!/bin/sh\\n'"):
        _archive(discovery)


@pytest.mark.parametrize("text", ["", "version = '1'\n", "def __version__(): ...\n"])
def test_a_package_without_a_version_is_refused(discovery: Path, text: str) -> None:
    (discovery / "flink_gpu_discovery/__init__.py").write_text(text)
    with pytest.raises(ReleaseError, match="sets no __version__: install the collection again"):
        _archive(discovery)


def test_a_version_that_is_computed_is_refused(discovery: Path) -> None:
    (discovery / "flink_gpu_discovery/__init__.py").write_text("__version__ = '1' + '2'\n")
    with pytest.raises(ReleaseError, match="the version '' can't name a folder"):
        _archive(discovery)


def test_a_missing_folder_is_named(discovery: Path) -> None:
    shutil.rmtree(discovery / "bin")
    with pytest.raises(ReleaseError, match="discovery/bin is not a folder"):
        _archive(discovery)


def test_pynvml_comes_from_beside_ansible_unless_a_path_is_given(tmp_path: Path) -> None:
    assert b"def nvmlInit(" in artefact_pynvml.read("")
    file = tmp_path / "pynvml.py"
    file.write_bytes(PYNVML)
    assert artefact_pynvml.read(str(file)) == PYNVML
    wheel = tmp_path / "nvidia_ml_py-13.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as content:
        content.writestr("pynvml.py", PYNVML)
    assert artefact_pynvml.read(str(wheel)) == PYNVML


def test_a_package_named_pynvml_that_comes_first_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pynvml.py").write_text("raise RuntimeError\n")
    metadata = tmp_path / "pynvml-11.5.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: pynvml\nVersion: 11.5\n")
    (metadata / "RECORD").write_text("pynvml.py,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert b"def nvmlInit(" in artefact_pynvml.read("")


def test_without_nvidias_distribution_the_mend_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(ReleaseError, match=r"not installed beside .*pip install nvidia-ml-py.*flink_gpu_pynvml"):
        artefact_pynvml.read("")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("pynvml.py", None, "No such file"),
        ("pynvml.py", b"", "defines no nvmlInit"),
        ("other.py", PYNVML, "neither a pynvml.py nor a nvidia_ml_py"),
        ("pynvml-11.5.0-py3-none-any.whl", b"", "not NVIDIA's nvidia_ml_py"),
        ("nvidia_ml_py-1-py3-none-any.whl", b"cut off", "not a zip file"),
    ],
)
def test_what_is_not_nvidias_pynvml_is_refused(tmp_path: Path, name: str, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ReleaseError, match=said):
        artefact_pynvml.read(str(tmp_path / name))
