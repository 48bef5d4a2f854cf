"""Runs on which a candidate that lost must not ship, and hostile input that must not be averaged over."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.gate.runs import flipped, pairs, samples, texts

from ridgeline.cli._gate import plan as planned
from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError
from ridgeline.gate.case import Decided, case_of, figures
from ridgeline.gate.decision import Outcome
from ridgeline.gate.evidence.failures import turned_by_failures
from ridgeline.gate.evidence.pairing import Pairs, pair, take
from ridgeline.gate.evidence.reader import Wanted, read
from ridgeline.gate.evidence.samples import Floats, Samples, higher_after_renaming, is_loss, known_direction
from ridgeline.gate.gates import precision, recovery, regression
from ridgeline.gate.judging.paired import NO_VALUE
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.statistics.ratio import rule_probability

N = 6000
SIX = [f"s{row % 6}" for row in range(N)]


def a_plan(**more: object) -> Plan:
    return Plan.model_validate({"gate": "precision", "slices": "slice", **more})


def two(base: Floats, cand: Floats, names: Sequence[str] = SIX, metric: str = "accuracy") -> tuple[Samples, Samples]:
    return samples("a", {metric: base}, slice=names), samples("b", {metric: cand}, slice=names)


def spread(lost: int, gained: int = 0) -> tuple[Floats, Floats]:
    """Zeros and ones whose losses and gains are spread over all slices."""
    base, cand = flipped(N, lost, gained)
    order = np.random.default_rng(0).permutation(N)
    return base[order], cand[order]


def at(run: Samples, rows: Sequence[int]) -> Samples:
    return take(run, np.array(rows))


def decide(found: Pairs, **more: object) -> Decided:
    return precision.decide(found, a_plan(**more))


def test_the_runs_that_the_cases_start_from_ship() -> None:
    assert decide(pair(*two(*spread(6, 6)))).outcome is Outcome.SHIP


@pytest.mark.parametrize(
    "name",
    ["logloss", "logLoss", "val/loss", "cross_entropy", "crossentropy", "NLL", "negative_log_likelihood", "eval.loss"],
)
def test_a_loss_by_any_spelling_is_a_loss_in_nat(name: str) -> None:
    rng = np.random.default_rng(0)
    base = np.abs(rng.normal(1, 0.5, N))
    found = decide(pair(*two(base, base + np.abs(rng.normal(0.3, 0.1, N)), metric=name)))
    assert is_loss(name)
    assert found.outcome is Outcome.NO_SHIP
    assert found.checks[0].unit == "nat"


@pytest.mark.parametrize("name", ["lossless", "glossary", "log_likelihood", "acc_norm", "F1"])
def test_what_only_looks_like_a_loss(name: str) -> None:
    assert not is_loss(name)


def test_an_unknown_direction_does_not_ship_unless_the_metric_is_named() -> None:
    base = np.random.default_rng(0).random(N)
    runs = pair(*two(base, base + np.random.default_rng(1).normal(0.1, 0.01, N), metric="foo"))
    assert not known_direction("foo")
    assert decide(runs).outcome is Outcome.INCONCLUSIVE
    assert decide(runs, metrics=("foo",)).outcome is Outcome.SHIP


@pytest.mark.parametrize(
    ("metric", "column", "higher"),
    [
        ("loss", "value", False),
        ("score", "log_loss", False),
        ("accuracy", "weight_loss_ok", True),
        ("score", "x", True),
    ],
)
def test_a_renamed_column_is_better_as_its_new_name_says(metric: str, column: str, higher: bool) -> None:
    assert higher_after_renaming(metric, column) is higher


def test_a_loss_under_another_name_keeps_its_broken_examples(tmp_path: Path) -> None:
    runs = []
    for name, extra in (("a", 0.0), ("b", 30.0)):
        path = tmp_path / f"{name}.csv"
        path.write_text("id,log_loss\n" + "".join(f"{i},{1 + i % 7 / 10 + extra * (i < 20)}\n" for i in range(2000)))
        runs.append(read(path, Wanted({"score": "log_loss"}, ("score",))))
    names = [check.metric for check in precision.decide(pair(*runs), Plan(gate="precision")).checks]
    assert "score broken" in names


def test_a_small_slice_that_the_candidate_lacks_whole() -> None:
    base, cand = spread(6, 6)
    names = ["rare" if row < 40 else SIX[row] for row in range(N)]
    one, other = two(base, cand, names)
    assert decide(pair(one, at(other, range(40, N)))).outcome is Outcome.INCONCLUSIVE


def test_missing_losses_are_bounded_by_nothing_however_small_those_seen() -> None:
    rng = np.random.default_rng(0)
    base = np.abs(rng.normal(0.3, 0.05, N))
    one, other = two(base, base + rng.normal(0, 0.001, N), metric="log_loss")
    assert decide(pair(one, other)).outcome is Outcome.SHIP
    assert decide(pair(one, at(other, range(120, N)))).outcome is Outcome.INCONCLUSIVE


def test_a_metric_that_the_candidate_lacks() -> None:
    base, cand = spread(6, 6)
    one = samples("a", {"accuracy": base, "safe_score": base}, slice=SIX)
    found = pair(one, two(base, cand)[1])
    assert decide(found).outcome is Outcome.INCONCLUSIVE
    assert decide(found, metrics=("accuracy",)).outcome is Outcome.SHIP


def test_a_baseline_that_crashes_is_not_easily_beaten() -> None:
    base, cand = spread(150)
    one, other = two(base, cand)
    crashed = (np.arange(N) % 29 == 0) & (base == 1)
    found = pair(replace(one, errors=crashed), other)
    assert "accuracy, overall" in turned_by_failures(found, a_plan(), ["accuracy"])
    assert decide(found).outcome is not Outcome.SHIP


def test_failures_that_are_left_out_are_judged_by_themselves() -> None:
    base, cand = spread(6, 6)
    one, other = two(base, cand)
    few, many = np.arange(N) % 1000 == 0, np.arange(N) % 25 == 0
    assert decide(pair(replace(one, errors=few), replace(other, errors=few)), on_error="drop").outcome is Outcome.SHIP
    assert decide(pair(one, replace(other, errors=many)), on_error="drop").outcome is Outcome.NO_SHIP


def test_a_slice_whose_examples_all_fail_is_not_gone() -> None:
    base, cand = spread(6, 6)
    names = ["rare" if row < 40 else SIX[row] for row in range(N)]
    one, other = two(base, cand, names)
    found = decide(pair(one, replace(other, errors=np.arange(N) < 40)), on_error="drop")
    assert found.outcome is Outcome.NO_SHIP
    assert ("rare", "finished") in {(check.name, check.metric) for check in found.checks}


def test_a_margin_of_a_slice_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match=r"a slice of the runs, got 'S0'") as caught:
        decide(pair(*two(*spread(6, 6))), margins={"S0": 0.001})
    assert "s0" in caught.value.hint


@pytest.mark.parametrize("keys", [{"margin": 1}, {"slice_margin": 2}, {"margins": {"s0": "100%"}}])
def test_a_margin_of_all_of_a_share_is_refused(keys: dict[str, object]) -> None:
    with pytest.raises(InputError, match="below 100%"):
        decide(pair(*two(*spread(6, 6))), **keys)


def test_a_margin_above_what_a_slice_has_is_no_evidence_where_it_lost() -> None:
    base, cand = spread(6, 6)
    hard = np.array([name == "s0" for name in SIX])
    base[hard], cand[hard] = 0.0, 0.0
    base[np.flatnonzero(hard)[:15]] = 1.0
    found = decide(pair(*two(base, cand)))
    s0 = next(check for check in found.checks if check.name == "s0")
    assert "as much as the baseline has" in s0.interval.degenerate
    assert found.outcome is Outcome.INCONCLUSIVE


def test_a_row_without_a_slice_has_one_of_its_own_beside_the_text_none() -> None:
    base, cand = spread(6, 6)
    names = [[None, "None", "overall", "a b", "a_b", "数学", "代码"][row % 7] for row in range(N)]
    bad = np.array([name is None for name in names])
    cand[bad] = 0.0
    found = regression.decide(pairs({"acc": base}, {"acc": cand}, slice=names),
                              Plan(gate="regression", slices="slice"))  # fmt: skip
    known = {check.name: check for check in found.checks if check.metric == "acc"}
    assert known[NO_VALUE].outcome is Outcome.NO_SHIP
    assert known["overall (slice)"].interval.n == names.count("overall")
    assert sum(check.interval.n for name, check in known.items() if name not in ("overall", "mean over tasks")) == N
    stable = [figures(found.gate, check)["n"].name for check in found.checks]
    assert len(set(stable)) == len(stable)
    assert case_of(found).quantities


def test_a_row_without_a_cluster_is_refused() -> None:
    base, cand = spread(6, 6)
    groups = [None if row == 5 else f"g{row // 2}" for row in range(N)]
    with pytest.raises(InputError, match="a cluster in every pair"):
        precision.decide(pairs({"acc": base}, {"acc": cand}, slice=SIX, cluster=groups), a_plan(cluster="cluster"))


def test_one_file_twice_is_no_comparison() -> None:
    base, _ = spread(0)
    one, other = two(base, base.copy())
    assert decide(pair(one, other)).outcome is Outcome.SHIP
    file = (InputFile("a.csv", "0" * 64, 1),)
    assert decide(pair(replace(one, inputs=file), replace(other, inputs=file))).outcome is Outcome.INCONCLUSIVE


def test_ids_stay_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,score,error\n1.10,1,0.0\n1.1,0,1.0\n007,1,\n12345678901234567890123,1,0.0\n")
    found = read(path)
    assert found.keys.tolist() == ["1.10", "1.1", "007", "12345678901234567890123"]
    assert found.errors.tolist() == [False, True, False, False]


def test_trials_of_an_example_are_no_examples(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("task_id,trial,reward\n" + "".join(f"{i // 4},{i % 4},{i % 3 % 2}\n" for i in range(400)))
    found = read(path, Wanted({"id": "task_id+trial"}))
    assert found.labels["cluster"].tolist() == [str(i // 4) for i in range(400)]
    checks = precision.decide(pair(found, replace(found, run="b")), Plan(gate="precision")).checks
    assert "evidence G109" in {check.name for check in checks}


def test_tasks_of_one_pair_each_are_no_evidence() -> None:
    names = texts([f"t{row}" for row in range(50)]).tolist()
    base = np.ones(50)
    found = regression.decide(pairs({"acc": base}, {"acc": base}, slice=names), Plan(gate="regression", slices="slice"))
    assert found.outcome is Outcome.INCONCLUSIVE


def test_sequential_looks_need_their_n_and_a_gate_that_has_them() -> None:
    with pytest.raises(InputError, match="planned number of pairs"):
        a_plan(sequential=True)
    base, cand = spread(6, 6)
    with pytest.raises(InputError, match="one look"):
        recovery.decide(pairs({"acc": base}, {"acc": cand}), Plan(gate="recovery", sequential=True, n=N))


def test_the_rule_s_chance_goes_over_into_its_limit() -> None:
    for true in (0.93, 0.95, 0.97):
        exact, limit = (rule_probability((n, 0.75, 0.05), true) for n in (2000, 2001))
        assert limit == pytest.approx(exact, abs=0.01)


def test_columns_of_the_command_stand_beside_those_of_the_plan(tmp_path: Path) -> None:
    file = tmp_path / "gate.toml"
    file.write_text('gate = "precision"\n[columns]\nacc = "strict"\n')
    assert planned("precision", file, ["id=doc"]).columns == {"acc": "strict", "id": "doc"}
    with pytest.raises(InputError, match="columns that agree"):
        planned("precision", file, ["acc=lenient"])
