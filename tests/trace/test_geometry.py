"""Dimensions against the tile."""

from pathlib import Path

import pytest
from tests.trace.runs import context, number

from ridgeline.arithmetic.geometry import GeometryAudit, Padded
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.core.specs import build
from ridgeline.trace.context import RunContext, RunFile, read_context
from ridgeline.trace.geometry import audit_geometry


def shaped(
    geometry: dict[str, object] | None = None, parallel: dict[str, int] | None = None, **shape: object
) -> RunContext:
    """A small model on TPU v6e, tile 256."""
    plain = {"layers": 4, "d_model": 2048, "d_ff": 8192, "heads": 16, "head_dim": 128, "vocab": 32768}
    file = build(
        RunFile,
        {
            "batch": {"sequences": 8, "sequence": 2048},
            "mfu": {"expected": 0.5},
            "geometry": geometry or {},
            "parallel": parallel or {},
        },
    )
    base = context()
    return RunContext(file, None, model(build(Shape, {**plain, **shape})), base.device)


def audited(of: RunContext) -> GeometryAudit:
    found = audit_geometry(of)
    assert found is not None
    return found


def dimension(found: GeometryAudit, what: str) -> Padded:
    return next(item for item in found.dimensions if item.what == what)


def test_aligned_dimensions_cost_nothing() -> None:
    found = audited(shaped({"head_tile": 128}))
    assert found.padded == ()
    assert number(found.tax) == 0
    assert number(found.corrected) == number(found.proportional) == 50


def test_the_tile_of_the_device_is_the_default() -> None:
    head = dimension(audited(shaped()), "head_dim")
    assert (number(head.size), number(head.tile), number(head.efficiency)) == (128, 256, 50)


def test_points_are_the_share_times_the_padding() -> None:
    found = audited(shaped({"head_tile": 128}, head_dim=96))
    head = dimension(found, "head_dim")
    assert number(head.efficiency) == 75
    assert number(head.points) == pytest.approx(number(head.share) * 0.25)
    assert number(found.corrected) == pytest.approx(50 - number(head.points))
    assert number(found.proportional) == pytest.approx(50 / (1 + number(head.share) / 100 / 3))
    assert number(found.corrected) < number(found.proportional) < 50


def test_the_share_of_attention_is_that_of_the_flops() -> None:
    head = dimension(audited(shaped({"head_tile": 128})), "head_dim")
    weights = 4 * (4 * 2048 * 2048 + 3 * 2048 * 8192) + 2048 * 32768
    scores = 2 * 2 * 4 * 16 * 128 * 2048
    assert number(head.share) == pytest.approx(100 * scores / (2 * weights + scores))


def test_widths_are_cut_over_tensor_parallel_chips() -> None:
    found = audited(shaped(parallel={"tp": 16}, d_ff=8192 + 2048))
    width = dimension(found, "d_ff")
    assert number(width.size) == 640
    assert number(width.efficiency) == pytest.approx(100 * 640 / 768)
    assert number(dimension(found, "vocab").size) == 2048


def test_experts_are_not_cut_by_tensor_parallelism() -> None:
    found = audited(shaped(parallel={"tp": 8}, experts=8, top_k=2, expert_ff=1408, d_ff=None))
    assert number(dimension(found, "expert_ff").efficiency) == pytest.approx(100 * 1408 / 1536)
    assert [item.what for item in found.dimensions] == ["head_dim", "expert_ff", "vocab"]


def test_a_one_hot_table_counts_with_the_vocabulary() -> None:
    plain = dimension(audited(shaped({"vocab_shards": 7})), "vocab")
    onehot = dimension(audited(shaped({"vocab_shards": 7, "embedding_matmul": True})), "vocab")
    assert 1.5 < number(onehot.share) / number(plain.share) < 2


def test_dearest_first() -> None:
    found = audited(shaped({"head_tile": 128}, head_dim=96, vocab=32769))
    assert [item.what for item in found.padded] == ["head_dim", "vocab"]


def test_unknown_without_a_model_a_batch_or_a_tile() -> None:
    assert audit_geometry(RunContext()) is None
    assert audit_geometry(context()) is None
    of = shaped()
    assert audit_geometry(RunContext(of.file, None, of.spec, None)) is None
    own = shaped({"tile": 128})
    assert audit_geometry(RunContext(own.file, None, own.spec, None)) is not None


def test_without_an_expectation_there_is_only_the_tax() -> None:
    of = shaped(head_dim=96)
    file = of.file.model_copy(update={"mfu": RunFile().mfu})
    found = audited(RunContext(file, None, of.spec, of.device))
    assert number(found.tax) > 0
    assert found.corrected is None


def test_the_incident(repo: Path) -> None:
    found = audited(read_context(repo / "examples" / "incident"))
    assert [(item.what, round(number(item.points), 1)) for item in found.padded] == [("head_dim", 2.7), ("vocab", 0.3)]
