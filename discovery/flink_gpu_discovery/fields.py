"""Tab-separated fields, as in the ledger and in what a query's child process answers.

Printable ASCII stands for itself, any other byte and ``%`` as ``%XX``, nothing at all as ``-``.
"""

from __future__ import annotations


def join(values: tuple[str, ...]) -> str:
    """One line, without its line end, that ``split`` takes apart again."""
    return "\t".join([_escape(value) for value in values])


def split(line: str) -> tuple[str, ...]:
    """The values of a line; ``ValueError`` for one that ``join`` could not have written."""
    return tuple([_unescape(text) for text in line.split("\t")])


def _escape(value: str) -> str:
    if value.isascii() and value.isprintable() and "%" not in value and value not in ("", "-"):
        return value
    if value == "":
        return "-"
    if value == "-":
        return "%2D"
    encoded = value.encode("utf-8", "surrogateescape")
    return "".join([chr(byte) if 0x20 <= byte <= 0x7E and byte != 0x25 else f"%{byte:02X}" for byte in encoded])


def _unescape(text: str) -> str:
    if not (text.isascii() and text.isprintable() and text):
        raise ValueError(f"{text[:40]!r} is empty or not printable ASCII")
    if text == "-":
        return ""
    if "%" not in text:
        return text
    head, *escaped = text.split("%")
    encoded = head.encode("ascii")
    for piece in escaped:
        encoded += bytes.fromhex(_two_hex_digits(piece)) + piece[2:].encode("ascii")
    value = encoded.decode("utf-8", "surrogateescape")
    if _escape(value) != text:
        raise ValueError(f"{text[:40]!r} escapes what needs no escape")
    return value


def _two_hex_digits(piece: str) -> str:
    digits = piece[:2]
    if len(digits) != 2 or digits.strip("0123456789ABCDEF"):
        raise ValueError(f"'%{digits}' is no escape")
    return digits
