"""The module ``flink_conf`` as Ansible runs it."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.flinkops.gpu.plugins.modules import flink_conf

from tests.plugins.filing import ansible
from tests.plugins.flinkfolder import FLINK, about, flink_folder, mounted

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
SECRET = b"s3.secret-key: HUSH\n"


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    folder = flink_folder(tmp_path)
    (folder / "config.yaml").write_bytes(SECRET)
    return folder


def parameters(conf: Path, content: bytes) -> dict[str, Any]:
    read = ansible("flink_conf", {"conf_dir": str(conf)})
    assert not read["changed"]
    sha256 = read["files"]["config.yaml"]["sha256"]
    return {"conf_dir": str(conf), "name": "config.yaml", "content": encoded(content), "sha256": sha256}


def test_a_file_is_foretold_and_replaced_and_its_secrets_stay_out_of_what_is_shown(conf: Path) -> None:
    new = SECRET + b"k: 2\n"
    wanted = {**parameters(conf, new), "backup": True}
    foretold = ansible("flink_conf", wanted, "--check", "--diff", "-vvv")
    assert about(conf / "config.yaml") == (SECRET, FLINK, 0o640)
    done = ansible("flink_conf", wanted, "--diff", "-v")
    assert about(conf / "config.yaml") == (new, FLINK, 0o640)
    assert (foretold["changed"], foretold["backup_file"], done["changed"]) == (True, "", True)
    assert Path(done["backup_file"]).read_bytes() == SECRET
    for result in (foretold, done):
        assert "files" not in result
        assert "+k: 2" in result["shown"]
        assert not [hidden for hidden in ("HUSH", encoded(SECRET)[:24], encoded(new)[:24]) if hidden in result["shown"]]
    again = ansible("flink_conf", wanted)
    assert "is not what the new content was made from" in again["msg"]
    assert not ansible("flink_conf", parameters(conf, new))["changed"]


def test_a_fault_is_told_on_reading_and_a_failure_on_replacing(conf: Path) -> None:
    wanted = parameters(conf, b"k: 2\n")
    conf.rename(conf.with_name("real"))
    conf.symlink_to("real")
    told = ansible("flink_conf", {"conf_dir": str(conf)})
    assert told["fault"].startswith(f"{conf} is a link to real, which root doesn't follow")
    for options in ((), ("--check",)):
        refused = ansible("flink_conf", wanted, *options)
        assert refused["msg"] == told["fault"]
    assert (conf / "config.yaml").read_bytes() == SECRET


def test_a_mounted_file_is_refused_when_it_is_foretold_as_well(conf: Path) -> None:
    wanted = parameters(conf, b"k: 2\n")
    python = f"from tests.plugins.filing import ansible; print(ansible('flink_conf', {wanted!r}, '--check')['msg'])"
    shown = mounted(f"mount --bind {conf}/config.yaml {conf}/config.yaml", python)
    assert shown.startswith(f"{conf}/config.yaml is a mount point and can't be replaced")


def test_documentation_and_options_agree() -> None:
    documented = yaml.safe_load(flink_conf.DOCUMENTATION)["options"]
    for option in documented.values():
        del option["description"]
    documented["content"]["no_log"] = True  # which documentation has no word for
    assert documented == flink_conf._OPTIONS
    assert yaml.safe_load(flink_conf.EXAMPLES)
    assert yaml.safe_load(flink_conf.RETURN)
