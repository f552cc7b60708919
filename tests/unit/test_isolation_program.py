"""Rules as device programs: golden listings, and an interpreter that must agree with the rules themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flink_gpu_discovery.isolation import program
from flink_gpu_discovery.isolation.program import Instruction
from flink_gpu_discovery.isolation.rules import DeviceNode, Rules

GOLDEN = Path(__file__).parent / "golden"
CHARACTER, BLOCK = 2, 1
ACCESSES = (1, 2, 4, 6, 7)  # BPF_DEVCG_ACC_MKNOD, _READ, _WRITE and together


def rules(classes: set[int], allowed: list[tuple[int, int]], denied: list[tuple[int, int]]) -> Rules:
    return Rules(
        classes=frozenset(classes),
        allowed=tuple([DeviceNode(f"/dev/a{number}", *number) for number in sorted(allowed)]),
        denied=tuple([DeviceNode(f"/dev/d{number}", *number) for number in sorted(denied)]),
    )


CASES = {
    "one_nvidia_of_four": rules({195}, [(195, 0), (195, 255)], [(195, 1), (195, 2), (195, 3)]),
    "nvidia_with_drm_and_mig": rules({195, 226, 237}, [(195, 0), (195, 255), (237, 21), (237, 22)], [(226, 1)]),
    "amd_two_of_three": rules({226}, [(226, 0), (226, 1), (226, 128), (226, 129)], [(226, 2), (226, 130)]),
    "no_gpu_at_all": rules({195, 226}, [(195, 255)], [(195, 0), (226, 0), (226, 128)]),
    "simulated": rules(set(), [(240, 1)], [(240, 0), (240, 2), (241, 0)]),
    "nothing_to_deny": rules(set(), [], []),
}


@pytest.mark.parametrize("name", CASES)
def test_the_listing_is_the_golden_one(name: str) -> None:
    assert program.listing(program.translate(CASES[name])) == (GOLDEN / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", CASES)
def test_every_instruction_takes_eight_bytes(name: str) -> None:
    instructions = program.translate(CASES[name])
    assert len(program.encode(instructions)) == 8 * len(instructions)


def test_the_encoding_is_the_kernels() -> None:
    """``struct bpf_insn``: opcode, registers, offset, immediate."""
    code = program.encode((Instruction(0x61, 3, 1, 4), Instruction(0x15, 4, 0, -2, 255)))
    assert code == bytes([0x61, 0x13, 4, 0, 0, 0, 0, 0, 0x15, 0x04, 0xFE, 0xFF, 255, 0, 0, 0])


def execute(instructions: tuple[Instruction, ...], kind: int, access: int, major: int, minor: int) -> int:
    """What the kernel's virtual machine returns; fails on anything that the verifier would refuse."""
    context = {0: access << 16 | kind, 4: major, 8: minor}
    registers: dict[int, int] = {}
    place = 0
    for _ in range(len(instructions)):
        line = instructions[place]
        place += 1
        if line.opcode == 0x61:
            assert line.source == 1
            registers[line.destination] = context[line.offset]
        elif line.opcode == 0x57:
            registers[line.destination] &= line.immediate
        elif line.opcode == 0xB7:
            registers[line.destination] = line.immediate
        elif line.opcode == 0x05:
            place += line.offset
        elif line.opcode == 0x15:
            place += line.offset if registers[line.destination] == line.immediate else 0
        elif line.opcode == 0x55:
            place += line.offset if registers[line.destination] != line.immediate else 0
        elif line.opcode == 0x95:
            return registers[0]
        else:
            pytest.fail(f"unknown opcode {line.opcode:#x}")
    pytest.fail("the program does not end")


numbers = st.tuples(st.sampled_from([1, 195, 226, 237, 511]), st.integers(0, 5) | st.sampled_from([255, 1048575]))


@given(
    classes=st.sets(st.sampled_from([195, 226, 237])),
    allowed=st.sets(numbers, max_size=8),
    denied=st.sets(numbers, max_size=8),
    asked=numbers,
    access=st.sampled_from(ACCESSES),
)
def test_the_program_answers_as_the_rules_do(
    classes: set[int],
    allowed: set[tuple[int, int]],
    denied: set[tuple[int, int]],
    asked: tuple[int, int],
    access: int,
) -> None:
    these = rules(classes, [*allowed], [*denied - allowed])
    assert execute(program.translate(these), CHARACTER, access, *asked) == int(these.allows(*asked))
    assert execute(program.translate(these), BLOCK, access, *asked) == 1


@given(classes=st.sets(st.sampled_from([195, 226])), denied=st.sets(numbers, max_size=4))
def test_every_instruction_can_be_reached(classes: set[int], denied: set[tuple[int, int]]) -> None:
    """Verifiers before Linux 5.0 refuse a program with dead code."""
    instructions = program.translate(rules(classes, [], [*denied]))
    reached, waiting = set(), [0]
    while waiting:
        place = waiting.pop()
        if place in reached:
            continue
        reached.add(place)
        line = instructions[place]
        if line.opcode in (0x05, 0x15, 0x55):
            waiting.append(place + 1 + line.offset)
        if line.opcode not in (0x05, 0x95):
            waiting.append(place + 1)
    assert reached == {*range(len(instructions))}


def test_it_grows_with_what_is_allowed_not_with_the_host() -> None:
    few = rules({195}, [(195, 0)], [(195, minor) for minor in range(1, 4)])
    many = rules({195}, [(195, 0)], [(195, minor) for minor in range(1, 254)])
    assert len(program.translate(few)) == len(program.translate(many))
