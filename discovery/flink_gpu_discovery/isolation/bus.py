"""Whether systemd's manager would move the owner out of its cgroup on request.

``AttachProcessesToUnit`` of the manager, and ``AttachProcesses`` of a service or a scope, move any process of the
asking uid into a delegated unit of that uid, such as its user manager's, which it can bring about by lingering. The
cgroup that the process is in isn't looked at. Only the bus's own policy keeps a uid from asking. So it is tried,
with a unit that doesn't exist: where the bus lets the question pass, the manager says that there is no such unit.

Source: D-Bus specification ("Message protocol", "Authentication protocol"), org.freedesktop.systemd1(5). A client of a
hundred lines instead of a library, since the program needs nothing but Python.
"""

from __future__ import annotations

import _socket
import errno
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_MANAGER = "org.freedesktop.systemd1"
_DENIED = "org.freedesktop.DBus.Error.AccessDenied"
_ABSENT = ("org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner")
_NOT_STARTED = "org.freedesktop.DBus.Error.Spawn."
_UNIT = "/org/freedesktop/systemd1/unit/flink_2dgpu_2dnone_2eservice"
_NOBODY = struct.pack("<I", 0)  # an empty list of PIDs
_METHOD_CALL, _METHOD_RETURN, _ERROR = 1, 2, 3
_PATH, _INTERFACE, _MEMBER, _ERROR_NAME, _REPLY_SERIAL, _DESTINATION, _SIGNATURE = 1, 2, 3, 4, 5, 6, 8
_LARGEST_MESSAGE = 1024 * 1024
_SECONDS = 2.0


class BusError(Exception):
    """The bus gave no usable answer."""


class _ClosedError(BusError):
    """It has closed the connection."""


def ways_out(socket_path: str, uid: int) -> tuple[str, ...]:
    """The methods by which this process, running as ``uid``, could have itself moved; none if there is no such bus.

    ``BusError`` if that can't be found out.
    """
    questions = {
        2: ("/org/freedesktop/systemd1", "Manager", "AttachProcessesToUnit", "ssau", _text("flink-gpu-none.service")),
        3: (_UNIT, "Service", "AttachProcesses", "sau", b""),
        4: (_UNIT, "Scope", "AttachProcesses", "sau", b""),
    }
    messages = [_message(1, "/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus", "Hello")]
    for serial, (path, interface, member, signature, first) in questions.items():
        body = _padded(first, 4) + _padded(_text(""), 4) + _NOBODY
        messages.append(_message(serial, path, _MANAGER, f"{_MANAGER}.{interface}", member, signature, body))
    answers = _ask(socket_path, uid, messages, {1, *questions})
    if answers is None:
        return ()  # no bus, or none that knows this uid
    if answers[1]:
        raise BusError(f"the bus refuses the connection: {answers[1]}")  # one too many, say
    names = {serial: f"{interface}.{member}" for serial, (_, interface, member, _, _) in questions.items()}
    return tuple([names[serial] for serial in questions if _passed(answers[serial])])


def _passed(error: str) -> bool:
    return error != _DENIED and error not in _ABSENT and not error.startswith(_NOT_STARTED)


def _ask(socket_path: str, uid: int, messages: Iterable[bytes], awaited: set[int]) -> dict[int, str] | None:
    """The name of the error that each message was answered with, empty for none; None if there is no bus."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(_SECONDS)
        try:
            connection.connect(socket_path)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EACCES, errno.ENOTDIR):
                return None
            raise
        connection.sendall(b"\0AUTH EXTERNAL " + str(uid).encode("ascii").hex().encode("ascii") + b"\r\n")
        if not _line(connection).startswith(b"OK "):
            return None  # the bus doesn't know this uid
        connection.sendall(b"BEGIN\r\n" + b"".join(messages))
        return _answers(connection, awaited, uid)
    except (OSError, struct.error, IndexError, UnicodeDecodeError) as error:
        raise BusError(f"{socket_path}: {error!r}") from error
    finally:
        connection.close()


def _answers(connection: _socket.socket, awaited: set[int], uid: int) -> dict[int, str] | None:
    answers: dict[int, str] = {}
    try:
        while awaited - set(answers):
            answers.update(_answer(connection))
    except _ClosedError:
        if not answers and _is_nobody(uid):
            return None  # it takes nobody who isn't in the user database
        raise
    return answers


def _is_nobody(uid: int) -> bool:
    import pwd

    try:
        pwd.getpwuid(uid)
    except KeyError:
        return True
    return False


def _line(connection: _socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\r\n") and len(line) < 4096:
        line += _exactly(connection, 1)
    return line


def _exactly(connection: _socket.socket, count: int) -> bytes:
    content = b""
    while len(content) < count:
        piece = connection.recv(count - len(content))
        if not piece:
            raise _ClosedError("the bus has closed the connection")
        content += piece
    return content


def _answer(connection: _socket.socket) -> dict[int, str]:
    """The next message: what it answers, and the error's name; nothing if it is a signal."""
    head = _exactly(connection, 16)
    order = "<" if head[:1] == b"l" else ">"
    kind, body_length, fields_length = head[1], *struct.unpack(f"{order}I4xI", head[4:])
    if fields_length + body_length > _LARGEST_MESSAGE:
        raise BusError("the bus sent a message that is too large")
    rest = _exactly(connection, fields_length + -fields_length % 8 + body_length)
    fields = _fields(rest[:fields_length], order)
    if kind not in (_METHOD_RETURN, _ERROR):
        return {}
    return {int(fields[_REPLY_SERIAL]): str(fields[_ERROR_NAME]) if kind == _ERROR else ""}


def _fields(content: bytes, order: str) -> dict[int, str | int]:
    """Header fields: a code, a signature (of one basic type here) and the value, each aligned to 8."""
    found: dict[int, str | int] = {}
    place = 0
    while place < len(content):
        code, kind = content[place], content[place + 2 : place + 3]
        place += 4  # code, length of the signature, the signature, its zero
        if kind == b"g":
            length = content[place]
            place += 1
        else:
            (length,) = struct.unpack_from(f"{order}I", content, place)
            place += 4
        if kind == b"u":
            found[code] = int(length)
        else:
            found[code] = content[place : place + length].decode("utf-8")
            place += length + 1
        place += -place % 8
    return found


def _message(
    serial: int, path: str, destination: str, interface: str, member: str, signature: str = "", body: bytes = b""
) -> bytes:
    """A method call, in little-endian order."""
    fields = b""
    for code, kind, value in (
        (_PATH, "o", path),
        (_DESTINATION, "s", destination),
        (_INTERFACE, "s", interface),
        (_MEMBER, "s", member),
        (_SIGNATURE, "g", signature),
    ):
        if value:
            text = _text(value) if kind != "g" else struct.pack("<B", len(value)) + value.encode("ascii") + b"\0"
            fields = _padded(fields, 8) + struct.pack("<BBcB", code, 1, kind.encode("ascii"), 0) + text
    head = struct.pack("<cBBBIII", b"l", _METHOD_CALL, 0, 1, len(body), serial, len(fields))
    return _padded(head + fields, 8) + body


def _text(value: str) -> bytes:
    return struct.pack("<I", len(value)) + value.encode("ascii") + b"\0"


def _padded(content: bytes, boundary: int) -> bytes:
    return content + bytes(-len(content) % boundary)
