"""What tests of edited ``config.yaml`` have in common."""

from __future__ import annotations

from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf import merge, remove
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import GPU_DRIVER, Resource, wanted_settings

FORMAT = "config-yaml"
WANTED = wanted_settings([Resource("gpu", 2, script="/s")])
NESTED = f"""\
external-resource:
  gpu:
    amount: 2
    driver-factory:
      class: {GPU_DRIVER}
    param:
      discovery-script:
        path: /s
"""
CLASS = f"external-resource.gpu.driver-factory.class: {GPU_DRIVER}\n"
PATH = "external-resource.gpu.param.discovery-script.path: /s\n"
REST = "external-resources: [gpu]\n" + CLASS + PATH
OF_ONE = "".join(f"{line}\n" for line in NESTED.replace("amount: 2", "amount: 1").splitlines()[2:])
AMOUNT = "external-resource.gpu.amount"


def merged(text: str, wanted: dict[str, str] | None = None, drop: tuple[str, ...] = ()) -> str:
    """Merged twice, which has to be the same as once."""
    result = merge(text.encode(), FORMAT, wanted or WANTED, drop)
    assert merge(result, FORMAT, wanted or WANTED) == result
    return result.decode()


def removed(text: str, *names: str) -> str:
    """Without these resources, or without ``gpu``."""
    return remove(text.encode(), FORMAT, names or ("gpu",)).decode()
