"""Every matmul of a proposal as one rank runs it: its sides, what tiles and waves take, and its measured rate."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ridgeline.arithmetic import kernels
from ridgeline.arithmetic.surface_terms import gemm_terms
from ridgeline.core.surfaces import Floats
from ridgeline.plan.prelaunch.review_facts import ReviewFacts
from ridgeline.plan.steps.work import local_sides
from ridgeline.plan.steps.workload import workload

_HEAD, _PAD = "head", "pad"


@dataclass(frozen=True)
class MatmulRow:
    """One matmul ``[m, k] x [k, n]`` of a micro-batch on one rank.

    ``rate`` is the share of peak of its three products (forward and both gradients), ``weight`` its share of all
    matmul time, ``wave`` the share of its own time that partly filled waves take by the measured surface (0 where
    the number of multiprocessors is not known), ``low`` and ``high`` the ends of its time's 80% interval over it.
    """

    name: str
    m: int
    n: int
    k: int
    split: str
    rate: float
    weight: float
    wave: float
    low: float
    high: float
    measured: bool


def matmul_rows(facts: ReviewFacts) -> tuple[MatmulRow, ...]:
    """One row a matmul of the model, in its order."""
    rows = list(_timed(facts))
    total = sum(seconds for _, seconds in rows)
    return tuple(MatmulRow(**{**vars(row), "weight": seconds / total}) for row, seconds in rows)


def _timed(facts: ReviewFacts) -> Iterator[tuple[MatmulRow, float]]:
    """Rows without their weight, and the seconds of all their uses in one micro-batch."""
    p, device = facts.proposal, facts.cluster.device
    wide = "bf16" if "bf16" in device.peaks else p.software.dtype
    for item, *columns in local_sides(workload(p.spec, p.file.seq), p.file.seq, p.layouts):
        surface = kernels.gemm(device, wide if item.name == _HEAD else p.software.dtype)
        m, n, k = (float(column[0]) for column in columns)
        products = np.array([(m, n, k), (m, k, n), (k, n, m)]).T  # forward, and the gradients of input and weight
        found = surface.seconds(*products)
        seconds = float(found.seconds.sum())
        row = MatmulRow(
            item.name, round(m), round(n), round(k), item.split,
            rate=6 * m * n * k / seconds / float(facts.peak.base),
            weight=0.0,
            wave=1 - float((found.seconds / _tails(surface, *products[:2])).sum()) / seconds,
            low=float(found.low.sum()) / seconds,
            high=float(found.high.sum()) / seconds,
            measured=bool(found.measured.all()),
        )  # fmt: skip
        yield row, seconds * (1 if item.name == _HEAD else item.uses)


def _tails(surface: kernels.GemmSurface, m: Floats, n: Floats) -> Floats:
    """The factor on the time that partly filled waves are, by the fitted weights of the two tile shapes."""
    terms = dict(zip(surface.surface.terms, gemm_terms(m, n, surface.tiles), strict=True))
    logs = [surface.surface.terms[name] * term for name, term in terms.items() if name != _PAD]
    found: Floats = np.exp(np.sum(logs, axis=0))
    return np.maximum(found, 1.0)
