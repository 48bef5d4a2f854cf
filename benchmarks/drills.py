"""How well the tool finds what is planted: random drills, graded; prints the page of the result.

Run: python benchmarks/drills.py [FIRST_SEED [COUNT]]
"""

import platform
import sys
import tempfile
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

from ridgeline.trace.drills.attempt import attempt
from ridgeline.trace.drills.generate import drill
from ridgeline.trace.drills.grade import Grade, grade, read_truth
from ridgeline.trace.drills.render import write


def graded(seed: int) -> Grade:
    """The tool's own grade on the drill of a seed, through its files."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(drill(seed), Path(folder) / "drill")
        return grade(read_truth(path), attempt(path))


def by_cause(grades: list[Grade]) -> list[str]:
    """A row a cause: planted, found, close, and the largest error of its seconds."""
    rows = defaultdict(list)
    for found in grades:
        for cause in found.causes:
            rows[cause.planted.name].append(cause)
    lines = ["| cause | rule | planted | found | within 5% | largest error |", "|---|---|---|---|---|---|"]
    for name, causes in sorted(rows.items()):
        errors = [abs(cause.error) for cause in causes if cause.error is not None]
        numbers = (len(causes), len(errors), sum(cause.close for cause in causes))
        worst = f"{max(errors):.1%}" if errors else "-"
        lines.append(f"| {name} | {causes[0].planted.codes[0]} | " + " | ".join(map(str, numbers)) + f" | {worst} |")
    return lines


def main(first: int = 1000, count: int = 200) -> None:
    """Grade ``count`` drills from seed ``first`` on."""
    begun = time.perf_counter()
    grades = [graded(seed) for seed in range(first, first + count)]
    causes = [cause for found in grades for cause in found.causes]
    hit, false = sum(found.found for found in grades), sum(len(found.false) for found in grades)
    close, clean = sum(cause.close for cause in causes), sum(found.right for found in grades)
    print(f"# Drills, seeds {first} to {first + count - 1}\n")
    when = datetime.now(UTC).date()
    print(f"`python benchmarks/drills.py {first} {count}`, {when}, Python {platform.python_version()}: "
          f"{time.perf_counter() - begun:.0f} s.\n")  # fmt: skip
    print("| what | measured | target |\n|---|---|---|")
    print(f"| planted causes found | {hit} of {len(causes)}, {hit / len(causes):.1%} | at least 95% |")
    named = hit + false
    print(f"| false among the causes named | {false} of {named}, {false / max(named, 1):.1%} | at most 3% |")
    print(f"| of those found, seconds within 5% | {close} of {hit}, {close / max(hit, 1):.1%} | all |")
    print(f"| drills with everything right | {clean} of {count} | |\n")
    print("\n".join(by_cause(grades)))
    for found in grades:
        for cause in found.causes:
            if not cause.close:
                said = "missed" if cause.error is None else f"{cause.error:+.1%}"
                print(f"\nSeed {found.truth.seed}: {cause.planted.name}, {said}.", end="")
        for answer in found.false:
            print(f"\nSeed {found.truth.seed}: {answer.code} is false, {answer.seconds * 1e3:.2f} ms.", end="")
    print()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
