"""How long one step of a serving engine takes, from the operations of `work` at the measured speed of each.

`steps` measures every operation once on nodes of tokens, batch and context (`tables`); an estimate is a look-up and
works on arrays. Batches are those of the whole replica: each of its ``dp_attention`` groups has an equal share, and
with ``pp`` stages as many micro-batches are on their way at once. Terms add up, since an engine runs them one after
another; the errors of different terms are independent, so the interval's ends add in squares.

Decode reads the weights that the batch needs, and each cache. A prompt computes causal attention over its past. In a
mixed step the attention of both parts takes longer than each alone (`mixed`): see docs/design/serving-surfaces.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ridgeline.arithmetic.kernels import sizes
from ridgeline.arithmetic.surface_terms import number
from ridgeline.core import catalog
from ridgeline.core.errors import InputError
from ridgeline.core.surfaces import Floats
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.steps.machine import Machine, machine
from ridgeline.serve.steps.measure import Load, Tables
from ridgeline.serve.steps.tables import Span, zero
from ridgeline.serve.steps.work import Work, work

TERMS = ("dense", "attention", "experts", "head", "tensor_parallel", "expert_exchange", "pipeline", "host")


@dataclass(frozen=True)
class Times:
    """One step: seconds by term, their sum with an 80% interval, and the replica's FLOPs and bytes read; arrays.

    ``bytes`` are those that cross the memory buses of all chips: weights once a micro-batch, caches once.
    """

    terms: Mapping[str, Floats]
    seconds: Floats
    low: Floats
    high: Floats
    flops: Floats
    bytes: Floats


@dataclass(frozen=True)
class StepModel:
    """The step times of one deployment; `steps` makes it."""

    deployment: Deployment
    work: Work
    machine: Machine
    tables: Tables

    def decode(self, batch: ArrayLike, context: ArrayLike) -> Times:
        """The time between two tokens of a sequence while ``batch`` sequences of ``context`` tokens decode.

        Arrays broadcast. Raises `InputError` for a batch or a context below one, or not a number.
        """
        sequences, length = sizes(batch=batch, context=context)
        rows = self._rows(sequences)
        attention = self.tables.decoded(rows, length)
        return self._times(rows, sequences / self.deployment.pp, attention, Load(rows, length), sequences)

    def prefill(self, tokens: ArrayLike, past: ArrayLike = 0, sequences: ArrayLike = 1) -> Times:
        """The time of one step over ``tokens`` new tokens of each of ``sequences`` prompts with ``past`` cached ones.

        All layers: with ``pp`` stages that is the latency of the pass. Arrays broadcast. Raises `InputError` for less
        than one token or sequence, or a negative past.
        """
        new, count, before = _prompt(tokens, sequences, past)
        own = np.maximum(count / self.deployment.dp_attention, 1.0)
        attention = self.tables.prompted(own, new, before)
        load = Load(prompts=own, new=new, past=before)
        return self._times(new * own, new * count, attention, load, count, passes=1)

    def mixed(self, chunk: ArrayLike, past: ArrayLike, batch: ArrayLike, context: ArrayLike) -> Times:
        """The time of a step with ``chunk`` tokens of one prompt and one token of each of ``batch`` sequences.

        Raises `InputError` as `decode` and `prefill` do.
        """
        new, sequences, length, before = np.broadcast_arrays(
            *sizes(chunk=chunk, batch=batch, context=context), _not_negative(past)
        )
        rows = self._rows(sequences)
        load = Load(rows, length, np.ones(new.shape), new, before)
        both = self.tables.mixed(load)
        return self._times(rows + new, sequences / self.deployment.pp + new, both, load, sequences + 1)

    def _rows(self, batch: Floats) -> Floats:
        """Sequences that one group has in a micro-batch."""
        return np.maximum(batch / (self.deployment.dp_attention * self.deployment.pp), 1.0)

    def _times(
        self, rows: Floats, everywhere: Floats, attention: Span, load: Load, sequences: Floats, passes: int = 0
    ) -> Times:
        """``rows`` tokens of a group, ``everywhere`` of a stage; ``passes`` of the weights (0: one a micro-batch)."""
        tables, laid = self.tables, self.deployment
        total = np.maximum(everywhere, 1.0)
        sampled = np.maximum(sequences / (laid.dp_attention * laid.pp), 1.0)
        parts = {
            "dense": tables.dense(rows) + tables.rebuilt(load),
            "attention": attention,
            "experts": tables.experts(total) if tables.experts else zero(rows.shape),
            "head": tables.head(sampled),
            "tensor_parallel": tables.tensor_parallel(rows) if tables.tensor_parallel else zero(rows.shape),
            "expert_exchange": tables.exchange(total) if tables.exchange else zero(rows.shape),
            "pipeline": tables.hop(rows) * float(laid.pp) if tables.hop else zero(rows.shape),
            "host": _host(sequences),
        }
        seconds = np.sum([part.seconds for part in parts.values()], axis=0)
        below, above = (
            np.sqrt(np.sum([(part.seconds - part.ends[end]) ** 2 for part in parts.values()], axis=0)) for end in (1, 2)
        )
        flops, moved = (item * (passes or laid.pp) for item in tables.counted(rows, total, sampled, load))
        terms = {name: part.seconds for name, part in parts.items()}
        return Times(terms, seconds, seconds - below, seconds + above, flops, moved)


def steps(deployment: Deployment) -> StepModel:
    """Measure every operation of that deployment.

    Raises `InputError` where the catalog lacks the device's peak, memory bandwidth or, with more than one chip, link.
    """
    load, chips = work(deployment), machine(deployment.device, deployment.weights)
    return StepModel(deployment, load, chips, Tables.of(deployment, load, chips))


def _host(sequences: Floats) -> Span:
    each, step = (number(catalog.constant(f"steps.host.{name}")) for name in ("sequence", "step"))
    seconds = step + each * sequences
    spread = number(catalog.constant("steps.host.spread"))
    return Span(seconds, seconds / spread, seconds * spread)


def _prompt(tokens: ArrayLike, sequences: ArrayLike, past: ArrayLike) -> tuple[Floats, Floats, Floats]:
    new, count, before = np.broadcast_arrays(*sizes(tokens=tokens, sequences=sequences), _not_negative(past))
    return new, count, before


def _not_negative(past: ArrayLike) -> Floats:
    found = np.atleast_1d(np.asarray(past, dtype=np.float64))
    if not np.all((found >= 0) & np.isfinite(found)):
        raise InputError.expected(
            "zero tokens or more", float(found[~((found >= 0) & np.isfinite(found))][0]), where="past"
        )
    return found
