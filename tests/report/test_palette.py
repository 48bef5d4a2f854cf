"""The five activities stay apart in grey, and in both kinds of red-green blindness, on light and dark pages."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from ridgeline.core.charts import ACTIVITIES as ORDER
from ridgeline.report import palette

LIGHT = palette.ACTIVITIES
DARK = {name: palette.DARK[color] for name, color in LIGHT.items()}
# Vienot, Brettel and Mollon 1999: linear RGB as a protanope and a deuteranope see it
PROTAN = np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]])
DEUTAN = np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]])
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(color: str) -> np.ndarray:
    parts = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    ratio = TO_XYZ @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_grey(colors: dict[str, str]) -> None:
    lightness = sorted(lab(linear(color))[0] for color in colors.values())
    assert min(b - a for a, b in pairwise(lightness)) >= 8


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("seen", [np.eye(3), PROTAN, DEUTAN], ids=["all", "protan", "deutan"])
def test_color_blindness(colors: dict[str, str], seen: np.ndarray) -> None:
    points = [lab(seen @ linear(color)) for color in colors.values()]
    assert min(float(np.linalg.norm(a - b)) for a, b in combinations(points, 2)) >= 12


def test_core_and_palette_name_the_same_activities() -> None:
    assert tuple(LIGHT) == ORDER


def test_every_chart_color_has_a_dark_partner() -> None:
    assert {*LIGHT.values(), *palette.CATEGORIES, palette.INK, palette.MUTED, palette.GRID} <= set(palette.DARK)


def test_a_scale_of_activities_gets_their_colors() -> None:
    assert palette.activity_range(["idle", "compute"]) == [LIGHT["idle"], LIGHT["compute"]]
    assert palette.activity_range(["compute", "tea"]) is None
    assert palette.activity_range([]) is None
