"""Bounds of what did not pair, and the rules about the evidence, each on runs that break one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.gate.evidence.test_pairing import run, texts

from ridgeline.core.finding import Finding, Verdict
from ridgeline.gate.decision import Outcome
from ridgeline.gate.evidence.findings import CODES, evidence_checks, evidence_findings, worst_case
from ridgeline.gate.evidence.pairing import Pairs, pair
from ridgeline.gate.evidence.samples import Samples
from ridgeline.gate.gates.precision import decide
from ridgeline.gate.registration.plan import Plan

N = 2000
SETTINGS = {"chat_template_sha": "c", "limit": "none", "random_seed": "0", "git_hash": "a", "model_name": "m"}


def a_run(seed: int, n: int = N, right: float = 0.7, **more: Any) -> Samples:
    rng = np.random.default_rng(seed)
    scores = (np.random.default_rng(0).random(n) < right).astype(float)
    flips = rng.random(n) < 0.002
    told = {"prompts": texts(*(f"p{i}" for i in range(n))), "outputs": texts(*(f"o{seed}{i}" for i in range(n)))}
    return run(np.abs(scores - flips).tolist(), **(told | {"settings": SETTINGS} | more))


def verdicts(pairs: Pairs, plan: Plan | None = None) -> dict[str, Verdict]:
    return {item.code: item.verdict for item in evidence_findings(pairs, plan or Plan(gate="precision"))}


def the(pairs: Pairs, code: str, plan: Plan | None = None) -> Finding:
    return next(item for item in evidence_findings(pairs, plan or Plan(gate="precision")) if item.code == code)


def broken(pairs: Pairs, code: str, plan: Plan | None = None) -> None:
    """The rule fails, alone of all, and its check keeps the gate from SHIP."""
    chosen = (plan or Plan(gate="precision")).model_copy(update={"least_slices": 0, "margin": 0.02})
    assert {c for c, v in verdicts(pairs, chosen).items() if v is Verdict.FAIL} == {code}
    checks = evidence_checks(pairs, chosen)
    assert [check.name for check in checks] == [f"evidence {code}"]
    assert "{" not in checks[0].interval.degenerate
    decided = decide(pairs, chosen)
    assert decided.outcome is Outcome.INCONCLUSIVE
    assert code in {item.code for item in decided.findings}


def test_two_good_runs_pass_every_rule_and_ship() -> None:
    pairs, plan = pair(a_run(1), a_run(2)), Plan(gate="precision", least_slices=0)
    assert verdicts(pairs) == dict.fromkeys(CODES, Verdict.PASS)
    assert evidence_checks(pairs, plan) == ()
    assert decide(pairs, plan).outcome is Outcome.SHIP


def test_g101_missing_halves_that_could_turn_the_decision_fail() -> None:
    pairs = pair(a_run(1), a_run(2, n=1000))
    broken(pairs, "G101")
    assert "1,000 only in the baseline" in the(pairs, "G101").sentence


def test_g101_few_missing_examples_warn_with_a_bound() -> None:
    pairs = pair(a_run(1), a_run(2, n=N - 3))
    found = the(pairs, "G101", Plan(gate="precision", margin=0.02))
    assert found.verdict is Verdict.WARN
    low = next(q for q in found.quantities if "worst" in q.name)
    assert -2.0 < float(low.value) < 0.0


@pytest.mark.parametrize(("missing", "verdict"), [(1, Verdict.WARN), (200, Verdict.FAIL)])
def test_g101_a_loss_has_no_bound_and_goes_by_the_share(missing: int, verdict: Verdict) -> None:
    base, cand = (
        replace(r, scores={"log_loss": np.random.default_rng(s).gamma(2, 2, len(r))})
        for s, r in ((1, a_run(1)), (2, a_run(2, n=N - missing)))
    )
    assert the(pair(base, cand), "G101").verdict is verdict


def test_g102_prompts_that_differ_fail() -> None:
    other = a_run(2, prompts=texts(*(f"p{i}" if i else "another" for i in range(N))))
    broken(pair(a_run(1), other), "G102")


def test_g103_cached_identical_outputs_fail() -> None:
    base = a_run(1)
    broken(pair(base, replace(a_run(2), outputs=base.outputs)), "G103")


def test_g103_names_the_models() -> None:
    base = a_run(1)
    cand = replace(a_run(2), outputs=base.outputs, settings=SETTINGS | {"model_name": "other"})
    assert "although the models differ" in the(pair(base, cand), "G103").sentence


@pytest.mark.parametrize("name", ["chat_template_sha", "limit", "random_seed"])
def test_g104_settings_that_differ_fail(name: str) -> None:
    broken(pair(a_run(1), a_run(2, settings=SETTINGS | {name: "other"})), "G104")


def test_g104_other_software_warns_and_another_model_is_the_point() -> None:
    assert verdicts(pair(a_run(1), a_run(2, settings=SETTINGS | {"git_hash": "b"})))["G104"] is Verdict.WARN
    assert verdicts(pair(a_run(1), a_run(2, settings=SETTINGS | {"model_name": "b"})))["G104"] is Verdict.PASS


def test_g105_errors_in_the_denominator() -> None:
    base, few, many = a_run(1), a_run(2), a_run(2)
    few.errors[:10] = True
    many.errors[:200] = True
    assert the(pair(base, few), "G105").verdict is Verdict.WARN
    found = the(pair(base, many), "G105")
    assert found.verdict is Verdict.FAIL
    assert "wrong answers" in found.sentence
    assert "left out" in the(pair(base, few), "G105", Plan(gate="precision", on_error="drop")).sentence


def test_g105_blocks() -> None:
    base, many = a_run(1), a_run(2)
    for one in (base, many):
        one.errors[:200] = True
    broken(pair(base, many), "G105")


@pytest.mark.parametrize("value", [1.5, -0.033])
def test_g106_scores_outside_the_range_fail(value: float) -> None:
    base, cand = a_run(1), a_run(2)
    cand.scores["acc"][0] = value
    broken(pair(base, cand), "G106")


def test_g106_negative_scores_of_a_free_metric_warn_and_a_negative_loss_fails() -> None:
    for name, verdict in (("score", Verdict.WARN), ("log_loss", Verdict.FAIL)):
        runs = [replace(r, scores={name: r.scores["acc"]}) for r in (a_run(1), a_run(2))]
        runs[1].scores[name][0] = -0.033
        assert the(pair(*runs), "G106").verdict is verdict


def test_g106_a_fraction_against_a_percentage_fails() -> None:
    runs = [replace(r, scores={"quality": r.scores["acc"] * k}) for r, k in ((a_run(1), 1), (a_run(2), 100))]
    found = the(pair(*runs), "G106")
    assert found.verdict is Verdict.FAIL
    assert "percent" in found.sentence


def test_g106_a_metric_of_another_range_passes() -> None:
    runs = [replace(r, scores={"bleu": r.scores["acc"] * 40 + 100}) for r in (a_run(1), a_run(2))]
    assert the(pair(*runs), "G106").verdict is Verdict.PASS


def test_g109_groups_that_are_not_named_fail() -> None:
    groups = texts(*(f"c{i // 4}" for i in range(N)))
    runs = [a_run(seed, labels={"cluster": groups}) for seed in (1, 2)]
    broken(pair(*runs), "G109")
    named = Plan(gate="precision", cluster="cluster")
    assert verdicts(pair(*runs), named)["G109"] is Verdict.PASS


def test_g109_a_repeated_document_or_two_warn_and_slices_are_no_groups() -> None:
    few = texts(*(f"d{max(i, 3)}" for i in range(N)))
    assert the(pair(*(a_run(s, labels={"document": few}) for s in (1, 2))), "G109").verdict is Verdict.WARN
    cut = texts(*(f"s{i % 4}" for i in range(N)))
    runs = [a_run(s, labels={"group": cut, "cluster": cut}) for s in (1, 2)]
    assert verdicts(pair(*runs), Plan(gate="precision", slices="group"))["G109"] is Verdict.PASS


def test_logs_that_do_not_tell_are_unknown_and_block_nothing() -> None:
    bare = [run(r.scores["acc"].tolist()) for r in (a_run(1), a_run(2))]
    found = verdicts(pair(*bare))
    assert {code for code, verdict in found.items() if verdict is Verdict.UNKNOWN} == {"G102", "G103", "G104"}
    assert evidence_checks(pair(*bare), Plan(gate="precision")) == ()


def test_zero_variance_at_the_boundary_is_no_evidence_of_nothing() -> None:
    """Both runs wrong everywhere: a harness logs a standard error of 0.0, yet three examples exclude no loss."""
    pairs = pair(run([0.0] * 3, settings=SETTINGS), run([0.0] * 3, settings=SETTINGS))
    decided = decide(pairs, Plan(gate="precision", least_slices=0))
    assert decided.outcome is Outcome.INCONCLUSIVE
    assert decided.checks[0].interval.low < -0.1


COLUMN = st.lists(st.one_of(st.none(), st.sampled_from([0.0, 0.25, 1.0])), min_size=1, max_size=6)


@given(COLUMN, COLUMN, st.integers(0, 5), st.sampled_from(["acc", "error_rate"]))
def test_the_bounds_hold_for_every_completion(base: list[Any], cand: list[Any], shift: int, metric: str) -> None:
    """Fill every unknown score with 0 or 1: no mean leaves the bounds, and the ends are reached."""
    shift = min(shift, len(base) - 1)
    runs = [
        run(base, keys=[f"k{n}" for n in range(len(base))]),
        run(cand, keys=[f"k{n + shift}" for n in range(len(cand))]),
    ]
    runs = [replace(r, scores={metric: r.scores["acc"]}) for r in runs]
    bound = worst_case(pair(*runs), metric)
    assert bound is not None
    keys = sorted({*runs[0].keys.tolist(), *runs[1].keys.tolist()})
    known = [dict(zip(r.keys.tolist(), r.scores[metric].tolist(), strict=True)) for r in runs]
    sign = -1.0 if metric == "error_rate" else 1.0
    means = []
    for unknown in ((0.0, 1.0), (1.0, 0.0)):
        filled = [[_or(k.get(key, np.nan), u) for key in keys] for k, u in zip(known, unknown, strict=True)]
        means.append(sign * float(np.mean(np.subtract(filled[1], filled[0]))))
    assert (min(means), max(means)) == pytest.approx((bound.low, bound.high))


def _or(value: float, otherwise: float) -> float:
    return otherwise if np.isnan(value) else value


def test_no_bounds_outside_zero_to_one() -> None:
    assert worst_case(pair(run([0.5, 2.0]), run([0.5, 1.0])), "acc") is None
