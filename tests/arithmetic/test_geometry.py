"""Dimensions against the tile, for a plain cut."""

import pytest

from ridgeline.arithmetic.flops import flops
from ridgeline.arithmetic.geometry import Cut, GeometryAudit, audit, dimensions, table_flops
from ridgeline.arithmetic.pairs import Batch
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.core.quantity import given

PLAIN = {"layers": 4, "d_model": 2048, "d_ff": 8192, "heads": 16, "head_dim": 128, "vocab": 32768}


def cut(**sizes: int) -> Cut:
    lanes, tile = given("lanes", 128, "1"), given("tile", 256, "1")
    return Cut(lanes, tile, tile, **sizes)


def audited(sizes: dict[str, int] | None = None, expected: float | None = None, **shape: int) -> GeometryAudit:
    spec, batch = model(Shape.model_validate({**PLAIN, **shape})), Batch.of(2048, 8)
    wanted = None if expected is None else given("expected", expected, "%")
    found = audit(dimensions(spec, cut(**(sizes or {}))), flops(spec, batch, mask="full"), expected=wanted)
    assert found is not None
    return found


def test_aligned_costs_nothing() -> None:
    found = audited(expected=50)
    assert found.padded == ()
    assert found.corrected is not None
    assert float(found.corrected.value) == 50


@pytest.mark.parametrize(("head_dim", "efficiency"), [(96, 75), (64, 50), (128, 100), (160, 62.5)])
def test_heads(head_dim: int, efficiency: float) -> None:
    row = audited(head_dim=head_dim).of("head_dim")
    assert row is not None
    assert float(row.efficiency.value) == efficiency
    assert float(row.points.value) == pytest.approx(float(row.share.value) * (1 - efficiency / 100))


def test_widths_and_vocabulary_are_cut_over_chips() -> None:
    found = audited({"tp": 16, "vocab_shards": 64}, d_ff=10240)
    assert [(row.what, float(row.size.value)) for row in found.dimensions] == [
        ("head_dim", 128), ("d_ff", 640), ("vocab", 512),
    ]  # fmt: skip
    assert found.of("experts") is None


def test_the_two_corrections_bracket() -> None:
    found = audited(expected=40, head_dim=96)
    assert found.corrected is not None
    assert found.proportional is not None
    assert 40 - float(found.tax.value) == pytest.approx(float(found.corrected.value))
    assert float(found.corrected.value) < float(found.proportional.value) < 40


def test_a_one_hot_table_is_as_large_as_the_head() -> None:
    spec, batch = model(Shape.model_validate(PLAIN)), Batch.of(2048, 8)
    assert float(table_flops(spec, batch.tokens).value) == 6 * 2048 * 32768 * 2048 * 8
