"""What YAML's scalars are to Flink, and how to write one: YAML 1.2's core schema, values as Java shows them."""

from __future__ import annotations

import re
from decimal import Decimal

_NULL = ("", "~", "null", "Null", "NULL")
_BOOL = ("true", "True", "TRUE", "false", "False", "FALSE")
_DECIMAL = re.compile(r"([-+]?)0*([0-9]+)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = {"inf": ".inf", "nan": ".nan"}
_LEAST_FIXED, _MOST_FIXED = 1e-3, 1e7  # java.lang.Double.toString writes an exponent outside of these
_LETTERS_OF_ESCAPES = dict(zip('"\\\0\a\b\t\n\v\f\r\x1b\x85\u2028\u2029', '"\\0abtnvfreNLP'))
_UNSEEN = re.compile("[^ -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # to YAML
_LAST_BYTE = 0xFF
_UNQUOTED = re.compile(r"(?!-( |\Z))[A-Za-z0-9/_.-][A-Za-z0-9/_.;=%+~-]*( [A-Za-z0-9/_.;=%+~-]+)*")
_LIST_ITEM = re.compile(r"(?!---|\.\.\.|-( |\Z))[^ \[\]{},:?#&*!|>'\"%@`]([^,\[\]{}?:]*[^,\[\]{}?: ])?")


def resolve(text: str) -> tuple[str, str | None]:
    """The kind of a plain scalar (str, int, float, bool, null) and what Flink makes of it; None if that is null."""
    if text in _NULL:
        return "null", None
    if text in _BOOL:
        return "bool", text.lower()
    integer = _integer(text)
    if integer:
        return "int", integer
    if _FLOAT.fullmatch(text) or re.fullmatch(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", text):
        return "float", _double(text)
    return "str", text


def _integer(text: str) -> str:
    decimal = _DECIMAL.fullmatch(text)
    if decimal:  # by its digits, since Python limits their number
        sign = "-" if decimal[1] == "-" and decimal[2] != "0" else ""
        return sign + decimal[2]
    if re.fullmatch("0x[0-9A-Fa-f]+", text):
        return str(int(text, 16))
    return str(int(text, 8)) if re.fullmatch("0o[0-7]+", text) else ""


def _double(text: str) -> str:
    number = float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    if str(number).lstrip("-") in _SPECIAL:
        return ("-" if number < 0 else "") + _SPECIAL[str(number).lstrip("-")]
    if number == 0 or _LEAST_FIXED <= abs(number) < _MOST_FIXED:
        return repr(number)
    mantissa, _, exponent = f"{Decimal(repr(number)).normalize():E}".partition("E")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


def list_item(kind: str, text: str | None) -> str:
    """One scalar of a list, as Flink shows lists: plain where YAML allows it."""
    if text is None:
        return "null"
    if _UNSEEN.search(text):
        return double_quoted(text)
    is_plain = _LIST_ITEM.fullmatch(text) and " #" not in text and resolve(text)[0] == "str"
    return text if kind != "str" or is_plain else single_quoted(text)


def written(value: str, style: str = "", *, key: bool = False) -> str:
    """Write a value so that Flink reads it back, in its style (a quote, or plain) where that can hold it."""
    if style == '"' or _UNSEEN.search(value):
        return double_quoted(value)
    return value if not style and _stays_itself(value, key) else single_quoted(value)


def _stays_itself(value: str, key: bool) -> bool:
    kind, read = resolve(value)
    return bool(_UNQUOTED.fullmatch(value)) and (kind == "str" if key else read == value)


def single_quoted(value: str) -> str:
    """In single quotes, which can hold everything that is printed."""
    return "'" + value.replace("'", "''") + "'"


def double_quoted(value: str) -> str:
    """In double quotes, with escapes."""
    return '"' + "".join(_escaped(character) for character in value) + '"'


def _escaped(character: str) -> str:
    letter, code = _LETTERS_OF_ESCAPES.get(character), ord(character)
    if letter or not _UNSEEN.match(character):
        return f"\\{letter}" if letter else character
    return f"\\x{code:02x}" if code <= _LAST_BYTE else f"\\u{code:04x}"
