"""What Flink makes of configuration files: DOCUMENTED stands in docs/flink-config.md, CASES are all.

Each is held against the loaders of real releases (`test_loaders.py`). They come to two parsers, whose answers have been
the same in every release: of `flink-conf.yaml` (`flat`), and of `config.yaml` (`yaml`).
"""

from __future__ import annotations

from .answers import AMOUNTS, BOTH, GPU, NULL, RESOURCES, Loads, Refuses, case, ignored, named
from .cases_of_resources import OF_RESOURCES
from .cases_of_syntax import OF_SYNTAX

DOCUMENTED = (
    case(
        "nested, then flat",
        "a:\n  b: 1\na.b: 2\n",
        flat=Loads({"b": "1", "a.b": "2"}, skipped=(1,)),
        yaml=Loads({"a.b": "2"}),
    ),
    case(
        "flat, then nested",
        "a.b: 2\na:\n  b: 1\n",
        flat=Loads({"b": "1", "a.b": "2"}, skipped=(2,)),
        yaml=Loads({"a.b": "1"}),
    ),
    case(
        "two half-flat spellings",
        "a.b:\n  c: 1\na:\n  b.c: 2\n",
        flat=Loads({"c": "1", "b.c": "2"}, skipped=(1, 3)),
        yaml=Loads({"a.b.c": "2"}),
    ),
    case(
        "the same key twice",
        "a: 1\na: 2\n",
        flat=Loads({"a": "2"}),
        yaml=Refuses("found duplicate key a", (2, 1)),
    ),
    case(
        "twice, once in quotes",
        'a: 1\n"a": 2\n',
        flat=Loads({"a": "1", '"a"': "2"}),
        yaml=Refuses("found duplicate key a", (2, 1)),
    ),
    case(
        "two blocks of one name",
        "a:\n  b: 1\na:\n  c: 2\n",
        flat=Loads({"b": "1", "c": "2"}, skipped=(1, 3)),
        yaml=Refuses("found duplicate key a", (3, 1)),
    ),
    case(
        "tab as indentation",
        "a:\n\tb: 1\n",
        flat=Loads({"b": "1"}, skipped=(1,)),
        yaml=Refuses("found character '\\t(TAB)' that cannot start any token", (2, 1)),
    ),
    case(
        "tab behind the colon",
        "a:\t1\n",
        flat=Loads({}, skipped=(1,)),
        yaml=Refuses("found character '\\t(TAB)' that cannot start any token", (1, 3)),
    ),
    case("tabs in a value and behind it", "a: 1\t2\t# c\n", Loads({"a": "1\t2"})),
    case("# without a blank before it", "a: b#c\n", flat=Loads({"a": "b"}), yaml=Loads({"a": "b#c"})),
    case("# in quotes", 'a: "b # c"\n', flat=Loads({"a": '"b'}), yaml=Loads({"a": "b # c"})),
    case("comments only", "# a\n\n  # b\n", Loads({})),
    case("empty file", "", Loads({})),
    case("no value", "a:\nb: 1\n", flat=Loads({"b": "1"}, skipped=(1,)), yaml=NULL),
    case("null", "a: ~\nb: 1\n", flat=Loads({"a": "~", "b": "1"}), yaml=NULL),
    case(
        "anchor and alias",
        "a: &x 2\nb: *x\n",
        flat=Loads({"a": "&x 2", "b": "*x"}),
        yaml=Loads({"a": "2", "b": "2"}),
    ),
    case(
        "merge key",
        "a: &x\n  b: 1\nc:\n  <<: *x\n",
        flat=Loads({"a": "&x", "b": "1", "<<": "*x"}, skipped=(3,)),
        yaml=Loads({"a.b": "1", "c.<<.b": "1"}),
    ),
    case(
        "BOM before a setting",
        "\ufeffa: 1\nb: 2\n",
        flat=Loads({"\ufeffa": "1", "b": "2"}),
        yaml=Loads({"a": "1", "b": "2"}),
    ),
    case("BOM before a comment", "\ufeff# c\na: 1\n", flat=Loads({"a": "1"}, skipped=(1,)), yaml=Loads({"a": "1"})),
    case("CRLF, no line end at the end", "a: 1\r\nb: 2", Loads({"a": "1", "b": "2"})),
    case(
        "a byte that is no UTF-8, in a comment",
        b"# \xf6\na: 1\n",
        flat=Loads({"a": "1"}),
        yaml=Refuses("MalformedInputException: Input length = 1"),
    ),
    case(
        "colon and blank in a value",
        "a: b: c\n",
        flat=Loads({"a": "b: c"}),
        yaml=Refuses("mapping values are not allowed here", (1, 5)),
    ),
    case("value in quotes", "a: 'b c'\n", flat=Loads({"a": "'b c'"}), yaml=Loads({"a": "b c"})),
    case(
        "numbers and booleans",
        "a: 010\nb: 1.50\nc: 0x1F\nd: True\ne: yes\n",
        flat=Loads({"a": "010", "b": "1.50", "c": "0x1F", "d": "True", "e": "yes"}),
        yaml=Loads({"a": "10", "b": "1.5", "c": "31", "d": "true", "e": "yes"}),
    ),
    case(
        "a key that is a number",
        "1: a\n",
        flat=Loads({"1": "a"}),
        yaml=Refuses("ClassCastException: class java.lang.Integer cannot be cast to class java.lang.String"),
    ),
    case(
        "a second document",
        "a: 1\n---\nb: 2\n",
        flat=Loads({"a": "1", "b": "2"}, skipped=(2,)),
        yaml=Refuses("but found another document", (2, 1)),
    ),
    case(
        "names with a semicolon",
        f"external-resources: gpu;fpga\n{BOTH}",
        Loads(named("gpu;fpga"), RESOURCES),
    ),
    case(
        "the same in quotes",
        f'external-resources: "gpu;fpga"\n{BOTH}',
        flat=Loads(named('"gpu;fpga"'), says=ignored("gpu;fpga")),
        yaml=Loads(named("gpu;fpga"), RESOURCES),
    ),
    case(
        "names as a list",
        f"external-resources:\n  - gpu\n  - fpga\n{BOTH}",
        flat=Loads(AMOUNTS, skipped=(1, 2, 3)),
        yaml=Loads(named("[gpu, fpga]"), RESOURCES),
    ),
    case(
        "names as a list in one line",
        f"external-resources: [gpu, fpga]\n{BOTH}",
        flat=Loads(named("[gpu, fpga]"), says=ignored("[gpu, fpga]")),
        yaml=Loads(named("[gpu, fpga]"), RESOURCES),
    ),
    case(
        "names with a comma",
        f"external-resources: gpu,fpga\n{BOTH}",
        Loads(named("gpu,fpga"), says=ignored("gpu,fpga")),
    ),
    case("none", f"external-resources: none\n{BOTH}", Loads(named("none"))),
    case(
        "FLIP-108's keys, flat",
        f"{GPU}param.discovery-script: /x\n{GPU}param.discovery-script.args: --a b\n",
        Loads({f"{GPU}param.discovery-script": "/x", f"{GPU}param.discovery-script.args": "--a b"}),
    ),
)

CASES = DOCUMENTED + OF_SYNTAX + OF_RESOURCES
