"""What a simulation returns: the times of every request, and what the engine did meanwhile."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ridgeline.serve.simulate.engine.engine import Engine
from ridgeline.serve.simulate.traffic.workload import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SERVED, TOO_LONG, NO_MEMORY, OVER_BUDGET = 0, 1, 2, 3
REASONS = {
    TOO_LONG: "prompt and answer exceed max_context",
    NO_MEMORY: "prompt and answer exceed the key-value blocks of a replica",
    OVER_BUDGET: "the prompt exceeds the token budget of a step and the scheduler does not cut prompts",
}


@dataclass(frozen=True, eq=False)
class Steps:
    """One row per step of any replica, in the order in which steps began.

    ``seconds`` includes host time and swapping; ``blocks`` are those in use by requests when the step began to run.
    """

    start_s: Floats
    seconds: NDArray[np.float32]
    tokens: NDArray[np.int32]
    prompt_tokens: NDArray[np.int32]
    decodes: NDArray[np.int32]
    waiting: NDArray[np.int32]
    blocks: NDArray[np.int32]
    worker: NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.start_s)


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over the steps of each worker; shape (workers,).

    ``busy_s`` is time in steps; ``sequence_s`` and ``block_s`` are sequences and blocks in use times the step's
    seconds; ``prompt_tokens`` counts computed prompt tokens, recomputed ones included; ``decode_tokens`` the tokens
    that decodes put through the model, rejected drafts included; ``peak_blocks`` the most blocks in use.
    """

    steps: Ints
    busy_s: Floats
    sequence_s: Floats
    block_s: Floats
    prompt_tokens: Ints
    decode_tokens: Ints
    peak_blocks: Ints
    swap_s: Floats


@dataclass(frozen=True, eq=False)
class Result:
    """Per request, shape (n,), in the workload's order; times are NaN where ``status`` is not `SERVED`.

    ``arrival_s`` is when the request was sent (in a closed loop that is decided by the simulation), ``scheduled_s``
    when it first took part in a step, ``first_token_s`` and ``finished_s`` the ends of the steps that gave its first
    and last token. ``longest_gap_s`` is the longest time between two steps that gave it tokens. ``hit_tokens`` are
    prompt tokens found in the prefix cache at first admission. ``worker`` is where it finished.
    ``free_blocks`` (workers,) are the blocks free at the end: all of them, or the simulation is wrong.
    """

    workload: Workload
    engine: Engine
    seed: int
    arrival_s: Floats
    scheduled_s: Floats
    first_token_s: Floats
    finished_s: Floats
    longest_gap_s: Floats
    emitted: Ints
    preemptions: Ints
    hit_tokens: Ints
    worker: Ints
    status: Ints
    free_blocks: Ints
    totals: Totals
    steps: Steps | None = None

    @property
    def served(self) -> NDArray[np.bool_]:
        """Which requests were served."""
        return np.asarray(self.status == SERVED)

    @property
    def makespan_s(self) -> float:
        """Seconds from the first arrival to the last token; 0 where nothing was served."""
        done = self.served
        return float(self.finished_s[done].max() - self.arrival_s[done].min()) if done.any() else 0.0

    @property
    def queueing_s(self) -> Floats:
        """From arrival to the first step."""
        return self.scheduled_s - self.arrival_s

    @property
    def ttft_s(self) -> Floats:
        """Time to first token, from arrival."""
        return self.first_token_s - self.arrival_s

    @property
    def e2e_s(self) -> Floats:
        """From arrival to the last token."""
        return self.finished_s - self.arrival_s

    @property
    def tpot_s(self) -> Floats:
        """Time per output token after the first; NaN for one-token answers, which have none."""
        after = self.workload.output_tokens - 1
        found: Floats = np.full(len(after), np.nan)
        np.divide(self.finished_s - self.first_token_s, after, out=found, where=after > 0)
        return found

    @property
    def hit_rate(self) -> float:
        """Prompt tokens of served requests found in the prefix cache, of all their prompt tokens."""
        asked = self.workload.input_tokens[self.served].sum()
        return float(self.hit_tokens[self.served].sum() / asked) if asked else 0.0

    def rejected(self) -> dict[str, list[int]]:
        """Rows that can never be served, by reason."""
        found = {text: np.flatnonzero(self.status == code).tolist() for code, text in REASONS.items()}
        return {text: rows for text, rows in found.items() if rows}
