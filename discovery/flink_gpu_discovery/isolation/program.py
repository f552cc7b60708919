"""Rules as a BPF program of the type BPF_PROG_TYPE_CGROUP_DEVICE: a pure translation.

Sources: ``struct bpf_cgroup_dev_ctx`` and the opcodes in ``include/uapi/linux/bpf.h``,
``Documentation/bpf/standardization/instruction-set.rst``. The program is given the access (high 16 bits) and type (low
16 bits), major and minor of a device, and returns 1 to let it pass, 0 for EPERM. A program of an ancestor cgroup
that says 0 has the last word.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from flink_gpu_discovery.isolation.rules import Rules

_LOAD_WORD = 0x61  # BPF_LDX | BPF_MEM | BPF_W
_AND = 0x57  # BPF_ALU64 | BPF_AND | BPF_K
_MOVE = 0xB7  # BPF_ALU64 | BPF_MOV | BPF_K
_JUMP = 0x05  # BPF_JMP | BPF_JA
_JUMP_IF_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_UNLESS_EQUAL = 0x55  # BPF_JMP | BPF_JNE | BPF_K
_EXIT = 0x95  # BPF_JMP | BPF_EXIT

_CONTEXT, _RESULT, _TYPE, _MAJOR, _MINOR = 1, 0, 2, 3, 4  # registers
_CHARACTER_DEVICE = 2  # BPF_DEVCG_DEV_CHAR
_ALLOW, _DENY = "allow", "deny"


class Instruction:
    """One ``struct bpf_insn``."""

    __slots__ = ("destination", "immediate", "offset", "opcode", "source")

    def __init__(self, opcode: int, destination: int = 0, source: int = 0, offset: int = 0, immediate: int = 0) -> None:
        self.opcode: Final = opcode
        self.destination: Final = destination
        self.source: Final = source
        self.offset: Final = offset
        self.immediate: Final = immediate


class _Assembler:
    """Instructions with jumps to labels that are placed later."""

    __slots__ = ("_jumps", "_labels", "_lines")

    def __init__(self) -> None:
        self._lines: list[Instruction] = []
        self._jumps: dict[int, str] = {}
        self._labels: dict[str, int] = {}

    def add(self, opcode: int, destination: int = 0, source: int = 0, offset: int = 0, immediate: int = 0) -> None:
        self._lines.append(Instruction(opcode, destination, source, offset, immediate))

    def jump(self, label: str, opcode: int = _JUMP, register: int = 0, value: int = 0) -> None:
        self._jumps[len(self._lines)] = label
        self.add(opcode, register, immediate=value)

    def place(self, label: str) -> None:
        self._labels[label] = len(self._lines)

    def finish(self) -> tuple[Instruction, ...]:
        for place, label in self._jumps.items():
            line = self._lines[place]
            offset = self._labels[label] - place - 1  # counted from the instruction that follows
            self._lines[place] = Instruction(line.opcode, line.destination, offset=offset, immediate=line.immediate)
        return tuple(self._lines)


def translate(rules: Rules) -> tuple[Instruction, ...]:
    """The program that enforces ``rules``: the same rules, the same instructions."""
    majors = sorted({*rules.classes, *[major for major, _ in rules.denied]})
    code = _Assembler()
    if majors:
        _load_context(code)
        for major in majors:
            _decide_major(code, rules, major)
    code.place(_ALLOW)
    code.add(_MOVE, _RESULT, immediate=1)
    code.add(_EXIT)
    if majors:
        code.place(_DENY)
        code.add(_MOVE, _RESULT, immediate=0)
        code.add(_EXIT)
    return code.finish()


def _load_context(code: _Assembler) -> None:
    """Only character devices are of interest."""
    code.add(_LOAD_WORD, _TYPE, _CONTEXT, offset=0)
    code.add(_AND, _TYPE, immediate=0xFFFF)
    code.jump(_ALLOW, _JUMP_UNLESS_EQUAL, _TYPE, _CHARACTER_DEVICE)
    code.add(_LOAD_WORD, _MAJOR, _CONTEXT, offset=4)
    code.add(_LOAD_WORD, _MINOR, _CONTEXT, offset=8)


def _decide_major(code: _Assembler, rules: Rules, major: int) -> None:
    code.jump(f"after {major}", _JUMP_UNLESS_EQUAL, _MAJOR, major)
    closed = major in rules.classes
    for number in rules.allowed if closed else rules.denied:
        if number[0] == major:
            code.jump(_ALLOW if closed else _DENY, _JUMP_IF_EQUAL, _MINOR, number[1])
    code.jump(_DENY if closed else _ALLOW)
    code.place(f"after {major}")


def encode(instructions: tuple[Instruction, ...]) -> bytes:
    """As the kernel takes them, in this machine's byte order: eight bytes each."""
    import struct
    import sys

    low_first = sys.byteorder == "little"  # the registers are bit fields
    return b"".join(
        [
            struct.pack(
                "=BBhi",
                line.opcode,
                line.destination | line.source << 4 if low_first else line.destination << 4 | line.source,
                line.offset,
                line.immediate,
            )
            for line in instructions
        ]
    )


def listing(instructions: tuple[Instruction, ...]) -> str:
    """For people, an instruction a line, much as ``bpftool prog dump xlated`` prints them."""
    return "".join([f"{place:4d}: {_text(place, line)}\n" for place, line in enumerate(instructions)])


def _text(place: int, line: Instruction) -> str:
    target = place + 1 + line.offset
    return {
        _LOAD_WORD: f"r{line.destination} = *(u32 *)(r{line.source} +{line.offset})",
        _AND: f"r{line.destination} &= {line.immediate:#x}",
        _MOVE: f"r{line.destination} = {line.immediate}",
        _JUMP: f"goto {target}",
        _JUMP_IF_EQUAL: f"if r{line.destination} == {line.immediate} goto {target}",
        _JUMP_UNLESS_EQUAL: f"if r{line.destination} != {line.immediate} goto {target}",
        _EXIT: "exit",
    }[line.opcode]
