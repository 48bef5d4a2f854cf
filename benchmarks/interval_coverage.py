"""Coverage of every kind of interval on simulated ladders, and the estimator study; prints the page.

Run: python benchmarks/interval_coverage.py [SIMULATIONS [KINDS,COMMA,SEPARATED [DRAWS]]]
"""

import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime

from ridgeline.forecast.estimators import QUANTITIES, Estimate, estimators
from ridgeline.forecast.forecast import Options
from ridgeline.forecast.interval import KINDS
from ridgeline.forecast.laws.chinchilla import FORM as CHINCHILLA
from ridgeline.forecast.synthetic import AHEAD, DESIGNS, NOISES, Cell, Design, Noise, coverage

Job = tuple[Design, Noise, int, tuple[str, ...], int]


def cell(job: Job) -> list[Cell]:
    """The cells of one design and noise: intervals that know no other form are those of plain Chinchilla."""
    design, noise, count, kinds, draws = job
    plain = tuple(kind for kind in kinds if kind not in ("calibrated", "average"))
    rest = tuple(kind for kind in kinds if kind not in plain)
    found = coverage(design, noise, range(count), rest, Options(draws=draws)) if rest else []
    if plain:
        found += coverage(design, noise, range(count), plain, Options(forms=(CHINCHILLA,), draws=draws))
    return found


def study(job: Job) -> list[Estimate]:
    """The estimates of one design and noise."""
    return estimators(job[0], job[1], range(job[2]))


def main(count: int = 200, kinds: str = ",".join(KINDS), draws: int = 200) -> None:
    """Print the page."""
    begun = time.perf_counter()
    chosen = tuple(kinds.split(","))
    jobs: list[Job] = [(design, noise, count, chosen, draws) for design in DESIGNS for noise in NOISES]
    print("# Coverage on simulated ladders\n")
    print(f"`python benchmarks/interval_coverage.py {count} {kinds} {draws}`, {datetime.now(UTC).date()}, "
          f"Python {platform.python_version()}.\n")  # fmt: skip
    ends = " | ".join(f"law +{d:g} | run +{d:g} | width +{d:g}" for d in AHEAD)
    print(f"| design | noise | interval | {ends} | failed |\n" + "|" + "---|" * (4 + 3 * len(AHEAD)), flush=True)
    with ProcessPoolExecutor(2) as pool:
        for found in pool.map(cell, jobs):
            for kind in chosen:
                mine = [one for one in found if one.kind == kind]
                parts = [f"{100 * one.law:.0f}% | {100 * one.run:.0f}% | {100 * one.width:.1f}%" for one in mine]
                print(
                    f"| {mine[0].design} | {mine[0].noise} | {kind} | {' | '.join(parts)} | {mine[0].failed} |",
                    flush=True,
                )
        print("\n## Estimators: bias and spread, percent of the true value\n")
        print(
            "| design | noise | objective | "
            + " | ".join(QUANTITIES)
            + " | lost |\n"
            + "|"
            + "---|" * (4 + len(QUANTITIES))
        )
        for job, estimates in zip(jobs, pool.map(study, jobs), strict=True):
            for name in dict.fromkeys(one.objective for one in estimates):
                own = [one for one in estimates if one.objective == name]
                text = " | ".join(f"{100 * one.bias:+.2f} ± {100 * one.spread:.2f}" for one in own)
                print(f"| {job[0]} | {job[1]} | {name} | {text} | {own[0].lost} |", flush=True)
    print(f"\n{time.perf_counter() - begun:.0f} s.")


if __name__ == "__main__":
    main(*(int(one) if one.isdigit() else one for one in sys.argv[1:]))  # type: ignore[arg-type]
