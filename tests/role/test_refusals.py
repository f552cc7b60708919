"""What is refused before anything is changed; the message names the variable, its value, and what is allowed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import yaml

from tests.booted.host import BootedHost
from tests.booted.installation import HOME, SUDOERS
from tests.role.fleet import GROUP, ISOLATED, VARIABLES, differences, prepare_gpus, snapshot
from tests.role.outcome import Outcome
from tests.role.playing import ControlNode
from tests.support.script import ROOT

pytestmark = [pytest.mark.booted, pytest.mark.timeout(60, func_only=True)]

SITE = "flinkops.gpu.site"
RULES = ROOT / "roles/flink_gpu/vars/rules.yml"
VISUDO = "/usr/sbin/visudo"
REFUSED = f"{SUDOERS} was refused by '{VISUDO} -cf %s' (exit code 1: syntax error near line 3); nothing was changed"
ACCOUNTS = ("passwd", "shadow", "group", "gshadow")
# What no rule is about but in one with others.
NEVER_ALONE = (
    "flink_gpu_vendor",
    "flink_gpu_deployment",
    "flink_gpu_extra_resources",
    "flink_gpu_isolation",
    "flink_gpu_restart_taskmanagers",
)


class Case(NamedTuple):
    """Values that are refused in one play, and how the messages begin that show more than the one value."""

    values: dict[str, Any]
    others: list[str]

    def expected(self) -> list[str]:
        """How each message begins."""
        told = " ".join([*self.others, *NEVER_ALONE])
        alone = [f"{name} is {json.dumps(value)}" for name, value in self.values.items() if name not in told]
        return sorted([*alone, *self.others])


CASES = {
    "some": Case(
        {
            "flink_gpu_user": "root",
            "flink_gpu_extra_users": ["a b"],
            "flink_gpu_group": "1st",
            "flink_gpu_amount": 0,
            "flink_gpu_resource_name": "none",
            "flink_gpu_script_args": "--id 'uuid'",
            "flink_gpu_deployment": "kubernetes",
            "flink_gpu_taskmanager_units": ["flink.socket"],
            "flink_gpu_backend": "cuda",
            "flink_gpu_deadline": 10,
            "flink_gpu_wait": -1,
            "flink_gpu_max_gpus_per_uid": 10000,
            "flink_gpu_device_allow": ["nvidia"],
            "flink_gpu_rest_url": "jobmanager:8081",
            "flink_gpu_restart_timeout": 0,
            "flink_gpu_expected_gpus": "all",
            "flink_gpu_keep_releases": 1,
            "flink_gpu_python": "python3",
            "flink_gpu_misspelt": True,
            "flink_gpu_conf_dir": "/opt/flink/../conf",
            "flink_gpu_flink_version": "latest",
            "flink_gpu_extra_resources": [{"name": "fpga", "amount": 1, "driver_class": "x.Driver", "args": "--a 'b'"}],
        },
        [
            'flink_gpu_* is ["flink_gpu_misspelt"]',
            'flink_gpu_user, flink_gpu_extra_users is ["root", "a b"]',
            'flink_gpu_amount is ["0", "1"]',
            'flink_gpu_resource_name is ["none", "fpga"]',
            'flink_gpu_conf_dir, flink_gpu_flink_home is ["/opt/flink/../conf", ""]',
            "flink_gpu_extra_resources is refused: external resource 'fpga' has \"--a 'b'\"",
            'flink_gpu_taskmanager_units is ["flink.socket"]',
            'flink_gpu_deployment is "kubernetes" with flink_gpu_isolation "none"'
            ' and flink_gpu_taskmanager_units ["flink.socket"]',
        ],
    ),
    "others": Case(
        {
            "flink_gpu_extra_users": ["flink"],
            "flink_gpu_group": "",
            "flink_gpu_amount": 9999,
            "flink_gpu_extra_resources": [{"name": "gpu", "amount": 1}],
            "flink_gpu_isolation": "cgroup",
            "flink_gpu_coordination": False,
            "flink_gpu_script_args": "two\nlines",
            "flink_gpu_taskmanager_units": ["../x.service"],
            "flink_gpu_backend": "simulated:4,nodes=/dev/nvidia",
            "flink_gpu_deadline": 0.5,
            "flink_gpu_wait": 0.5,
            "flink_gpu_max_gpus_per_uid": 1,
            "flink_gpu_device_allow": ["char-nvidia rwx"],
            "flink_gpu_restart_taskmanagers": True,
            "flink_gpu_expected_gpus": -1,
            "flink_gpu_python": "/opt/my python",
        },
        [
            'flink_gpu_user, flink_gpu_extra_users is ["flink", "flink"]',
            'flink_gpu_amount is ["9999", "1"]',
            'flink_gpu_resource_name is ["gpu", "gpu"]',
            "flink_gpu_coordination is false",  # isolation alone is good
            'flink_gpu_rest_url is ""',  # which restarting needs
        ],
    ),
    "ends-of-lines": Case(
        {
            "flink_gpu_user": "flink\n",
            "flink_gpu_group": "flink\n",
            "flink_gpu_resource_name": "gpu\n",
            "flink_gpu_script_args": "--id uuid\n",
            "flink_gpu_taskmanager_units": ["x.service\n"],
            "flink_gpu_backend": "auto\n",
            "flink_gpu_device_allow": ["char-nvidia rw\n"],
            "flink_gpu_rest_url": "http://jobmanager:8081\n",
            "flink_gpu_expected_gpus": "4\n",
            "flink_gpu_python": "/usr/bin/python3\n",
        },
        [r'flink_gpu_user, flink_gpu_extra_users is ["flink\n"]', r'flink_gpu_resource_name is ["gpu\n"]'],
    ),
    "what-passes-for-something-else": Case(
        {
            "flink_gpu_amount": True,
            "flink_gpu_vendor": "amd",
            "flink_gpu_backend": "nvml",
            "flink_gpu_script_args": "--id 49",
            "flink_gpu_taskmanager_units": ["-Hhost.service"],
            "flink_gpu_deadline": "8_0",
            "flink_gpu_wait": "1e-3",
            "flink_gpu_extra_resources": [{"name": "b", "amount": 1, "args": "--ledger /x"}],
            "flink_gpu_flink_home": "flink",
            "flink_gpu_flink_version": "2.3.0\n",
        },
        [
            'flink_gpu_extra_resources is with args ["--ledger /x"]',
            'flink_gpu_conf_dir, flink_gpu_flink_home is ["", "flink"]',
            'flink_gpu_amount is ["True", "1"]',
            'flink_gpu_backend is "nvml" with flink_gpu_vendor "amd"',
        ],
    ),
    "what-confined-calls-can-not-say": Case(
        {"flink_gpu_isolation": "cgroup", "flink_gpu_script_args": "--debug --wait=3"}, []
    ),
    "resources-told-by-hand": Case(
        {
            "flink_gpu_script_args": "--resource other",
            "flink_gpu_extra_resources": [{"name": "b", "amount": 1, "args": "--resource b"}],
        },
        ['flink_gpu_extra_resources is with args ["--resource b"]'],
    ),
    "two-resources-of-one-device": Case(
        {"flink_gpu_deployment": "yarn", "flink_gpu_extra_resources": [{"name": "b", "amount": 1}]},
        [
            "flink_gpu_extra_resources is not to be had together: external resources gpu, b all have the config-key"
            " 'yarn.io/gpu', and Flink would ask for the last one's amount alone"
        ],
    ),
    "what-sudo-takes-for-everybody": Case(
        {"flink_gpu_extra_users": ["ALL"]}, ['flink_gpu_user, flink_gpu_extra_users is ["flink", "ALL"]']
    ),
    "what-is-no-text": Case(
        {"flink_gpu_extra_users": [None]},
        ['flink_gpu_user, flink_gpu_extra_users is ["flink", null]'],
    ),
}
GOOD: dict[str, Any] = {
    "flink_gpu_user": "_flink-1.x",
    "flink_gpu_extra_users": ["Flink", f"A{'b' * 31}"],
    "flink_gpu_amount": 9998,
    "flink_gpu_extra_resources": [
        {"name": "None", "amount": 1, "args": "--id uuid", "config_key": "nvidia.com/mig-1g.5gb"},
    ],
    "flink_gpu_flink_version": "2.3-SNAPSHOT",
    "flink_gpu_max_gpus_per_uid": 9999,
    "flink_gpu_script_args": "--id uuid --wait=2 --take-busy",
    "flink_gpu_taskmanager_units": ["a.service", "b@.service", r"c@x\x2dy:1.service"],
    "flink_gpu_backend": "simulated:16,nodes=/dev/dri/card%d",
    "flink_gpu_deadline": 9.9,
    "flink_gpu_wait": "9.8",
    "flink_gpu_device_allow": ["/dev/nvidia0 rw", "char-nvidia-uvm rwm"],
    "flink_gpu_restart_taskmanagers": "yes",
    "flink_gpu_rest_url": "https://jobmanager:8081/flink",
    "flink_gpu_expected_gpus": "0",
    "flink_gpu_python": "/usr/bin/python3.11",
}
# As argument_specs has them; a play ends with the first of them.
OUT_OF_KIND = {
    "flink_gpu_state": ("gone", "must be one of: present, absent, got: gone"),
    "flink_gpu_vendor": ("intel", "must be one of: nvidia, amd, got: intel"),
    "flink_gpu_deployment": ("mesos", "must be one of: standalone, yarn, kubernetes, got: mesos"),
    "flink_gpu_isolation": ("docker", "must be one of: none, cgroup, got: docker"),
    "flink_gpu_check_dead": ("perhaps", "'perhaps' is not a valid boolean"),
    "flink_gpu_amount": ("many", "cannot be converted to an int"),
    "flink_gpu_extra_resources": ([{"name": "a"}], "missing required arguments: amount"),
}
SUDOERS_WORDS = ["Defaults", "User_Alias", "Runas_Alias", "Host_Alias", "Cmnd_Alias", "Cmd_Alias", "sudoedit", "sha256"]
TRY_SUDOERS = "printf '%s ALL=(root) NOPASSWD: /bin/true\\n' \"$1\" >/run/try && visudo -cf /run/try"
UNITS = {
    "delegated.service": "User=flink\nDelegate=yes",
    "closed@.service": "User=flink\nNoNewPrivileges=yes\nPrivateDevices=yes",
    "foreign.service": "User=daemon",
}


def refused(control: ControlNode, host: BootedHost, variables: dict[str, Any]) -> str:
    """The message; nothing is changed, nor said to be."""
    outcome: Outcome = control.play(SITE, [host], variables=variables, group=GROUP)
    assert (outcome.rc, outcome.changed, len(outcome.failures)) == (2, [], 1)
    return outcome.failures[0]


@pytest.fixture(scope="class")
def prepared(host: BootedHost) -> BootedHost:
    """With a user who has no group of its own, and units that don't fit."""
    host.succeed("useradd", "--no-user-group", "flink")
    for name, lines in UNITS.items():
        host.unit(name, f"[Service]\n{lines}\nExecStart=/bin/true\n")
    return host


class TestRefusals:
    """On one host, on which nothing is installed, nor after any of them."""

    @pytest.fixture(autouse=True)
    def unchanged(self, prepared: BootedHost) -> Iterator[None]:
        """The host stays as it is, but for what a test puts there before and takes away after its play."""
        before = snapshot(prepared)
        yield
        assert differences(before, snapshot(prepared)) == {}

    @pytest.mark.parametrize("case", CASES)
    def test_bad_values_are_named_with_what_is_allowed(self, control: ControlNode, host: BootedHost, case: str) -> None:
        said = refused(control, host, CASES[case].values).split(". flink_gpu_")
        sentences = [said[0], *(f"flink_gpu_{rest}" for rest in said[1:])]
        assert sorted(sentence.partition("; allowed: ")[0] for sentence in sentences) == CASES[case].expected()
        assert all(sentence.partition("; allowed: ")[2] for sentence in sentences)

    def test_what_sudo_takes_for_a_word_of_its_own_names_no_user(self, control: ControlNode, host: BootedHost) -> None:
        words = [word for word in SUDOERS_WORDS if host.run("sh", "-c", TRY_SUDOERS, "sh", word).code != 0]
        assert words == SUDOERS_WORDS
        for word in words:
            assert refused(control, host, {"flink_gpu_user": word}).startswith("flink_gpu_user, flink_gpu_extra_users")

    def test_a_text_is_not_taken_for_a_list(self, control: ControlNode, host: BootedHost) -> None:
        said = refused(control, host, {"flink_gpu_extra_users": "one"})
        assert said.startswith("flink_gpu_extra_users is one; allowed: lists")

    def test_what_is_no_text_is_not_made_one(self, control: ControlNode, host: BootedHost) -> None:
        values = {"flink_gpu_flink_version": 1.20, "flink_gpu_script_args": None, "flink_gpu_group": True}
        said = refused(control, host, values)
        assert said == (
            "flink_gpu_group is true, flink_gpu_script_args is null, flink_gpu_flink_version is 1.2;"
            " allowed: texts, in YAML and JSON within quotes"
        )

    def test_every_rule_is_broken_here(self) -> None:
        rules = yaml.safe_load(RULES.read_text())["__flink_gpu_rules"]
        subjects = {rule["message"].partition(" is ")[0] for rule in rules}
        assert subjects == {told.partition(" is ")[0] for case in CASES.values() for told in case.expected()}

    def test_values_of_the_wrong_kind_are_all_named(self, control: ControlNode, host: BootedHost) -> None:
        said = refused(control, host, {name: value for name, (value, _) in OUT_OF_KIND.items()})
        missing = [name for name, (_, words) in OUT_OF_KIND.items() if name not in said or words not in said]
        assert missing == [], said

    def test_values_at_the_edge_are_good(self, control: ControlNode, host: BootedHost) -> None:
        said = refused(control, host, GOOD)
        assert said.startswith(f"the users _flink-1.x, Flink, {GOOD['flink_gpu_extra_users'][1]} do not exist")

    def test_all_that_stands_in_the_way_is_named_at_once(self, control: ControlNode, host: BootedHost) -> None:
        variables = {
            **ISOLATED,
            "flink_gpu_create_user": False,
            "flink_gpu_extra_users": ["one", "two"],
            "flink_gpu_taskmanager_units": list(UNITS),
            "ansible_become": False,  # which Ansible itself needs sudo for
        }
        host.succeed("mv", "/usr/bin/sudo", VISUDO, "/root")
        said = refused(control, host, variables)
        host.succeed("sh", "-ec", f"mv /root/sudo /usr/bin; mv /root/visudo {VISUDO}")
        keeps = "keeps it from being confined (docs/security.md)"
        assert said.split("; ") == [
            "the users one, two do not exist",
            "make them, or set flink_gpu_create_user",
            "flink_gpu_isolation cgroup needs sudo and visudo, missing here",
            "install the package sudo, or set flink_gpu_install_packages",
            f"delegated.service: Delegate=yes {keeps}",
            f"closed@.service: NoNewPrivileges=yes {keeps}",
            f"closed@.service: PrivateDevices=yes {keeps}",
            "foreign.service: User=daemon is not among flink_gpu_user and flink_gpu_extra_users (flink, one, two)",
        ]

    @pytest.mark.parametrize(
        ("python", "why"),
        [
            ("/nonexistent", "no Python >= 3.9 on this host (/nonexistent: not there)"),
            ("/home/flink/python3", "/home/flink, on the way to /home/flink/python3, belongs to uid "),
        ],
    )
    def test_a_python_that_will_not_do_is_named_before_users_are_made(
        self, control: ControlNode, host: BootedHost, python: str, why: str
    ) -> None:
        host.succeed("install", "--directory", "--owner=flink", "/home/flink")
        host.succeed("ln", "-sf", "/usr/bin/python3", "/home/flink/python3")
        said = refused(control, host, {**VARIABLES, "flink_gpu_python": python, "flink_gpu_extra_users": ["one"]})
        assert said.startswith(f'flink_gpu_python is "{python}": {why}')

    def test_what_hinders_isolation_alone_hinders_nothing_else(self, control: ControlNode, host: BootedHost) -> None:
        variables = {**VARIABLES, "flink_gpu_create_user": False, "flink_gpu_taskmanager_units": list(UNITS)[:2]}
        said = refused(control, host, variables)
        assert said == "the group flink does not exist; make it, or set flink_gpu_create_user"

    def test_a_platform_whose_paths_are_unknown_is_named(self, control: ControlNode, host: BootedHost) -> None:
        host.write("/etc/arch-release", "")
        said = refused(control, host, VARIABLES)
        host.succeed("rm", "/etc/arch-release")
        assert said.endswith("is of the family Archlinux; known are Debian, RedHat and Suse")

    def test_a_damaged_record_stays_as_it_is(self, control: ControlNode, host: BootedHost) -> None:
        path = f"{HOME}/record.json"
        host.write(path, "half of it", mode=0o600)
        said = refused(control, host, VARIABLES)
        assert host.succeed("cat", path) == "half of it"
        host.succeed("rm", "-r", HOME)
        assert said.startswith(f"the record {path} is damaged")


def test_a_sudoers_file_that_visudo_refuses_never_lands(control: ControlNode, host: BootedHost) -> None:
    """Nor does anything beside it; one from an earlier installation stays."""
    prepare_gpus(host)
    host.write(VISUDO, "#!/bin/sh\necho 'syntax error near line 3'\nexit 1\n", mode=0o755)
    host.write(SUDOERS, "# Managed by Ansible: flinkops.gpu\n", mode=0o440)
    before = snapshot(host)
    outcome = control.play(SITE, [host], variables=ISOLATED, group=GROUP)
    assert outcome.failures == [REFUSED]
    landed = differences(before, snapshot(host)).keys() - {f"/etc/{name}" for name in ACCOUNTS}
    assert {path for path in landed if not path.startswith(HOME)} == set()
