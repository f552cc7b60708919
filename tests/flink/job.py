"""The job that reports which GPUs Flink hands to it: compiling it, running it, reading its report."""

from __future__ import annotations

import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path

from .cluster import Cluster

ENTRY_CLASS = "ReportGpus"
SOURCE = Path(__file__).with_name("jobs") / f"{ENTRY_CLASS}.java"
COMPILE_LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class ReportJob:
    """The compiled job."""

    jar: Path

    def run(self, cluster: Cluster, folder: Path) -> dict[int, frozenset[str]]:
        """Run the job on every TaskManager; return the indexes that each one's subtask saw, by its PID."""
        folder.mkdir()
        cluster.run_job(self.jar, ENTRY_CLASS, str(folder))
        return {int(file.name): frozenset(file.read_text().splitlines()) for file in folder.iterdir()}


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
