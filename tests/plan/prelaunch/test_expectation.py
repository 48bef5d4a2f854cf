"""The artifact that later gates and investigations read."""

from pathlib import Path

import pytest
from tests.plan.reviews import facts, incident, number

from ridgeline.core.case import load
from ridgeline.core.errors import InputError
from ridgeline.plan.prelaunch.expectation import expectation_case
from ridgeline.plan.prelaunch.review_facts import ReviewFacts
from ridgeline.trace.context import RunFile, context_of, read_context

STABLE = {
    "expected.mfu", "expected.mfu.low", "expected.mfu.high", "expected.mfu.low95", "expected.mfu.high95",
    "expected.step", "expected.step.low", "expected.step.high", "expected.tokens_rate", "expected.version",
    "expected.plan.tp", "matmul.ceiling",
}  # fmt: skip


def written(of: ReviewFacts, file: Path) -> dict[str, float]:
    case = expectation_case(of, command="ridgeline review .", before=file)
    file.write_text(case.dumps(), encoding="utf-8")
    return {name: entry["value"] for name, entry in load(file)["quantities"].items()}


def test_stable_names_with_the_numbers_of_the_review(tmp_path: Path) -> None:
    of = facts()
    found = written(of, tmp_path / "expectation.json")
    assert set(found) >= STABLE
    assert found["expected.mfu"] == number(of.mfu)
    assert found["expected.tokens_rate"] == pytest.approx(256 * 4096 / number(of.step) / 64)


def test_the_version_moves_with_the_number_only(tmp_path: Path) -> None:
    file = tmp_path / "expectation.json"
    assert written(facts(), file)["expected.version"] == 1
    assert written(facts(), file)["expected.version"] == 1
    assert written(facts({"recompute": "full"}), file)["expected.version"] == 2
    assert "Version 1 said" in load(file)["because"]
    assert written(facts({"recompute": "full"}), file)["expected.version"] == 2


def test_another_file_in_its_place_is_not_overwritten_silently(tmp_path: Path) -> None:
    file = tmp_path / "expectation.json"
    file.write_text("{}")
    with pytest.raises(InputError, match="case"):
        written(facts(), file)


def test_an_investigation_reads_it(tmp_path: Path) -> None:
    written(incident(), tmp_path / "expectation.json")
    (tmp_path / "run.toml").write_text('[mfu]\nexpectation = "expectation.json"\n')
    found = read_context(tmp_path).expected
    assert number(found) == pytest.approx(number(incident().mfu))


def test_an_investigation_in_another_convention_needs_the_model(tmp_path: Path) -> None:
    written(incident(), tmp_path / "expectation.json")
    mfu = {"expectation": str(tmp_path / "expectation.json"), "convention": "palm"}
    with pytest.raises(InputError, match="palm"):
        _ = context_of(RunFile.model_validate({"mfu": mfu})).expected
    keys = [f"{key} = {value}" for key, value in incident().proposal.file.model.items()]
    (tmp_path / "model.toml").write_text("\n".join(keys))
    batch = {"sequences": 256, "sequence": 8192}
    table = {"mfu": mfu, "batch": batch, "model": {"path": str(tmp_path / "model.toml")}}
    found = context_of(RunFile.model_validate(table)).expected
    assert number(found) > number(incident().mfu)


def test_an_investigation_refuses_another_case(tmp_path: Path) -> None:
    case = expectation_case(facts())
    del case.quantities["expected.mfu"]
    case.decision = case.because = ""
    case.sections = []
    (tmp_path / "other.json").write_text(case.dumps())
    with pytest.raises(InputError, match="expectation"):
        _ = context_of(RunFile.model_validate({"mfu": {"expectation": str(tmp_path / "other.json")}})).expected
