"""Sums of trees."""

import numpy as np

from ridgeline.serve.steps.trees import Trees


def test_a_tree_by_hand() -> None:
    data = {
        "base": 1.0, "unit": 0.5, "edges": [[2.0], [10.0, 20.0]], "features": [[0, 1, -1]], "thresholds": [[0, 1, 0]],
        "leaves": [[1, 2, 3, 4]],
    }  # fmt: skip
    rows = np.array([[1.0, 20.0], [1.0, 21.0], [3.0, 0.0], [2.0, 20.0]])
    assert Trees.of(data)(rows).tolist() == [1.5, 2.0, 2.5, 1.5]


def test_no_rows() -> None:
    data = {"base": 0.0, "unit": 1.0, "edges": [], "features": [[-1]], "thresholds": [[0]], "leaves": [[0, 0]]}
    assert Trees.of(data)(np.zeros((0, 3))).shape == (0,)
