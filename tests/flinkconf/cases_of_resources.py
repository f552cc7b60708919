"""Further cases: how external resources, their amounts and their scripts are written."""

from __future__ import annotations

from .answers import AMOUNTS, BOTH, GPU, NULL, RESOURCES, Answer, Case, Loads, Refuses, case, ignored, named

IN_A_BLOCK = "external-resource:\n  gpu:\n    param:\n"


def amount(written: str, flat: Answer, yaml: Answer | None = None) -> Case:
    """Describe how an amount of GPUs is read."""
    return case(f"amount {written}", f"external-resources: gpu\n{GPU}amount: {written}\n", flat, yaml)


def used(value: str, amount: str = "", says: str = "") -> Loads:
    """Return the answer to a value that comes to that amount, or to none."""
    settings = {"external-resources": "gpu", f"{GPU}amount": value}
    return Loads(settings, {"gpu": amount} if amount else {}, says=says)


def unusable(value: str) -> Loads:
    """Return the answer to a value that loads, and with which no TaskManager starts."""
    return used(value, says=f"IllegalArgumentException: Could not parse value '{value}' for key '{GPU}amount'.")


OF_RESOURCES: tuple[Case, ...] = (
    case(
        "list without indentation",
        f"external-resources:\n- gpu\n- fpga\n{BOTH}",
        Loads(AMOUNTS, skipped=(1, 2, 3)),
        Loads(named("[gpu, fpga]"), RESOURCES),
    ),
    case(
        "names with a semicolon and a blank",
        f"external-resources: gpu; fpga\n{BOTH}",
        Loads(named("gpu; fpga"), RESOURCES),
    ),
    case(
        "names with a blank",
        f"external-resources: gpu fpga\n{BOTH}",
        Loads(named("gpu fpga"), says=ignored("gpu fpga")),
    ),
    case(
        "semicolon at the end",
        f"external-resources: gpu;\n{GPU}amount: 2\n",
        Loads({f"{GPU}amount": "2", "external-resources": "gpu;"}, {"gpu": "2"}),
    ),
    case(
        "empty list of names",
        f"external-resources: []\n{GPU}amount: 2\n",
        Loads({f"{GPU}amount": "2", "external-resources": "[]"}, says=ignored("[]")),
        Loads({f"{GPU}amount": "2", "external-resources": "[]"}),
    ),
    case(
        "names without a value",
        f"external-resources:\n{GPU}amount: 2\n",
        Loads({f"{GPU}amount": "2"}, skipped=(1,)),
        NULL,
    ),
    case(
        "none beside a name",
        f"external-resources: none;gpu\n{GPU}amount: 2\n",
        Loads({f"{GPU}amount": "2", "external-resources": "none;gpu"}, {"gpu": "2"}, says=ignored("none")),
    ),
    case(
        "the same name twice",
        f"external-resources: gpu;gpu\n{GPU}amount: 2\n",
        Loads({f"{GPU}amount": "2", "external-resources": "gpu;gpu"}, {"gpu": "2"}),
    ),
    case(
        "name that is a number",
        f"external-resources: [1, gpu]\nexternal-resource.1.amount: 3\n{GPU}amount: 2\n",
        Loads(
            {"external-resource.1.amount": "3", f"{GPU}amount": "2", "external-resources": "[1, gpu]"},
            says=ignored("[1, gpu]"),
        ),
        Loads(
            {"external-resource.1.amount": "3", f"{GPU}amount": "2", "external-resources": "[1, gpu]"},
            {"1": "3", "gpu": "2"},
        ),
    ),
    case(
        "null among the names",
        f"external-resources: [gpu, ~]\n{GPU}amount: 2\n",
        Loads({f"{GPU}amount": "2", "external-resources": "[gpu, ~]"}, says=ignored("[gpu, ~]")),
        Loads({f"{GPU}amount": "2", "external-resources": "[gpu, null]"}, says=ignored("[gpu, null]")),
    ),
    case(
        "a key below external-resources",
        f"external-resources: gpu\nexternal-resources.x: 1\n{GPU}amount: 2\n",
        Loads({f"{GPU}amount": "2", "external-resources": "gpu", "external-resources.x": "1"}, {"gpu": "2"}),
    ),
    case(
        "list of names as a string",
        f"external-resources: '[gpu, fpga]'\n{BOTH}",
        Loads(
            named("'[gpu, fpga]'"),
            says=ignored("[gpu, fpga]"),
        ),
        Loads(named("[gpu, fpga]"), RESOURCES),
    ),
    amount("'2'", unusable("'2'"), used("2", "2")),
    amount("0", used("0", says="The amount of the 0 should be positive while finding gpu.")),
    amount("-1", used("-1", says="The amount of the -1 should be positive while finding gpu.")),
    amount("0x10", unusable("0x10"), used("16", "16")),
    amount("010", used("010", "10"), used("10", "10")),
    amount("1e3", unusable("1e3"), unusable("1000.0")),
    amount("two", unusable("two")),
    amount("+2", used("+2", "2"), used("2", "2")),
    case("no amount", "external-resources: gpu\n", Loads({"external-resources": "gpu"}, says=ignored("gpu"))),
    case(
        "list of blocks",
        "external-resource:\n  - gpu: {amount: 2}\n",
        Loads({"- gpu": "{amount: 2}"}, skipped=(1,)),
        Loads({"external-resource": "[{gpu: {amount: 2}}]"}),
    ),
    case(
        "FLIP-108's keys, flat in a block",
        f"{IN_A_BLOCK}      discovery-script: /x\n      discovery-script.args: --a b\n",
        Loads({"discovery-script": "/x", "discovery-script.args": "--a b"}, skipped=(1, 2, 3)),
        Loads({f"{GPU}param.discovery-script": "/x", f"{GPU}param.discovery-script.args": "--a b"}),
    ),
    case(
        "FLIP-108's keys, nested",
        f"{IN_A_BLOCK}      discovery-script: /x\n      discovery-script:\n        args: --a b\n",
        Loads({"args": "--a b", "discovery-script": "/x"}, skipped=(1, 2, 3, 5)),
        Refuses("found duplicate key discovery-script", (5, 7)),
    ),
    case(
        "FLIP-108's keys, one nested",
        f"{GPU}param.discovery-script: /x\n{IN_A_BLOCK}      discovery-script:\n        args: --a b\n",
        Loads({"args": "--a b", f"{GPU}param.discovery-script": "/x"}, skipped=(2, 3, 4, 5)),
        Loads({f"{GPU}param.discovery-script": "/x", f"{GPU}param.discovery-script.args": "--a b"}),
    ),
    case(
        "path and args, nested",
        f"{IN_A_BLOCK}      discovery-script:\n        path: /x\n        args: --a b\n",
        Loads({"args": "--a b", "path": "/x"}, skipped=(1, 2, 3, 4)),
        Loads(
            {
                f"{GPU}param.discovery-script.args": "--a b",
                f"{GPU}param.discovery-script.path": "/x",
            }
        ),
    ),
)
