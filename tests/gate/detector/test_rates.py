"""Rates as points, as counts and from labelled decisions."""

from pathlib import Path

import pytest

from ridgeline.core.errors import InputError
from ridgeline.core.specs import build
from ridgeline.gate.detector.labelled import read_labelled
from ridgeline.gate.detector.rates import Measured, detector, measured, prevalences_of, rate_of, stakes_of
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.statistics.bayes import Rate


def test_points_and_counts() -> None:
    assert rate_of("90%", "--tpr") == rate_of("0.9", "--tpr") == Rate(0.9)
    assert rate_of("180/200", "--tpr") == Rate(180, 200)
    assert [rate.value for rate in prevalences_of("0.01, 5%,24/1200,0.2")] == [0.2, 0.05, 0.02, 0.01]


@pytest.mark.parametrize("text", ["1.2", "-0.1", "300/200", "0/0", "nan", "x", "101%", ""])
def test_a_rate_is_between_zero_and_one(text: str) -> None:
    with pytest.raises(InputError, match=r"^Expected "):
        rate_of(text, "--tpr")


@pytest.mark.parametrize("text", ["0", "1", "1.5", "0.01,0", "0/500", "", "0.01,1%"])
def test_a_prevalence_is_inside_zero_and_one(text: str) -> None:
    if text == "0.01,1%":
        with pytest.raises(InputError, match="prevalences that differ"):
            prevalences_of(text)
        return
    with pytest.raises(InputError, match="--prevalence"):
        prevalences_of(text)


def test_a_detector_is_better_than_chance() -> None:
    with pytest.raises(InputError, match=r"better than chance, got 'TPR 0\.1 below FPR 0\.2'"):
        detector(Rate(0.1), Rate(0.2))
    with pytest.raises(InputError, match="above zero"):
        detector(Rate(0.0), Rate(0.0))
    assert detector(Rate(0.9), Rate(0.05)).points
    assert not detector(Rate(180, 200), Rate(50, 1000)).why


@pytest.mark.parametrize("text", ["miss", "mis=3", "miss=", "miss=0", "miss=-2", "per-day=nan"])
def test_stakes_are_named_and_above_zero(text: str) -> None:
    with pytest.raises(InputError, match="--stake"):
        stakes_of((text,))


def test_where_acting_breaks_even() -> None:
    assert stakes_of(("miss=900", "false-alarm=100")).breaks_even == pytest.approx(0.1)
    assert stakes_of(("miss=900",)).breaks_even is None


def of(tmp_path: Path, rows: list[str], head: str = "id,label,decision,subgroup,camera", **keys: object) -> Measured:
    path = tmp_path / "d.csv"
    path.write_text("\n".join([head, *(f"{i},{row}" for i, row in enumerate(rows))]) + "\n")
    plan = build(Plan, {"gate": "bayes", **keys})
    return measured(read_labelled(str(path), plan, subgroups=True), 0.05)


def test_of_labelled_decisions(tmp_path: Path) -> None:
    rows = ["1,1,a,k"] * 9 + ["1,0,a,l"] + ["0,1,a,k"] * 2 + ["0,0,b,l"] * 18
    found = of(tmp_path, rows)
    assert (found.whole.tpr.value, found.whole.fpr.value) == (0.9, 0.1)
    assert found.groups["b"].why == "no positives"
    assert found.groups["a"].fpr.value == 1.0
    assert found.others["a"].fpr.value == 0.0
    assert found.test is not None
    assert [rate.value for rate in found.test] == pytest.approx([1 / 3, 9 / 11])


def test_one_cluster_is_no_evidence(tmp_path: Path) -> None:
    rows = ["1,1,a,k"] * 9 + ["1,0,a,l"] + ["0,1,a,k"] + ["0,0,a,k"] * 18
    assert of(tmp_path, rows, cluster="camera").whole.why == "one cluster among the negatives"


def test_clusters_count_for_less(tmp_path: Path) -> None:
    rows = [f"{label},{int(label ^ (camera == 3))},a,c{camera}" for camera in range(12) for label in (0, 1) * 20]
    free, held = of(tmp_path, rows), of(tmp_path, rows, cluster="camera")
    assert held.whole.tpr.value == pytest.approx(free.whole.tpr.value, abs=0.02)
    assert held.whole.n < free.whole.n / 3
    assert held.whole.clusters == 12


@pytest.mark.parametrize(("label", "kind"), [(1, "negative"), (0, "positive")])
def test_one_kind_of_label_is_refused(tmp_path: Path, label: int, kind: str) -> None:
    with pytest.raises(InputError, match=f"at least one {kind} among the labels, got 'none'"):
        of(tmp_path, [f"{label},1,a,k"] * 5)


def test_correctness_has_no_rates(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a column of a label beside the decision"):
        of(tmp_path, ["1", "0"], "id,correct")
