"""Where the bundled ``pynvml.py`` comes from: a file, a wheel, or the Python that runs Ansible."""

from __future__ import annotations

import sys
import zipfile
from importlib import metadata
from pathlib import Path

from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import ReleaseError

DISTRIBUTION = "nvidia-ml-py"  # NVIDIA's own; the distribution named pynvml was somebody else's
MODULE = "pynvml.py"
_WHEEL = "nvidia_ml_py-*.whl"
_MEND = f"run '{sys.executable} -m pip install {DISTRIBUTION}', or set flink_gpu_pynvml to a {MODULE} or a {_WHEEL}"


def read(path: str) -> bytes:
    """The text of pynvml from the file or wheel at ``path``; if that is empty, from beside Ansible."""
    if not path:
        return _checked(*_installed())
    source = Path(path).expanduser()
    try:
        content = _from_wheel(source) if source.match("*.whl") else _from_file(source)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise ReleaseError(f"no {MODULE} in {source} ({error}): {_MEND}") from error
    return _checked(source, content)


def _from_file(source: Path) -> bytes:
    if source.name != MODULE:
        raise ReleaseError(f"{source} is neither a {MODULE} nor a {_WHEEL}: {_MEND}")
    return source.read_bytes()


def _from_wheel(source: Path) -> bytes:
    if not source.match(_WHEEL):
        raise ReleaseError(f"{source} is not NVIDIA's {_WHEEL}: {_MEND}")
    with zipfile.ZipFile(source) as wheel:
        return wheel.read(MODULE)


def _installed() -> tuple[Path, bytes]:
    """What the distribution's own record names, without importing it: another ``pynvml`` may come first."""
    try:
        found = metadata.distribution(DISTRIBUTION)
        source = Path(str(found.locate_file(MODULE)))
        if MODULE in map(str, found.files or ()):
            return source, source.read_bytes()
    except (metadata.PackageNotFoundError, OSError) as error:
        raise ReleaseError(f"{DISTRIBUTION} is not installed beside Ansible ({error}): {_MEND}") from error
    raise ReleaseError(f"{DISTRIBUTION} beside Ansible holds no {MODULE}: {_MEND}")


def _checked(source: Path, content: bytes) -> bytes:
    if b"\ndef nvmlInit(" not in content:
        raise ReleaseError(f"{source} is not NVIDIA's {MODULE} (it defines no nvmlInit): {_MEND}")
    return content
