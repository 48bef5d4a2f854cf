"""Field against test set: what ships, what does not, and what many looks cost."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError
from ridgeline.core.specs import build
from ridgeline.gate.case import case_of
from ridgeline.gate.decision import Check, Outcome
from ridgeline.gate.detector.history import History
from ridgeline.gate.detector.labelled import Labelled
from ridgeline.gate.gates.ood import TOO_SMALL, Judged, Samples, decide
from ridgeline.gate.registration.plan import Plan


def sample(n: int, false: float, *, seed: int = 0, positives: float = 0.1, **labels: Any) -> Labelled:
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < positives
    right = np.where(positive, rng.random(n) < 0.9, rng.random(n) >= false)
    return Labelled(f"s{seed}.csv", right, positive, inputs=(InputFile(f"s{seed}.csv", f"hash{seed}", n),), **labels)


def names(n: int, *values: str) -> Any:
    return np.array([values[i % len(values)] for i in range(n)], dtype=object)


def judged(field: Labelled | None, offline: Labelled | None = None, **keys: Any) -> Judged:
    plan = build(Plan, {"gate": "ood", **keys})
    return decide(Samples(offline or sample(6000, 0.01, seed=9), field, "2026-05-04"), plan)


def check_of(found: Judged, name: str, metric: str = "specificity") -> Check:
    return next(check for check in found.decided.checks if (check.name, check.metric) == (name, metric))


@pytest.mark.parametrize(
    ("n", "false", "outcome"),
    [(6000, 0.01, Outcome.SHIP), (6000, 0.05, Outcome.NO_SHIP), (150, 0.01, Outcome.INCONCLUSIVE)],
)
def test_outcomes(n: int, false: float, outcome: Outcome) -> None:
    found = judged(sample(n, false, seed=1))
    assert found.decided.outcome is outcome
    check = check_of(found, "overall")
    if outcome is Outcome.INCONCLUSIVE:
        assert check.needed is not None
        assert check.needed > 100
    assert not check_of(found, "overall", "sensitivity").required
    case_of(found.decided).dumps()


def test_without_a_field_sample_nothing_ships() -> None:
    found = judged(None)
    assert found.decided.outcome is Outcome.INCONCLUSIVE
    assert found.look is None
    check = check_of(found, "overall")
    assert check.interval.degenerate == "no field sample"
    assert check.needed is not None
    assert judged(sample(round(1.4 * check.needed), 0.01, seed=2)).decided.outcome is Outcome.SHIP
    assert "no test set can bless it" in found.decided.change


def test_a_field_without_negatives_is_none() -> None:
    found = judged(sample(500, 0.01, positives=1.1))
    assert found.decided.outcome is Outcome.INCONCLUSIVE
    assert check_of(found, "overall").interval.degenerate == "no examples in the field"


def test_a_slice_of_the_field_that_was_never_tested_is_no_evidence() -> None:
    field = sample(9000, 0.01, seed=1, slices=names(9000, "a", "b", "new"))
    offline = sample(9000, 0.01, seed=2, slices=names(9000, "a", "b", "old"))
    found = judged(field, offline, slices="site")
    assert found.decided.outcome is Outcome.INCONCLUSIVE
    assert check_of(found, "new").interval.degenerate == "no examples offline"
    assert not check_of(found, "old").required
    assert check_of(found, "a").outcome is Outcome.SHIP


def test_one_bad_slice_is_not_averaged_over() -> None:
    n, rng = 12_000, np.random.default_rng(4)
    slices = names(n, *["common"] * 19, "rare")
    field, offline = sample(n, 0.01, seed=1, slices=slices), sample(n, 0.01, seed=2, slices=slices)
    field.right[(slices == "rare") & (rng.random(n) < 0.09)] = False
    found = judged(field, offline, slices="site")
    assert check_of(found, "overall").outcome is Outcome.SHIP
    assert check_of(found, "rare").outcome is Outcome.NO_SHIP
    assert found.decided.outcome is Outcome.NO_SHIP


def test_clusters() -> None:
    n = 8000
    few, one = names(n, *[f"c{i}" for i in range(12)]), names(n, "c")
    field = sample(n, 0.05, seed=1, clusters=few)
    offline = sample(n, 0.01, seed=2, clusters=few)
    found = judged(field, offline, cluster="camera")
    assert found.decided.outcome is Outcome.INCONCLUSIVE
    assert "too few to condemn" in check_of(found, "overall").note
    single = judged(sample(n, 0.01, seed=1, clusters=one), offline, cluster="camera")
    assert check_of(single, "overall").interval.degenerate == "one cluster in the field"


def test_a_small_test_set_says_so() -> None:
    found = judged(sample(5000, 0.01, seed=1), sample(100, 0.01, seed=2))
    assert check_of(found, "overall").needed is None
    assert TOO_SMALL in found.decided.change


def test_the_shift_of_prevalence_is_shown() -> None:
    offline, field = sample(4300, 0.01, seed=1, positives=1 / 43), sample(8000, 0.01, seed=2, positives=1 / 2000)
    table = judged(field, offline).decided.tables["gate.ood.prevalence"]
    rows = {row[0]: row for row in table.rows}
    assert rows["offline"][2] > 60
    assert rows["offline rates at the field's prevalence"][2] < 10
    assert rows["offline"][1] < 60 < rows["field rates at the field's prevalence"][1]


def test_correctness_alone_has_one_rate() -> None:
    def plain(item: Labelled) -> Labelled:
        return replace(item, positive=None)

    field, offline = sample(6000, 0.01, seed=1), sample(6000, 0.01, seed=2)
    found = judged(plain(field), plain(offline))
    assert [check.metric for check in found.decided.checks] == ["accuracy"]
    with pytest.raises(InputError, match="two samples with labels, or two without"):
        judged(field, plain(offline))
    with pytest.raises(InputError, match="a rate of the samples, got 'recall'"):
        judged(field, offline, metrics=["recall"])


def test_each_look_has_less_to_spend_and_old_alarms_are_told() -> None:
    plan, history, levels = build(Plan, {"gate": "ood"}), History(), []
    offline = sample(6000, 0.01, seed=9)
    for week, false in enumerate((0.01, 0.06, 0.012)):
        found = Samples(offline, sample(4000, false, seed=week), f"2026-05-{4 + 7 * week:02}", history, logged=True)
        last = decide(found, plan)
        assert last.look is not None
        history = history.after(last.look)
        levels.append(check_of(last, "overall").interval.alpha)
    assert levels == pytest.approx([0.05 * 6 / (np.pi * look) ** 2 for look in (1, 2, 3)])
    assert [look.alarm for look in history.looks] == [False, True, False]
    assert "This is look 3 of the log" in last.decided.change
    assert "1 earlier alarm, the last of 2026-05-11" in last.decided.change
    assert len(last.decided.tables["gate.ood.log"].rows) == 3
    again = decide(replace(found, history=history), plan)
    assert again.look is not None
    assert history.number(again.look) == 3
    case_of(last.decided).dumps()


def test_the_test_set_again_is_no_field_sample() -> None:
    rows = frozenset((f"r{i}", float(i)) for i in range(50))
    whole = replace(sample(6000, 0.01, seed=9), rows=rows)
    for part in (rows, frozenset(list(rows)[:20])):
        with pytest.raises(InputError, match="not of the test set"):
            judged(replace(sample(3000, 0.01, seed=2), rows=part), whole)
    judged(replace(sample(3000, 0.01, seed=2), rows=frozenset([("r0", 0.0), ("new", 1.0)])), whole)


def test_another_threshold_is_another_detector() -> None:
    strict, loose = (replace(sample(6000, 0.01, seed=seed), decided=f"risk>=0.{seed}") for seed in (9, 8))
    with pytest.raises(InputError, match="one threshold"):
        judged(strict, loose)


def test_a_detector_that_never_alarms_in_the_field_does_not_ship() -> None:
    field = sample(6000, 0.0, seed=1)
    assert field.positive is not None
    mute = replace(field, right=~field.positive)
    found = check_of(judged(mute), "overall")
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "never alarms" in found.interval.degenerate
    assert judged(mute).decided.outcome is Outcome.INCONCLUSIVE
