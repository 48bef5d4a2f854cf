"""The scan over chips: what added chips buy, and where waiting takes over."""

import pytest
from tests.plan.search_cases import dense, found, request

from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.layouts.scan import Point, Scan, doublings, scan, step_flops


def point(chips: int, **shares: float) -> Point:
    base = {"communication": 0.1, "idle": 0.0, "compute": 0.9, "gain": 1.0, "worth": 1.0}
    return Point(chips, "", 1.0, 1.0, 0.5, **{**base, **shares})


def test_the_middle_is_the_search_itself() -> None:
    result = scan(request(), [32, 64, 128])
    middle = result.points[1]
    assert [p.chips for p in result.points] == [32, 64, 128]
    assert middle.step_s == float(found().steps.step_s[0])
    assert middle.tokens_per_s == pytest.approx(256 * 4096 / middle.step_s)


def test_gain_is_tokens_per_second_of_an_added_chip() -> None:
    first, second = scan(request(), [32, 64]).points
    assert first.gain == pytest.approx(first.tokens_per_s / 32)
    assert first.worth == 1
    assert second.gain == pytest.approx((second.tokens_per_s - first.tokens_per_s) / 32)
    assert second.worth == pytest.approx(second.gain / first.gain)


def test_shares_of_a_step_and_mfu() -> None:
    for item in scan(request(), [16, 256]).points:
        assert 0.9 < item.communication + item.idle + item.compute <= 1.0000001  # the rest is the host's
        assert 0 < item.mfu < 1
    flops = step_flops(dense(), (256, 4096))
    assert flops == pytest.approx(6 * 6.5e9 * 256 * 4096, rel=0.1)


def test_chips_without_a_plan_are_named() -> None:
    result = scan(request(batch=(96, 4096)), [8, 60, 64])
    assert [count for count, _ in result.without] == [60]
    assert "whole scale-up domains" in result.without[0][1]


def test_nothing_on_any_count() -> None:
    with pytest.raises(InfeasibleError, match="got none, at the scan"):
        scan(request(), [60, 100])


def test_a_count_below_one() -> None:
    with pytest.raises(InputError, match="at least one chip"):
        scan(request(), [0, 8])


def test_where_waiting_takes_over_and_where_chips_stop_paying() -> None:
    flat = Scan((point(8), point(16)), ())
    assert flat.bound is None
    assert flat.knee is None
    bent = Scan((point(8), point(16, worth=0.4), point(32, communication=0.4, idle=0.2, compute=0.4)), ())
    assert bent.knee is not None
    assert bent.knee.chips == 16
    assert bent.bound is not None
    assert bent.bound.chips == 32


def test_more_chips_buy_less() -> None:
    points = scan(request(batch=(64, 4096)), [32, 64, 128, 256, 512]).points
    assert points[-1].worth < points[1].worth
    assert points[-1].communication > points[0].communication


@pytest.mark.parametrize(
    ("chips", "sequences", "expected"),
    [
        (64, 256, [8, 16, 32, 64, 128, 256, 512]),
        (2, 256, [1, 2, 4, 8, 16]),
        (64, 4, [8, 16, 32, 64]),
    ],
)
def test_doublings(chips: int, sequences: int, expected: list[int]) -> None:
    assert doublings(chips, sequences) == expected


def test_columns_that_are_held_leave_small_clusters_out() -> None:
    asked = request(chips="64xH100", fixed={"tp": 8, "pp": 4})
    result = scan(asked, [16, 64])
    assert [point.chips for point in result.points] == [64]
    assert result.without == ((16, "32 ranks are held"),)
