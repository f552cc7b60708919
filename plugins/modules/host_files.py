#!/usr/bin/python
"""Install a set of files as one, and give back what was there before."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_files
short_description: Install a set of root's files as one, and give back what was there before
description:
  - Lets exactly the given files and symbolic links stand on the host, of all that its record knows. Paths that the
    record names and the list does not are given back; what the operator had there before comes back, with mode,
    owner, times and extended attributes.
  - Each file is replaced atomically, and none before the validators have accepted all. A run that is killed is
    mended by the next one, whether that installs or removes.
  - "A file with the words C(Managed by Ansible: flinkops.gpu), and a link to the same target, count as installed
    earlier even if the record was lost."
version_added: 0.1.0
author:
  - The flink-gpu-discovery authors
options:
  files:
    description: The files and links; root owns them all. Missing folders are made, C(0755), and go with the last file.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: Where it stands, as an absolute path. Its folders must be root's, and writable for no one else.
        type: str
        required: true
      content:
        description: The text of a file.
        type: str
      link:
        description: The target of a symbolic link.
        type: str
      mode:
        description: The mode of a file, four octal digits in quotes.
        type: str
        default: '0644'
      validate:
        description: A command that accepts or refuses the file, whose place is C(%s). It is run without a shell.
        type: str
        default: ''
  after:
    description:
      - Whom to tell that something changed C(below) a folder, once all files are in their places. What an interrupted
        run did not get to is made up for by the next one.
    type: list
    elements: dict
    default: []
    suboptions:
      below:
        description: The folder.
        type: str
        required: true
      command:
        description: The command, which is run without a shell.
        type: str
        required: true
  known:
    description:
      - Paths, or patterns of them, at which an earlier installation may have left something whose record is lost. What
        has the marker there, or is a link to something that has, or into C(current/) beside the record, is given back
        as if the record named it.
    type: list
    elements: str
    default: []
  record:
    description: The record of what was installed, for root alone. Its folder is made, and removed when it gets empty.
    type: str
    default: /opt/flink-gpu-discovery/record.json
  state:
    description:
      - V(present) takes O(files) as the complete set.
      - V(absent) gives back all that the record names. A file that was edited since stays, with the ending
        C(.flink-gpu-removed). The record goes too, unless M(flinkops.gpu.record) noted things in it.
    type: str
    choices: [present, absent]
    default: present
attributes:
  check_mode:
    support: full
    description: Says what a run would do, validators' verdicts included.
  diff_mode:
    support: full
    description: Shows contents.
"""

EXAMPLES = r"""
- name: Install two files and a link
  flinkops.gpu.host_files:
    files:
      - path: /etc/flink-gpu-discovery.conf
        content: "{{ lookup('ansible.builtin.template', 'flink-gpu-discovery.conf.j2') }}"
      - path: /etc/sudoers.d/flink-gpu-discovery
        content: "{{ lookup('ansible.builtin.template', 'sudoers.j2') }}"
        mode: '0440'
        validate: visudo -cf %s
      - path: /usr/local/bin/flink-gpu-discovery
        link: /opt/flink-gpu-discovery/current/bin/flink-gpu-discovery
    after:
      - below: /etc/systemd/system
        command: systemctl daemon-reload

- name: Give everything back
  flinkops.gpu.host_files:
    state: absent
"""

RETURN = r"""
paths:
  description: The paths at which something changed.
  returned: success
  type: list
  elements: str
actions:
  description: What was done, or would be, in words; also what was left alone and why.
  returned: success
  type: list
  elements: str
made:
  description: What M(flinkops.gpu.record) noted and not yet struck off.
  returned: success
  type: list
  elements: str
"""

from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files import arrange
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_after import after_from
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_wanted import wanted_from
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError
from ansible_collections.flinkops.gpu.plugins.module_utils.record_store import Store

_FILE = {
    "path": {"type": "str", "required": True},
    "content": {"type": "str"},
    "link": {"type": "str"},
    "mode": {"type": "str", "default": "0644"},
    "validate": {"type": "str", "default": ""},
}
_AFTER = {
    "below": {"type": "str", "required": True},
    "command": {"type": "str", "required": True},
}
_OPTIONS = {
    "files": {"type": "list", "elements": "dict", "options": _FILE, "default": []},
    "after": {"type": "list", "elements": "dict", "options": _AFTER, "default": []},
    "known": {"type": "list", "elements": "str", "default": []},
    "record": {"type": "str", "default": "/opt/flink-gpu-discovery/record.json"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def main() -> None:
    """Run as Ansible's module."""
    module = AnsibleModule(argument_spec=_OPTIONS, supports_check_mode=True)
    if module.params["state"] == "absent" and module.params["files"]:
        module.fail_json(msg="files: nothing can be wanted with state absent, leave it out")

    def label(staged: str, path: str) -> None:
        if module.selinux_enabled():
            module.set_context_if_different(staged, module.selinux_default_context(path), False)

    try:
        wanted = wanted_from(module.params["files"])
        store = Store(module.params["record"])
        after = after_from(module.params["after"])
        outcome = arrange(
            store,
            wanted,
            folder=module.tmpdir,
            check=module.check_mode,
            label=label,
            after=after,
            known=module.params["known"],
        )
    except FilingError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"{error}: see to that, then run again; what was begun is recorded")
    module.exit_json(**asdict(outcome))


if __name__ == "__main__":
    main()
