"""Merging and removal leave every byte of others: comments, quotes, order, line ends, whatever the file looks like."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf import merge, remove
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import Resource, wanted_settings

from .loader import Loader
from .merging import FORMATS, check_merged, check_removed
from .readers import READERS, Reader

WANTED = {
    protocol: wanted_settings([Resource("gpu", 2), Resource("more", 1)], protocol=protocol)
    for protocol in ("released", "flip108")
}
CONFIG_YAML = """\
%YAML 1.2
---
################  Produktion (Größe: L)  ################

# JVM
env:   # everything's nested here
    java:
        opts:
            all: >-
                --add-opens=java.base/java.lang=ALL-UNNAMED
                --add-opens=java.base/java.util=ALL-UNNAMED

            # only here
            taskmanager: "-Dx='a b' -XX:+UseG1GC"   # why
jobmanager: {rpc: {address: jm.example, port: 6123}, memory.process.size: 1600m}   # one line

taskmanager:

  numberOfTaskSlots: &slots 4


  host: 'tm-1'  # quoted
  # external-resources: [gpu]
  memory:
     process:
        size:   4096m\t# a tab before this
"parallelism.default": *slots
external-resources: [ fpga , 'spare' ]   # others have some
external-resource:
   # ours would go below
   fpga:   {amount: 1,
            driver-factory: {class: "org.x.Fpga"}}   # the other team's

   spare:
     amount: 0x1  # hexadecimal
     note: |+
       several lines

       # no comment


# reporters
metrics.reporters: prom,  jmx
metrics.reporter:
- odd
- {k: [v, "w"]}
? s3.endpoint
: http://s3:9000/?a=b
# the end

  # really
"""
FLINK_CONF = b"""\
# Gr\xf6\xdfe: L

jobmanager.rpc.address:   jm.example  # where
env.java.opts.all: --add-opens=java.base/java.lang=ALL-UNNAMED -Dx='a b'\t# tabs\r
  taskmanager.numberOfTaskSlots : 4
external-resources:  fpga; spare  # others have some
external-resource.fpga.amount: 1#one
no setting at all
external-resource.fpga.driver-factory.class: "org.x.Fpga"
s3.secret-key: p: w
taskmanager.host: a\rtaskmanager.bind-host: \xff
s3.secret-key: p: w2

#external-resource.gpu.amount: 7
"""
FILES = {
    "config-yaml": CONFIG_YAML.encode(),
    "config-yaml, CRLF": CONFIG_YAML.replace("\n", "\r\n").encode(),
    "config-yaml, BOM": b"\xef\xbb\xbf" + CONFIG_YAML.partition("---\n")[2].encode(),
    "config-yaml, no line end": (CONFIG_YAML + "text: >\n  of one line").encode(),
    "flink-conf": FLINK_CONF,
    "flink-conf, CRLF": FLINK_CONF.replace(b"\n", b"\r\n"),
}
NAMES = ["gpu", "more"]
OF_READERS = [(name, reader) for name in FILES for reader in READERS if name.startswith(FORMATS[reader.file])]
each_file = pytest.mark.parametrize("name", FILES)
each_protocol = pytest.mark.parametrize("wanted", WANTED.values(), ids=WANTED)


def is_kept(lines: Iterable[bytes], edited: bytes) -> bool:
    """Whether the lines are there in their order."""
    remaining = iter(edited.splitlines(keepends=True))
    return all(line in remaining for line in lines)


@each_protocol
@each_file
def test_a_file_of_others_keeps_its_lines_and_is_given_back_byte_for_byte(name: str, wanted: dict[str, str]) -> None:
    content, file_format = FILES[name], name.partition(",")[0]
    others = [line for line in content.splitlines(keepends=True) if not line.startswith(b"external-resources:")]
    merged = merge(content, file_format, wanted)

    assert is_kept(others, merged)
    assert merged.count(b"others have some") == 1
    assert merge(merged, file_format, wanted) == merged
    assert remove(merged, file_format, NAMES) == content


@pytest.mark.flink
@pytest.mark.parametrize(("name", "reader"), OF_READERS, ids=str)
def test_flink_reads_such_a_file_before_and_after(name: str, reader: Reader, loader: Loader) -> None:
    content, file_format, wanted = FILES[name], FORMATS[reader.file], WANTED["released"]
    merged = merge(content, file_format, wanted)
    before, after, cleaned = (
        loader.load_files({reader.file: each}) for each in (content, merged, remove(merged, file_format, NAMES))
    )
    check_merged(before, after, wanted)
    check_removed(before, cleaned, NAMES)
    assert before.resources == {"fpga": "1", **({"spare": "1"} if file_format == "config-yaml" else {})}


@pytest.mark.parametrize("file_format", ["config-yaml", "flink-conf"])
def test_only_the_end_of_the_last_line_stays_where_there_was_none(file_format: str) -> None:
    merged = merge(b"a: 1\r\nb: 2", file_format, WANTED["released"])
    assert remove(merged, file_format, NAMES) == b"a: 1\r\nb: 2\r\n"


@pytest.mark.parametrize(
    ("content", "left"),
    [
        (b"external-resource: {}\nz: 1\n", b"z: 1\n"),
        (b"external-resources: []\nz: 1\n", b"z: 1\n"),
        (b"external-resources: none # c\nz: 1\n", b"z: 1\n"),
        (b"~\n", b"\n"),
        (b"{z: 1,\n}\n", b"{z: 1, \n}\n"),
    ],
)
def test_what_said_nothing_before_may_be_gone_with_ours(content: bytes, left: bytes) -> None:
    merged = merge(content, "config-yaml", WANTED["released"])
    assert remove(merged, "config-yaml", NAMES) == left
