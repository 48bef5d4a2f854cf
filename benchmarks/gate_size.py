"""How often a gate ships a candidate exactly at its margin, and one that lost nothing: the page is beside this file.

Every number comes from the functions that the gates call. Paired zeros and ones are summed exactly over all counts,
everything else is drawn. Run: python benchmarks/gate_size.py [--quick] [family ...]
"""

import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import binom, norm

from ridgeline.gate.decision import Check, Outcome, combine
from ridgeline.gate.statistics.auc import auc_difference
from ridgeline.gate.statistics.bayes import Rate, ppv, ppv_interval
from ridgeline.gate.statistics.calibration import LEAST, calibration, calibration_difference
from ridgeline.gate.statistics.catastrophe import fewest, rare_losses
from ridgeline.gate.statistics.clusters import clustered_binary, effective
from ridgeline.gate.statistics.compare import compare
from ridgeline.gate.statistics.paired import tango_ends
from ridgeline.gate.statistics.ratio import Counts, ratio_statistic
from ridgeline.gate.statistics.sequential import asymptotic
from ridgeline.gate.statistics.unpaired import Count, difference_of_rates

Floats = NDArray[np.float64]
ALPHA = 0.05
WORST = 0.06
RARE_BEYOND, RARE_RATE = 1.0, 0.01  # nat, and the share of examples: the defaults of a plan
COVERED = 0.93
TRAILS = 9  # standard deviations of a count that are summed


@dataclass(frozen=True)
class Cell:
    """One measured share: ``size`` (at most 6%), ``cover`` (at least 93%), ``power`` or ``blind`` (both reported)."""

    family: str
    setting: str
    n: int
    kind: str
    share: float
    draws: int  # zero: summed exactly

    @property
    def missed(self) -> bool:
        """Whether the share is on the wrong side of its bar."""
        return self.share > WORST if self.kind == "size" else self.kind == "cover" and self.share < COVERED


Cells = Iterator[Cell]
Labelled = tuple[Floats, NDArray[np.int64]]


def counts(n: int, rate: float) -> NDArray[np.int64]:
    """The counts of a binomial that carry all of its weight."""
    half = TRAILS * (n * rate * (1 - rate)) ** 0.5 + TRAILS
    return np.arange(max(0, int(n * rate - half)), min(n, int(n * rate + half)) + 1)


def shipped(n: int, gained: float, lost: float, margin: float) -> float:
    """The exact probability that Tango's lower bound is above minus the margin."""
    total = 0.0
    for some in counts(n, gained):
        weight = binom.pmf(some, n, gained)
        if weight < 1e-9:
            continue
        rest = lost / (1 - gained)
        other = counts(n - some, rest)
        low, _ = tango_ends(some, other, n, ALPHA)
        total += weight * float(binom.pmf(other, n - some, rest)[low > -margin].sum())
    return total


def binary(scale: float, _: np.random.Generator) -> Cells:
    """Precision, canary, cascade, multihop, regression: zeros and ones, one answer an example."""
    sizes = (100, 300, 1000, 3000, 10000) if scale >= 1 else (100, 300)
    for margin in (0.01, 0.02, 0.05):
        for discordant in (0.02, 0.04, 0.1, 0.2):
            if discordant < margin:
                continue
            for n in sizes:
                setting = f"margin {margin:.0%}, discordant {discordant:.0%}"
                ends = (discordant - margin) / 2, (discordant + margin) / 2
                yield Cell("paired zeros and ones", setting, n, "size", shipped(n, *ends, margin), 0)
                even = shipped(n, discordant / 2, discordant / 2, margin)
                yield Cell("paired zeros and ones", setting, n, "power", even, 0)


def broken(scale: float, rng: np.random.Generator) -> Cells:
    """Log-loss where a few examples are broken: the mean, the rate of broken ones and the least n, all three."""
    draws = max(60, int(2500 * scale))
    for margin in (0.01, 0.03):
        for rate, spread in ((0.005, 0.05), (0.01, 0.02), (0.01, 0.1), (0.02, 0.05), (0.0, 0.1)):
            for n in (100, 300, 1000, 3000, 10000):
                ships = sum(loss_ships(rng, n, rate, margin, spread) for _ in range(draws))
                what = f"{rate:.1%} broken by {margin / rate:.2g} nat" if rate else f"no loss, spread {spread} nat"
                kind = "size" if rate else "power"
                yield Cell("log-loss", f"margin {margin} nat, {what}", n, kind, ships / draws, draws)


def unseen(scale: float, rng: np.random.Generator) -> Cells:
    """What no sample of this size can show: a mean at its margin by examples rarer than half the tolerated rate."""
    draws = max(60, int(1000 * scale))
    for rate in (0.001, 0.002):
        for n in (1000, 3000, 10000):
            ships = sum(loss_ships(rng, n, rate, 0.01, 0.02) for _ in range(draws))
            setting = f"margin 0.01 nat, {rate:.1%} broken by {0.01 / rate:g} nat"
            yield Cell("log-loss", setting, n, "blind", ships / draws, draws)


def loss_ships(rng: np.random.Generator, n: int, rate: float, margin: float, spread: float) -> bool:
    """One run of the overall check and the check of broken examples."""
    difference = rng.normal(0, spread, n)
    if rate:
        difference[rng.random(n) < rate] -= margin / rate
    if n < fewest(RARE_RATE, ALPHA):
        return False
    mean = Check("overall", "loss", compare(np.zeros(n), difference, ALPHA), margin, "nat")
    rare = Check("overall", "broken", rare_losses(difference, RARE_BEYOND, ALPHA), RARE_RATE, "%")
    return combine([mean, rare]) is Outcome.SHIP


def grouped(rng: np.random.Generator, groups: int, correlation: float, lost: float, *, uneven: bool) -> Labelled:
    """Losses of zeros and ones in groups of eight, or of a geometric size with that mean."""
    sizes = rng.geometric(1 / 8, groups) if uneven else np.full(groups, 8)
    labels = np.repeat(np.arange(groups), sizes)
    shape = (1 - correlation) / correlation
    rates = rng.beta(lost * shape, (1 - lost) * shape, groups)
    return np.where(rng.random(len(labels)) < rates[labels], -1.0, 0.0), labels


def groups_binary(scale: float, rng: np.random.Generator) -> Cells:
    """Canary, recovery: needles of a context, epochs of a question."""
    draws = max(100, int(3000 * scale))
    settings = [(False, *rates) for rates in ((0.05, 0.0, 0.05), (0.01, 0.0, 0.01), (0.035, 0.015, 0.02))]
    settings += [(True, 0.05, 0.0, 0.05), (True, 0.01, 0.0, 0.01), (False, 0.025, 0.025, 0.03)]
    for uneven, lost, gained, margin in settings:
        for correlation in (0.1, 0.3):
            for groups in (10, 30, 100, 300):
                found = np.empty((draws, 3))
                for row in found:
                    difference, labels = grouped(rng, groups, correlation, lost, uneven=uneven)
                    if gained:  # both kinds of flip in one context, each with its own correlation
                        difference = difference - grouped(rng, groups, correlation, gained, uneven=False)[0]
                    row[:] = effective_counts(difference, labels)
                low, _ = tango_ends(found[:, 0], found[:, 1], found[:, 2], ALPHA)
                kind = "power" if gained == lost else "size"
                what = f"margin {margin:.0%}, lost {lost:.1%}, gained {gained:.1%}, ICC {correlation}"
                name = "groups of uneven size" if uneven else "groups of 8"
                yield Cell(name, what, groups, kind, float((low > -margin).mean()), draws)


def effective_counts(difference: Floats, labels: NDArray[np.int64]) -> tuple[float, float, float]:
    """What `clustered_binary` gives to Tango's interval, so that a whole cell takes one bisection."""
    size, _ = effective(difference, labels, ALPHA)
    return float((difference > 0).mean()) * size, float((difference < 0).mean()) * size, size


def groups_real(scale: float, rng: np.random.Generator) -> Cells:
    """Truncation, precision: a loss by user or document, normal, and where whole groups break."""
    draws = max(60, int(3000 * scale))
    for kind in ("normal", "5% broken", "2% broken"):
        rate = 0.0 if kind == "normal" else float(kind[0]) / 100
        for correlation in (0.1, 0.3):
            for groups in (10, 30, 100, 300):
                ships = 0
                for _ in range(draws):
                    values, labels = drawn_loss(rng, groups, correlation, rate)
                    interval = compare(np.zeros(len(values)), values, ALPHA, labels)
                    ships += Check("overall", "loss", interval, rate or 0.1, "nat").outcome is Outcome.SHIP
                setting = f"{kind}, ICC {correlation}"
                yield Cell("loss in groups of 8", setting, groups, "size", ships / draws, draws)


def drawn_loss(rng: np.random.Generator, groups: int, correlation: float, rate: float) -> Labelled:
    """Differences whose mean is minus the rate, or minus 0.1 where nothing is broken."""
    if rate:
        difference, labels = grouped(rng, groups, correlation, rate, uneven=False)
        return difference + rng.normal(0, 0.1, len(labels)), labels
    labels = np.repeat(np.arange(groups), 8)
    shared = rng.normal(0, correlation**0.5, groups)[labels]
    return shared + rng.normal(0, (1 - correlation) ** 0.5, len(labels)) - 0.1, labels


SHARES = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])


def slices(scale: float, rng: np.random.Generator) -> Cells:
    """Six slices of 10,000 examples: the average at 1% and every slice at its own 3%, all of them."""
    n, draws = 10_000, max(200, int(20_000 * scale))
    sizes = (n * SHARES).astype(int)
    for what, kind, lost in (
        ("no loss", "power", {}), ("4% slice loses 3%", "size", {5: 0.03}), ("4% slice loses 5%", "size", {5: 0.05}),
        ("4% slice loses 10%", "size", {5: 0.1}), ("10% slice loses 5%", "size", {3: 0.05}),
        ("all lose 1%", "size", dict.fromkeys(range(6), 0.01)),
    ):  # fmt: skip
        gained, missing = [], []
        for index, size in enumerate(sizes):
            loss = lost.get(index, 0.0)
            discordant = max(0.04, loss)
            drawn = rng.multinomial(size, [(discordant - loss) / 2, (discordant + loss) / 2, 1 - discordant], draws)
            gained.append(drawn[:, 0])
            missing.append(drawn[:, 1])
        up, down = np.stack(gained), np.stack(missing)
        low, _ = tango_ends(up, down, sizes[:, None], ALPHA)
        whole, _ = tango_ends(up.sum(axis=0), down.sum(axis=0), n, ALPHA)
        ships = (whole > -0.01) & (low > -0.03).all(axis=0)
        yield Cell("slices", what, n, kind, float(ships.mean()), draws)


FAMILIES: dict[str, Callable[[Floats], Floats]] = {
    "calibrated": lambda p: p,
    "overconfident, T = 1.3": lambda p: expit(logit(p) / 1.3),
    "underconfident, T = 0.8": lambda p: expit(logit(p) / 0.8),
    "3 points over": lambda p: np.clip(p - 0.03, 0, 1),
    "8 points over above 0.95": lambda p: np.where(p > 0.95, p - 0.08, p),
    "6 points over above 0.9": lambda p: np.where(p > 0.9, p - 0.06, p),
}
CONFIDENCES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "skewed": lambda rng, n: rng.beta(4, 1.5, n),
    "uniform": lambda rng, n: rng.uniform(1e-9, 1, n),
    "peaked": lambda rng, n: np.minimum(rng.beta(12, 1, n), 1 - 1e-9),
    "bimodal": lambda rng, n: np.where(rng.random(n) < 0.5, rng.beta(2, 8, n), rng.beta(8, 2, n)),
}


def calibrations(scale: float, rng: np.random.Generator) -> Cells:
    """Two-sided 95% coverage of the calibration error of one run."""
    for n, most in ((LEAST, 1500), (3000, 1200), (10_000, 1200)):
        draws = max(60, int(most * scale))
        for shape, draw in CONFIDENCES.items():
            for name, true in FAMILIES.items():
                many = draw(rng, 400_000)
                error = -float(((many - true(many)) ** 2).mean() ** 0.5)
                inside = 0
                for _ in range(draws):
                    confidence = draw(rng, n)
                    correct = (rng.random(n) < true(confidence)).astype(np.float64)
                    found = calibration(confidence, correct, ALPHA / 2)
                    inside += found.low <= error <= found.high
                yield Cell("calibration error", f"{shape}, {name}", n, "cover", inside / draws, draws)


def calibration_changes(scale: float, rng: np.random.Generator) -> Cells:
    """Temperature 1 to T on the same examples, with 0.3 logits of noise or none, at the margin and unchanged."""
    for n, most in ((LEAST, 1000), (2000, 1000), (10_000, 800)):
        draws = max(60, int(most * scale))
        for shape in ("skewed", "peaked", "bimodal"):
            for before, after, noise in ((1.0, 1.1, 0.0), (1.3, 1.5, 0.0), (1.0, 1.3, 0.3), (1.0, 1.0, 0.1)):
                error = true_error(shape, after, noise) - true_error(shape, before, noise if before > 1 else 0.0)
                bounds = [change(rng, n, shape, (before, after, noise)) for _ in range(draws)]
                low, _ = np.array(bounds).T
                ships = float((low > -(error**0.5)).mean())
                what = f"{shape}, T {before} to {after}, noise {noise}"
                kind = "size" if after > 1 else "power"
                share = ships if after > 1 else float((low > -0.05).mean())
                yield Cell("calibration change", what + ("" if after > 1 else ", margin 0.05"), n, kind, share, draws)


def model(rng: np.random.Generator, p: Floats, temperature: float, noise: float) -> Floats:
    """Confidences of a model that sees the true probability through a temperature and noise."""
    return np.asarray(expit(temperature * logit(p) + noise * rng.normal(size=len(p))))


@cache
def true_error(shape: str, temperature: float, noise: float) -> float:
    """The squared calibration error, from a million examples in 1,000 bins."""
    rng = np.random.default_rng(1)
    p = np.clip(CONFIDENCES[shape](rng, 1_000_000), 1e-9, 1 - 1e-9)
    seen = model(rng, p, temperature, noise)
    order = np.argsort(seen)
    return float(((seen[order].reshape(1000, -1).mean(1) - p[order].reshape(1000, -1).mean(1)) ** 2).mean())


def change(rng: np.random.Generator, n: int, shape: str, setting: tuple[float, float, float]) -> tuple[float, float]:
    """One interval of the paired difference."""
    before, after, noise = setting
    p = np.clip(CONFIDENCES[shape](rng, n), 1e-9, 1 - 1e-9)
    correct = (rng.random(n) < p).astype(np.float64)
    base, cand = model(rng, p, before, noise if before > 1 else 0.0), model(rng, p, after, noise)
    found = calibration_difference(base, correct, cand, correct, ALPHA)
    return found.low, found.high


def peeking(scale: float, rng: np.random.Generator) -> Cells:
    """Every hundred pairs up to 5,000, stopping at the first look that ships."""
    draws, most = max(40, int(2000 * scale)), 5000
    for margin, discordant in ((0.01, 0.04), (0.02, 0.1), (0.01, 0.02), (0.05, 0.2)):
        for loss, kind in ((margin, "size"), (0.0, "power")):
            chances = [(discordant - loss) / 2, (discordant + loss) / 2]
            ships = 0
            for _ in range(draws):
                uniform = rng.random(most)
                difference = (uniform < chances[0]).astype(np.float64) - (uniform > 1 - chances[1])
                ships += any(asymptotic(difference[:at], ALPHA, most).low > -margin for at in range(100, most + 1, 100))
            setting = f"margin {margin:.0%}, discordant {discordant:.0%}"
            yield Cell("50 looks", setting, most, kind, ships / draws, draws)


def areas(scale: float, rng: np.random.Generator) -> Cells:
    """Truncation: the AUC of a shorter history, six impressions a user who shares a taste."""
    draws = max(40, int(3000 * scale))

    def scores(users: int) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
        who = np.repeat(np.arange(users), 6)
        taste, short = rng.normal(size=users)[who], rng.normal(0, 0.5, users)[who]
        true = taste + rng.normal(size=len(who))
        labels = (rng.random(len(who)) < expit(true - 1)).astype(np.float64)
        return true, true + short + rng.normal(0, 0.7, len(who)), labels, who

    found: dict[int, NDArray[np.float64]] = {}
    for users in (100, 500, 2000):
        intervals = [auc_difference(*scores(users), alpha=ALPHA) for _ in range(draws)]
        found[users] = np.array([(item.estimate, item.low) for item in intervals])
    margin = -float(found[2000][:, 0].mean())  # an area has no bias: the mean of the draws is the truth
    for users, ends in found.items():
        yield Cell("AUC by user", f"margin {margin:.3f}", users, "size", float((ends[:, 1] > -margin).mean()), draws)


def ratios(_: float, rng: np.random.Generator) -> Cells:
    """Recovery: candidate over baseline at 95%."""
    draws = 4000
    limit = float(norm.isf(ALPHA))
    for right, gained in ((0.75, 0.05), (0.3, 0.02), (0.9, 0.01)):
        lost = right * 0.05 + gained
        for n in (100, 300, 1000):
            drawn = rng.multinomial(n, [right - lost, gained, lost, 1 - right - gained], draws)
            rows, weight = np.unique(drawn[:, :3], axis=0, return_counts=True)
            cases = [Counts(float(both), float(up), float(down), n) for both, up, down in rows]
            ships = sum(w for case, w in zip(cases, weight, strict=True) if ratio_statistic(case, 0.95) > limit)
            yield Cell("ratio of rates", f"right {right:.0%}, gained {gained:.0%}", n, "size", ships / draws, draws)


def fields(_: float, __: np.random.Generator) -> Cells:
    """Out of distribution: false positives of the field less those offline, summed over all counts."""
    for offline, margin in ((0.01, 0.01), (0.05, 0.02), (0.05, 0.05)):
        for n, there in ((200, 1000), (1000, 1000), (3000, 10_000)):
            for rate, kind in ((offline + margin, "size"), (offline, "power")):
                total = 0.0
                for seen in counts(there, offline):
                    weight = binom.pmf(seen, there, offline)
                    if weight < 1e-5:
                        continue
                    found = counts(n, rate)
                    chances = binom.pmf(found, n, rate)
                    base = Count(int(seen), there, float(there))
                    first = bisect(found, partial(field_ships, base, n, margin))
                    total += weight * float(chances[:first].sum())
                setting = f"offline {offline:.0%} of {there}, margin {margin:.0%}"
                yield Cell("field less offline", setting, n, kind, total, 0)


def field_ships(base: Count, n: int, margin: float, events: int) -> bool:
    """Whether so many false positives among ``n`` of the field ship."""
    return difference_of_rates(base, Count(events, n, float(n)), ALPHA).low > -margin


def bisect(values: NDArray[np.int64], ships: Callable[[int], bool]) -> int:
    """How many of the rising counts of false positives ship."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if ships(int(values[middle])) else (low, middle)
    return low


def detectors(scale: float, rng: np.random.Generator) -> Cells:
    """Bayes: a detector whose PPV is exactly the required one."""
    draws = max(100, int(1000 * scale))
    for positives, negatives, prevalence in ((50, 1000, 0.05), (200, 5000, 0.05), (500, 5000, 0.01), (100, 300, 0.05)):
        for tpr, fpr in ((0.9, 0.05), (0.7, 0.01)):
            required, ships = float(ppv(tpr, fpr, prevalence)), 0
            for _ in range(draws):
                rates = (Rate(rng.binomial(positives, tpr), positives), Rate(rng.binomial(negatives, fpr), negatives),
                         Rate(rng.binomial(20_000, prevalence), 20_000))  # fmt: skip
                ships += ppv_interval(*rates, alpha=ALPHA).low > required
            setting = f"TPR {tpr:.0%} of {positives}, FPR {fpr:.0%} of {negatives}, prevalence {prevalence:.0%}"
            yield Cell("PPV", setting, positives + negatives, "size", ships / draws, draws)


EVERY = (
    binary, broken, groups_binary, groups_real, slices, calibrations, calibration_changes, peeking, areas, ratios,
    fields, detectors, unseen,
)  # fmt: skip


def summary(family: str, cells: list[Cell]) -> str:
    """The family's largest size, least coverage and range of power."""
    said = []
    for kind, worst in (("size", max), ("cover", min), ("power", None), ("blind", max)):
        shares = [cell.share for cell in cells if cell.kind == kind]
        if shares:
            shown = f"{min(shares):.3f} to {max(shares):.3f}" if worst is None else f"{worst(shares):.4f}"
            said.append(f"{kind} {shown} of {len(shares)}")
    return f"{family:20s} {', '.join(said)}"


def main(arguments: list[str]) -> int:
    """Print the page's tables; exit with 1 where a cell misses its bar."""
    scale = 0.04 if "--quick" in arguments else 1.0
    chosen = [family for family in EVERY if family.__name__ in arguments] or list(EVERY)
    difference, labels = grouped(np.random.default_rng(9), 30, 0.3, 0.05, uneven=True)
    same = tango_ends(*effective_counts(difference, labels), alpha=ALPHA)[0]
    assert abs(clustered_binary(difference, labels, ALPHA).low - float(same)) < 1e-12
    print(f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}")
    missed, said = 0, []
    for family in chosen:
        start = time.process_time()
        cells = list(family(scale, np.random.default_rng([7, EVERY.index(family)])))
        missed += sum(cell.missed for cell in cells) if scale == 1 else 0  # a quick run is noise
        said.append(f"{summary(family.__name__, cells)}, {time.process_time() - start:.0f} s")
        print(f"\n## {family.__name__}")
        for cell in cells:
            flag = "  MISSED" if cell.missed and scale == 1 else ""
            print(f"{cell.family:24s} {cell.setting:64s} {cell.n:6d} {cell.kind:6s} {cell.share:7.4f}{flag}")
        sys.stdout.flush()
    print("", *said, f"{missed} cells missed", sep="\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
