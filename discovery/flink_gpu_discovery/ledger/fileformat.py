"""The ledger's text, version 1.

A header with format, version and the column names; one line of tab-separated fields per GPU held; a closing
line with their count, so that a file cut off at any byte is seen. ``docs/adr/0001-ledger-format.md`` has the
reasons, ``fields`` the escapes.
"""

from __future__ import annotations

from flink_gpu_discovery import fields
from flink_gpu_discovery.errors import LedgerDamagedError
from flink_gpu_discovery.models import PID_MAX_LIMIT, Owner, Record, index_order

_NAME = "#flink-gpu-ledger"
# fmt: off
_COLUMNS = (
    "uuid", "index", "pci_address", "resource",
    "pid", "start_time", "boot_id", "pid_namespace", "uid", "command",
    "since", "state", "cgroup",
)
# fmt: on
_HEADER = f"{_NAME} 1\t" + "\t".join(_COLUMNS)
_END = "#end"
_STATES = ("held", "pending", "joining")
MEND = "keep the file for inspection and remove it once no task executor of this host runs"


def render(records: tuple[Record, ...]) -> bytes:
    """The whole file, records ascending by index."""
    ordered = sorted(records, key=lambda record: (index_order(record.index), record.uuid))
    lines = [_HEADER, *[_line(record) for record in ordered], f"{_END} {len(ordered)}", ""]
    return "\n".join(lines).encode("ascii")


def parse(content: bytes) -> tuple[Record, ...]:
    """Its records; ``LedgerDamagedError`` for anything but lines of ``render``'s, each GPU once."""
    try:
        lines = content.decode("ascii").split("\n")
    except UnicodeDecodeError as error:
        raise _damaged(f"byte {error.start} is not ASCII") from error
    _check_header(lines[0])
    if len(lines) < 3 or lines[-1] != "" or lines[-2] != f"{_END} {len(lines) - 3}":
        raise _damaged("the closing line with the count of records is missing or wrong, so it was cut off or edited")
    records = []
    seen: set[str] = set()
    for number, line in enumerate(lines[1:-2], 2):
        try:
            record = _record(line)
        except ValueError as error:
            raise _damaged(f"line {number}: {error}") from error
        if record.uuid in seen:
            raise _damaged(f"line {number}: GPU {record.uuid[:60]} is recorded twice")
        seen.add(record.uuid)
        records.append(record)
    return tuple(records)


def _damaged(what: str) -> LedgerDamagedError:
    return LedgerDamagedError(f"not a usable ledger: {what}", MEND)


def _check_header(line: str) -> None:
    if line == _HEADER:
        return
    name, _, rest = line.partition(" ")
    version = rest.partition("\t")[0]
    if name == _NAME and version != "1" and version.isdigit():
        raise LedgerDamagedError(
            f"the ledger has format version {version[:20]}, this program knows 1",
            "use the release that wrote it, or remove it once no task executor of this host runs",
        )
    raise _damaged("it is empty" if line == "" else f"line 1 is {line[:40]!r} instead of '{_NAME} 1...'")


def _line(record: Record) -> str:
    owner = record.owner
    return fields.join(
        (
            record.uuid,
            record.index,
            record.pci_address,
            record.resource,
            str(owner.pid),
            str(owner.start_time),
            owner.boot_id,
            str(owner.pid_namespace),
            str(owner.uid),
            owner.command,
            record.since,
            record.state,
            record.cgroup,
        )
    )


def _record(line: str) -> Record:
    values = fields.split(line)
    if len(values) != len(_COLUMNS):
        raise ValueError(f"{len(values)} fields instead of {len(_COLUMNS)}")
    uuid, index, pci_address, resource, pid, start_time, boot_id, namespace, uid, command, since, state, cgroup = values
    if not (uuid and resource and boot_id and since and state in _STATES):
        raise ValueError(f"a needed field is empty, or the state {state[:20]!r} is unknown")
    for part in index.split(":", 1):
        _number(part)
    owner = Owner(
        pid=_number(pid, PID_MAX_LIMIT),
        start_time=_number(start_time),
        boot_id=boot_id,
        pid_namespace=_number(namespace),
        uid=_number(uid),
        command=command,
    )
    return Record(
        uuid=uuid,
        index=index,
        pci_address=pci_address,
        resource=resource,
        owner=owner,
        since=since,
        state=state,
        cgroup=cgroup,
    )


def _number(text: str, most: int = (1 << 63) - 1) -> int:
    if not (text.isdigit() and len(text) <= 20 and str(int(text)) == text and int(text) <= most):
        raise ValueError(f"{text[:20]!r} is no number, or too large")
    return int(text)
