"""The host of the refusals: sudo has its reasons, and after all of them nothing has changed."""

from __future__ import annotations

import pytest

from tests.molecule.conftest import Site
from tests.molecule.listing import everything, lasting, prepared
from tests.role.fleet import differences
from tests.role.invalid_values import SUDOERS_WORDS

pytestmark = pytest.mark.timeout(60, func_only=True)

TRY_SUDOERS = "printf '%s ALL=(root) NOPASSWD: /bin/true\\n' \"$1\" >/run/try && visudo -cf /run/try"


def test_the_whole_host_is_as_it_was_prepared(site: Site) -> None:
    assert differences(lasting(prepared(site, "everything")), everything(site)) == {}


def test_sudo_takes_no_refused_name_for_that_of_a_user(site: Site) -> None:
    """Each is for all users, or a syntax error; only with other names a rule is one user's."""
    said = {word: site.host.run("sh", "-c", TRY_SUDOERS, "sh", word).code for word in (*SUDOERS_WORDS, "flink")}
    assert said.pop("flink") == 0
    assert said.pop("ALL") == 0
    assert 0 not in said.values()
