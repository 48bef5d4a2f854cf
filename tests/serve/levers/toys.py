"""A step model that can be worked out by hand: weights once, each token and each cached token a little."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ridgeline.arithmetic.named import find_model
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.core.catalog import device
from ridgeline.core.specs import build
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.levers.acceptance import Acceptance
from ridgeline.serve.levers.outcome import Setup, Site
from ridgeline.serve.levers.speculation import Drafter, Speculation
from ridgeline.serve.levers.stepping import Floats, StepModel
from ridgeline.serve.levers.traffic import read_traffic


@dataclass(frozen=True)
class ToyTimes:
    terms: Mapping[str, Floats]

    @property
    def seconds(self) -> Floats:
        total: Floats = np.sum([*self.terms.values()], axis=0)
        return total


@dataclass(frozen=True)
class Toy:
    """Seconds: ``weights`` of a step, ``token`` of a token, ``cached`` of a cached token, ``prompt`` of a prompt token.

    A step whose tokens take longer than its weights is bound by them: ``max(weights, tokens*token)``.
    """

    weights: float = 0.010
    token: float = 0.0001
    cached: float = 1e-8
    prompt: float = 0.0001

    def decode(self, batch: ArrayLike, context: ArrayLike) -> ToyTimes:
        rows = np.asarray(batch, dtype=np.float64)
        dense = np.maximum(self.weights, rows * self.token)
        return ToyTimes({"dense": dense, "attention": rows * np.asarray(context) * self.cached})

    def prefill(self, tokens: ArrayLike, past: ArrayLike = 0, sequences: ArrayLike = 1) -> ToyTimes:
        new = np.asarray(tokens, dtype=np.float64) * np.asarray(sequences)
        return ToyTimes({"dense": new * self.prompt})

    def mixed(self, chunk: ArrayLike, past: ArrayLike, batch: ArrayLike, context: ArrayLike) -> ToyTimes:
        beside = self.decode(batch, context).terms
        return ToyTimes({**beside, "prompt": np.asarray(chunk) * self.prompt * np.ones(np.shape(beside["dense"]))})


def llama(**sizes: Any) -> Deployment:
    """Llama-3-8B on H100s."""
    return Deployment(find_model("llama-3-8b")[0], device("H100"), **sizes)


def multi_head() -> Deployment:
    """A small model whose every query head has its own key and value."""
    shape = {"name": "mha", "d_model": 1024, "layers": 8, "heads": 16, "d_ff": 4096, "vocab": 32000}
    return Deployment(model(build(Shape, shape)), device("H100"))


def toy_site(steps: StepModel | None = None, room: float = 64, acceptance: float = 0.8) -> Site:
    """The toy for every deployment; a 16-bit cache has ``room`` for so many, 8 bits for twice, no pages for 5/16."""
    toy = steps or Toy()

    def sequences(deployment: Deployment, tokens: float, paged: bool) -> float:
        size = {"bf16": 1, "fp8": 2, "int8": 2, "fp4": 4, "int4": 4}[deployment.kv]
        return room * size * (1 if paged else 0.3125)

    def speculation(deployment: Deployment, model: StepModel) -> Speculation:
        return Speculation(deployment, model, Drafter("ngram"), Acceptance(acceptance))

    return Site(lambda deployment: toy, sequences, speculation)


def toy_setup(deployment: Deployment | None = None, **options: Any) -> Setup:
    """1,000 tokens in, 100 out."""
    traffic = read_traffic(None, **({"input": 1000, "output": 100} | options))
    return Setup(deployment or llama(), traffic, hit_rate=traffic.hit_rate)
