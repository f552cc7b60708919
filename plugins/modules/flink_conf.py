#!/usr/bin/python
"""The module ``flinkops.gpu.flink_conf``; what it does is in ``module_utils/flink_conf_files.py``."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flink_conf
short_description: Read Flink's configuration files on a host, or replace one of them
description:
  - Without O(content) it only reads. Files are handed over in base64, byte for byte.
  - With it, the file is replaced as one; owner, group and mode stay. None is ever made where there was none.
  - The folder may belong to the user that runs Flink; links there that are not root's are refused.
version_added: 0.1.0
author:
  - The flink-gpu-discovery authors (@flinkops)
options:
  conf_dir:
    description: The folder with C(config.yaml) or C(flink-conf.yaml).
    type: path
    required: true
  flink_home:
    description: Flink itself; by default what O(conf_dir) lies in.
    type: path
    default: ""
  name:
    description: Which of the files is replaced.
    type: str
    choices: [config.yaml, flink-conf.yaml]
  content:
    description: Its new content, in base64.
    type: str
  sha256:
    description: What C(files) told of the content that the new one was made from; another one is not replaced.
    type: str
  backup:
    description: Keep the old one beside it, with the time in its name.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Says what a run would do.
  diff_mode:
    support: full
    description: Shows contents.
"""

EXAMPLES = r"""
- name: Read both files
  flinkops.gpu.flink_conf:
    conf_dir: /opt/flink/conf
  register: flink

- name: Replace one
  flinkops.gpu.flink_conf:
    conf_dir: /opt/flink/conf
    name: config.yaml
    content: "{{ flink.files['config.yaml'].content | flinkops.gpu.flink_conf_merge(...) }}"
    sha256: "{{ flink.files['config.yaml'].sha256 }}"
"""

RETURN = r"""
files:
  description: By name, C(exists), C(content) in base64, C(sha256), and its C(place) behind symbolic links.
  returned: success
  type: dict
found:
  description: Whether there is such a folder.
  returned: success
  type: bool
folder:
  description: The folder, by O(conf_dir) without what is superfluous in a path.
  returned: success
  type: str
home:
  description: Where Flink lies.
  returned: success
  type: str
version:
  description: Flink's version, by the name of its main jar; empty if that isn't there.
  returned: success
  type: str
  sample: 2.3.0
has_gpu_plugin:
  description: Whether Flink's GPU driver lies in C(plugins/external-resource-gpu).
  returned: success
  type: bool
backup_file:
  description: Where the old file is kept; empty if it isn't.
  returned: success
  type: str
"""

import base64
import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.flinkops.gpu.plugins.module_utils import flink_conf_files
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

_OPTIONS = {
    "conf_dir": {"type": "path", "required": True},
    "flink_home": {"type": "path", "default": ""},
    "name": {"type": "str", "choices": list(flink_conf_files.NAMES)},
    "content": {"type": "str"},
    "sha256": {"type": "str"},
    "backup": {"type": "bool", "default": False},
}


def main() -> None:
    """Act and answer."""
    module = AnsibleModule(
        argument_spec=_OPTIONS, required_together=[("name", "content", "sha256")], supports_check_mode=True
    )
    try:
        result = _run(module)
    except FilingError as error:
        module.fail_json(msg=str(error))
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"Flink's configuration can't be read or replaced: {error}")
    module.exit_json(**result)


def _run(module: AnsibleModule) -> dict[str, object]:
    conf_dir = os.path.normpath(module.params["conf_dir"])
    home = module.params["flink_home"] or os.path.dirname(os.path.realpath(conf_dir))
    files = {name: flink_conf_files.find(conf_dir, name) for name in flink_conf_files.NAMES}
    result = {
        "changed": False,
        "found": flink_conf_files.is_folder(conf_dir),
        "folder": conf_dir,
        "home": home,
        "version": flink_conf_files.version(home),
        "has_gpu_plugin": flink_conf_files.has_gpu_plugin(home),
        "backup_file": "",
    }
    if module.params["name"]:
        file, content = files[module.params["name"]], base64.b64decode(module.params["content"], validate=True)
        result.update(_replaced(module, file, content))
        files = {name: flink_conf_files.find(conf_dir, name) for name in flink_conf_files.NAMES}
    return {**result, "files": {name: file.describe() for name, file in files.items()}}


def _replaced(module: AnsibleModule, file: flink_conf_files.ConfFile, content: bytes) -> dict[str, object]:
    before = file.state.content
    if before is None:
        raise FilingError(f"{file.path} does not exist, and none is made: name the folder of Flink's configuration")
    if file.sha256 != module.params["sha256"]:
        raise FilingError(f"{file.path} is not what the new content was made from: run again")
    if before == content:
        return {}
    kept = "" if module.check_mode else flink_conf_files.replace(file, content, backup=module.params["backup"])
    shown = {
        "before_header": file.path,
        "after_header": file.path,
        "before": before.decode(errors="replace"),
        "after": content.decode(errors="replace"),
    }
    return {"changed": True, "backup_file": kept, "diff": shown}


if __name__ == "__main__":
    main()
