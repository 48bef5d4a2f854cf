"""HLO text, scheduled or not, as a module of computations and instructions.

The text is what XLA dumps (``--xla_dump_hlo_as_text``) and what ``compiled.as_text()`` prints. One instruction
stands on one line; a line that does not read as one is counted in ``HloModule.lost`` and skipped, so that a dump
which was cut short is read as far as it goes. Sizes come from the type names: ``bf16[4,8]`` is 64 bytes.
"""

import re
from collections.abc import Iterator

from ridgeline.arithmetic.hlo_module import Computation, HloModule, Instruction, Shape
from ridgeline.core.errors import InputError
from ridgeline.core.lost import Loss

__all__ = ["Computation", "HloModule", "Instruction", "Shape", "is_hlo", "is_type", "parse"]

_ARRAY = re.compile(r"\b([a-z][a-z0-9]{0,15})\[([^\]]{0,400})\]")
_MARK = re.compile(r'[()\[\]{}",]')
_OPCODE = re.compile(r"\s*([a-z][a-zA-Z0-9-]*)\(")
_HEADER = re.compile(r"^(ENTRY\s+)?%?([^\s(={]+)\s*(\(.*)?\{\s*$")
_STARTS = re.compile(r"^\s+(ROOT\s+)?%?[^\s=]+ = ")
_CLOSES = re.compile(r"^\s*\}\s*($|//|,\s*execution_thread=)")
_PAIRS = {"(": ")", "[": "]", "{": "}"}


def is_type(text: str) -> bool:
    """Whether a text is the name of an element type: ``bf16``, ``f8e4m3fn``, ``pred``."""
    return re.fullmatch(r"pred|token|opaque|[a-z]{1,2}\d{1,3}\w{0,12}", text) is not None


def is_hlo(head: str) -> bool:
    """Whether a text starts like an HLO dump."""
    return head.lstrip().startswith("HloModule ")


def parse(text: str, path: str = "") -> HloModule:
    """The module of a text. Raises `InputError` where no line reads as an instruction."""
    header: tuple[str, dict[str, str]] = ("", {})
    found: dict[str, Computation] = {}
    rows: list[Instruction] = []
    name, entry, bad = "", False, 0
    for line in _whole_lines(text):
        if line.startswith("HloModule "):
            header = _module_header(line)
        elif name and _CLOSES.match(line):
            found[name] = Computation(name, tuple(rows), entry)
            name, rows = "", []
        elif not name:
            opened = _HEADER.match(line)
            if opened:
                name, entry, rows = opened.group(2), opened.group(1) is not None, []
        elif " = " in line:
            item = _instruction(line, name, len(rows))
            bad += item is None
            rows += [item] if item is not None else []
    lost = [Loss("lines that do not read as HLO instructions", bad, path)] if bad else []
    if name:
        found[name] = Computation(name, tuple(rows), entry)
        lost.append(Loss("the end of the dump: its last computation is not closed", 1, f"{path} %{name}".strip()))
    if found and not any(item.entry for item in found.values()):
        lost.append(Loss("the entry computation: the dump ends before it", 1, path))
    if not any(item.instructions for item in found.values()):
        raise InputError("Expected HLO text with at least one instruction, got none,", where=path or "the HLO text")
    return HloModule(header[0], found, header[1], path, tuple(lost))


def _whole_lines(text: str) -> Iterator[str]:
    """Lines, with those joined that a line break inside a quoted attribute tore apart."""
    whole: list[str] = []
    for line in text.splitlines():
        if whole and _STARTS.match(whole[0]) and not _STARTS.match(line) and not _CLOSES.match(line):
            whole.append(line)
            continue
        if whole:
            yield "".join(whole)
        whole = [line]
    if whole:
        yield "".join(whole)


def _module_header(line: str) -> tuple[str, dict[str, str]]:
    parts = _split(line.removeprefix("HloModule "))
    pairs = (item.partition("=") for item in parts[1:])
    return parts[0].strip(), {key.strip(): value.strip() for key, _, value in pairs}


def _instruction(line: str, computation: str, index: int) -> Instruction | None:
    """One line, or None where it is not an instruction."""
    left, _, right = line.strip().partition(" = ")
    root = left.startswith("ROOT ")
    name = left.removeprefix("ROOT ").strip().lstrip("%")
    end = _shape_end(right)
    opened = _OPCODE.match(right, end)
    if not name or opened is None:
        return None
    close = _closing(right, opened.end() - 1)
    if close is None:
        return None
    inside, opcode = right[opened.end() : close], opened.group(1)
    plain = opcode in ("constant", "parameter", "iota")
    operands = () if plain else tuple(o for o in (_operand(part) for part in _split(inside)) if o)
    attributes = _attributes(right[close + 1 :].lstrip(", "))
    shapes = tuple(_shape(kind, dims) for kind, dims in _ARRAY.findall(right[:end]))
    literal = inside.strip() if plain else ""
    return Instruction(name, opcode, shapes, operands, attributes, computation, index, root, literal)


def _shape_end(text: str) -> int:
    """Where the type at the start of a text ends: a parenthesized tuple, or up to the first blank."""
    if text.startswith("("):
        close = _closing(text, 0)
        return len(text) if close is None else close + 1
    blank = text.find(" ")
    return len(text) if blank < 0 else blank


def _shape(dtype: str, dims: str) -> Shape:
    sizes = [item.strip().lstrip("<=") for item in dims.split(",") if item.strip()]
    return Shape(dtype, tuple(int(item) for item in sizes if item.isdecimal() and len(item) <= 18))


def _operand(text: str) -> str:
    """``bf16[4]{0} %x``, ``/*index=5*/%x`` and ``x`` all name x."""
    return text.rpartition("*/")[2].strip().rpartition(" ")[2].lstrip("%")


def _attributes(text: str) -> dict[str, str]:
    """``key=value`` pairs. The backend's configuration is one raw text: it is long and rarely read."""
    at = text.find("backend_config=")
    found = {} if at < 0 else {"backend_config": text[at + len("backend_config=") :]}
    pairs = (item.partition("=") for item in _split(text if at < 0 else text[:at]))
    return {key.strip(): value.strip() for key, sign, value in pairs if sign} | found


def _closing(text: str, start: int) -> int | None:
    """Where the bracket at ``start`` closes, minding quotes; None where it does not."""
    depth, quoted = 0, False
    for mark in _MARK.finditer(text, start):
        found = mark.group()
        if found == '"':
            quoted = not quoted if text[mark.start() - 1] != "\\" else quoted
        elif quoted or found == ",":
            continue
        else:
            depth += 1 if found in _PAIRS else -1
            if depth == 0:
                return mark.start()
    return None


def _split(text: str) -> list[str]:
    """The parts between the commas outside brackets and quotes."""
    parts, last, depth, quoted = [], 0, 0, False
    for mark in _MARK.finditer(text):
        found, at = mark.group(), mark.start()
        if found == '"':
            quoted = not quoted if not at or text[at - 1] != "\\" else quoted
        elif quoted:
            continue
        elif found == ",":
            if depth == 0:
                parts.append(text[last:at])
                last = at + 1
        else:
            depth += 1 if found in _PAIRS else -1
    return [*parts, text[last:]]
