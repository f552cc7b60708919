#!/usr/bin/python
"""The module ``flinkops.gpu.probe``; what it asks is in ``module_utils/probe.py``."""

from __future__ import annotations

DOCUMENTATION = r"""
module: probe
short_description: Ask an installed flink-gpu-discovery, as Flink would, whether it would serve a TaskManager
description:
  - Read-only. Runs the script as each of the users of the TaskManagers, asks for no GPU, and runs C(doctor).
options:
  users:
    description: The users that TaskManagers run as; the first one also lists GPUs.
    type: list
    elements: str
    required: true
  calls:
    description: What Flink passes on to the script, for each external resource that it serves.
    type: list
    elements: list
    default: [[]]
  scripts:
    description: Further discovery scripts, which those users must be able to start.
    type: list
    elements: str
    default: []
  files:
    description: Files that those users must be able to read.
    type: list
    elements: str
    default: []
  isolated:
    description: Whether TaskManagers are confined, through sudo.
    type: bool
    default: false
  expected:
    description: The number of healthy GPUs; empty wants one at least, C(0) is a host without GPU and driver.
    type: str
    default: ""
author:
  - The flink-gpu-discovery authors (@flinkops)
"""

EXAMPLES = r"""
- name: Ask the script
  flinkops.gpu.probe:
    users: [flink]
    calls:
      - [--resource, gpu]
    expected: "4"
  register: answer
"""

RETURN = r"""
problems:
  description: What would keep a TaskManager from its GPUs; a sentence each, with the mend.
  type: list
  elements: str
  returned: success
warnings_found:
  description: What else is wrong.
  type: list
  elements: str
  returned: success
version:
  description: The script's version.
  type: str
  returned: success
gpus:
  description: The GPUs, as C(inventory --json) lists them.
  type: list
  elements: dict
  returned: success
healthy:
  description: How many of them have no fault.
  type: int
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.flinkops.gpu.plugins.module_utils import probe


def main() -> None:
    """Answer."""
    module = AnsibleModule(
        argument_spec={
            "users": {"type": "list", "elements": "str", "required": True},
            "calls": {"type": "list", "elements": "list", "default": [[]]},
            "scripts": {"type": "list", "elements": "str", "default": []},
            "files": {"type": "list", "elements": "str", "default": []},
            "isolated": {"type": "bool", "default": False},
            "expected": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    found = probe.look(module.run_command, **module.params)
    module.exit_json(
        changed=False,
        problems=found.problems,
        warnings_found=found.warnings,
        version=found.version,
        gpus=found.gpus,
        healthy=found.healthy,
    )


if __name__ == "__main__":
    main()
