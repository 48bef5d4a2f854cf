"""The traffic that a ledger is for, and what the user knows of the levers: typed, from options or a TOML file."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ridgeline.core import parse
from ridgeline.core.errors import InputError
from ridgeline.core.specs import Spec, build, read_toml, typed
from ridgeline.serve.deployment import DEAREST

IN_USE = ("paged", "prefix", "chunked")  # what vLLM, SGLang and TensorRT-LLM do unless told otherwise

_FASTEST = 10**6  # requests a second: far above what any replica can do


def a_share(text: str, *, where: str) -> float:
    """A share from 0 to 1, or a percentage. Raises `InputError` for anything else, NaN among them."""
    value, suffix = parse.number(str(text), where=where, expected="a share such as 0.4 or 40%")
    if suffix not in ("", "%"):
        raise InputError.expected("a share such as 0.4 or 40%", text, where=where)
    found = value / 100 if suffix else float(value)
    if not 0 <= found <= 1:
        raise InputError.expected("a share from 0 to 1", text, where=where, hint="a percentage is written 40%")
    return found


def a_price(text: str, *, where: str) -> float:
    """Dollars a chip and hour, above zero. Raises `InputError` for anything else, NaN among them."""
    value, suffix = parse.number(str(text).lstrip("$"), where=where, expected="a price such as 2.50")
    if suffix:
        raise InputError.expected("a price in dollars a chip and hour", text, where=where)
    if value > DEAREST:
        raise InputError.expected(f"a price up to {DEAREST:,} dollars a chip and hour", text, where=where)
    return float(parse.positive(value, where=where, what="a price"))


def _a_rate(text: str, *, where: str) -> float:
    value, suffix = parse.number(str(text), where=where, expected="requests a second")
    if suffix or not 0 < value <= _FASTEST:
        raise InputError.expected(f"requests a second above 0, up to {_FASTEST:,}", text, where=where,
                                  hint="without one the replica runs at a share of what it can do")  # fmt: skip
    return float(value)


def _tokens(where: str) -> Any:
    return typed(parse.context, where)


class Speculate(Spec):
    """``drafter`` of ``core/data/levers.toml`` or ngram (empty: mtp where the model has such modules, else eagle3);
    ``acceptance`` the chance that the first token is accepted and
    ``decay`` its ratio from place to place, or a measured ``model`` and ``mode`` of the table; ``drafted`` tokens."""

    drafter: str = ""
    acceptance: Annotated[float, typed(a_share, "speculation.acceptance")] | None = None
    decay: Annotated[float, typed(a_share, "speculation.decay")] = 1.0
    model: str = ""
    mode: str = ""
    drafted: Annotated[int, Field(ge=1, le=32)] = 3


class Routing(Spec):
    """The share of queries that a cheaper model answers, and its cost over that of this one."""

    share: Annotated[float, typed(a_share, "routing.share")]
    cost: Annotated[float, typed(a_share, "routing.cost")]


class Traffic(Spec):
    """``input`` and ``output``: mean tokens of a prompt and an answer; ``input_p95``: of a long prompt (none: mean).

    ``rate`` requests a second and replica (none: a share of what it can do); ``hit_rate`` of input tokens found in the
    prefix cache, ``achievable_hit_rate`` what the prompts would allow; ``tpot`` the seconds a token that the
    product allows (0: no limit); ``max_sequences`` and ``chunk`` of the engine; ``price`` of a chip and hour (none: the
    catalog's); ``weights`` and ``kv`` the types as served; ``replicas`` that a pool split can use; ``transfer`` the B/s
    at which a cache moves between pools (none: the measured figure); ``in_use`` the levers the engine has.
    """

    input: Annotated[int, _tokens("input")]
    output: Annotated[int, _tokens("output")]
    input_p95: Annotated[int, _tokens("input_p95")] | None = None
    rate: Annotated[float, typed(_a_rate, "rate")] = 0.0
    hit_rate: Annotated[float, typed(a_share, "hit_rate")] = 0.0
    achievable_hit_rate: Annotated[float, typed(a_share, "achievable_hit_rate")] | None = None
    tpot: Annotated[float, typed(parse.duration, "tpot", zero=True)] = 0.0
    max_sequences: Annotated[int, Field(ge=1)] | None = None
    chunk: Annotated[int, _tokens("chunk")] | None = None
    price: Annotated[float, typed(a_price, "price")] | None = None
    weights: str = "bf16"
    kv: str = "bf16"
    replicas: Annotated[int, Field(ge=1)] = 2
    transfer: Annotated[float, typed(parse.size, "transfer", unit="B/s")] | None = None
    in_use: tuple[str, ...] = IN_USE
    speculation: Speculate = Speculate()
    routing: Routing | None = None

    @property
    def context(self) -> float:
        """Mean tokens in the cache of a request while it decodes."""
        return self.input + self.output / 2

    @property
    def achievable(self) -> float:
        """The hit rate that the prompts allow: at least the achieved one."""
        return max(self.hit_rate, self.achievable_hit_rate or 0.0)


def read_traffic(file: Path | None, **options: Any) -> Traffic:
    """The traffic of a TOML file, with the options that were given in its place.

    Raises `InputError` for a misspelt key, a hit rate above 1, a negative share or price, an input or output that is
    missing, a long prompt below the mean, or an achievable hit rate below the achieved one.
    """
    data = read_toml(file, what="traffic file") if file else {}
    data |= {name: value for name, value in options.items() if value not in (None, "")}
    for name, flag in (("input", "--input"), ("output", "--answer")):
        if name not in data:
            raise InputError.expected(f"the mean tokens of an {name}", "none", where=flag, hint="or put it into --spec")
    found = build(Traffic, data, where=str(file or "the options"))
    if found.achievable_hit_rate is not None and found.achievable_hit_rate < found.hit_rate:
        raise InputError.expected(f"an achievable hit rate of at least the achieved {found.hit_rate:g}",
                                  found.achievable_hit_rate, where="achievable_hit_rate")  # fmt: skip
    if found.input_p95 is not None and found.input_p95 < found.input:
        raise InputError.expected(f"at least the mean of {found.input:,} tokens", found.input_p95, where="input_p95")
    return found
