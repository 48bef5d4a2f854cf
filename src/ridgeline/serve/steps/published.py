"""A row of a published serving table as a deployment under a load, or the reason why it cannot be one.

The columns are those of the public collection: ``hw``, ``n_accel``, ``model``, ``engine``, ``precision``, ``mode``,
``scenario``, ``isl``, ``osl``, ``concurrency``, ``tp``, ``pp``, ``dp_attn``, ``moe_tp``, ``moe_ep``, ``prefill_cfg``,
``decode_cfg`` (batch|workers|tp|ep of a pool, ``nan`` where unknown) and ``target_qps``; a cell may be empty.

Three habits of such tables are undone, each with a note on the row: a ``moe_tp`` equal to ``moe_ep`` beside their
product as size names the same chips twice; a size that divides no head count is the total of two pools; and where a
pool's workers are not given, all requests are taken to be on one.
"""

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ridgeline.arithmetic.named import named
from ridgeline.arithmetic.params import params
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.arithmetic.spec import MLA, Attention, CompressedAttention, ModelSpec
from ridgeline.core import catalog, figures
from ridgeline.core.errors import InputError
from ridgeline.serve.deployment import Deployment

OFFLINE, SERVER, STATIC, CLOSED = "offline", "server", "static", "closed"
COLUMNS = ("hw", "model", "engine", "mode", "isl", "osl", "concurrency")
_NODE = 16  # more chips than that in one tensor-parallel group are not one group
_GROUP = 8  # chips of a tensor-parallel group where only a total is known


@dataclass(frozen=True)
class Pools:
    """Prefill apart from decode. ``prefill`` chips of all prefill workers, ``workers`` of decode (0: unknown).

    ``total`` says that only the sum of both pools' chips is known; ``label`` is the last figure of the table's entry.
    """

    prefill: float
    workers: float = 0.0
    total: bool = False
    label: float = 0.0


@dataclass(frozen=True)
class Row:
    """One row: the deployment that decodes, its load, and what the table says was measured.

    ``prompt`` and ``answer`` in tokens, ``concurrency`` requests of the whole system, ``sequences`` those of one decode
    replica (both 0 where the load is a rate or as much as fits), ``rate`` requests/s of one replica. ``replicas`` share
    the load. ``truth`` holds ``tpot_ms``, ``ttft_ms``, ``out_tok_s``, ``power_frac_tdp`` where the table has them.
    """

    row_id: str
    deployment: Deployment
    prompt: float
    answer: float
    concurrency: float
    sequences: float
    scenario: str = CLOSED
    engine: str = ""
    version: str = ""
    precision: str = ""
    pools: Pools | None = None
    replicas: float = 1.0
    rate: float = 0.0
    group: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()
    truth: Mapping[str, float] = field(default_factory=dict)

    @property
    def context(self) -> float:
        """Mean tokens of a request while it decodes."""
        return self.prompt + self.answer / 2


@dataclass(frozen=True)
class Refused:
    """A row that has no answer, and why."""

    row_id: str
    reason: str
    group: str = ""
    source: str = ""
    truth: Mapping[str, float] = field(default_factory=dict)


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV. Raises `InputError` for a file that is missing, unreadable, or lacks a needed column."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            found = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError.expected("a readable CSV", str(error), where=str(path)) from error
    if not found:
        raise InputError.expected("at least one row under the header", "none", where=str(path))
    missing = [name for name in COLUMNS if name not in found[0]]
    if missing:
        raise InputError.expected("a column " + missing[0], ", ".join(map(str, found[0]))[:200], where=str(path),
                                  hint="needed: " + ", ".join(COLUMNS))  # fmt: skip
    return found


def parse_all(rows: Iterable[Mapping[str, str]]) -> list[Row | Refused]:
    """Every row or its refusal, in order."""
    return [parse(row, str(number)) for number, row in enumerate(rows)]


def parse(row: Mapping[str, str], row_id: str = "0") -> Row | Refused:
    """One row. What cannot be answered is refused with a sentence, never guessed."""
    cell = {str(key): str(value or "").strip() for key, value in row.items()}  # a short row has None in it
    name = cell.get("row_id") or row_id
    try:
        truth = _truth(cell)
    except InputError as error:
        return Refused(name, str(error), cell.get("group_id", ""), cell.get("source", ""))
    kept: dict[str, Any] = {"group": cell.get("group_id", ""), "source": cell.get("source", ""), "truth": truth}
    try:
        return _parse(cell, name, kept)
    except InputError as error:
        return Refused(name, str(error).partition("\n")[0], **kept)


def _parse(cell: Mapping[str, str], row_id: str, kept: Mapping[str, Any]) -> Row:
    spec = model_of(cell["model"])
    device = catalog.device(_match("devices", cell.get("hw", ""), "a known accelerator", "hw"))
    notes: list[str] = []
    scenario = _scenario(cell.get("scenario", ""))
    benchmark = "mlperf" in cell.get("scenario", "").lower()
    precision = _precision(cell, device.dtypes, notes, benchmark=benchmark)
    sizes, pools = _sizes(cell, spec, notes)
    prompt, answer = (_length(cell, key, spec, kind) for key, kind in (("isl", "prompt"), ("osl", "answer")))
    weights = "bf16" if precision in ("", "fp16") else precision
    engine = _match("engines", cell.get("engine", ""), "", "engine")
    if not sizes:
        sizes = {"tp": _fewest(spec, device, weights)}
        notes.append(f"no parallel size is given: {sizes['tp']} chips a replica, the fewest that hold the weights")
    tp, pp, groups, ep = (sizes.get(name, 1) for name in ("tp", "pp", "dp_attention", "ep"))
    made = Deployment(spec, device, tp, pp, groups, ep, weights, engine=engine)
    chips = _number(cell, "n_accel") or made.chips
    replicas = max(1.0, chips / made.chips) if pools is None and scenario in (OFFLINE, SERVER) else 1.0
    concurrency = _number(cell, "concurrency")
    offered = _number(cell, "target_qps") or _poisson(cell)
    if scenario == SERVER and not (concurrency or offered):
        raise InputError.expected("a concurrency or a target_qps", "neither", where=f"row {row_id}")
    if scenario in (CLOSED, STATIC) and not concurrency:
        raise InputError.expected("a concurrency of at least 1", cell.get("concurrency", ""), where=f"row {row_id}")
    rate = offered / replicas if scenario == SERVER else 0.0
    workers = pools.workers if pools else 0.0
    return Row(
        row_id, made, prompt, answer, concurrency, concurrency / (workers or replicas), scenario,
        made.engine, cell.get("engine_version", ""), precision, pools, replicas, rate, notes=tuple(notes), **kept,
    )  # fmt: skip


@lru_cache(maxsize=256)
def model_of(name: str) -> ModelSpec:
    """The model that a table means. Raises `InputError`."""
    return named(_match("models", name, "a known model", "model"))[0]


@lru_cache(maxsize=1)
def _names() -> Mapping[str, Any]:
    return figures.read(catalog.DATA / "names" / "serving.toml")


@lru_cache(maxsize=4096)
def _match(table: str, text: str, expected: str, where: str) -> str:
    """The name of the first pattern found in ``text``; without ``expected`` an empty one where none is."""
    for pattern, name in _names()[table]:
        found = re.search(pattern, text.strip().lower())
        if found:
            return str(found.expand(name))
    if expected:
        raise InputError.expected(expected, text or "none", where=where)
    return ""


def _scenario(text: str) -> str:
    low = text.lower()
    if "offline" in low:
        return OFFLINE
    if any(word in low for word in ("server", "interactive", "poisson", "open-loop")):
        return SERVER
    return STATIC if "static" in low else CLOSED


def _poisson(cell: Mapping[str, str]) -> float:
    found = re.search(r"poisson ([\d.]+)/s", cell.get("scenario", "").lower())
    return float(found[1]) if found else 0.0


def _precision(cell: Mapping[str, str], dtypes: tuple[str, ...], notes: list[str], *, benchmark: bool) -> str:
    text = cell.get("precision", "").lower()
    if text:
        return _match("precisions", text, "one of bf16, fp16, fp8, fp4, int4", "precision")
    hinted = _match("hints", cell["model"], "", "model")
    if not hinted and benchmark:
        hinted = next((name for name in ("fp4", "fp8") if name in dtypes), "bf16")
        notes.append(f"no precision is given: {hinted}, the narrowest floating-point units of the device")
    elif hinted:
        notes.append(f"no precision is given: {hinted}, after the model's name")
    else:
        notes.append("no precision is given: taken as bf16")
    return hinted


def _length(cell: Mapping[str, str], key: str, spec: ModelSpec, kind: str) -> float:
    value = _number(cell, key)
    if value:
        return value
    if "mlperf" in cell.get("scenario", "").lower():
        known = catalog.constant(f"serving.{kind}.{spec.name}", missing_ok=True)
        if known is not None:
            return float(known.base)
    raise InputError.expected("a length in tokens", cell.get(key, ""), where=key)


def _sizes(cell: Mapping[str, str], spec: ModelSpec, notes: list[str]) -> tuple[dict[str, int], Pools | None]:
    """Parallel sizes of the decoding replica, empty where the table has none, and its pools when they are apart."""
    if cell.get("mode") == "disagg":
        return _apart(_pool(cell, "prefill_cfg"), _pool(cell, "decode_cfg"), spec, notes)
    tp, pp = int(_number(cell, "tp")), max(1, int(_number(cell, "pp")))
    if not tp:
        named_tp = re.search(r"_t(e?)p(\d+)_", cell.get("source_id", ""))
        if named_tp is None:
            return {}, None
        tp = int(named_tp[2])
    inner, outer = int(_number(cell, "moe_tp")), int(_number(cell, "moe_ep"))
    groups = max(1, int(_number(cell, "dp_attn")))
    if inner == outer > 1 and tp * groups == inner * outer:
        notes.append(f"{tp * groups} chips with moe_tp {inner} and moe_ep {outer}: read as {inner} chips, named twice")
        tp, groups, outer, inner = (inner, 1, inner, 1) if tp > 1 else (1, inner, inner, 1)
    if tp > _NODE or _uneven(spec, tp):
        notes.append(f"tp {tp} is no group of one model: read as the chips of two pools")
        return _apart((0, 0, tp, 1), (0, 0, tp, 1), spec, notes)
    groups = max(groups, inner * outer // tp)
    return {"tp": tp, "pp": pp, "dp_attention": groups, "ep": _divisor(tp * groups, max(1, outer))}, None


def _apart(
    prefill: tuple[float, ...], decode: tuple[float, ...], spec: ModelSpec, notes: list[str]
) -> tuple[dict[str, int], Pools]:
    _, many, first, second = decode
    if many:
        tp = int(first)
        groups = max(1, int(max(first, second)) // tp)
        pools = Pools(max(prefill[2], prefill[3]) * max(1.0, prefill[1]), many, label=second)
        return {"tp": tp, "dp_attention": groups, "ep": _divisor(tp * groups, int(second))}, pools
    together = prefill[2] == first and (first > _NODE or _uneven(spec, int(first)))
    chips = max(1, int(first) // 2 if together else int(first))
    tp = min(_GROUP, chips)
    while _uneven(spec, tp):
        tp -= 1
    groups = max(1, chips // tp)
    notes.append("batch and workers of the pools are not given: all requests on one decode worker")
    ep = tp * groups if together or second > 1 else 1
    pools = Pools(chips if together else max(1.0, prefill[2]), total=together, label=0.0 if together else second)
    return {"tp": tp, "dp_attention": groups, "ep": ep}, pools


def _pool(cell: Mapping[str, str], key: str) -> tuple[float, ...]:
    parts = cell.get(key, "").split("|")
    try:
        found = tuple(0.0 if part == "nan" else float(part) for part in parts)
    except ValueError:
        found = ()
    if len(found) != len(("batch", "workers", "tp", "ep")) or found[2] < 1:
        raise InputError.expected("batch|workers|tp|ep", cell.get(key, ""), where=key)
    return found


def _uneven(spec: ModelSpec, tp: int) -> bool:
    kinds = (b for k in spec.kinds for b in k.mixers if isinstance(b, Attention | MLA | CompressedAttention))
    return any(block.heads % tp for block in kinds)


def _divisor(stage: int, wanted: int) -> int:
    """The largest divisor of the stage that is at most ``wanted``."""
    return next(size for size in range(min(stage, max(1, wanted)), 0, -1) if stage % size == 0)


def _fewest(spec: ModelSpec, device: catalog.Device, weights: str) -> int:
    """The smallest power of two of chips whose memory the weights leave room in."""
    if device.hbm_bytes is None:
        raise InputError.expected("a device whose memory is known", device.name, where="hw")
    needed = float(params(spec).total.base) * float(dtype_bytes(weights).base)
    room = float(device.hbm_bytes.base) * float(catalog.constant("serving.memory.weights").base)
    chips = 1
    while chips * room < needed:
        chips *= 2
    while _uneven(spec, chips):
        chips //= 2
    return chips


def _truth(cell: Mapping[str, str]) -> dict[str, float]:
    keys = ("tpot_ms", "ttft_ms", "out_tok_s", "power_frac_tdp")
    found = {key: _number(cell, key) for key in keys}
    return {key: value for key, value in found.items() if value > 0}


def _number(cell: Mapping[str, str], key: str) -> float:
    """The number of a cell, 0 where it is empty. Raises `InputError` for anything that is not a number from 0 up."""
    text = cell.get(key, "")
    if text in ("", "nan"):
        return 0.0
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value < float("inf"):
        raise InputError.expected("a number of at least 0", text, where=key)
    return value
