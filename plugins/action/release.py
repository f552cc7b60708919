"""The controller's side of ``flinkops.gpu.release``: makes the archive, uploads it to hosts that lack it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.flinkops.gpu.plugins.module_utils import artefact, artefact_pynvml, release
from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import ReleaseError

MODULE = "flinkops.gpu.release"
DISCOVERY = Path(__file__).resolve().parents[2] / "discovery"


class ActionModule(ActionBase):
    """Calls the module with the release's name and MANIFEST, and once more with the archive if it asks for it."""

    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Answer as the module does."""
        super().run(tmp, task_vars)
        _, arguments = self.validate_argument_spec(argument_spec=release.ARGUMENTS)
        if arguments["state"] != "present":
            return self._call(arguments, task_vars)
        try:
            made = _build(arguments)
        except (ReleaseError, OSError) as error:
            raise AnsibleActionFail(str(error)) from error
        arguments = {**arguments, "name": made.name, "manifest": made.manifest, "archive": ""}
        result = self._call(arguments, task_vars)
        if not result.get("lacking"):
            return result
        return self._call({**arguments, "archive": self._upload(made.archive())}, task_vars)

    def _call(self, arguments: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        return dict(self._execute_module(module_name=MODULE, module_args=arguments, task_vars=task_vars))

    def _upload(self, content: bytes) -> str:
        """Put it into the task's own folder on the host, which goes with the task."""
        folder = self._connection._shell.tmpdir or self._make_tmp_path()
        remote = str(self._connection._shell.join_path(folder, "release.tar"))
        descriptor, local = tempfile.mkstemp(dir=constants.DEFAULT_LOCAL_TMP)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
            self._transfer_file(local, remote)
        finally:
            Path(local).unlink()
        self._fixup_perms2((folder, remote))
        return remote


def _build(arguments: dict[str, Any]) -> artefact.Artefact:
    text = artefact_pynvml.read(arguments["pynvml"]) if arguments["bundle_pynvml"] else None
    return artefact.build(DISCOVERY, text)
