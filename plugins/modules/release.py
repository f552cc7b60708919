#!/usr/bin/python
"""The module ``flinkops.gpu.release``: its host side; what it does is in ``module_utils/release*.py``."""

from __future__ import annotations

DOCUMENTATION = r"""
module: release
short_description: Install, roll back or remove releases of flink-gpu-discovery on a host
description:
  - Ships the package that this collection holds, its scripts and NVIDIA's C(pynvml.py) to C(ROOT/releases/NAME),
    compiles them with the host's own Python, and makes them current by switching the link C(ROOT/current) at once.
  - The controller makes one archive, the same for the same input; it is uploaded only to hosts that lack some of it.
    Nothing is built on the host, and it needs no network.
  - A damaged release is mended file by file while task executors use it. A run that was interrupted is mended by the
    next one.
options:
  state:
    description:
      - C(rolled_back) makes O(to), or else the release that was current before, the current one.
      - Without O(to) it changes nothing where a release was rolled back to and none was installed (C(present)) since,
        so that it can be repeated.
    type: str
    choices: [present, absent, rolled_back]
    default: present
  root:
    description:
      - The folder that holds the releases; only root may write to it and to those above it.
      - The one above it must exist.
    type: path
    default: /opt/flink-gpu-discovery
  python:
    description:
      - Absolute path of the host's Python (3.9 or newer) that starts the scripts. It, every link that leads to it and
        the folders on the way must be root's alone, else it is not even started.
      - Empty stands for the first new enough of C(/usr/bin/python3), C(/usr/bin/python3.13) to C(/usr/bin/python3.9).
    type: str
    default: ''
  keep:
    description: So many releases stay, those last made current; at least 2, as calls may still read the previous one.
    type: int
    default: 2
  to:
    description: With O(state=rolled_back), the name of the release to go to.
    type: str
    default: ''
  pynvml:
    description:
      - Path on the controller of a C(pynvml.py), or of a wheel C(nvidia_ml_py-*.whl) that holds it.
      - Empty stands for the distribution C(nvidia-ml-py) of the Python that runs Ansible.
    type: str
    default: ''
  bundle_pynvml:
    description: Whether C(pynvml.py) is part of the release; hosts with AMD's GPUs do without.
    type: bool
    default: true
  name:
    description: The release's name, set by the action plugin.
    type: str
    default: ''
  manifest:
    description: The release's MANIFEST, set by the action plugin.
    type: str
    default: ''
  archive:
    description: Path on the host of the uploaded archive, set by the action plugin.
    type: path
    default: ''
attributes:
  check_mode:
    description: Changes nothing, uploads nothing, and says what would be done.
    support: full
  diff_mode:
    description: Shows the current release, all releases, the Python, and what is damaged.
    support: full
author:
  - The flink-gpu-discovery authors (@flinkops)
"""

EXAMPLES = r"""
- name: Install the release that this collection holds
  flinkops.gpu.release:
    keep: 3

- name: Go back to the release before
  flinkops.gpu.release:
    state: rolled_back

- name: Remove all releases
  flinkops.gpu.release:
    state: absent
"""

RETURN = r"""
release:
  description: The release that is current afterwards.
  type: str
  returned: success
  sample: 0.1.0-0123456789ab
current:
  description: The release that was current before; empty if there was none.
  type: str
  returned: success
previous:
  description: The release to which O(state=rolled_back) without O(to) would go next; empty if it would go nowhere.
  type: str
  returned: success
releases:
  description: All releases afterwards, the one most recently current first.
  type: list
  elements: str
  returned: success
python:
  description: C(path) and C(version) of the Python that starts the scripts; empty with O(state=absent).
  type: dict
  returned: success
actions:
  description: What was done, or in check mode would be done, in words.
  type: list
  elements: str
  returned: success
  sample: [unpack 0.1.0-0123456789ab, compile for Python 3.11.2 (/usr/bin/python3)]
note:
  description: Why O(state=rolled_back) does not go further back; empty otherwise.
  type: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.flinkops.gpu.plugins.module_utils import release
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError
from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import ReleaseError
from ansible_collections.flinkops.gpu.plugins.module_utils.release_plan import Wish

_WISHES = ("state", "name", "manifest", "archive", "python", "keep", "to")


def main() -> None:
    """Act and answer."""
    module = AnsibleModule(argument_spec=release.ARGUMENTS, supports_check_mode=True)
    wish = Wish(**{key: module.params[key] for key in _WISHES})
    try:
        result = release.run(module.params["root"], wish, check=module.check_mode)
    except (ReleaseError, FilingError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg=f"the release can't be brought to {wish.state}: {error}; mend that and run again")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
