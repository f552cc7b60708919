"""The commands in the documentation do what stands below them."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.script import PATH, ROOT, SCRIPT

DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps(block: str) -> list[tuple[str, str]]:
    """Pairs of a command and the output that stands below it."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


BLOCKS = [(path.name, block) for path in DOCUMENTS for block in BLOCK.findall(path.read_text())]


@pytest.mark.parametrize(("name", "block"), BLOCKS, ids=[f"{name}-{place}" for place, (name, _) in enumerate(BLOCKS)])
def test_examples_print_what_they_claim(tmp_path: Path, name: str, block: str) -> None:
    lines = [f"{{ {command}; }} 2>&1; printf '\\001'" for command, _ in steps(block)]
    done = subprocess.run(
        ["/bin/bash", "-c", "\n".join(lines)],
        env={"PATH": f"{SCRIPT.parent}:{PATH}", "HOME": str(tmp_path)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        timeout=30,
        check=False,
    )
    outputs = done.stdout.split("\x01")[:-1]
    assert len(outputs) == len(steps(block)) > 0
    for (command, expected), got in zip(steps(block), outputs, strict=True):
        fits = doctest.OutputChecker().check_output(expected, got, doctest.ELLIPSIS)
        assert fits, f"{name}: {command}\nexpected:\n{expected}\ngot:\n{got}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_to_files_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text()):
        assert os.path.exists(path.parent / target), target  # noqa: PTH110


def test_make_targets_named_in_the_documents_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for path in DOCUMENTS:
        for target in re.findall(r"\bmake ([a-z-]+)\b(?= *(?:#|`|$))", path.read_text(), flags=re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), f"{path.name}: make {target}"
