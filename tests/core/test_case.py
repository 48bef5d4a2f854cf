"""The one document: what goes in, what is refused, and that every schema version stays readable."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ridgeline.core.case import SCHEMA, Case, Chart, Column, InputFile, Section, Table, load
from ridgeline.core.errors import InputError
from ridgeline.core.finding import Cost, Finding, Verdict
from ridgeline.core.formula import FormulaError
from ridgeline.core.quantity import Quantity, Source, derive, draws, given, leaf

GOLDEN = Path(__file__).parents[1] / "golden"


def full_case() -> Case:
    """A case that uses every field of the schema."""
    sheet = Source("a data sheet", "page 3", "2025-01-31", "https://example.org/sheet")
    chips = given("budget.chips", 1000, "chip", "--chips")
    peak = leaf("chip.peak", 989.4, "TFLOP/s/chip", "published", sheet)
    mfu = leaf("budget.mfu", 0.4, "1", "assumed", Source("our habit"), "no run was measured")
    time = given("budget.time", 30, "day", "--days")
    compute = derive("compute", "chips*peak*mfu*time", "FLOP", chips=chips, peak=peak, mfu=mfu, time=time)
    price = derive("cost.idle", "chips*time*rate", "USD", chips=chips, time=time, rate=given("rate", 2.5, "USD/chip/h"))
    loss = draws("loss", np.linspace(1.9, 2.0, 11), "nat", "measured", Source("a fit"))
    case = Case("plan", "A plan", "Train with {compute|4}.", "ridgeline plan")
    case.inputs.append(InputFile("study.toml", "0" * 64, 12))
    case.add(compute.titled("Training compute"), loss)
    limit = leaf("threshold.p901", 0.5, "1", "assumed", Source("rule P901", "a habit"), "a habit")
    sentence, fix = "MFU is {budget.mfu}.", "Measure it; {cost.idle} are at stake."
    cost = Cost(dollars=price)
    finding = Finding("P901", "MFU", Verdict.UNKNOWN, sentence, fix, value=mfu, threshold=limit, cost=cost)
    case.add_findings([replace(finding, cites=(compute,))])
    columns = (Column("what", "What"), Column("value", "Value", "FLOP", "what is spent"))
    case.add_table("budget", Table("Budget", columns, (("compute", compute), ("nothing", 0)), 0, "chosen", "a note"))
    case.charts["budget"] = Chart("Most is compute", "One bar", {"mark": "bar"}, "budget", "a note")
    case.sections.append(Section("Budget", ("It is {compute}.",), ("budget",)))
    case.lost.append("line 7 of a log")
    case.evidence.append({"schema": 1, "tool": "forecast", "quantities": {}, "findings": []})
    return case


def covered(old: Any, new: Any, place: str = "$") -> None:
    """Whether everything of the old document is in the new one, unchanged; new fields are welcome."""
    if isinstance(old, dict):
        assert isinstance(new, dict), place
        for key, value in old.items():
            assert key in new, f"{place}.{key} has gone: raise SCHEMA"
            covered(value, new[key], f"{place}.{key}")
    elif isinstance(old, list):
        assert len(old) == len(new), place
        for index, (a, b) in enumerate(zip(old, new, strict=True)):
            covered(a, b, f"{place}[{index}]")
    elif isinstance(old, float):
        assert new == pytest.approx(old, rel=1e-12), place
    else:
        assert new == old, place


def test_every_schema_version_has_a_golden_file() -> None:
    versions = sorted(int(p.stem.removeprefix("case-v")) for p in GOLDEN.glob("case-v*.json"))
    assert versions == list(range(1, SCHEMA + 1))


@pytest.mark.parametrize("version", range(1, SCHEMA + 1))
def test_golden_files_stay_readable(version: int) -> None:
    document = load(GOLDEN / f"case-v{version}.json")
    assert document["schema"] == version
    assert document["quantities"]["compute"]["value"] == pytest.approx(1.0258e24, rel=1e-4)
    assert document["findings"][0]["code"] == "P901"


def test_the_format_has_not_moved() -> None:
    golden = load(GOLDEN / f"case-v{SCHEMA}.json")
    now = json.loads(full_case().dumps())
    golden["version"] = now["version"]
    covered(golden, now)


def test_the_round_trip_is_whole(tmp_path: Path) -> None:
    case = full_case()
    file = tmp_path / "case.json"
    file.write_text(case.dumps())
    assert load(file) == json.loads(case.dumps())


def test_templates_are_written_out() -> None:
    document = full_case().to_json()
    assert document["decision"] == "Train with 1.026e24 FLOP."
    assert document["findings"][0]["sentence"] == "MFU is 0.400."
    assert document["findings"][0]["fix"] == "Measure it; $1,800,000 are at stake."
    assert document["sections"][0]["paragraphs"] == ["It is 1.026e24 FLOP."]


def test_add_brings_the_whole_derivation() -> None:
    names = set(full_case().quantities)
    assert {"compute", "chip.peak", "budget.mfu", "budget.chips", "budget.time"} <= names


def test_draws_carry_their_interval() -> None:
    entry = full_case().to_json()["quantities"]["loss"]
    assert entry["value"] == pytest.approx(1.95)
    assert entry["interval"] == pytest.approx([1.91, 1.99])


def test_assumptions_write_themselves() -> None:
    assert {q.name for q in full_case().assumptions} == {"budget.mfu", "threshold.p901"}


def test_one_name_means_one_number() -> None:
    case = Case("t", "t")
    case.add(given("n", 1, "1"), given("n", 1, "1"))
    with pytest.raises(FormulaError, match="two quantities are named n"):
        case.add(given("n", 2, "1"))
    with pytest.raises(FormulaError, match="two quantities are named n"):
        case.add(given("n", 1, "s"))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_no_nan_in_a_case(value: float) -> None:
    case = Case("t", "t")
    case.add(Quantity("n", value, "1", "derived", "x"))
    with pytest.raises(FormulaError, match="never written as NaN"):
        case.dumps()


def test_no_nan_in_a_table() -> None:
    case = Case("t", "t")
    case.add_table("t", Table("t", (Column("a", "A"),), ((float("nan"),),)))
    with pytest.raises(ValueError, match="JSON compliant"):
        case.dumps()


def test_candidates_are_chosen_from_before_they_enter() -> None:
    case = Case("t", "t")
    case.add(leaf("n", np.array([1.0, 2.0]), "1"))
    with pytest.raises(FormulaError, match="candidates"):
        case.dumps()


def test_an_unknown_name_shows_close_ones() -> None:
    with pytest.raises(InputError, match="comput") as caught:
        full_case().find("comput")
    assert "compute" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "whole JSON document"),
        ('{"schema": 1, "tool": "plan", "quant', "whole JSON document"),
        ("[1, 2]", "schema number"),
        ('{"hello": 1}', "schema number"),
        (f'{{"schema": {SCHEMA + 1}}}', "or older"),
        ('{"schema": 1, "tool": "plan", "findings": []}', "quantities"),
        ('{"schema": 1, "tool": "plan", "findings": [], "quantities": {"a": NaN}}', "NaN"),
        ('{"schema": 1, "tool": 3, "findings": [], "quantities": {}}', "tool"),
    ],
)
def test_load_refuses(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "case.json"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        load(file)
    assert str(file) in str(caught.value)


def test_load_refuses_what_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="readable case file"):
        load(tmp_path / "absent.json")
    with pytest.raises(InputError, match="readable case file"):
        load(tmp_path)


def test_input_file_is_hashed(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"abc")
    made = InputFile.of(file)
    assert made.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert list(vars(made).values())[-1] == 3
