"""The job that reports which GPUs Flink hands to it, and what it may open: compiling, running, reading its report."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .cluster import Cluster

ENTRY_CLASS = "ReportGpus"
SOURCE = Path(__file__).with_name("jobs") / f"{ENTRY_CLASS}.java"
COMPILE_LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class Report:
    """What one TaskManager's subtask saw: the GPUs' indexes, and what opening each node came to."""

    indexes: frozenset[str]
    answers: dict[str, str]


@dataclass(frozen=True)
class ReportJob:
    """The compiled job."""

    jar: Path

    def run(self, cluster: Cluster, folder: Path) -> dict[int, frozenset[str]]:
        """Run the job on every TaskManager; return the indexes that each one's subtask saw, by its PID."""
        return {pid: report.indexes for pid, report in self.run_and_open(cluster, folder, ()).items()}

    def run_and_open(self, cluster: Cluster, folder: Path, nodes: Sequence[str]) -> dict[int, Report]:
        """Let each TaskManager's subtask try to open device nodes as well."""
        folder.mkdir()
        cluster.host.hand_over(folder)
        cluster.run_job(self.jar, ENTRY_CLASS, str(folder), *nodes)
        return {int(file.name): read_report(file.read_text().splitlines()) for file in folder.iterdir()}


def compile_job(flink_home: Path, folder: Path) -> ReportJob:
    """Compile the job against Flink's own jars."""
    classes = folder / "classes"
    class_path = ":".join(str(jar) for jar in (flink_home / "lib").glob("flink-dist*.jar"))
    command = ["javac", "-Xlint:all", "-cp", class_path, "-d", str(classes), str(SOURCE)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=COMPILE_LIMIT_SECONDS)
    assert done.returncode == 0, done.stderr
    jar = folder / "report-gpus.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for file in classes.rglob("*.class"):
            archive.write(file, file.relative_to(classes))
    return ReportJob(jar)


def read_report(lines: Sequence[str]) -> Report:
    """What a subtask has written."""
    tried = dict(line.split("\t") for line in lines if "\t" in line)
    return Report(frozenset(line for line in lines if "\t" not in line), tried)
