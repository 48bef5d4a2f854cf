"""``ridgeline why``: the list of names, the tree, the part of the document under a number."""

from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parents[1] / "golden" / "case-v1.json"


def test_without_a_name_it_lists_them(ridgeline: Any) -> None:
    done = ridgeline("why", GOLDEN)
    assert done.code == 0
    assert "compute" in done.out.split()
    assert set(ridgeline("why", GOLDEN, "--json").json) >= {"compute", "budget.mfu"}


def test_tree_shows_formula_and_sources(ridgeline: Any) -> None:
    done = ridgeline("why", GOLDEN, "compute")
    assert done.code == 0
    for part in ("1.026e24", "0.4", "a data sheet", "assumed"):
        assert part in done.out


def test_json_holds_what_it_rests_on(ridgeline: Any) -> None:
    found = ridgeline("why", GOLDEN, "compute", "--json").json
    assert set(found) == {"compute", "budget.chips", "budget.mfu", "budget.time", "chip.peak"}
    assert found["compute"]["formula"] == "chips*peak*mfu*time"


@pytest.mark.parametrize("arguments", [[GOLDEN, "comput"], ["absent.json"], [__file__, "compute"]])
def test_refusals(ridgeline: Any, arguments: list[object]) -> None:
    done = ridgeline("why", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: Expected")
