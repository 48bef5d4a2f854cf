"""The case of one model: names, tables that add up, FLOPs with their convention."""

import pytest

from ridgeline.arithmetic.model_case import FLOPS, MATMULS, PARTS, model_case
from ridgeline.arithmetic.pairs import MASKS
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.core.case import Case, InputFile

SHAPE = Shape(layers=4, d_model=64, d_ff=128, heads=4, vocab=256, experts=8, top_k=2, expert_ff=32, dense_layers=1)


@pytest.fixture(scope="module")
def case() -> Case:
    return model_case(model(SHAPE), InputFile("tiny.toml", "0" * 64, 1), context=128)


def test_parts_add_up(case: Case) -> None:
    rows = {row[0]: row[2] for row in case.tables[PARTS].rows}
    total, active = rows.pop("total"), rows.pop("active per token")
    assert sum(rows.values()) == total == case.find("params.total").value
    assert active == total - 3 * (8 - 2) * 3 * 64 * 32


def test_the_largest_part_is_marked(case: Case) -> None:
    table = case.tables[PARTS]
    assert table.highlight is not None
    assert table.rows[table.highlight][0] == "experts"


def test_shares_of_the_flops_add_up(case: Case) -> None:
    assert sum(row[1].value for row in case.tables[FLOPS].rows) == pytest.approx(100)


def test_matmuls_hold_every_active_weight(case: Case) -> None:
    flops = sum(row[-1] for row in case.tables[MATMULS].rows)
    active, table, norms = (case.find(f"params.{name}").value for name in ("active", "embedding", "norm"))
    assert flops == 2 * (active - table - norms)


def test_convention_is_stated(case: Case) -> None:
    assert any(MASKS["half"] in text for text in case.sections[0].paragraphs)


def test_document_is_whole(case: Case) -> None:
    document = case.to_json()
    # tables 32,768, attention 65,536, dense MLP 24,576, experts 147,456, routers 1,536, norms 576
    assert document["decision"].startswith("272,448 params")
    assert "flops.per_token" in document["quantities"]


def test_cache_by_hand(case: Case) -> None:
    assert case.find("kv.per_token").value == 4 * 2 * 64 * 2  # layers x (key + value) x width x bytes
    assert case.find("kv.per_sequence").value == 128 * 4 * 2 * 64 * 2
