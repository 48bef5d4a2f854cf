"""Groups of collectives as HLO writes them."""

import pytest

from ridgeline.arithmetic.hlo_collectives import members


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{{0,1},{2,3}}", [{0, 1}, {2, 3}]),
        ("{{0,2},{1,3}}", [{0, 2}, {1, 3}]),
        ("{}", [{0, 1, 2, 3}]),
        ("", [{0, 1, 2, 3}]),
        ("[2,2]<=[4]", [{0, 1}, {2, 3}]),
        ("[2,2]<=[2,2]T(1,0)", [{0, 2}, {1, 3}]),
        ("[4,2]<=[2,2,2]T(2,0,1)", [{0, 2}, {4, 6}, {1, 3}, {5, 7}]),
        ("[1,4]<=[4]", [{0, 1, 2, 3}]),
    ],
)
def test_members(text: str, groups: list[set[int]]) -> None:
    assert members(text, 4) == frozenset(frozenset(group) for group in groups)


def test_axes_by_name_hold_no_ids() -> None:
    assert members("mesh['x'=2,'y'=2] {'x'}", 4) is None
