"""A measured run against a proposal, with the worked numbers of the MFU incident."""

import json
from pathlib import Path

import pytest
from tests.plan.reviews import ALIGNED, against, facts, incident, number

from ridgeline.core.errors import InputError
from ridgeline.plan.prelaunch.comparable import compare, read_comparable


def test_the_expectation_is_47_and_not_50() -> None:
    found = against(incident()).comparison
    assert found is not None
    assert number(found.measured) == 50
    assert round(number(found.corrected)) == 47
    assert number(found.corrected) == pytest.approx(50 - 2.74 - 0.33, abs=0.01)
    assert number(found.corrected) < number(found.proportional) < 50
    assert found.expectation is found.corrected


def test_geometry_audit_of_the_worked_numbers() -> None:
    audit = incident().geometry
    assert audit is not None
    head, vocab = audit.padded
    assert (number(head.size), number(head.tile), number(vocab.size)) == (96, 128, 593.5)
    assert round(number(head.points), 1) == 2.7
    assert round(number(vocab.points), 1) == 0.3
    assert number(head.share) == pytest.approx(11, abs=0.5)
    assert number(vocab.share) == pytest.approx(5, abs=0.5)


def test_what_differs_is_named_with_its_points() -> None:
    found = against(incident()).comparison
    assert found is not None
    points = {row.what: number(row.points) for row in found.differing if row.points is not None}
    assert set(points) == {"head_dim on one chip", "vocab on one chip"}
    assert points["head_dim on one chip"] == pytest.approx(2.74, abs=0.01)
    assert {row.what for row in found.rows if row.alike} >= {"chip", "data type", "sequence", "parallel plan"}


def test_a_run_of_the_same_shape_keeps_its_number() -> None:
    ours = incident()
    model = dict(ours.proposal.file.model)
    found = against(ours, model=model).comparison
    assert found is not None
    for promise in (found.corrected, found.proportional, found.modelled):
        assert number(promise) == pytest.approx(50)
    assert found.differing == ()


def test_a_comparable_that_paid_for_its_own_padding_is_charged_once() -> None:
    ours, theirs = incident(), dict(ALIGNED["model"]) | {"vocab": 151936}
    found = against(ours, model=theirs).comparison
    assert found is not None
    assert 47 < number(found.corrected) < 50 - 2.7 + 0.05


def test_the_step_model_moves_it_by_the_ratio() -> None:
    ours = incident()
    found = against(ours).comparison
    assert found is not None
    assert number(found.modelled) == pytest.approx(50 * number(ours.mfu) / number(found.theirs.mfu))


def test_conventions_are_converted_on_its_own_model() -> None:
    ours = facts()
    own = {**ALIGNED, "convention": "palm"}
    found = compare(own, ours, Path())
    assert number(found.measured) < 50  # 6N counts no attention


def test_a_rate_instead_of_an_mfu() -> None:
    ours = incident()
    rest = {key: value for key, value in ALIGNED.items() if key != "mfu"}
    found = compare({**rest, "tokens_per_second_per_chip": 1100}, ours, Path())
    params = number(found.theirs.flops) / number(found.theirs.batch.tokens)
    assert number(found.measured) == pytest.approx(100 * 1100 * params / 918e12)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mfu": "130%"}, "MFU"),
        ({"mfu": None}, "either mfu"),
        ({"tokens_per_second_per_chip": 5}, "either mfu"),
        ({"mfu": None, "tokens_per_second_per_chip": 1e9}, "below the peak"),
        ({"convention": "nine"}, "convention"),
        ({"plan": {"tp": 7}}, "divide"),
    ],
)
def test_bad_input(change: dict[str, object], said: str) -> None:
    data = {key: value for key, value in {**ALIGNED, **change}.items() if value is not None}
    with pytest.raises(Exception, match=said):
        compare(data, incident(), Path())


def test_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "comparable.json"
    file.write_text(json.dumps(ALIGNED))
    found = read_comparable(file, incident())
    assert found.file is not None
    assert round(number(found.corrected)) == 47
    file.write_text("[1]")
    with pytest.raises(InputError, match="an object"):
        read_comparable(file, incident())
