"""The few calls of Flink's REST interface that the tests make."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CALL_LIMIT_SECONDS = 10.0


class RestClient:
    """Flink's REST interface on one port of the loopback address."""

    def __init__(self, host: str, port: int) -> None:
        self._base = f"http://{host}:{port}"
        # The host's proxy settings must not lead loopback traffic away.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def taskmanagers(self) -> frozenset[str] | None:
        """Return the registered TaskManagers' ids, or None while nothing answers."""
        try:
            answer = self._call("/taskmanagers")
        except OSError:
            return None
        return frozenset(entry["id"] for entry in answer["taskmanagers"])

    def run_jar(self, jar: Path, entry_class: str, arguments: Sequence[str], parallelism: int) -> str:
        """Upload a jar, start its job and return the job's id."""
        boundary = uuid.uuid4().hex
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="jarfile"; filename="{jar.name}"\r\n'
        head += "Content-Type: application/x-java-archive\r\n\r\n"
        body = head.encode() + jar.read_bytes() + f"\r\n--{boundary}--\r\n".encode()
        uploaded = self._call("/jars/upload", body, f"multipart/form-data; boundary={boundary}")
        jar_id = uploaded["filename"].rpartition("/")[2]
        job = {"entryClass": entry_class, "programArgsList": list(arguments), "parallelism": parallelism}
        return str(self._call(f"/jars/{jar_id}/run", json.dumps(job).encode(), "application/json")["jobid"])

    def job_state(self, job_id: str) -> str:
        """Return the job's state, such as RUNNING or FINISHED."""
        return str(self._call(f"/jobs/{job_id}")["state"])

    def _call(self, path: str, body: bytes | None = None, content_type: str = "") -> Any:
        headers = {"Content-Type": content_type} if body else {}
        request = urllib.request.Request(self._base + path, body, headers)
        try:
            with self._opener.open(request, timeout=CALL_LIMIT_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise OSError(f"{path}: {error.code} {error.read().decode(errors='replace')}") from error
