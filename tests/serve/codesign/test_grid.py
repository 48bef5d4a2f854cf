"""The candidates: aligned, of known kinds, each a model that can be built."""

import numpy as np
import pytest
from tests.serve.codesign.asked import need

from ridgeline.arithmetic.params import params
from ridgeline.arithmetic.spec import MLA, MoE
from ridgeline.core.errors import InputError
from ridgeline.serve.codesign.grid import frames


def test_every_candidate_is_aligned() -> None:
    for frame in frames(need()):
        c = frame.columns
        assert {len(values) for values in c.values()} == {frame.size}
        assert np.all(c["d_model"] % 512 == 0)  # heads of 128 on four chips
        assert np.all(c["heads"] * 128 == c["d_model"])
        assert np.all(c["heads"] % c["kv_heads"] == 0)
        assert np.all(c["d_ff"] % 128 == 0)
        aspect = c["d_model"] / c["layers"]
        assert np.all((aspect > 94) & (aspect < 131))
        assert np.all(np.abs(c["d_ff"] * c["top_k"] / c["d_model"] / 3.5 - 1) < 0.05)
    assert [(f.attention, f.mixture) for f in frames(need())] == [
        ("gqa", False), ("gqa", True), ("mla", False), ("mla", True),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(4))
def test_the_arrays_count_what_the_model_counts(number: int) -> None:
    frame = list(frames(need()))[number]
    counted = params(frame.spec(0), frame.vary())
    for index in (0, frame.size // 2, frame.size - 1):
        alone = params(frame.spec(index))
        assert counted.total.value[index] == alone.total.value  # type: ignore[index]
        assert np.broadcast_to(counted.active.value, frame.size)[index] == alone.active.value


def test_kinds_of_layer() -> None:
    made = {(f.attention, f.mixture): f.spec(0).kinds[0] for f in frames(need())}
    assert isinstance(made["mla", False].mixers[0], MLA)
    mixture = made["gqa", True].ffns[0]
    assert isinstance(mixture, MoE)
    assert (mixture.experts, mixture.top_k) == (8, 2)


def test_more_chips_than_widths() -> None:
    with pytest.raises(InputError, match="chips"):
        list(frames(need(chips=64)))


@pytest.mark.parametrize("widest", [10, 200])
def test_a_width_below_two_heads_is_refused(widest: int) -> None:
    with pytest.raises(InputError, match=r"at least 256, two heads of 128.*\$\.axes\.widest"):
        list(frames(need({"widest": widest, "narrowest": 1}, chips=1)))
