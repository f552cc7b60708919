#!/usr/bin/python
"""The module ``flinkops.gpu.survey``; what it finds is in ``module_utils/survey.py``."""

from __future__ import annotations

DOCUMENTATION = r"""
module: survey
short_description: Tell how a host stands before flink-gpu-discovery is installed, changed or removed there
description:
  - Read-only. Looks at cgroups, systemd units of TaskManagers, users, programs, and who holds GPUs.
options:
  units:
    description: The systemd units that run TaskManagers; a template's name ends with C(@.service).
    type: list
    elements: str
    default: []
  users:
    description: The users that TaskManagers run as; the first one is the main one.
    type: list
    elements: str
    required: true
  group:
    description: The group of the ledger in coordination mode.
    type: str
    required: true
  isolated:
    description: Whether TaskManagers are to be confined, which more stands in the way of.
    type: bool
    default: false
  python:
    description:
      - The Python that is to start the scripts, as M(flinkops.gpu.release) takes it; empty stands for the host's own.
      - Not looked for by default.
    type: str
author:
  - The flink-gpu-discovery authors (@flinkops)
"""

EXAMPLES = r"""
- name: Look at the host
  flinkops.gpu.survey:
    users: [flink]
    group: flink
    units: [flink-taskmanager.service]
    isolated: true
    python: ''
  register: host
"""

RETURN = r"""
systemd:
  description: Whether systemd runs the host.
  type: bool
  returned: success
bus:
  description: Whether there is a D-Bus whose policy says who may ask systemd to move processes.
  type: bool
  returned: success
programs:
  description: Whether C(sudo) and C(visudo) are there.
  type: dict
  returned: success
python_lacks:
  description: Why O(python) can't start the scripts; empty if it can, or was not asked for.
  type: str
  returned: success
missing_users:
  description: Those of O(users) that don't exist.
  type: list
  elements: str
  returned: success
accounts:
  description:
    - C(users) and C(groups) that the role made and that are still that, those C(busy) of them of whom processes run,
      what else of RV(made) is C(kept) and why, and a C(free_gid) for a group.
  type: dict
  returned: success
group_exists:
  description: Whether O(group) exists.
  type: bool
  returned: success
outsiders:
  description: Those of O(users) that exist and are not in O(group), but for the first one.
  type: list
  elements: str
  returned: success
cgroup:
  description:
    - C(layout) (v2, hybrid, v1, none), C(usable) (v2, v1 or empty), C(mount) (whether v2 must be mounted by the role),
      C(mounted) (whether it is), C(lacks).
  type: dict
  returned: success
persistenced:
  description: Of nvidia-persistenced, C(found), C(enabled) and C(running); nothing without systemd.
  type: dict
  returned: success
units:
  description:
    - For each of O(units) C(found), C(warnings), C(sandboxed), C(hindrances),
      and C(running) with C(name), C(main_pid), C(drop_in), C(outdated).
  type: dict
  returned: success
installed:
  description: Whether the script is there.
  type: bool
  returned: success
made:
  description: What the role made on the host besides files, as M(flinkops.gpu.record) has it.
  type: list
  elements: str
  returned: success
record_fault:
  description: Why the record of M(flinkops.gpu.record) can't be read; empty if it can, or there is none.
  type: str
  returned: success
folder_owner:
  description: User and group of the ledgers' folder, as C(flink:flink); empty where there is none.
  type: str
  returned: success
holders:
  description:
    - Who holds GPUs by the ledgers of both modes.
    - C(mode), C(ledger), and C(gpu), C(pid), C(command), C(alive), or C(error).
  type: list
  elements: dict
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.flinkops.gpu.plugins.module_utils import survey


def main() -> None:
    """Answer."""
    module = AnsibleModule(
        argument_spec={
            "units": {"type": "list", "elements": "str", "default": []},
            "users": {"type": "list", "elements": "str", "required": True},
            "group": {"type": "str", "required": True},
            "isolated": {"type": "bool", "default": False},
            "python": {"type": "str"},
        },
        supports_check_mode=True,
    )
    try:
        found = survey.look(module.run_command, **module.params)
    except OSError as error:
        module.fail_json(msg=f"the host can't be looked at: {error}")
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
