"""Settings files as people may have written them, of both formats, for tests that edit any of them."""

from __future__ import annotations

from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import NAMES, Resource, wanted_settings
from hypothesis import strategies as st

WANTED = (
    wanted_settings([Resource("gpu", 2)]),
    wanted_settings([Resource("gpu", 2, args="--wait 3")], protocol="flip108"),
    wanted_settings([Resource("gpu", 1), Resource("1", 4, config_key="1.2")], deployment="kubernetes", vendor="amd"),
    wanted_settings([Resource("gpu", 1), Resource("fpga", 1, "org.x.Driver", config_key="x.org/f")], deployment="yarn"),
)
OURS = ("amount", "driver-factory.class", "param.discovery-script.path", "param.discovery-script", "yarn.config-key")
PREFIX = "external-resource.gpu."
LINE_ENDS = (("\n",), ("\r\n",), ("\n", "\r\n"), ("\r",))  # CR and LF apart would meet when what is between them goes
SCALARS = st.sampled_from(
    [
        "1",
        "1.50",
        "0x1F",
        "true",
        "a b",
        "a#b",
        "'it''s'",
        '"a # b\\n"',
        "''",
        "a:b",
        "-x",
        "Größe",
        "yes",
        "2024-01-01",
        "a\tb\t",
        "~/x",
        "null",
    ]
)
COMMENTS = st.sampled_from(["", "", " # why", "  # external-resource.gpu.amount: 9"])
SPELLED_NAMES = ("gpu", "other;gpu", "'other; more'", "[other]", "[ other, gpu ]", "[]", "none", '"[other]"', "")


@st.composite
def foreign(draw: st.DrawFn, number: int) -> list[str]:
    """The lines of one setting, or of what is none."""
    key = draw(st.sampled_from([f"k{number}", f"'k{number}'", f"a.b{number}", f'"x y{number}"', f"? q{number}\n"]))
    value, comment = draw(SCALARS), draw(COMMENTS)
    if key.startswith("?"):
        return [key.rstrip(), f": {value}{comment}"]
    shapes: list[list[str]] = [
        [f"{key}: {value}{comment}"],
        [f"{key} :  {value}{comment}"],
        [f"{key}:{comment}", f"   n: {value}", "", "   # inside", f"   m: {{o: {value}, p: [1, {value}]}}"],
        [f"{key}:{comment}", f"- {value}", "- {z: 1}"],
        [f"{key}: [{value},", f"  {value}]{comment}"],
        [f"{key}: |{comment}", "  # text", "", f"  {value}", ""],
        [f"{key}: >-", "  one", "  two"],
        [f"{key}: one", "  two"],
        [f"{key}: [http://x:80/?q=1, {value}]  "],
        [f"{key}: &a{number} {value}", f"b{number}: *a{number}"],
        [f"{key}: &ä:{number} {value}", f"b{number}: *ä:{number}"],
        [f"{key}: &m{number}", "  n: 1", f"c{number}: *m{number}"],
        [f"{key}:", "  external-resource.gpu.amount: 5"],
        [f"# {value}"],
        ["", "  ", "# external-resources: no"],  # three blanks could become a part of a text above
        [f"external-resource.other{number}.amount: 1{comment}"],
    ]
    return draw(st.sampled_from(shapes))


@st.composite
def gpu_lines(draw: st.DrawFn) -> list[list[str]]:
    """Settings of our resource in any spelling, some twice, with foreign ones among them."""
    keys = draw(st.lists(st.sampled_from([*OURS, "param.foo", "param.bar.baz"]), unique=True))
    flat = [[f"{PREFIX}{key}: {draw(SCALARS)}{draw(COMMENTS)}"] for key in keys]
    again = draw(st.lists(st.sampled_from([*OURS, "param.foo"]), unique=True))
    inner = [f"{key}: {draw(SCALARS)}" for key in again]
    blocks: list[list[str]] = [
        [],
        ["external-resource:", "    gpu:  # ours", *(f"        {line}" for line in inner), "    other: {amount: 1}"],
        ["external-resource.gpu:", *(f"  {line}" for line in inner)],
        [f"external-resource: {{gpu: {{{', '.join(inner)}}}, other: {{amount: 3,}} }}"],
        ["external-resource:", "  other:", "    amount: 1", *(f"  gpu.{line}" for line in inner), "  # end"],
        [
            "'external-resource':",
            "  # above",
            "  gpu:",
            "    param:",
            "      discovery-script: {path: /x, args: --y}",
            "      foo2: 1",
        ],
        [
            "external-resource:",
            "  gpu:",
            "    param:",
            "      discovery-script:",
            "        path: /x",
            "        # c",
            "        args: >",
            "         --y",
        ],
    ]
    block = draw(st.sampled_from(blocks))
    return [*flat, block if inner or "/x" in "".join(block) else []]


@st.composite
def yaml_files(draw: st.DrawFn) -> bytes:
    """Files that Flink loads, but for a block that is empty."""
    chunks = [draw(foreign(number)) for number in range(draw(st.integers(0, 5)))]
    chunks += draw(gpu_lines())
    names = draw(st.sampled_from(SPELLED_NAMES))
    chunks += (
        [[f"external-resources: {names}"]]
        if names
        else draw(st.sampled_from([[], [["external-resources:", "  - other", "  # c", "  - more"]]]))
    )
    lines = [line for chunk in draw(st.permutations(chunks)) for line in chunk]
    ends = draw(st.sampled_from(LINE_ENDS))
    text = "".join(line + draw(st.sampled_from(ends)) for line in lines)
    opening = draw(st.sampled_from(["", "", "---\n", "%YAML 1.2\n---\n", "\ufeff"]))
    if not draw(st.booleans()) and lines and lines[-1].strip():
        text = text.rstrip("\r\n")
    closing = draw(st.sampled_from(["", "", "...\n", "\n...\n# end"])) if text.endswith(("\r", "\n")) else ""
    return (opening + text + closing).encode()


@st.composite
def flat_files(draw: st.DrawFn) -> bytes:
    """Anything at all is a flat file to Flink."""
    ours = st.sampled_from([f"{PREFIX}{key}: {value}".encode() for key in OURS for value in ("1", "/x # y", "'z'")])
    names = st.sampled_from(
        [f"{NAMES}: {value}".encode() for value in SPELLED_NAMES if "[" not in value and "'" not in value]
    )
    others = st.sampled_from(
        [
            b"# gr\xfc\xdfe",
            b"k:v",
            b"k : v",
            b"",
            b"  external-resource.gpu.param.foo: 1",
            b'"external-resource.gpu.amount": 2',
        ]
    )
    noise = st.binary(max_size=12).map(lambda line: line.translate(None, b"\r\n"))
    lines = draw(st.lists(st.one_of(ours, names, others, noise)))
    ends = [end.encode() for end in draw(st.sampled_from(LINE_ENDS))]
    text = b"".join(line + draw(st.sampled_from(ends)) for line in lines)
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text + draw(st.sampled_from([b"", b"last"]))
