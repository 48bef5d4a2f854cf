"""The registered keys, their defaults by gate, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.errors import InputError
from ridgeline.core.specs import build
from ridgeline.gate.registration.plan import Plan, read_plan


def test_defaults() -> None:
    plan = Plan(gate="precision")
    assert (plan.margin, plan.slice_margin, plan.alpha, plan.power, plan.least_slices) == (0.01, 0.03, 0.05, 0.8, 5)


def test_a_recovery_is_relative_and_needs_no_slices() -> None:
    plan = build(Plan, {"gate": "recovery"})
    assert (plan.margin, plan.slice_margin, plan.least_slices) == (0.05, 0.05, 0)
    assert build(Plan, {"gate": "recovery", "margin": "2%"}).margin == 0.02


def test_margins_of_slices() -> None:
    plan = build(Plan, {"gate": "precision", "margins": {"code": "5%"}})
    assert (plan.margin_of("code"), plan.margin_of("prose")) == (0.05, 0.03)


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ({"margin": 0}, "$.margin"),
        ({"margin": "-1%"}, "$.margin"),
        ({"margin": "nan"}, "$.margin"),
        ({"margins": {"code": 0}}, "$.margins.code"),
        ({"alpha": 0.5}, "$.alpha"),
        ({"power": 1}, "$.power"),
        ({"n": 1}, "$.n"),
        ({"variance": 0}, "$.variance"),
        ({"sequential": True, "cluster": "user"}, "$.cluster"),
        ({"margn": 0.1}, "$.margn"),
        ({"on_error": "ignore"}, "$.on_error"),
    ],
)
def test_refused(said: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError) as error:
        build(Plan, {"gate": "precision", **said})
    assert place in str(error.value)


def test_a_plan_file_is_named_in_the_error(tmp_path: Path) -> None:
    file = tmp_path / "gate.toml"
    file.write_text('gate = "precision"\nmargin = "0%"\n')
    with pytest.raises(InputError, match=r"gate\.toml"):
        read_plan(file)
