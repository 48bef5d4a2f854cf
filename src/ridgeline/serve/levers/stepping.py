"""What the levers need of a step model: `ridgeline.serve.steps` gives one, and a test may give another."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


class StepTimes(Protocol):
    """Seconds of a step by term (dense, attention, experts, head, ...) and in all, arrays of one shape."""

    @property
    def terms(self) -> Mapping[str, Floats]:
        """Seconds by term."""

    @property
    def seconds(self) -> Floats:
        """Seconds of the step."""


class StepModel(Protocol):
    """Times of the steps of one deployment; arrays broadcast."""

    def decode(self, batch: ArrayLike, context: ArrayLike) -> StepTimes:
        """One token for each of ``batch`` sequences of ``context`` tokens."""

    def prefill(self, tokens: ArrayLike, past: ArrayLike = 0, sequences: ArrayLike = 1) -> StepTimes:
        """``tokens`` new tokens of each of ``sequences`` prompts with ``past`` tokens in the cache."""

    def mixed(self, chunk: ArrayLike, past: ArrayLike, batch: ArrayLike, context: ArrayLike) -> StepTimes:
        """A chunk of a prompt beside a decode batch, in one step."""
