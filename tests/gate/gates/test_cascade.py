"""The gate of cascades: tails, the constant, what is saved, and what was chosen where."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ridgeline.core.errors import InputError
from ridgeline.core.finding import Verdict
from ridgeline.core.specs import build
from ridgeline.gate.case import Decided, case_of
from ridgeline.gate.decision import Check, Outcome
from ridgeline.gate.gates.cascade import decide
from ridgeline.gate.registration.plan import Plan
from ridgeline.gate.routing.evidence import routed

SLICES = ("a", "b", "c", "d", "e")


def made(folder: Path, n: int = 6000, tail: float = 0.0, informed: bool = True, seed: int = 1) -> Path:
    """Weak and strong agree where the confidence is high; in slice e the weak model is sure and ``tail`` worse."""
    rng = np.random.default_rng(seed)
    name = np.array(SLICES)[rng.integers(0, 5, n)]
    sure = np.where(name == "e", 1.0, rng.random(n))
    strong = (rng.random(n) < 0.9).astype(int)
    weak = np.where(rng.random(n) < (0.002 if informed else 0.3) + 0.5 * (sure < 0.5) * informed, 1 - strong, strong)
    broken = (name == "e") & (rng.random(n) < tail)
    weak = np.where(broken, 0, weak)
    rows = [f"q{i},{name[i]},{weak[i]},{strong[i]},{sure[i]:.4f}" for i in range(n)]
    path = folder / "routed.csv"
    path.write_text("id,slice,weak,strong,confidence\n" + "\n".join(rows) + "\n")
    return path


def judged(path: Path, **more: Any) -> Decided:
    columns = {"router": "confidence", "cost": "1:10", **more.pop("columns", {})}
    plan = build(Plan, {"gate": "cascade", "slices": "slice", "margin": 0.05, "columns": columns, **more})
    return decide(routed(f"{path}#weak", f"{path}#strong", plan), plan)


def named(found: Decided) -> dict[str, Check]:
    return {check.name: check for check in found.checks}


def test_a_tail_that_the_average_hides_does_not_ship(tmp_path: Path) -> None:
    found = judged(made(tmp_path, tail=0.2))
    assert named(found)["overall"].outcome is Outcome.SHIP
    assert named(found)["e"].outcome is Outcome.NO_SHIP
    assert "lowest-volume decile" in named(found)
    assert found.outcome is Outcome.NO_SHIP
    assert "1 of 5 slices lose more than 10 points" in case_of(found).because


def test_a_good_router_ships_and_saves(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = []
    for i in range(8000):
        hard = rng.random() < 0.4
        weak = int(rng.random() < (0.3 if hard else 0.995))
        rows.append(f"q{i},{SLICES[i % 5]},{weak},1,{0.2 if hard else 0.8}")
    path = tmp_path / "r.csv"
    path.write_text("id,slice,weak,strong,confidence\n" + "\n".join(rows) + "\n")
    found = judged(path)
    assert found.outcome is Outcome.SHIP
    assert named(found)["against a constant"].interval.low > 0
    assert named(found)["compute saved"].interval.estimate == pytest.approx(0.5, abs=0.03)
    assert {item.verdict for item in found.findings if item.code in ("G171", "G172")} == {Verdict.PASS}
    half, other = found.tables["gate.router"].rows
    assert (half[0], other[0]) == ("chosen on", "judged on")
    assert half[1] + other[1] == 8000
    assert other[8] == pytest.approx(100, abs=3)


def test_a_signal_of_noise_does_not_beat_a_constant(tmp_path: Path) -> None:
    found = judged(made(tmp_path, informed=False))
    constant = named(found)["against a constant"]
    assert constant.outcome is not Outcome.SHIP
    assert constant.interval.low < 0 < constant.interval.high
    assert found.outcome is not Outcome.SHIP
    assert Verdict.PASS not in {item.verdict for item in found.findings if item.code == "G172"}


def test_nothing_is_chosen_on_the_judged_half(tmp_path: Path) -> None:
    path = made(tmp_path)
    first = judged(path).tables["gate.router"]
    keys = [line.split(",")[0] for line in path.read_text().splitlines()[1:]]
    from tests.gate.runs import texts

    from ridgeline.gate.routing.split import choosing

    half = dict(zip(keys, choosing(texts(keys)).tolist(), strict=True))
    lines = path.read_text().splitlines()
    turned = [line if half.get(line.split(",")[0], True) else line.replace(",1,1,", ",0,1,") for line in lines]
    path.write_text("\n".join(turned) + "\n")
    second = judged(path).tables["gate.router"]
    assert second.note == first.note
    assert second.rows[0] == first.rows[0]
    assert second.rows[1] != first.rows[1]


def test_a_given_threshold_is_judged_on_all_examples(tmp_path: Path) -> None:
    other = tmp_path / "tuning.csv"
    other.write_text("id,x\nz1,1\nz2,1\n")
    found = judged(made(tmp_path), columns={"threshold": "0.5", "chosen_on": str(other)})
    (row,) = found.tables["gate.router"].rows
    assert row[:2] == ("judged on", 6000)
    assert [item.code for item in found.findings if item.code == "G171"] == []


def test_difficulty_is_confidence_turned(tmp_path: Path) -> None:
    path = made(tmp_path)
    lines = path.read_text().splitlines()
    turned = [line.rsplit(",", 1)[0] + f",{1 - float(line.rsplit(',', 1)[1]):.4f}" for line in lines[1:]]
    path.write_text("\n".join(["id,slice,weak,strong,difficulty", *turned]) + "\n")
    hard = judged(path, columns={"router": "difficulty"})
    easy = judged(made(tmp_path), columns={"router": "confidence"})
    assert named(hard)["overall"].interval == named(easy)["overall"].interval
    assert named(hard)["compute saved"].interval.estimate > named(easy)["compute saved"].interval.estimate


def test_slices_that_are_missing_are_no_evidence_and_a_slice_router_needs_them(tmp_path: Path) -> None:
    path = made(tmp_path)
    assert judged(path, slices="").outcome is Outcome.INCONCLUSIVE
    with pytest.raises(InputError, match="slices for a router of slices"):
        judged(path, slices="", columns={"router": "slice"})


def test_without_costs_nothing_is_said_to_be_saved(tmp_path: Path) -> None:
    plan = build(Plan, {"gate": "cascade", "slices": "slice", "margin": 0.05, "columns": {"router": "confidence"}})
    path = made(tmp_path)
    found = decide(routed(f"{path}#weak", f"{path}#strong", plan), plan)
    assert "compute saved" not in named(found)
    assert "no --cost" in case_of(found).because


WEAK, STRONG = "mistralai/Mixtral-8x7B-Instruct-v0.1", "gpt-4-1106-preview"


def mmlu(data_dir: Path, margin: float, **columns: str) -> tuple[Decided, float]:
    """The router of subjects, and how many subjects lose more than 10 points."""
    table = data_dir / "gates" / "routellm_mmlu_correct.csv.gz"
    own = {"id": "slice+row", "router": "slice", **columns}
    plan = build(Plan, {"gate": "cascade", "slices": "slice", "margin": margin, "columns": own})
    found = decide(routed(f"{table}#{WEAK}", f"{table}#{STRONG}", plan), plan)
    (lost,) = [q.value for q in found.quantities if q.name == "gate.router.tail.slices"]
    return found, float(lost)


@pytest.mark.data
def test_mmlu_subjects_that_a_router_of_slices_loses(data_dir: Path) -> None:
    """Reference 4.5: -4.2 points [-4.8, -3.5] on average while 11 of 57 subjects lose more than 10.

    Its split and threshold are not given. On halves drawn by the id, with a margin of 5 points, the average is between
    -5.2 and -3.5 points and 9 to 15 subjects lose more than 10; no seed gives the reference to the digit.
    """
    found, lost = mmlu(data_dir, 0.05, cost="0.24:24.7")
    overall = named(found)["overall"]
    assert overall.outcome is Outcome.SHIP
    assert overall.interval.estimate == pytest.approx(-0.035, abs=0.001)
    assert lost == 9
    assert found.outcome is Outcome.NO_SHIP
    assert named(found)["against a constant"].outcome is Outcome.SHIP
    assert named(found)["compute saved"].interval.low > 0.3
    assert sum(check.outcome is Outcome.NO_SHIP for check in found.checks) >= 8
    changes, counts = [], []
    for seed in ("1", "2", "3"):
        other, many = mmlu(data_dir, 0.05, seed=seed)
        changes.append(named(other)["overall"].interval.estimate)
        counts.append(many)
        assert other.outcome is Outcome.NO_SHIP
    assert min(changes) < -0.042 < max([*changes, -0.035])
    assert min([*counts, lost]) <= 11 <= max(counts)


@pytest.mark.data
def test_gsm8k_has_neither_a_confidence_nor_slices(data_dir: Path) -> None:
    table = data_dir / "gates" / "routellm_gsm8k_correct.csv.gz"
    weak, strong = f"{table}#{WEAK}", f"{table}#{STRONG}"
    plan = build(Plan, {"gate": "cascade", "columns": {"id": "row", "router": "slice"}})
    with pytest.raises(InputError, match="slices for a router of slices"):
        decide(routed(weak, strong, plan), plan)
    plan = build(Plan, {"gate": "cascade", "columns": {"id": "row", "router": "confidence"}})
    with pytest.raises(InputError, match="confidence"):
        routed(weak, strong, plan)
