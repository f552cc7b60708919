#!/usr/bin/python
"""The module ``flinkops.gpu.ledger_folder``; what it does is in ``module_utils/ledger_folder.py``."""

from __future__ import annotations

DOCUMENTATION = r"""
module: ledger_folder
short_description: Make or remove the folder of flink-gpu-discovery's ledgers
description:
  - Gives the folder its owner, and with it the ledger, or removes from it what stands in the way of isolation. Follows
    no link that a user may have put there.
options:
  path:
    description: The folder.
    type: str
    default: /run/flink-gpu-discovery
  state:
    description:
      - V(absent) removes the ledgers, and the folder if nothing else is in it. Not while TaskManagers hold GPUs.
    type: str
    choices: [present, absent]
    default: present
  isolated:
    description: Whether it is for isolation, so root's.
    type: bool
    default: false
  owner:
    description: The user who owns it without isolation.
    type: str
    default: root
  group:
    description: The group whose members share the ledger without isolation.
    type: str
    default: root
  claim:
    description: The file of systemd-tmpfiles that makes the folder. It stays with one that isn't the role's.
    type: str
    default: /etc/tmpfiles.d/flink-gpu-discovery.conf
  claimed:
    description: Whether one that isn't the role's will be there; for check mode.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Says what a run would do. A user or a group that is not there yet is passed over.
author:
  - The flink-gpu-discovery authors (@flinkops)
"""

EXAMPLES = r"""
- name: Make the folder
  flinkops.gpu.ledger_folder:
    owner: flink
    group: flink
"""

RETURN = r"""
actions:
  description: What was done, or would be, and what was left alone.
  type: list
  elements: str
  returned: success
"""

import grp
import pwd

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.flinkops.gpu.plugins.module_utils import ledger_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OPTIONS = {
    "path": {"type": "str", "default": "/run/flink-gpu-discovery"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "isolated": {"type": "bool", "default": False},
    "owner": {"type": "str", "default": "root"},
    "group": {"type": "str", "default": "root"},
    "claim": {"type": "str", "default": "/etc/tmpfiles.d/flink-gpu-discovery.conf"},
    "claimed": {"type": "bool", "default": False},
}


def main() -> None:
    """Run as Ansible's module."""
    module = AnsibleModule(argument_spec=_OPTIONS, supports_check_mode=True)
    parameters = module.params
    try:
        actions = _carry_out(parameters, check=module.check_mode)
    except ledger_folder.FolderError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{error}: see to that, then run again")
    changed = any(not action.startswith("leave ") for action in actions)
    module.exit_json(changed=changed, actions=actions)


def _carry_out(parameters: dict[str, Any], *, check: bool) -> list[str]:
    path = parameters["path"]
    if parameters["state"] == "absent":
        claim, claimed = parameters["claim"], parameters["claimed"]
        return list(ledger_folder.absent(path, claim, check=check, claimed=claimed))
    if parameters["isolated"]:
        owner = ledger_folder.Owner(0, 0, 0o755)
    else:
        uid, gid = _uid(parameters["owner"], check), _gid(parameters["group"], check)
        owner = ledger_folder.Owner(uid, gid, 0o770)
    return list(ledger_folder.present(path, owner, check=check))


def _uid(name: str, check: bool) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError as error:
        if check:
            return None
        raise ledger_folder.FolderError(f"there is no user {name}: make it") from error


def _gid(name: str, check: bool) -> int | None:
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError as error:
        if check:
            return None
        raise ledger_folder.FolderError(f"there is no group {name}: make it") from error


if __name__ == "__main__":
    main()
