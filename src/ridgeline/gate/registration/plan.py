"""What a gate will decide by, written down: margins, slices, metrics, alpha, power, looks.

``ridgeline gate register SPEC.toml`` freezes it; the flags of a gate make the same object, unregistered.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from ridgeline.core import parse
from ridgeline.core.catalog import constant
from ridgeline.core.errors import InputError, located
from ridgeline.core.specs import Spec, build, read_toml, typed
from ridgeline.gate.statistics.sizes import POWER

LEAST_SLICES = 5


def _default(name: str) -> float:
    return float(constant(f"gate.{name}").base)


def _of_recovery() -> dict[str, Any]:
    return {**_both("recovery"), "least_slices": 0}


def _of_truncation() -> dict[str, Any]:
    margins = {"margin": _default("margin.truncation"), "slice_margin": _default("margin.truncation_slice")}
    return {**margins, "least_slices": 0}


def _both(gate: str) -> dict[str, Any]:
    """One margin overall and in slices."""
    return dict.fromkeys(("margin", "slice_margin"), _default(f"margin.{gate}"))


_USUAL: Mapping[Any, Callable[[], dict[str, Any]]] = {
    "recovery": _of_recovery,
    "regression": lambda: {"least_slices": 2},
    **dict.fromkeys(("bayes", "multihop", "ood"), lambda: {"least_slices": 0}),
    "padding": lambda: {**_both("padding"), "least_slices": 0},
    "truncation": _of_truncation,
}


class Plan(Spec):
    """The registered keys. Margins are losses tolerated, above zero: ``"1%"`` or 0.01, nats for losses.

    ``margins`` name single slices. ``slices`` and ``cluster`` name the column, or label, that examples are cut and
    grouped by. ``n`` is the registered number of pairs, ``sequential`` whether the run is looked at before it.
    ``variance`` is what is assumed of one pair's difference before there is data: of zeros and ones, the share of
    examples on which the runs will disagree.
    ``rare_beyond`` and ``rare_rate`` bound broken examples of real-valued metrics.
    """

    gate: str
    metrics: tuple[str, ...] = ()
    margin: Annotated[float, typed(parse.share, "$.margin")] = Field(default_factory=lambda: _default("margin.overall"))
    slice_margin: Annotated[float, typed(parse.share, "$.slice_margin")] = Field(
        default_factory=lambda: _default("margin.slice")
    )
    margins: Mapping[str, Annotated[float, typed(parse.share, "$.margins")]] = Field(default_factory=dict)
    slices: str = ""
    least_slices: int = Field(LEAST_SLICES, ge=0)
    cluster: str = ""
    alpha: float = Field(0.05, gt=0, lt=0.5)
    power: float = Field(POWER, gt=0, lt=1)
    n: int | None = Field(None, gt=1)
    sequential: bool = False
    variance: float | None = Field(None, gt=0, allow_inf_nan=False)
    on_error: Literal["wrong", "drop", "refuse"] = "wrong"
    rare_beyond: float = Field(default_factory=lambda: _default("rare.beyond"), gt=0, allow_inf_nan=False)
    rare_rate: Annotated[float, typed(parse.share, "$.rare_rate")] = Field(
        default_factory=lambda: _default("rare.rate")
    )
    columns: Mapping[str, str] = Field(default_factory=dict)
    note: str = ""

    @model_validator(mode="before")
    @classmethod
    def _usual(cls, said: Any) -> Any:
        """Defaults that differ by gate: a recovery is relative, and plain suites need no slices."""
        usual = _USUAL.get(said.get("gate"), dict) if isinstance(said, Mapping) else dict
        return {**usual(), **said} if isinstance(said, Mapping) else said

    @field_validator("margin", "slice_margin", "rare_rate")
    @classmethod
    def _above_zero(cls, value: float) -> float:
        return _tolerated(value, "$.margin")

    @field_validator("margins")
    @classmethod
    def _each_above_zero(cls, values: Mapping[str, float]) -> Mapping[str, float]:
        return {name: _tolerated(value, f"$.margins.{name}") for name, value in values.items()}

    @model_validator(mode="after")
    def _independent_looks(self) -> "Plan":
        if self.sequential and self.cluster:
            hint = "register one look at clustered examples, or sequential looks at one example a cluster"
            raise InputError.expected(
                "sequential looks at independent pairs", self.cluster, where="$.cluster", hint=hint
            )
        if self.sequential and self.n is None:
            hint = "the sequence is tuned to it; tuned anew at every look it has no guarantee"
            raise InputError.expected("the planned number of pairs of sequential looks", "none", where="$.n", hint=hint)
        return self

    def margin_of(self, name: str) -> float:
        """The margin of a slice."""
        return self.margins.get(name, self.slice_margin)


def _tolerated(value: float, where: str) -> float:
    if not value > 0:
        hint = "no finite number of examples shows that nothing at all was lost"
        raise InputError.expected("a margin above zero", value, where=where, hint=hint)
    return value


def read_plan(file: Path) -> Plan:
    """The plan of a TOML file. Raises `InputError` with the place of the first fault."""
    with located(str(file)):
        return build(Plan, read_toml(file, what="gate plan"))
