"""What a replica does under a traffic with a set of levers: sequences, tokens a second, TTFT, TPOT, $ a million tokens.

One request costs the replica ``P + O*t(B)/B`` seconds: the prefill of the tokens that no cached prefix covers, and its
share of O decode steps of a batch of B. At most ``B/(B*P + O*t(B))`` requests a second pass, with the largest B that
memory, the engine and the TPOT limit allow. In the steady state each output token waits for its step and for the
prefills in between, ``t(B) + P*B/O``; at a rate r below that, B is what Little's law gives, ``B = r*O*t(B)/(1 - r*P)``.
TTFT is the mean: the steps of the own prefill, half of the one that runs on arrival, and the wait for the prefills
ahead (Pollaczek-Khinchine with equal service times, ``r*P^2/(2*(1 - r*P))``).

Means stand for distributions: it orders levers and shows their size; `ridgeline serve simulate` has the percentiles.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ridgeline.arithmetic.kv import kv_cache
from ridgeline.core import catalog
from ridgeline.core.errors import InfeasibleError
from ridgeline.core.quantity import given
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.levers.speculation import Speculation
from ridgeline.serve.levers.stepping import StepModel
from ridgeline.serve.levers.traffic import Traffic

Floats = NDArray[np.float64]
_HALF = 0.5  # of the running step is still to come when a request arrives


@dataclass(frozen=True)
class Site:
    """Where levers are tried: ``steps(deployment)`` times its steps, ``sequences(deployment, tokens, paged)`` says how
    many requests of that many cached tokens fit at once (0: none), ``speculation`` what drafts and is accepted."""

    steps: Callable[[Deployment], StepModel]
    sequences: Callable[[Deployment, float, bool], float]
    speculation: Callable[[Deployment, StepModel], Speculation]


@dataclass(frozen=True)
class Setup:
    """A deployment under a traffic with the levers it has on. ``timed`` is the deployment whose steps are timed: where
    a small cache has no fused kernel, that is the one with the 16-bit cache."""

    deployment: Deployment
    traffic: Traffic
    timed: Deployment | None = None
    paged: bool = True
    prefix: bool = True
    hit_rate: float = 0.0
    chunked: bool = True
    speculative: bool = False
    disaggregated: bool = False
    easy: float = 0.0
    easy_cost: float = 1.0

    @property
    def rate_share(self) -> float:
        """The share of the requests that this model still answers."""
        return 1 - self.easy


@dataclass(frozen=True)
class Load:
    """What every outcome of one ledger is measured under: ``rate`` of requests a second and replica, dollars a chip and
    second (None: no price is known)."""

    rate: float
    dollars_chip_s: float | None


@dataclass(frozen=True)
class Outcome:
    """``sequences`` decode together at most; ``tokens_s_chip`` output tokens a second and chip and ``dollars`` a
    million of them (the prompts' cost in it) at the largest rate; the rest at the ledger's rate. ``ttft_s`` is None
    where the rate is above what the replica can do. ``stall_s``: the time between two tokens while a long prompt runs.
    """

    sequences: float
    batch: float
    max_rate: float
    tokens_s_chip: float
    dollars: float | None
    ttft_s: float | None
    tpot_s: float
    stall_s: float


def evaluate(setup: Setup, site: Site, load: Load) -> Outcome:
    """The outcome of a setup. Raises `InfeasibleError` where not one sequence fits or the TPOT limit cannot be met."""
    cost = _Cost(setup, site)
    room = cost.sequences
    if room < 1:
        chips = f"{setup.deployment.chips} chips"
        raise InfeasibleError(f"Expected room for one sequence, got none on {chips}", limit="memory for the cache",
                              hint="take more chips or smaller types")  # fmt: skip
    batches = np.arange(1, int(min(room, cost.limit)) + 1, dtype=np.float64)
    token = cost.token_s(batches)
    prefill = cost.prefill_s(batches)
    if setup.disaggregated:
        max_rate, batch, tpot, ttft = _pools(setup, load, batches, token, prefill, cost)
    else:
        max_rate, batch, tpot, ttft = _shared(setup, load, batches, token, prefill, cost)
    served = 1 / (setup.rate_share + setup.easy * setup.easy_cost)  # requests answered for the cost of one
    tokens_s_chip = max_rate * setup.traffic.output / setup.deployment.chips * served
    dollars = None if load.dollars_chip_s is None else load.dollars_chip_s / tokens_s_chip * 1e6
    return Outcome(float(int(room)), batch, max_rate * served, tokens_s_chip, dollars, ttft, tpot, cost.stall_s(batch))


def _shared(
    setup: Setup, load: Load, batches: Floats, token: Floats, prefill: Floats, cost: "_Cost"
) -> tuple[float, float, float, float | None]:
    """Largest rate, batch, TPOT (s) and TTFT (s) of a replica that prefills and decodes."""
    output, rate = setup.traffic.output, load.rate * setup.rate_share
    pace = token + prefill * batches / output
    allowed = _allowed(setup, pace)
    max_rate = float((batches / (batches * prefill + output * token))[allowed].max())
    busy = rate * prefill
    with np.errstate(divide="ignore"):
        wanted = np.where(busy < 1, rate * output * token / np.maximum(1 - busy, 1e-12), np.inf)
    steady = np.flatnonzero(wanted <= batches)
    if not steady.size or rate > max_rate:
        return max_rate, float(batches[allowed][-1]), float(pace[allowed][-1]), None
    at = int(steady[0])
    tpot = float(token[at] / (1 - busy[at]))
    each = float(prefill[at])
    wait = _HALF * float(token[at]) + rate * each**2 / (2 * (1 - rate * each))
    ttft = cost.first_s(float(batches[at])) + wait
    return max_rate, float(batches[at]), tpot, ttft


def _pools(
    setup: Setup, load: Load, batches: Floats, token: Floats, prefill: Floats, cost: "_Cost"
) -> tuple[float, float, float, float | None]:
    """The same of replicas of which whole ones prefill and the others decode; rates are for each replica of all."""
    output, replicas = setup.traffic.output, setup.traffic.replicas
    allowed = _allowed(setup, token)
    decode_rate = float((batches / (output * token))[allowed].max())
    each = cost.shared_s(cost.new_tokens, setup.traffic.input - cost.new_tokens)
    prefill_rate = 1 / each
    splits = [min(count * prefill_rate, (replicas - count) * decode_rate) for count in range(1, replicas)]
    count = int(np.argmax(splits)) + 1
    max_rate = splits[count - 1] / replicas
    rate = load.rate * setup.rate_share
    here = rate * replicas / (replicas - count)
    steady = np.flatnonzero(here * output * token <= batches)
    if not steady.size or rate > max_rate:
        return max_rate, float(batches[allowed][-1]), float(token[allowed][-1]), None
    at, arrivals = int(steady[0]), rate * replicas / count
    wait = arrivals * each**2 / (2 * (1 - arrivals * each))
    return max_rate, float(batches[at]), float(token[at]), cost.alone_s + wait + cost.transfer_s + float(token[at])


def _allowed(setup: Setup, pace: Floats) -> NDArray[np.bool_]:
    """Which batches keep the TPOT limit."""
    limit = setup.traffic.tpot
    allowed = np.ones(pace.shape, dtype=np.bool_) if not limit else pace <= limit
    if not np.any(allowed):
        raise InfeasibleError(
            f"Expected at most {limit:g} s a token, got {float(pace.min()):.3g} s with one sequence",
            limit="the TPOT limit", hint="take more chips, smaller types or a longer limit",
        )  # fmt: skip
    return allowed


@dataclass(frozen=True)
class _Cost:
    """What the parts of a request cost under a setup."""

    setup: Setup
    site: Site

    @property
    def model(self) -> StepModel:
        return self.site.steps(self.setup.timed or self.setup.deployment)

    @property
    def sequences(self) -> float:
        return self.site.sequences(self.setup.deployment, self.setup.traffic.context, self.setup.paged)

    @property
    def limit(self) -> float:
        return sequence_limit(self.setup.traffic)

    @property
    def new_tokens(self) -> float:
        """Tokens of a prompt that no cached prefix covers; at least the last one is computed."""
        hit = self.setup.hit_rate if self.setup.prefix else 0.0
        return max(1.0, self.setup.traffic.input * (1 - hit))

    @property
    def chunk(self) -> float:
        tokens = self.setup.traffic.chunk
        return float(tokens if tokens is not None else catalog.constant("admission.chunk").base)

    @property
    def alone_s(self) -> float:
        """Prefill of one prompt with nothing beside it."""
        new = self.new_tokens
        return _one(self.model.prefill(new, self.setup.traffic.input - new).seconds)

    def token_s(self, batches: Floats) -> Floats:
        """Seconds a token of a decode batch, nothing beside it."""
        timed = self.setup.timed or self.setup.deployment
        context = self.setup.traffic.context
        if self.setup.speculative:
            return self.site.speculation(timed, self.model).token_s(
                batches, context, self.setup.traffic.speculation.drafted
            )
        return np.asarray(self.model.decode(batches, context).seconds, dtype=np.float64)

    @property
    def lanes(self) -> int:
        """Prompts that the replica computes at once: one a data-parallel group and stage."""
        return self.setup.deployment.dp_attention * self.setup.deployment.pp

    def shared_s(self, new: float, past: float) -> float:
        """What ``new`` tokens of a prompt take of the replica's time, its lanes full."""
        found = self.model.prefill(new, past, self.setup.deployment.dp_attention)
        return _one(found.seconds) / self.lanes

    @property
    def piece(self) -> tuple[float, float, float]:
        """Tokens of a chunk, the cached tokens before a middle one, and how many chunks a prompt has."""
        new = self.new_tokens
        chunk = min(self.chunk, new) if self.setup.chunked and not self.setup.disaggregated else new
        return chunk, self.setup.traffic.input - new + (new - chunk) / 2, new / chunk

    def prefill_s(self, batches: Floats) -> Floats:
        """What one prompt adds to the steps of a batch: alone, or in chunks that share their steps with it.

        With several lanes a chunk in each is counted as a step of its own.
        """
        chunk, past, count = self.piece
        if not self.setup.chunked or self.setup.disaggregated or self.lanes > 1:
            return np.full(batches.shape, self.shared_s(chunk, past) * count)
        context = self.setup.traffic.context
        both = self.model.mixed(chunk, past, batches, context).seconds
        added = np.asarray(both - self.model.decode(batches, context).seconds, dtype=np.float64)
        return np.maximum(added, 0.0) * count

    def first_s(self, batch: float) -> float:
        """From the start of a prompt to its first token: alone, or in the steps that its chunks share."""
        chunk, past, count = self.piece
        if not self.setup.chunked:
            return self.alone_s
        return count * _one(self.model.mixed(chunk, past, batch, self.setup.traffic.context).seconds)

    def stall_s(self, batch: float) -> float:
        """The longest that a long prompt keeps others from their next token."""
        traffic = self.setup.traffic
        step = float(self.token_s(np.array([batch]))[0])
        if self.setup.disaggregated:
            return step
        long = float(traffic.input_p95 or traffic.input)
        hit = self.setup.hit_rate if self.setup.prefix else 0.0
        new = max(1.0, long * (1 - hit))
        if not self.setup.chunked:
            return step + _one(self.model.prefill(new, long - new).seconds)
        chunk = min(self.chunk, new)
        return _one(self.model.mixed(chunk, long - chunk, batch, traffic.context).seconds)

    @property
    def transfer_s(self) -> float:
        """Moving a prompt's cache from a prefill to a decode replica."""
        told = self.setup.traffic.transfer
        rate = float(told if told is not None else catalog.constant("levers.transfer.effective").base)
        return cache_bytes(self.setup.deployment, self.setup.traffic.input) / rate


def sequence_limit(traffic: Traffic) -> float:
    """Sequences that the engine decodes together at most: the traffic's, else the usual default."""
    most = traffic.max_sequences
    return float(most if most is not None else catalog.constant("admission.sequences").base)


def cache_bytes(deployment: Deployment, tokens: int) -> float:
    """Bytes of one request's cache, once, however many chips hold copies."""
    found = kv_cache(deployment.spec, given("transfer.tokens", tokens, "token"), dtype=deployment.kv)
    return float(found.per_sequence.base)


def _one(values: Floats) -> float:
    return float(np.ravel(values)[0])


def loaded(setup: Setup, site: Site, dollars_chip_s: float | None) -> Load:
    """The load of a ledger: the traffic's rate, or where it names none the usual share of what this setup can do."""
    if setup.traffic.rate:
        return Load(setup.traffic.rate, dollars_chip_s)
    found = evaluate(setup, site, Load(0.0, dollars_chip_s))
    return Load(found.max_rate * float(catalog.constant("levers.load.share").base), dollars_chip_s)


def with_types(setup: Setup, *, weights: str = "", kv: str = "", fused: bool = True) -> Setup:
    """The setup with other element types; without a ``fused`` kernel a small cache is read no faster than before.

    Raises `InputError` for a type that is unknown.
    """
    timed = _retyped(setup.timed or setup.deployment, weights, kv if fused else "")
    held = _retyped(setup.deployment, weights, kv)
    return replace(setup, deployment=held, timed=None if timed == held else timed)


def _retyped(deployment: Deployment, weights: str, kv: str) -> Deployment:
    return replace(deployment, weights=weights or deployment.weights, kv=kv or deployment.kv)


def switched(setup: Setup, field: str, value: bool) -> Setup:
    """The setup with one of its switches on or off."""
    assert isinstance(getattr(setup, field), bool), field
    changes: dict[str, Any] = {field: value}
    return replace(setup, **changes)
