"""Points: columns, labels, places, and the refusal of ladders that are too small."""

import numpy as np
import pytest
from tests.forecast.ladders import five_sizes

from ridgeline.core.errors import InputError
from ridgeline.forecast.points import Points
from ridgeline.forecast.reading.read_points import from_columns


def ladder() -> Points:
    return from_columns({
        "N": [1e8, 2e8, 2e8], "D": [1e9, 2e9, 4e9], "loss": [3.0, 2.8, 2.7], "recipe": ["a", "a", "b"],
        "seed": [1, 2, 3],
    })  # fmt: skip


def test_take_keeps_everything_together() -> None:
    kept = ladder().take(np.array([False, True, True]))
    assert kept["loss"].tolist() == [2.8, 2.7]
    assert kept.labels["recipe"].tolist() == ["a", "b"]
    assert kept.rows.tolist() == [2, 3]
    assert ladder().take(np.array([2, 0]))["N"].tolist() == [2e8, 1e8]


def test_an_absent_column_is_named() -> None:
    with pytest.raises(InputError, match="a column U"):
        ladder()["U"]
    assert "U" not in ladder()
    assert "N" in ladder()


def test_labels_are_joined() -> None:
    assert ladder().label("recipe", "seed").tolist() == ["a / 1", "a / 2", "b / 3"]
    assert ladder().label("schedule").tolist() == ["", "", ""]
    assert ladder().label("schedule", "seed").tolist() == ["1", "2", "3"]


def test_place() -> None:
    assert ladder().place(1) == "line 2"
    assert Points({"N": np.ones(3)}).place(1) == "run 2"


@pytest.mark.parametrize(("needed", "enough"), [(20, True), (21, False)])
def test_require_counts_distinct_runs(needed: int, enough: bool) -> None:
    points = five_sizes()
    doubled = points.take(np.arange(40) % 20)
    if enough:
        points.require(needed, "a fit")
        doubled.require(needed, "a fit")
    else:
        with pytest.raises(InputError, match="20 among 40 runs"):
            doubled.require(needed, "a fit")
