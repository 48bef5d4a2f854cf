"""Speculative decoding: what a step of drafting and verifying costs, and where it loses.

A step drafts *k* tokens for each sequence and verifies them in one pass over ``batch*(k + 1)`` tokens. That pass reads
the weights once and each sequence's cache once; its compute grows with *k*. So it is nearly free while a step is bound
by memory, and costs up to ``k + 1`` times as much once it is not:

    speedup(batch, k) = length(k) * step(batch) / (verify(batch, k) + draft(batch, k))

``length`` is that of `ridgeline.serve.levers.acceptance`. Mixtures of experts pay earlier: every further token wakes
experts that the step would not have read. Leviathan et al. 2023 (arXiv:2211.17192) has the same form with a constant
cost ratio. What the drafting does on the host (n-gram search) and the loss of captured graphs are not in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ridgeline.arithmetic.inputs import known
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.arithmetic.spec import MLA, Attention
from ridgeline.core import catalog
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.levers.acceptance import Acceptance
from ridgeline.serve.levers.stepping import StepModel, StepTimes

Floats = NDArray[np.float64]
MOST = 32  # drafted tokens that are tried
_BODY = ("dense", "attention", "experts", "tensor_parallel", "expert_exchange")  # terms that grow with the layers
_NGRAM = "ngram"


@dataclass(frozen=True)
class Drafter:
    """What drafts: ``layers`` of the model's kind and a share of its ``head`` for each drafted token, in sequence.

    ``ngram`` looks the tokens up in the text so far and runs nothing on the chip.
    """

    name: str
    layers: float = 0.0
    head: float = 0.0

    @classmethod
    def of(cls, name: str) -> "Drafter":
        """A drafter of ``core/data/levers.toml``, or ``ngram``. Raises `InputError` for another name."""
        if name == _NGRAM:
            return cls(name)
        known_ = drafters()
        if name not in known_:
            hint = did_you_mean(name, known_, "known: " + ", ".join(known_))
            raise InputError.expected("a known drafter", name, where="speculation.drafter", hint=hint)
        layers, head = (float(catalog.constant(f"levers.drafter.{name}.{part}").base) for part in ("layers", "head"))
        return cls(name, layers, head)


def drafters() -> list[str]:
    """The names of the drafters."""
    prefix = "levers.drafter."
    found = {name.removeprefix(prefix).partition(".")[0] for name in catalog.constants("levers") if prefix in name}
    return sorted({*found, _NGRAM})


@dataclass(frozen=True)
class Speculation:
    """A deployment whose steps ``model`` times, with a drafter and how often its tokens are accepted."""

    deployment: Deployment
    model: StepModel
    drafter: Drafter
    acceptance: Acceptance

    def step_s(self, batch: ArrayLike, context: ArrayLike) -> Floats:
        """Seconds of a plain decode step."""
        return np.asarray(self.model.decode(batch, context).seconds, dtype=np.float64)

    def verify_s(self, batch: ArrayLike, context: ArrayLike, drafted: int) -> Floats:
        """Seconds of the pass that checks ``drafted`` tokens of every sequence.

        All terms but attention are those of ``batch*(drafted + 1)`` tokens. Attention reads the cache once: its time is
        that of the plain step, or of its compute where that is longer, and never above that of separate sequences.
        """
        _check(drafted)
        once = self.model.decode(batch, context)
        if drafted == 0:
            return np.asarray(once.seconds, dtype=np.float64)
        many = self.model.decode(np.asarray(batch, dtype=np.float64) * (drafted + 1), context)
        growth = max(1.0, (drafted + 1) * self.attention_intensity / self._ridge)
        read = _term(once, "attention")
        attention = np.minimum(read * growth, np.maximum(_term(many, "attention"), read))
        return np.asarray(many.seconds - _term(many, "attention") + attention, dtype=np.float64)

    def draft_s(self, batch: ArrayLike, context: ArrayLike, drafted: int) -> Floats:
        """Seconds of drafting: one after another, each the drafter's layers and its share of the head."""
        _check(drafted)
        once = self.model.decode(batch, context)
        body = sum(_term(once, name) for name in _BODY) / self.deployment.spec.layers
        each = self.drafter.layers * body + self.drafter.head * _term(once, "head")
        return np.asarray(drafted * each + np.zeros(np.shape(once.seconds)), dtype=np.float64)

    def token_s(self, batch: ArrayLike, context: ArrayLike, drafted: int) -> Floats:
        """Seconds a token of one sequence."""
        spent = self.verify_s(batch, context, drafted) + self.draft_s(batch, context, drafted)
        return np.asarray(spent / self.acceptance.length(drafted), dtype=np.float64)

    def speedup(self, batch: ArrayLike, context: ArrayLike, drafted: int) -> Floats:
        """How many times as fast a sequence decodes; below 1 speculation loses."""
        return self.step_s(batch, context) / self.token_s(batch, context, drafted)

    def break_even_length(self, batch: ArrayLike, context: ArrayLike, drafted: int) -> Floats:
        """The acceptance length (tokens a step) at which speculation neither wins nor loses."""
        spent = self.verify_s(batch, context, drafted) + self.draft_s(batch, context, drafted)
        return np.asarray(spent / self.step_s(batch, context), dtype=np.float64)

    def best(self, batch: float, context: float, most: int = MOST) -> int:
        """The number of drafted tokens, 0 to ``most``, with the fewest seconds a token; 0: do not speculate."""
        return self.best_each([batch], context, most)[0]

    def best_each(self, batches: Sequence[float], context: float, most: int = MOST) -> list[int]:
        """`best` of each batch."""
        each = np.asarray(batches, dtype=np.float64)
        seconds = [self.token_s(each, context, count) for count in range(most + 1)]
        return [int(count) for count in np.argmin(seconds, axis=0)]

    def loses_from(self, context: float, drafted: int, batches: Sequence[int]) -> int | None:
        """The first of ``batches`` (ascending) from which on speculation is slower; None where it wins at the last."""
        slower = np.ravel(self.speedup(np.asarray(batches, dtype=np.float64), context, drafted)) < 1
        if not slower[-1]:
            return None
        wins = np.flatnonzero(~slower)
        return batches[int(wins[-1]) + 1] if wins.size else batches[0]

    @cached_property
    def attention_intensity(self) -> float:
        """FLOPs of a token's attention for each byte of cache that it reads on one chip (FLOP/B).

        Grouped-query: query heads that share a key-value head. Latent: all heads of the chip share the latent.
        """
        element = float(dtype_bytes(self.deployment.kv).base)
        flops = size = 0.0
        for index, kind in enumerate(self.deployment.spec.kinds):
            for block in kind.mixers:
                work, read = _attention(block, self.deployment.tp)
                flops += self.deployment.spec.uses(index) * work
                size += self.deployment.spec.uses(index) * read * element
        return flops / size if size else 0.0

    @cached_property
    def _ridge(self) -> float:
        device = self.deployment.device
        peak = known(device.peak("bf16"), f"the bf16 peak of {device.name}")
        bandwidth = known(device.hbm_bandwidth, f"the memory bandwidth of {device.name}")
        return float(peak.base) / float(bandwidth.base)


def _attention(block: object, tp: int) -> tuple[float, float]:
    """FLOPs and cached elements of one past token in one layer on one chip."""
    if isinstance(block, Attention):
        width = block.head_dim + block.v_head_dim
        return 2.0 * block.heads / tp * width, float(max(1.0, block.kv_heads / tp) * width)
    if isinstance(block, MLA):
        return 2.0 * block.heads / tp * (2 * block.kv_rank + block.qk_rope), float(block.kv_rank + block.qk_rope)
    return 0.0, 0.0


def _term(times: StepTimes, name: str) -> Floats:
    return np.asarray(times.terms.get(name, 0.0), dtype=np.float64)


def _check(drafted: int) -> None:
    if drafted < 0:
        raise InputError.expected("zero drafted tokens or more", drafted, where="drafted")
