"""What is asked of a design: training compute, serving chips, limits on time and price, and the axes of the search.

A study folder gives it (``[budget]`` and ``[need]`` of study.toml), flags, or a TOML of its own; later ones win.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator

from ridgeline.arithmetic import laws
from ridgeline.arithmetic.budget import compute_budget
from ridgeline.arithmetic.inputs import known
from ridgeline.arithmetic.kv import DS_MLA, FORMATS
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.core import catalog, parse
from ridgeline.core.catalog import constant
from ridgeline.core.device import Device
from ridgeline.core.errors import InputError, located
from ridgeline.core.law import Law
from ridgeline.core.quantity import Quantity, Source, given, leaf
from ridgeline.core.specs import Spec, build, read_toml, typed

LIMITS = ("turn", "ttft", "tpot", "price")  # what is bounded, in the order of the tables
JOINT = "ludziejewski-2025"  # the one law of the catalog in which dense models and mixtures compare
LAW = "besiroglu-2024"
KV = tuple(name for name in FORMATS if name != DS_MLA)  # types that suit either kind of attention
_NEED = {"prefill": "prompt", "decode": "output", "budget": "turn", "overhead": "overhead",
         "chips_per_conversation": "chips", "chip": "device"}  # fmt: skip
_BITS = {16: "bf16", 8: "fp8", 4: "fp4"}
_MOST_BATCH = 2**16
FLAGS = {"compute": "--compute", "device": "--device", "chips": "--chips", "prompt": "--context",
         "output": "--context", "ttft": "--ttft", "tpot": "--tpot", "ceiling": "--price-ceiling",
         "axes.batches": "--batch"}  # fmt: skip


def _dollars(text: str, *, where: str, most: int) -> float:
    """A price; a number of TOML or of a flag that is not finite is refused in these words too."""
    expected = f"a finite price above zero, at most {most:,} dollars"
    value, rest = parse.number(text, where=where, expected=expected)
    if rest or not 0 < value <= most:
        raise InputError.expected(expected, text, where=where)
    return float(value)


class Axes(Spec):
    """The grid. ``d_model`` runs from ``narrowest`` to ``widest`` in steps of head dimension times chips; ``mixtures``
    are experts and top-k; ``batches`` sequences that decode together."""

    narrowest: int = Field(1024, gt=0, le=2**16)
    widest: int = Field(16384, gt=0, le=2**16)
    aspects: tuple[float, ...] = (64, 80, 96, 112, 128, 160, 200)
    attention: tuple[str, ...] = ("gqa", "mla")
    kv_heads: tuple[Annotated[int, Field(gt=0, le=2**12)], ...] = (1, 2, 4, 8, 16)
    mixtures: tuple[tuple[int, int], ...] = ((8, 2), (64, 8), (128, 8), (256, 8))
    weights: tuple[str, ...] = ("bf16", "fp8")
    kv: tuple[str, ...] = ("bf16", "fp8")
    batches: tuple[Annotated[int, Field(gt=0, le=_MOST_BATCH)], ...] = ()  # empty: 1 for a turn, else powers of two

    @field_validator("aspects", "attention", "kv_heads", "weights", "kv")
    @classmethod
    def _something_is_tried(cls, value: tuple[Any, ...], info: ValidationInfo) -> tuple[Any, ...]:
        if not value:
            raise InputError.expected("at least one value to try", "none", where=f"$.axes.{info.field_name}")
        return value

    @field_validator("aspects")
    @classmethod
    def _shapes_are_known(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        low, high = (float(constant(f"codesign.aspect.{end}").value) for end in ("low", "high"))
        for item in value:
            if not low <= item <= high:
                raise InputError.expected(f"{low:g} to {high:g}, the d_model per layer that laws speak of", item,
                                          where="$.axes.aspects")  # fmt: skip
        return value

    @field_validator("weights", "kv")
    @classmethod
    def _types_are_known(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        where = f"$.axes.{info.field_name}"
        for item in value:
            with located(where):
                dtype_bytes(item)
            if info.field_name == "kv" and item not in KV:
                raise InputError.expected("one of " + ", ".join(KV), item, where=where)
        return value

    @field_validator("attention")
    @classmethod
    def _attention_is_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for item in value:
            if item not in ("gqa", "mla"):
                raise InputError.expected("gqa or mla", item, where="$.axes.attention")
        return value

    @field_validator("mixtures")
    @classmethod
    def _top_k_fits(cls, value: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        for experts, top_k in value:
            if not 1 <= top_k < experts <= 2**12:
                raise InputError.expected("experts and a smaller top-k", [experts, top_k], where="$.axes.mixtures")
        return value


class Asked(Spec):
    """The keys of ``--spec``. Times, counts and chips are what people type (``"20ms"``, ``"1e24"``, ``"8k"``)."""

    compute: Annotated[float | None, typed(parse.count, "$.compute", what="FLOPs")] = None
    device: str = ""
    chips: int = Field(1, gt=0, le=2**10)
    prompt: Annotated[int, typed(parse.context, "$.prompt")] = 8192
    output: Annotated[int, typed(parse.context, "$.output")] = 128
    overhead: Annotated[float | None, typed(parse.duration, "$.overhead", zero=True)] = None
    turn: Annotated[float | None, typed(parse.duration, "$.turn")] = None
    ttft: Annotated[float | None, typed(parse.duration, "$.ttft")] = None
    tpot: Annotated[float | None, typed(parse.duration, "$.tpot")] = None
    ceiling: Annotated[float | None, typed(_dollars, "$.ceiling", most=10**6)] = None  # USD per million output tokens
    price: Annotated[float | None, typed(_dollars, "$.price", most=10**4)] = None  # USD per chip and hour
    law: str = LAW
    vocab: int | None = Field(None, gt=0, le=2**24)
    axes: Axes = Axes()

    @field_validator("compute")
    @classmethod
    def _laws_cover_it(cls, value: float | None) -> float | None:
        if value is not None:
            _require_covered(value, "$.compute")
        return value


def _require_covered(compute_flops: float, where: str) -> None:
    low, high = (float(constant(f"codesign.compute.{end}").base) for end in ("low", "high"))
    if not low <= compute_flops <= high:
        raise InputError.expected(
            f"training compute of {low:.0e} to {high:.0e} FLOP, where laws may be asked",
            float(f"{compute_flops:.3g}"), where=where, hint="FLOPs of the whole run, such as 1e24",
        )  # fmt: skip


@dataclass(frozen=True)
class Need:
    """One question, as quantities. ``limits`` are by name of `LIMITS`; ``price`` is None where none is known."""

    compute: Quantity
    device: Device
    chips: Quantity
    prompt: Quantity
    output: Quantity
    overhead: Quantity
    limits: Mapping[str, Quantity]
    price: Quantity | None
    law: Law
    joint: Law
    vocab: int
    axes: Axes

    @property
    def batches(self) -> tuple[int, ...]:
        """Sequences that decode together: one for a turn, which has its chips to itself, unless the axes say."""
        if self.axes.batches:
            return self.axes.batches
        return (1,) if "turn" in self.limits else (1, 4, 16, 64, 256)


def need_of(asked: Asked, compute: Quantity | None = None, where: str = "the flags") -> Need:
    """The question that was asked. ``compute`` (FLOP) has a derivation of its own where a study gives the cluster.

    Raises `InputError` where compute, device or every limit is missing, for compute far from any that a law was fitted
    on, or for a law without a loss.
    """
    if asked.compute is not None:
        compute = given("compute", asked.compute, "FLOP", where).titled("Training compute, C")
    if compute is None:
        raise InputError.expected("training compute, such as --compute 1e24, or a study", "none", where="--compute")
    _require_covered(float(compute.base), f"{where}: $.budget")
    if not asked.device:
        raise InputError.expected("a serving device, such as --device H100", "none", where="--device")
    law = catalog.law(asked.law)
    if law.kind not in laws.LOSS_KINDS:
        raise InputError.expected("a law that predicts the loss of dense models", law.slug, where="$.law")
    machine = catalog.device(asked.device)
    overhead = constant("planning.turn_overhead").named("need.overhead")
    if asked.overhead is not None:
        overhead = given("need.overhead", asked.overhead, "s", where)
    price = constant(f"prices.chip_hour.{machine.slug}", missing_ok=True)
    if asked.price is not None:
        price = given("codesign.price", asked.price, "USD/(chip*h)", where)
    limits = _limits(asked, overhead, price, where)
    return Need(
        compute, machine, given("need.chips", asked.chips, "chip", where).titled("Chips of one replica"),
        given("serve.prompt", asked.prompt, "token", where).titled("Tokens of a prompt"),
        given("serve.output", asked.output, "token", where).titled("Tokens of an answer"),
        overhead.titled("Fixed overhead of a turn"), limits, price.titled("Price of a chip-hour") if price else None,
        law, catalog.law(JOINT), asked.vocab or int(constant("planning.vocab").value), asked.axes,
    )  # fmt: skip


def _limits(asked: Asked, overhead: Quantity, price: Quantity | None, where: str) -> dict[str, Quantity]:
    units = {"turn": (asked.turn, "s", "Latency budget of a turn"), "ttft": (asked.ttft, "s", "Limit on TTFT"),
             "tpot": (asked.tpot, "s/token", "Limit on TPOT"),
             "price": (asked.ceiling, "USD/(1e6*token)", "Ceiling on the price of output tokens")}  # fmt: skip
    found = {
        name: given(f"need.{name}", value, unit, where).titled(title)
        for name, (value, unit, title) in units.items()
        if value is not None
    }
    if not found:
        raise InputError.expected("a limit: --ttft, --tpot, --price-ceiling, or a study with a turn", "none",
                                  where="the flags")  # fmt: skip
    if "price" in found and price is None:
        raise InputError.expected("the price of a chip and hour beside a ceiling", "none", where="$.price")
    if "turn" in found and float(found["turn"].base) <= float(overhead.base):
        raise InputError.expected("a turn longer than its fixed overhead", f"{asked.turn} s", where=where)
    return found


def study_file(folder: str | Path) -> Path:
    """``study.toml`` of a folder, or the file itself."""
    path = Path(folder)
    return path / "study.toml" if path.is_dir() else path


def from_study(file: Path) -> tuple[dict[str, Any], Quantity]:
    """The keys of `Asked` that ``[budget]`` and ``[need]`` of a study give, and its compute with its derivation.

    Raises `InputError` with the file for a study that lacks a budget.
    """
    data = read_toml(file, what="study file")
    with located(str(file)):
        budget, need = (data.get(name, {}) for name in ("budget", "need"))
        for name, table in (("budget", budget), ("need", need)):
            if not isinstance(table, dict):
                raise InputError.expected("a table", table, where=f"$.{name}")
        if "chips" not in budget or "days" not in budget:
            raise InputError.expected("chips and days", sorted(budget), where="$.budget")
        count, name = parse.chips(str(budget["chips"]), where="$.budget.chips")
        machine = catalog.device(name)
        found = {own: need[theirs] for theirs, own in _NEED.items() if theirs in need}
        found |= {"device": found.get("device") or name}
        if "weight_bits" in need:
            found |= {"axes": {"weights": [_weights(need["weight_bits"])]}}
        if "dollars_per_chip_hour" in budget and machine.slug == catalog.device(str(found["device"])).slug:
            found |= {"price": budget["dollars_per_chip_hour"]}
        if "vocab" in data:
            found |= {"vocab": data["vocab"]}
        return found, _compute(budget, count, machine)


def _weights(bits: object) -> str:
    if not isinstance(bits, int) or bits not in _BITS:
        raise InputError.expected("16, 8 or 4", bits, where="$.need.weight_bits")
    return _BITS[bits]


def _compute(budget: Mapping[str, Any], count: int, machine: Device) -> Quantity:
    dtype = str(budget.get("dtype", "bf16"))
    peak = known(machine.peak(dtype), f"the {dtype} peak of {machine.name}")
    days = parse.duration(str(budget["days"]), where="$.budget.days", bare="day") / parse.duration("1 day", where="")
    mfu = constant("planning.mfu")
    if "mfu" in budget:
        stated = parse.share(budget["mfu"], where="$.budget.mfu", what="a share such as 0.4")
        mfu = leaf("cluster.mfu", stated, "1", "specified", Source("given by the user", "budget.mfu"))
    return compute_budget(
        given("cluster.chips", count, "chip", "budget.chips").titled("Chips"), peak, mfu,
        given("cluster.time", days, "day", "budget.days").titled("Wall-clock time"),
    )  # fmt: skip


def merged(*tables: Mapping[str, Any], batches: Sequence[int] = ()) -> dict[str, Any]:
    """Tables of keys over one another, the later ones first; the tables of ``axes`` key by key."""
    axes: dict[str, Any] = {}
    for table in tables:
        item = table.get("axes", {})
        if not isinstance(item, Mapping):
            raise InputError.expected("a table", item, where="$.axes")
        axes |= item
    if batches:
        axes |= {"batches": list(batches)}
    return {key: value for table in tables for key, value in table.items()} | ({"axes": axes} if axes else {})


def batches_of(text: str) -> list[int]:
    """``1,16,64`` of ``--batch``. Raises `InputError` for anything but whole numbers of sequences."""
    expected = f"whole numbers of sequences from 1 to {_MOST_BATCH:,}, such as 1,16,64"
    found = []
    for item in text.split(",") if text else ():
        value, rest = parse.number(item, where="--batch", expected=expected)
        if rest or not 1 <= value <= _MOST_BATCH or not float(value).is_integer():
            raise InputError.expected(expected, item, where="--batch")
        found.append(int(value))
    return found


def asked_of(keys: Mapping[str, Any], where: str, flags: Collection[str] = ()) -> Asked:
    """Merged keys, checked. ``flags`` are the keys that a flag gave: what is refused of them names the flag."""
    try:
        with located(where):
            return build(Asked, keys, where=where)
    except InputError as error:
        place = error.where.rpartition("$.")[2].partition("[")[0]
        if place not in flags:
            raise
        message = error.message.removesuffix(f" at {error.where}")
        raise InputError(message, where=FLAGS[place], hint=error.hint) from None
