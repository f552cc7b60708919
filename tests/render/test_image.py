"""What the pod template tells to build runs in an image, and keeps the resources of a pod apart."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from tests.model.namespace import CannotUnshareError, unshare_words
from tests.render.golden import GOLDEN, wanted
from tests.role.collection import BIN
from tests.standins.conftest import nvml_library
from tests.standins.nvml import scenario as nvml
from tests.support.script import PATH, ROOT, Result, run

__all__ = ["nvml_library"]

POD = GOLDEN / "2.3.0/kubernetes"
_LINE = re.compile(r"^#   (.*)$", re.MULTILINE)
_SECONDS = 60.0
_IN_THE_IMAGE = 'mount --bind "$0/run" /run && exec "$0/usr/local/bin/flink-gpu-discovery" "$@"'


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """The root of an image that is built as the template says, but for the packages of Debian."""
    try:
        unshare_words()
    except CannotUnshareError as error:
        pytest.skip(str(error))
    context, root = tmp_path / "context", tmp_path / "image"
    shutil.copytree(POD, context)
    (root / "etc").mkdir(parents=True)
    (root / "usr/local/bin").mkdir(parents=True)
    lines = _LINE.findall((context / "pod-template.yaml").read_text())
    steps = [line for line in lines if line.startswith(("RUN", "COPY"))]
    for command in lines[: -len(steps)]:
        shell(command, context, COLLECTION=str(ROOT), PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheel(tmp_path).parent))
    assert steps[0] == "RUN apt-get update && apt-get install -y --no-install-recommends python3"
    for step in steps[1:]:
        shell(as_command(step, root), context)
    return root


def wheel(folder: Path) -> Path:
    """NVIDIA's wheel, made again from what is installed here: a test asks no registry."""
    found = metadata.distribution("nvidia-ml-py")
    path = folder / f"nvidia_ml_py-{found.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as content:
        for file in found.files or ():
            if file.suffix != ".pyc":
                content.write(str(found.locate_file(file)), str(file))
    return path


def shell(command: str, folder: Path, **environment: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=folder,
        env={"PATH": f"{BIN}:{PATH}", "HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"


def as_command(step: str, root: Path) -> str:
    """A line of a Dockerfile for a folder in the image's place, and for whoever runs the tests in flink's."""
    instruction, text = step.split(" ", 1)
    text = re.sub(r" /(?=opt|etc|usr|run)", f" {root}/", text)
    text = text.replace("-o flink -g flink", f"-o {os.geteuid()} -g {os.getegid()}")
    if instruction == "RUN":
        return text
    source, target = text.split(" ")
    return f"cp {source} {target}" if target.endswith("/") else f"mkdir -p {target} && cp -r {source}/. {target}"


def ask(image: Path, library: Path, folder: Path, *words: str) -> Result:
    """Call the image's script as its TaskManager does: no site-packages, the image's settings, and its ``/run``."""
    scenario = nvml.write(nvml.Scenario(gpus=nvml.gpus(4)), folder / "scenario")
    leave = () if os.geteuid() == 0 else ("--map-root-user",)
    return run(
        *(*words, "--config", f"{image}/etc/flink-gpu-discovery.conf"),
        program=("unshare", "--mount", *leave, "sh", "-c", _IN_THE_IMAGE, str(image)),
        env=nvml.environment(library, scenario),
    )


def test_the_script_hands_out_disjoint_gpus_to_the_resources_of_a_pod(
    image: Path, nvml_library: Path, tmp_path: Path
) -> None:
    args = wanted("kubernetes")["external-resource.gpu.param.discovery-script.args"].split()

    assert ask(image, nvml_library, tmp_path, "2", *args) == Result(0, "0,1\n", "")
    assert ask(image, nvml_library, tmp_path, "1", "--resource", "other") == Result(0, "2\n", "")
    assert ask(image, nvml_library, tmp_path, "2", *args) == Result(0, "0,1\n", "")
    assert (image / "run/flink-gpu-discovery/ledger").is_file()
