"""The checks of two runs: overall, slices, the least frequent ones, broken examples, and the pairs still needed."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from tests.gate.runs import flipped, pairs

from ridgeline.core.errors import InputError
from ridgeline.core.specs import build
from ridgeline.gate.decision import AS_SEEN, NO_LOSS, Check, Outcome, combine
from ridgeline.gate.evidence.samples import Floats
from ridgeline.gate.judging.described import described
from ridgeline.gate.judging.paired import TRAFFIC, checks, columns
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.statistics.slices import LOWEST

Scores = Mapping[str, Floats]


def plan(**said: object) -> Plan:
    return build(Plan, {"gate": "precision", "least_slices": 0, **said})


def found(base: Scores, cand: Scores, using: Plan, **labels: Sequence[object]) -> dict[tuple[str, str], Check]:
    runs = pairs(base, cand, **labels)
    return {(check.name, check.metric): check for check in checks(columns(runs, using))}


def sliced(sizes: dict[str, tuple[int, int]]) -> tuple[Floats, Floats, list[str]]:
    """Runs with slices of (examples, lost) each."""
    parts = [flipped(n, lost, 0) for n, lost in sizes.values()]
    names = [name for name, (n, _) in sizes.items() for _ in range(n)]
    return np.concatenate([base for base, _ in parts]), np.concatenate([cand for _, cand in parts]), names


SIZES = {"a": (4000, 0), "b": (2500, 0), "c": (1500, 0), "d": (1000, 0), "e": (600, 0), "rare": (400, 40)}


def test_a_rare_slice_that_lost_is_not_averaged_away() -> None:
    base, cand, names = sliced(SIZES)
    made = found({"acc": base}, {"acc": cand}, plan(slices="slice"), slice=names)
    assert made["overall", "acc"].outcome is Outcome.SHIP
    assert made["rare", "acc"].outcome is Outcome.NO_SHIP
    assert combine(list(made.values())) is Outcome.NO_SHIP


def test_the_lowest_volume_decile_is_always_there() -> None:
    base, cand, names = sliced(SIZES)
    made = found({"acc": base}, {"acc": cand}, plan(slices="slice"), slice=names)
    assert made[LOWEST, "acc"].interval.n == 400
    assert made[LOWEST, "acc"].note == "rare"
    assert made[TRAFFIC, "acc"].interval.n == 1000  # e and rare hold a tenth of the examples
    assert not made[TRAFFIC, "acc"].required


def test_a_named_margin_is_the_slices_own() -> None:
    base, cand, names = sliced(SIZES)
    made = found({"acc": base}, {"acc": cand}, plan(slices="slice", margins={"rare": "20%"}), slice=names)
    assert made["rare", "acc"].outcome is Outcome.SHIP
    assert made["rare", "acc"].margin == 0.2


def test_too_few_slices_are_no_evidence() -> None:
    base, cand = flipped(5000, 0, 0)
    made = found({"acc": base}, {"acc": cand}, plan(least_slices=5))
    assert made["slices", "coverage"].interval.degenerate == "0 of the 5 slices that are asked for"
    assert combine(list(made.values())) is Outcome.INCONCLUSIVE


def test_more_pairs_for_a_candidate_that_loses_nothing() -> None:
    base, cand = flipped(200, 4, 4)
    check = found({"acc": base}, {"acc": cand}, plan())["overall", "acc"]
    assert check.outcome is Outcome.INCONCLUSIVE
    assert check.basis == NO_LOSS
    assert check.needed is not None
    assert 2_300 < check.needed + 200 < 4_200  # 2,474 at 4% discordant, and the upper bound of that share
    assert check.detectable is not None
    assert check.detectable > check.margin


def test_more_pairs_for_the_difference_seen() -> None:
    base, cand = flipped(20_000, 280, 60)  # lost 1.1 points: enough pairs for no loss, not for this one
    check = found({"acc": base}, {"acc": cand}, plan())["overall", "acc"]
    assert check.outcome is Outcome.INCONCLUSIVE
    assert check.basis == AS_SEEN
    assert check.needed is not None
    assert check.needed > 20_000


def test_one_broken_example_in_a_hundred() -> None:
    rng = np.random.default_rng(0)
    base = rng.gamma(2, 0.5, 1000)
    cand = base + rng.normal(0, 0.001, 1000)
    clean = found({"log_loss": base}, {"log_loss": cand}, plan())
    assert clean["overall", "log_loss broken"].outcome is Outcome.SHIP
    cand[::100] += 5
    made = found({"log_loss": base}, {"log_loss": cand}, plan(margin=0.5))
    assert made["overall", "log_loss"].outcome is Outcome.SHIP
    assert made["overall", "log_loss broken"].outcome is not Outcome.SHIP
    assert not made["overall", "log_loss clipped"].required


def test_the_clipped_loss_hides_what_is_beyond() -> None:
    base, cand = np.linspace(0.5, 1.5, 500), np.linspace(0.5, 1.5, 500)
    cand = cand + np.tile([0.001, -0.001], 250)
    cand[0] += 100
    made = found({"nll": base}, {"nll": cand}, plan())
    assert made["overall", "nll"].interval.estimate == pytest.approx(-0.2, abs=0.01)
    assert made["overall", "nll clipped"].interval.estimate == pytest.approx(-0.02, abs=0.005)


def test_sequential_looks_are_wider_everywhere() -> None:
    base, cand, names = sliced({name: (n, n // 50) for name, (n, _) in SIZES.items()})
    once = found({"acc": base}, {"acc": cand}, plan(slices="slice"), slice=names)
    looked = found({"acc": base}, {"acc": cand}, plan(slices="slice", sequential=True, n=20_000), slice=names)
    for key in ("overall", "a", LOWEST):
        assert looked[key, "acc"].interval.low < once[key, "acc"].interval.low
    assert looked["rare", "acc"].interval.degenerate  # 8 of the 10 discordant pairs a sequence starts with


def test_clusters_are_counted_not_rows() -> None:
    base, cand = flipped(1000, 40, 0)
    users = [row // 40 for row in range(1000)]
    made = found({"acc": base}, {"acc": cand}, plan(cluster="user"), user=users)
    assert made["overall", "acc"].interval.clusters == 25


@pytest.mark.parametrize("said", [{"slices": "slic"}, {"cluster": "slic"}, {"metrics": ["acc2"]}])
def test_what_is_not_there_is_refused(said: dict[str, object]) -> None:
    base, cand = flipped(100, 1, 0)
    with pytest.raises(InputError):
        found({"acc": base}, {"acc": cand}, plan(**said), slice=["a"] * 100)


def test_described_tables() -> None:
    base, cand, names = sliced(SIZES)
    tables = described(columns(pairs({"acc": base}, {"acc": cand}, slice=names), plan(slices="slice")))
    assert tables["gate.flips.acc"].rows[0][:4] == ("rare", 400, 0, 40)
    first = tables["gate.slices.acc"].rows[0]
    assert first[0] == "rare"
    assert first[2] == pytest.approx(-10)
    assert -10 < first[3] < 0  # drawn towards the others
    assert first[4].startswith("p = ")
    assert [row[4] for row in tables["gate.slices.acc"].rows[1:]] == [""] * 5
