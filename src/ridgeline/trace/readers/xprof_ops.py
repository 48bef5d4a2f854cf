"""One operation of an XProf timeline: what it is and which details the levels need."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ridgeline.arithmetic.hlo import Instruction, parse
from ridgeline.core.errors import InputError
from ridgeline.trace.events import NONE, Category

COLLECTIVES = (
    "all-gather", "all-reduce", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-permute",
    "collective-broadcast", "send", "recv",
)  # fmt: skip  # HLO opcodes, without -start and -done

_NUMBERED = re.compile(r"(?:[._]\d+|\.clone|\.remat\d*|\.kd)+$")
_PHASE = re.compile(r"(.+)-(start|done)")
_COPY = re.compile(r"(?:async-)?copy|offload-copy|dynamic-(?:update-)?slice", re.IGNORECASE)
_GPU_COPY = re.compile(r"Memcpy(?:([HDP])(?:to|2)([HDP]))?", re.IGNORECASE)
_HOST_SPACE = re.compile(r"S\(5\)")  # XLA's memory space 5 is the host's
_OPERATOR = re.compile(r"\s[a-z][\w-]*\(")  # behind the type: " copy-start(", while layouts have "T(8,128)"
_ARRAYS = re.compile(r"[a-z][a-z0-9]*\[[^\]]*\](?:\{[^}]*\})?")
_PAIRS = re.compile(r"(\w+):([\w,.]+)")
_NUMBERS = {"model_flops": "flops", "flops": "flops", "bytes_accessed": "bytes", "raw_bytes_accessed": "bytes"}
_TEXTS = ("hlo_category", "hlo_op", "hlo_module", "source")
# the stats that decide what an event is: others, such as run ids, differ from event to event and are not kept
USED = frozenset({*_NUMBERS, *_TEXTS, "tf_op", "name", "hlo", "kernel_details", "memcpy_details", "memset_details",
                  "shape_with_layout"})  # fmt: skip


class Operation(NamedTuple):
    """Category, detail and bytes (NONE where not known) of one event on a device."""

    category: Category
    meta: dict[str, Any]
    nbytes: int


def opcode(name: str) -> str:
    """``all-gather-start.3`` and ``%fusion.12`` without their numbers."""
    return _NUMBERED.sub("", name.removeprefix("%"))


def operation(name: str, stats: Mapping[str, Any]) -> Operation:
    """What an event on a device is; ``stats["hlo"]`` is the instruction's text where the profile has it."""
    meta = details(name, stats)
    if "memcpy_details" in stats or (_GPU_COPY.match(name) and "kernel" not in name.lower()):
        parts = dict(_PAIRS.findall(str(stats.get("memcpy_details", ""))))
        way = copy_way(str(parts.get("kind", ""))) or copy_way(name) or "Unknown"
        return Operation(Category.MEMCPY, {**meta, "copy": way}, _count(parts.get("size")))
    if "memset_details" in stats or name.lower().startswith("memset"):
        parts = dict(_PAIRS.findall(str(stats.get("memset_details", ""))))
        return Operation(Category.MEMSET, meta, _count(parts.get("size") or parts.get("num_bytes")))
    if way := _async_copy(name, stats):
        return Operation(Category.MEMCPY, {**meta, "copy": way}, _count(stats.get("raw_bytes_accessed")))
    return Operation(Category.KERNEL, {**meta, **_collective(name, stats)}, NONE)


def copy_way(text: str) -> str:
    """``MemcpyH2D``, ``kind:D2H``: as "HtoD", "DtoH", ...; empty where the text does not say."""
    match = re.search(r"([HDP])(?:2|to)([HDP])", text)
    return f"{match[1]}to{match[2]}" if match else ""


def details(name: str, stats: Mapping[str, Any]) -> dict[str, Any]:
    """The stats that the levels use, under one name each: flops, bytes, HLO text and category, provenance, launch."""
    meta: dict[str, Any] = {}
    for key, short in _NUMBERS.items():
        value = _count(stats.get(key))
        if value > 0:
            meta.setdefault(short, value)
    for key in _TEXTS:
        if text := stats.get(key):
            meta[key] = str(text)
    provenance = str(stats.get("tf_op") or "")
    if not provenance or provenance.startswith("XlaModule"):
        provenance = str(stats.get("name") or "")
    if provenance:
        meta["tf_op"] = provenance.rstrip(":")
    if text := stats.get("hlo"):
        meta["hlo"] = str(text)
    if launch := stats.get("kernel_details"):
        meta |= _launch(str(launch))
    return meta


@lru_cache(maxsize=4096)
def _launch(text: str) -> dict[str, Any]:
    """``regs:32 grid:16,1,1 block:512,1,1 static_shared:0``, and ``group_mem`` on AMD."""
    parts = dict(_PAIRS.findall(text))
    meta: dict[str, Any] = {}
    for key in ("grid", "block"):
        sizes = parts.get(key, "").split(",")
        if len(sizes) == 3 and all(size.isdecimal() for size in sizes):
            meta[key] = tuple(int(size) for size in sizes)
    if (registers := _count(parts.get("regs"))) >= 0:
        meta["registers"] = registers
    shared = [_count(parts[key]) for key in ("static_shared", "dynamic_shared", "group_mem") if key in parts]
    if shared:
        meta["shared"] = sum(max(size, 0) for size in shared)
    return meta


def _async_copy(name: str, stats: Mapping[str, Any]) -> str:
    """Which way a copy between memories goes; empty for any other operation.

    A copy to or from the host's memory has it in its type: (destination, source, context). A plain ``copy`` inside
    the device is work, not a copy over a link.
    """
    kind = _PHASE.fullmatch(opcode(name))
    base = kind[1] if kind else opcode(name)
    if not _COPY.fullmatch(base) or (kind is None and base != "offload-copy"):
        return ""
    text = str(stats.get("hlo") or "")
    typed = _OPERATOR.split(text.partition(" = ")[2], maxsplit=1)[0]
    arrays = _ARRAYS.findall(str(stats.get("shape_with_layout") or typed))
    if len(arrays) < 2:
        arrays = _ARRAYS.findall(text.partition("-done(")[2]) or arrays
    if len(arrays) < 2:
        return "DtoH" if arrays and _HOST_SPACE.search(arrays[0]) else "DtoD"
    to_host, from_host = (_HOST_SPACE.search(item) is not None for item in arrays[:2])
    return "DtoD" if to_host == from_host else "DtoH" if to_host else "HtoD"


def _collective(name: str, stats: Mapping[str, Any]) -> dict[str, Any]:
    """Kind, type, size and group of a collective, as far as name and HLO text say; empty for anything else."""
    text = str(stats.get("hlo") or "")
    parsed = _parsed(text) if text else None
    kind = parsed.opcode if parsed else opcode(name)
    phase = _PHASE.fullmatch(kind)
    base = phase[1] if phase else kind
    if base not in COLLECTIVES:
        return {}
    meta: dict[str, Any] = {"collective": base.replace("-", "_")}
    if phase:
        begun = parsed.operands[0] if parsed and parsed.operands and phase[2] == "done" else name
        meta |= {"phase": phase[2], "call": begun.replace("-done", "-start")}
    if parsed is None:
        return meta
    shapes = [shape for shape in parsed.shapes if shape.dims]
    if phase and phase[2] == "start" and base != "all-reduce" and len(shapes) > 1:
        shapes = shapes[len(shapes) // 2 :]  # the first half of a start's tuple are its operands
    group, size = _group(parsed.attributes.get("replica_groups", ""))
    if group:
        meta |= {"group": group, "group_size": size}
    if shapes:
        out = sum(shape.elements for shape in shapes)
        factor = {"all-gather": (1, size), "reduce-scatter": (size, 1)}.get(base, (1, 1))
        meta |= {"dtype": shapes[0].dtype, "out_numel": out, "in_numel": out * factor[0] // max(factor[1], 1)}
        if size == 0 and base in ("all-gather", "reduce-scatter"):
            del meta["in_numel"]
    return meta


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Instruction | None:
    """One instruction from its text."""
    try:
        module = parse(f"HloModule op\n\nENTRY op {{\n  {' '.join(text.split())}\n}}\n")
    except InputError:
        return None
    return next((i for c in module.computations.values() for i in c.instructions), None)


def _group(text: str) -> tuple[str, int]:
    """``{{0,1},{2,3}}`` and ``[4,2]<=[8]``: the text and the size of one group; 0 where it is not said."""
    if match := re.match(r"\[(\d+),(\d+)\]<=", text):
        return text[:200], int(match[2])
    if match := re.match(r"\{\{([\d,\s]+)\}", text):
        return text[:200], len(match[1].split(","))
    return "", 0


def _count(value: Any) -> int:
    """A count held as number or text; NONE where it is neither."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return NONE
    return number if 0 <= number < 1 << 62 else NONE
