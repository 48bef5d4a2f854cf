"""The gate commands: exit codes, reports, refusals in one sentence, registration from end to end."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from ridgeline.core.case import load

GATES = ("precision", "recovery", "regression")
Ridgeline = Any


def run_file(path: Path, lost: int = 0, n: int = 3000, tasks: int = 6) -> Path:
    """Scores of a run: the first ``lost`` right answers of each task turned wrong."""
    rows = ["id,task,accuracy"]
    for task in range(tasks):
        each = n // tasks
        rows += [f"t{task}-{row},t{task},{int(lost <= row < 0.8 * each)}" for row in range(each)]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return run_file(tmp_path / "base.csv")


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize(("lost", "n", "code"), [(0, 3000, 0), (60, 3000, 1), (0, 60, 4)])
def test_exit_codes(ridgeline: Ridgeline, tmp_path: Path, gate: str, lost: int, n: int, code: int) -> None:
    base, cand = run_file(tmp_path / "base.csv", 0, n), run_file(tmp_path / "cand.csv", lost, n)
    cand.write_text(cand.read_text().replace("t0-0,t0,1", "t0-0,t0,0"))  # not one answer alike would be a cache
    done = ridgeline("gate", gate, "--baseline", base, "--candidate", cand, "--slices", "task", "-o", tmp_path / "r")
    assert done.code == code, done.out + done.err
    said = {0: "SHIP:", 1: "NO-SHIP:", 4: "INCONCLUSIVE:"}[code]
    assert any(line.startswith(said) for line in done.out.splitlines())
    assert max(map(len, done.out.splitlines())) <= 80 + len(str(tmp_path)) + len("why     ridgeline why ") + 50
    document = load(tmp_path / "r" / f"{gate}.json")
    assert document["decision"].startswith(said)
    assert f"gate.{gate}.overall." in " ".join(document["quantities"])
    assert (tmp_path / "r" / f"{gate}.html").exists()


@pytest.mark.parametrize("gate", GATES)
def test_help_names_the_exit_codes(ridgeline: Ridgeline, gate: str) -> None:
    words = " ".join(ridgeline("gate", gate, "--help").out.split())
    assert "0 ship, 1 do not ship, 4 not enough evidence, 2 bad input" in words


def test_junit_and_annotations(ridgeline: Ridgeline, tmp_path: Path, base: Path) -> None:
    cand = run_file(tmp_path / "cand.csv", 60)
    common = ("gate", "precision", "--baseline", base, "--candidate", cand, "--slices", "task", "-o", tmp_path / "r")
    done = ridgeline(*common, "--junit", tmp_path / "x" / "gate.xml", "--github")
    assert done.out.startswith("::error title=gate precision%3A NO-SHIP::NO-SHIP")
    suite = ET.parse(tmp_path / "x" / "gate.xml").getroot()[0]
    assert int(suite.get("failures", "0")) >= 7
    done = ridgeline(*common, "--github", "--json")
    assert done.json["tool"] == "gate precision"
    assert "::error title=" in done.err


def test_a_case_for_the_memo(ridgeline: Ridgeline, tmp_path: Path, base: Path) -> None:
    cand = run_file(tmp_path / "cand.csv", 60)
    place = tmp_path / "evidence" / "precision.json"
    done = ridgeline("gate", "precision", "--baseline", base, "--candidate", cand, "--slices", "task", "-o", place)
    assert done.code == 1
    assert load(place)["tool"] == "gate precision"
    assert sorted(path.name for path in place.parent.iterdir()) == ["precision.json"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--slices", "tsk"), "did you mean task"),
        (("--metric", "acuracy"), "did you mean accuracy"),
        (("--margin", "0"), "margin above zero"),
        (("--margin", "-1%"), "margin"),
        (("--column", "id"), "role and a column"),
        (("--registration", "nothing.toml"), "nothing.toml"),
        (("--registration", "nothing.json"), "nothing.json"),
    ],
)
def test_refusals(ridgeline: Ridgeline, tmp_path: Path, base: Path, more: tuple[str, ...], said: str) -> None:
    cand = run_file(tmp_path / "cand.csv", 1)
    done = ridgeline("gate", "precision", "--baseline", base, "--candidate", cand, *more, "-o", tmp_path / "r")
    assert done.code == 2
    assert said in done.err
    assert done.err.count("error:") == 1
    assert not (tmp_path / "r").exists()


def test_a_file_that_is_not_there(ridgeline: Ridgeline, tmp_path: Path, base: Path) -> None:
    done = ridgeline("gate", "precision", "--baseline", base, "--candidate", tmp_path / "no.csv")
    assert done.code == 2
    assert "no such file" in done.err


def test_a_plan_of_another_gate(ridgeline: Ridgeline, tmp_path: Path, base: Path) -> None:
    (tmp_path / "g.toml").write_text('gate = "recovery"\n')
    done = ridgeline(
        "gate", "precision", "--baseline", base, "--candidate", base, "--registration", tmp_path / "g.toml"
    )
    assert done.code == 2
    assert "a plan of the gate precision" in done.err


def test_flags_must_agree_with_an_unregistered_plan(ridgeline: Ridgeline, tmp_path: Path, base: Path) -> None:
    (tmp_path / "g.toml").write_text('gate = "precision"\nmargin = "1%"\n')
    plan = ("--registration", tmp_path / "g.toml", "--margin", "2%")
    done = ridgeline("gate", "precision", "--baseline", base, "--candidate", base, *plan)
    assert done.code == 2
    assert "margin = 0.02 beside 0.01" in done.err


# Registration, from end to end.


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    file = tmp_path / "gate.toml"
    file.write_text('gate = "precision"\nmetrics = ["accuracy"]\nslices = "task"\nvariance = 0.02\n')
    return file


def cite(ridgeline: Ridgeline, tmp_path: Path, base: Path, *more: object) -> dict[str, str]:
    """Verdicts of the rules about registration, and the outcome."""
    cand = tmp_path / "cand.csv"
    if not cand.exists():
        run_file(cand, 1)
    done = ridgeline(
        "gate", "precision", "--baseline", base, "--candidate", cand, "--json", "-o", tmp_path / "r", *more
    )
    assert done.code in (0, 1, 4), done.err
    found = {item["code"]: item["verdict"] for item in done.json["findings"] if item["code"] in ("G107", "G108")}
    return {**found, "outcome": done.json["decision"].partition(":")[0]}


def test_registered_and_cited(ridgeline: Ridgeline, tmp_path: Path, base: Path, spec: Path) -> None:
    done = ridgeline("gate", "register", spec, "--data", base, "--ids")
    assert done.code == 0
    assert done.out.splitlines()[2].startswith("REGISTERED: the gate precision, ")
    record = tmp_path / "gate.registration.json"
    assert json.loads(record.read_text())["plan"]["variance"] == 0.02
    run_file(tmp_path / "cand.csv", 1)
    expected = {"G107": "pass", "G108": "pass", "outcome": "SHIP"}
    assert cite(ridgeline, tmp_path, base, "--registration", record) == expected
    assert cite(ridgeline, tmp_path, base, "--registration", spec) == expected  # the same data is no second look
    assert len((tmp_path / "gate.registration.json.looks.jsonl").read_text().splitlines()) == 1
    run_file(tmp_path / "cand.csv", 2)
    again = cite(ridgeline, tmp_path, base, "--registration", record)
    assert again == {"G107": "pass", "G108": "fail", "outcome": "INCONCLUSIVE"}


def test_a_margin_changed_afterwards_is_visible(ridgeline: Ridgeline, tmp_path: Path, base: Path, spec: Path) -> None:
    assert ridgeline("gate", "register", spec, "--data", base, "--ids").code == 0
    record = tmp_path / "gate.registration.json"
    flag = cite(ridgeline, tmp_path, base, "--registration", record, "--margin", "5%")
    assert (flag["G107"], flag["outcome"]) == ("fail", "INCONCLUSIVE")
    spec.write_text(spec.read_text() + 'margin = "5%"\n')
    edited = cite(ridgeline, tmp_path, base, "--registration", spec)
    assert (edited["G107"], edited["outcome"]) == ("fail", "INCONCLUSIVE")


def test_other_examples_than_registered(ridgeline: Ridgeline, tmp_path: Path, base: Path, spec: Path) -> None:
    assert ridgeline("gate", "register", spec, "--data", base, "--ids").code == 0
    base.write_text("\n".join(base.read_text().splitlines()[:-5]) + "\n")
    found = cite(ridgeline, tmp_path, base, "--registration", spec)
    assert (found["G107"], found["outcome"]) == ("fail", "INCONCLUSIVE")


def test_an_edited_record_is_refused(ridgeline: Ridgeline, tmp_path: Path, base: Path, spec: Path) -> None:
    assert ridgeline("gate", "register", spec).code == 0
    record = tmp_path / "gate.registration.json"
    record.write_text(record.read_text().replace('"margin": 0.01', '"margin": 0.05'))
    done = ridgeline("gate", "precision", "--baseline", base, "--candidate", base, "--registration", record)
    assert done.code == 2
    assert "changes in plan.margin" in done.err


def test_a_registration_is_not_written_over(ridgeline: Ridgeline, spec: Path) -> None:
    assert ridgeline("gate", "register", spec).code == 0
    done = ridgeline("gate", "register", spec)
    assert done.code == 2
    assert "not written over" in done.err


def test_a_pilot_gives_the_n(ridgeline: Ridgeline, tmp_path: Path, base: Path, spec: Path) -> None:
    pilot = run_file(tmp_path / "pilot.csv", 5)
    done = ridgeline("gate", "register", spec, "--pilot-baseline", base, "--pilot-candidate", pilot, "--json")
    assert [row[5] for row in done.json["tables"]["gate.required"]["rows"]] == ["pilot"] * 7


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        ('gate = "precison"\n', (), "did you mean precision"),
        ("gate = 1\n", (), "$.gate"),
        ("gate =\n", (), "gate.toml"),
        ('gate = "precision"\n', ("--data", "no.csv"), "no such file"),
        ('gate = "precision"\n', ("--pilot-baseline", "a.csv"), "two pilot runs"),
    ],
)
def test_refused_plans(ridgeline: Ridgeline, tmp_path: Path, text: str, more: tuple[str, ...], said: str) -> None:
    file = tmp_path / "gate.toml"
    file.write_text(text)
    done = ridgeline("gate", "register", file, *more)
    assert done.code == 2
    assert said in done.err
    assert not (tmp_path / "gate.registration.json").exists()


@pytest.mark.data
def test_a_router_benchmark_of_57_slices(ridgeline: Ridgeline, tmp_path: Path, data_dir: Path) -> None:
    file = data_dir / "gates" / "routellm_mmlu_correct.csv.gz"
    done = ridgeline("gate", "precision", "--baseline", f"{file}#gpt-4-1106-preview", "--candidate",
                     f"{file}#mistralai/Mixtral-8x7B-Instruct-v0.1", "--slices", "slice", "--column", "id=slice+row",
                     "-o", tmp_path, "--json")  # fmt: skip
    assert done.code == 1
    figures = done.json["quantities"]
    assert figures["gate.precision.overall.score.delta"]["value"] == pytest.approx(-12.5, abs=0.01)
    assert figures["gate.precision.overall.score.n"]["value"] == 14_042
    assert sum(row[0] not in ("overall",) for row in done.json["tables"]["gate.checks"]["rows"]) >= 58


@pytest.mark.data
def test_three_rows_a_run_are_not_enough(ridgeline: Ridgeline, tmp_path: Path, data_dir: Path) -> None:
    folder = data_dir / "gates" / "lm_eval_pyfade"
    base, cand = sorted(folder.glob("samples_gsm8k_*.jsonl"))
    done = ridgeline("gate", "precision", "--baseline", base, "--candidate", cand, "-o", tmp_path, "--json")
    assert done.code == 4
    figures = done.json["quantities"]
    assert figures["gate.precision.overall.exact_match.n"]["value"] == 3
    assert figures["gate.precision.overall.exact_match.needed"]["value"] > 1000
