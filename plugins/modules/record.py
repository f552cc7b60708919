#!/usr/bin/python
"""Note in the host's record what the role made besides files."""

from __future__ import annotations

DOCUMENTATION = r"""
module: record
short_description: Note what the role made besides files, such as a user or a hold on a package
description:
  - Adds to and strikes off the list in the record of M(flinkops.gpu.host_files), so that the removal of the role
    undoes what the role did and nothing else. Without O(made) and O(unmade) it only reads.
version_added: 0.1.0
author:
  - The flink-gpu-discovery authors
options:
  made:
    description:
      - What to add, such as C(user flink) or C(group flink 300). Note it before it is made, so that no interruption
        loses it.
    type: list
    elements: str
    default: []
  unmade:
    description: What to strike off, after it was undone.
    type: list
    elements: str
    default: []
  record:
    description: The record, for root alone. It is removed when nothing is left in it.
    type: str
    default: /opt/flink-gpu-discovery/record.json
attributes:
  check_mode:
    support: full
    description: Says what the list would be.
  diff_mode:
    support: full
    description: Shows the list before and after.
"""

EXAMPLES = r"""
- name: Note the user that is about to be made
  flinkops.gpu.record:
    made: [user flink]

- name: Read what the role made
  flinkops.gpu.record:
  register: recorded
"""

RETURN = r"""
made:
  description: The whole list, in the order in which it was noted.
  returned: success
  type: list
  elements: str
files:
  description: The paths that M(flinkops.gpu.host_files) took.
  returned: success
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError
from ansible_collections.flinkops.gpu.plugins.module_utils.record_made import note
from ansible_collections.flinkops.gpu.plugins.module_utils.record_store import Store

_OPTIONS = {
    "made": {"type": "list", "elements": "str", "default": []},
    "unmade": {"type": "list", "elements": "str", "default": []},
    "record": {"type": "str", "default": "/opt/flink-gpu-discovery/record.json"},
}


def main() -> None:
    """Run as Ansible's module."""
    module = AnsibleModule(argument_spec=_OPTIONS, supports_check_mode=True)
    parameters = module.params
    both = sorted({*parameters["made"]} & {*parameters["unmade"]})
    if both:
        module.fail_json(msg=f"made and unmade both name {both}: leave it out of one of them")
    try:
        notes = note(Store(parameters["record"]), parameters["made"], parameters["unmade"], check=module.check_mode)
    except FilingError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{error}: see to that, then run again")
    diff = {"before": _lines(notes.before), "after": _lines(notes.made)}
    module.exit_json(changed=notes.changed, made=notes.made, files=notes.files, diff=diff)


def _lines(words: list[str]) -> str:
    return "".join(f"{word}\n" for word in words)


if __name__ == "__main__":
    main()
