#!/usr/bin/python
"""The module ``flinkops.gpu.flink_conf``; what it does is in ``module_utils/flink_conf_files.py``, ``_replace.py``."""

from __future__ import annotations

DOCUMENTATION = r"""
module: flink_conf
short_description: Read Flink's configuration files on a host, or replace one of them
description:
  - Without O(name) it only reads. Files are handed over in base64, byte for byte, with all the secrets in them; set
    C(no_log) on that task. What is wrong there is told in RV(fault), and is no failure.
  - With it, the file is replaced as one; owner, group, mode, ACL and extended attributes stay. None is ever made where
    there was none. What is wrong there is a failure, and the file stays as it is.
  - The folder may belong to the user that runs Flink. So root follows no link on the way to a file, or at its end, that
    others than root could lead elsewhere; another caller follows its own ones, too.
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
    description: What RV(files) told of the content that the new one was made from; another one is not replaced.
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
    description: Shows the lines that change and none around them, which may be secrets.
"""

EXAMPLES = r"""
- name: Read both files
  flinkops.gpu.flink_conf:
    conf_dir: /opt/flink/conf
  register: flink
  no_log: true

- name: Replace one
  flinkops.gpu.flink_conf:
    conf_dir: /opt/flink/conf
    name: config.yaml
    content: "{{ flink.files['config.yaml'].content | flinkops.gpu.flink_conf_merge(...) }}"
    sha256: "{{ flink.files['config.yaml'].sha256 }}"
"""

RETURN = r"""
fault:
  description: For what nothing can be written there, with its mend; empty if there is nothing.
  returned: on reading
  type: str
files:
  description: By name, C(exists), C(content) in base64, C(sha256), and C(path), the name in RV(folder).
  returned: on reading
  type: dict
found:
  description: Whether there is such a folder.
  returned: on reading
  type: bool
folder:
  description: The folder behind all links; with some RV(fault) it is O(conf_dir).
  returned: on reading
  type: str
home:
  description: Where Flink lies; with some RV(fault) it is O(flink_home).
  returned: on reading
  type: str
version:
  description: Flink's version, by the name of its main jar; empty if that isn't there.
  returned: on reading
  type: str
  sample: 2.3.0
has_gpu_plugin:
  description: Whether Flink's GPU driver lies in C(plugins/external-resource-gpu).
  returned: on reading
  type: bool
backup_file:
  description: Where the old file is kept; empty if it isn't.
  returned: on replacing
  type: str
"""

import base64

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.flinkops.gpu.plugins.module_utils import flink_conf_diff, flink_conf_files, flink_conf_replace
from ansible_collections.flinkops.gpu.plugins.module_utils.flink_conf_place import obstacle
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

_OPTIONS = {
    "conf_dir": {"type": "path", "required": True},
    "flink_home": {"type": "path", "default": ""},
    "name": {"type": "str", "choices": list(flink_conf_files.NAMES)},
    "content": {"type": "str", "no_log": True},
    "sha256": {"type": "str"},
    "backup": {"type": "bool", "default": False},
}


def main() -> None:
    """Act and answer."""
    module = AnsibleModule(
        argument_spec=_OPTIONS, required_together=[("name", "content", "sha256")], supports_check_mode=True
    )
    try:
        result = _replaced(module) if module.params["name"] else _read(module)
    except FilingError as error:
        module.fail_json(msg=str(error))
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"{module.params['conf_dir']}: Flink's configuration can't be replaced: {error}")
    module.exit_json(**result)


def _read(module: AnsibleModule) -> dict[str, object]:
    reading = flink_conf_files.read(module.params["conf_dir"], module.params["flink_home"])
    return {"changed": False, **reading.describe()}


def _replaced(module: AnsibleModule) -> dict[str, object]:
    name, content = module.params["name"], base64.b64decode(module.params["content"], validate=True)
    file = flink_conf_files.find(module.params["conf_dir"], name)
    before = file.state.content
    if before is None:
        raise FilingError(f"{file.path} does not exist, and none is made: name the folder of Flink's configuration")
    if file.sha256 != module.params["sha256"]:
        raise FilingError(f"{file.path} is not what the new content was made from: run again")
    if before == content:
        return {"changed": False, "backup_file": ""}
    fault = obstacle(file.place)
    if fault:
        raise FilingError(fault)
    kept = "" if module.check_mode else flink_conf_replace.replace(file, content, backup=module.params["backup"])
    shown = flink_conf_diff.changes(file.path, before, content, flat=name == "flink-conf.yaml")
    return {"changed": True, "backup_file": kept, "diff": {"prepared": shown}}


if __name__ == "__main__":
    main()
