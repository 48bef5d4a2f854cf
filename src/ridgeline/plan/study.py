"""The study: what is to be decided, as one typed input; ``study.toml`` and the flags of ``plan`` both make it.

Values are what people type (``"1000xH100"``, ``"30d"``, ``"15T"``, ``"8k"``). Everything left out is either
a default of `core/data/planning.toml`, which then shows up among the assumptions, or simply not checked.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from ridgeline.core import format as formats
from ridgeline.core import parse
from ridgeline.core.catalog import constant
from ridgeline.core.errors import InputError, located
from ridgeline.core.specs import Spec, build, read_toml, typed

Bits = Literal[4, 8, 16]
# Beyond any cluster, patience, model and corpus: a typing error.
MOST_CHIPS, LONGEST_S = 10**7, 100 * 365 * 86400
LEAST_PARAMS, MOST_PARAMS, MOST_TOKENS = 10**4, 10**16, 10**20


def _tokens(where: str, what: str = "tokens") -> BeforeValidator:
    return typed(_bounded, where, what=what, least=0, most=MOST_TOKENS)


def _params(where: str) -> BeforeValidator:
    return typed(_bounded, where, what="parameters", least=LEAST_PARAMS, most=MOST_PARAMS)


def _bounded(text: str, *, where: str, what: str, least: float, most: float) -> int | float:
    value = parse.count(text, where=where, what=what)
    if not least <= value <= most:
        hint = "is a suffix missing, or one too many? k, M, B, T, P"
        ends = f"at most {most:g}" if not least else f"{least:g} to {most:g}"
        raise InputError.expected(f"{ends} {what}", text, where=where, hint=hint)
    return value


class _Table(Spec):
    """A table of the study file: a truth value is not a number."""

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_value(cls, value: Any) -> Any:
        if isinstance(value, bool):
            raise PydanticCustomError("truth_value", "a text or a number")
        return value


class Budget(_Table):
    """``[budget]``: the cluster, the time and what they cost."""

    chips: Annotated[tuple[int, str], typed(parse.chips, "$.budget.chips")]
    days: Annotated[float, typed(parse.duration, "$.budget.days", bare="day")]  # held in seconds
    mfu: float | None = Field(None, gt=0, le=1)
    dtype: str = "bf16"
    dollars_per_chip_hour: float | None = Field(None, gt=0, le=1e4)
    unique_tokens: Annotated[float | None, _tokens("$.budget.unique_tokens")] = None
    site_power_mw: float | None = Field(None, gt=0, le=1e5)
    pue: float | None = Field(None, ge=1, le=5)
    dollars_per_kwh: float | None = Field(None, gt=0, le=100)

    @model_validator(mode="after")
    def _sizes_are_sane(self) -> "Budget":
        if self.chips[0] > MOST_CHIPS:
            raise InputError.expected(f"at most {MOST_CHIPS:,} chips", self.chips[0], where="$.budget.chips")
        if self.days > LONGEST_S:
            raise InputError.expected("at most 100 years", f"{self.days / 86400:g} days", where="$.budget.days")
        return self


class Need(_Table):
    """``[need]``: one interactive turn, and how many chips one conversation may occupy."""

    prefill: Annotated[int, typed(parse.context, "$.need.prefill")] = 8192
    decode: Annotated[int, typed(parse.context, "$.need.decode")] = 128
    overhead: Annotated[float | None, typed(parse.duration, "$.need.overhead", zero=True)] = (
        None  # planning.turn_overhead
    )
    budget: Annotated[float, typed(parse.duration, "$.need.budget")]
    chips_per_conversation: int = Field(8, gt=0, le=2**20)
    chip: str = ""  # the serving device; empty: the training device
    also: tuple[str, ...] = ()  # further serving devices to compare
    weight_bits: Bits = 16

    @model_validator(mode="after")
    def _budget_exceeds_overhead(self) -> "Need":
        overhead = float(constant("planning.turn_overhead").base) if self.overhead is None else self.overhead
        if self.budget <= overhead:
            raise InputError.expected(
                f"a latency budget above the fixed overhead of {overhead:g} s",
                f"{self.budget:g} s",
                where="$.need.budget",
                hint="no number of chips removes the overhead: raise the budget or cut the overhead",
            )
        return self


class Traffic(_Table):
    """One ``[[traffic]]`` scenario: tokens served over the model's life."""

    name: str = ""
    served: Annotated[float, _tokens("$.traffic.served", "served tokens")]


class Moe(_Table):
    """``[moe]``: the mixture-of-experts alternative at equal active parameters."""

    experts: int = Field(64, gt=1, le=4096)
    top_k: int = Field(8, gt=0, le=4096)
    shared: int = Field(0, ge=0, le=64)

    @model_validator(mode="after")
    def _top_k_fits(self) -> "Moe":
        if self.top_k > self.experts:
            raise InputError.expected(f"top_k of at most the {self.experts} experts", self.top_k, where="$.moe.top_k")
        return self


class Study(_Table):
    """A whole study. ``candidates`` are parameter counts to compare beside the compute-optimal one."""

    name: str = ""
    question: str = ""
    budget: Budget
    need: Need | None = None
    traffic: tuple[Traffic, ...] = ()
    candidates: tuple[Annotated[float, _params("$.candidates")], ...] = ()
    choice: Annotated[float | None, _params("$.choice")] = None
    moe: Moe | None = None
    laws: tuple[str, ...] = ()  # empty: all that give an optimum; the first one decides
    vocab: int | None = Field(None, gt=0, le=2**24)
    sequence: Annotated[int | None, typed(parse.context, "$.sequence")] = None  # planning.seq_len


def read_study(folder: str | Path) -> tuple[Study, Path]:
    """``study.toml`` of a folder, or the file itself. Raises `InputError` with the file and the place."""
    path = Path(folder)
    file = path / "study.toml" if path.is_dir() else path
    data = read_toml(file, what="study file")
    with located(str(file)):
        return build(Study, data), file


def need_of(turn: str, serve_on: str) -> dict[str, Any]:
    """``8k+128@1s`` and ``8xH100`` as a ``[need]`` table. Without a turn, the default one has to be back within 1 s."""
    need: dict[str, Any] = {"budget": "1s"}
    if turn:
        sizes, _, budget = turn.partition("@")
        prefill, _, decode = sizes.partition("+")
        if not (prefill and decode and budget):
            raise InputError.expected("a turn such as 8k+128@1s", turn, where="--turn", hint="PREFILL+DECODE@BUDGET")
        need = {"prefill": prefill, "decode": decode, "budget": budget}
    if serve_on:
        count, chip = parse.chips(serve_on, where="--serve-on")
        need |= {"chips_per_conversation": count, "chip": chip}
    return need


def traffic_of(served: str) -> list[dict[str, Any]]:
    """``1e12..1e16`` as ``[[traffic]]`` scenarios: the ends of a range and its middle decade, or each of a list."""
    values = parse.span(served, where="--served", what="served tokens")
    if ".." in served:
        low, high = values[0], values[-1]
        values = (low, (low * high) ** 0.5, high)
    return [{"name": formats.value(value, "token"), "served": value} for value in dict.fromkeys(values)]
