"""A search ranked with intervals: not one winner, but which plans cannot be told apart."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ridgeline.plan.layouts import scan
from ridgeline.plan.layouts.finalists import Exact, exact
from ridgeline.plan.layouts.search import Found
from ridgeline.plan.steps import expected
from ridgeline.plan.steps.expected import Expected

TOP = 10
FINALISTS = 5  # plans that are simulated


@dataclass(frozen=True)
class Ranked:
    """One plan: its columns, its row in the search, the step with its 80% interval (s), MFU (0 to 1), free bytes."""

    row: int
    plan: Mapping[str, Any]
    step_s: float
    low_s: float
    high_s: float
    mfu: float
    free_bytes: float
    knobs: int
    verdict: str
    exact: Exact | None


@dataclass(frozen=True)
class Ranking:
    """The best plan of every mesh, fastest first, with the expectation that their intervals come from."""

    found: Found
    expected: Expected
    ranked: tuple[Ranked, ...]

    @property
    def best(self) -> Ranked:
        """The fastest."""
        return self.ranked[0]

    @property
    def alike(self) -> int:
        """How many of the others cannot be told from the fastest."""
        return sum(item.verdict == "indistinguishable" for item in self.ranked)

    @property
    def simplest(self) -> Ranked:
        """The plan with the fewest knobs among those that cannot be told from the fastest."""
        close = [item for item in self.ranked if item.verdict != "slower"]
        return min(close, key=lambda item: (item.knobs, item.step_s))


def ranking(found: Found, *, site: str = "", top: int = TOP, finalists: int = FINALISTS) -> Ranking:
    """The best ``top`` meshes of a search; the first ``finalists`` are simulated.

    ``site`` as in `expected.expect`. Two plans are indistinguishable where their 80% intervals overlap.
    """
    request = found.request
    classed = expected.residuals(request.spec, site)
    whole = Expected(found.steps, classed, request.spec, request.cluster, request.batch, request.software.dtype)
    low_s, high_s = whole.interval()
    mfu = found.steps.mfu(scan.step_flops(request.spec, request.batch))
    knobs = found.knobs
    rows = found.meshes[:top].tolist()
    ranked = []
    for place, row in enumerate(rows):
        verdict = "indistinguishable" if low_s[row] <= high_s[rows[0]] else "slower"
        ranked.append(
            Ranked(
                row=row,
                plan=found.layouts.row(row),
                step_s=float(found.steps.step_s[row]),
                low_s=float(low_s[row]),
                high_s=float(high_s[row]),
                mfu=float(mfu[row]),
                free_bytes=found.limit_bytes - float(found.held_bytes[row]),
                knobs=int(knobs[row]),
                verdict="fastest" if place == 0 else verdict,
                exact=exact(found, row) if place < finalists else None,
            )
        )
    return Ranking(found, whole, tuple(ranked))
