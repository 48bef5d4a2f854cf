"""The ledger as a document: names that others rely on, a waterfall that adds up, sections that fit the model."""

import pytest
from tests.serve.levers.toys import llama, multi_head

from ridgeline.arithmetic.named import find_model
from ridgeline.core.case import Case
from ridgeline.core.catalog import device
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.levers.case import lever_case, lever_facts, price_of
from ridgeline.serve.levers.catalogue import levers
from ridgeline.serve.levers.traffic import read_traffic


@pytest.fixture(scope="module")
def dense() -> Case:
    traffic = read_traffic(None, input=2000, output=300, hit_rate=0.2, achievable_hit_rate=0.6, rate=4)
    return lever_case(lever_facts(llama(engine="vllm"), traffic))


@pytest.fixture(scope="module")
def sparse() -> Case:
    spec = find_model("mixtral-8x7b")[0]
    return lever_case(lever_facts(Deployment(spec, device("H100"), tp=4), read_traffic(None, input="8k", output=300)))


def test_names(dense: Case) -> None:
    assert {"levers.baseline.cost", "levers.final", "levers.together", "levers.speculative.speedup"} <= set(
        dense.quantities
    )
    for lever in ("hygiene", "weights8", "prefix"):
        assert f"levers.{lever}.alone" in dense.quantities
        assert f"levers.{lever}.share" in dense.quantities
    assert "levers.hygiene.marginal" in dense.quantities


def test_the_document_is_whole(dense: Case, sparse: Case) -> None:
    for case in (dense, sparse):
        document = case.to_json()
        assert "{" not in document["decision"] + document["because"]
        shown = {name for section in document["sections"] for name in section["show"]}
        assert shown <= set(document["tables"]) | set(document["charts"])
        assert case.dumps()


def test_the_bars_lead_from_cost_to_cost(dense: Case) -> None:
    rows = dense.tables["levers.bars"].rows
    first, last = rows[0], rows[-1]
    assert first[2] == pytest.approx(float(dense.find("levers.baseline.cost").value))
    saved = sum(row[2] - row[1] for row in rows[1:-1])
    assert first[2] - saved == pytest.approx(last[2])
    assert last[2] == pytest.approx(float(dense.find("levers.final").value))


def test_every_lever_has_a_row(dense: Case) -> None:
    titles = [row[0] for row in dense.tables["levers.ledger"].rows]
    assert sorted(titles) == sorted(lever.title for lever in levers())


def test_speculation_by_batch(dense: Case) -> None:
    rows = dense.tables["levers.speculation"].rows
    speeds = [row[1] for row in rows]
    assert speeds[0] > speeds[-1]
    assert [row[2] for row in rows] == sorted((row[2] for row in rows), reverse=True)


def test_only_experts_have_a_prefill_section(dense: Case, sparse: Case) -> None:
    assert "levers.pipelined.chunks" not in dense.tables
    assert "levers.pipelined.decode" in sparse.tables
    chunks = sparse.tables["levers.pipelined.chunks"]
    assert chunks.highlight is not None
    assert chunks.rows[chunks.highlight][1] == min(row[1] for row in chunks.rows)
    spread, piped = sparse.tables["levers.pipelined.decode"].rows
    assert piped[1] > spread[1]
    assert sparse.charts["levers.pipelined.schedule"].title.endswith("% busy")


def test_prices() -> None:
    own = price_of(llama(), read_traffic(None, input=1, output=1, price=7.5))
    assert own is not None
    assert own.value == 7.5
    catalog = price_of(llama(), read_traffic(None, input=1, output=1))
    assert catalog is not None
    assert catalog.unit == "USD/(chip*h)"


def test_without_a_price_costs_are_chip_seconds() -> None:
    traffic = read_traffic(None, input=1000, output=100)
    facts = lever_facts(multi_head(), traffic)
    assert facts.price is not None
    free = lever_case(type(facts)(facts.ledger, facts.speculation, None))
    assert free.find("levers.final").unit == "chip*s/Mtoken"


def test_the_chance_beside_the_length_that_breaks_even(dense: Case) -> None:
    table = next(t for t in dense.tables.values() if "Break-even" in [c.title for c in t.columns])
    names = [c.name for c in table.columns]
    assert [c.title for c in table.columns][-1] == "Chance"
    for row in table.rows:
        cells = dict(zip(names, row, strict=True))
        assert cells["chance"] == "none" or 0 <= cells["chance"] < 1
        assert (cells["chance"] == 0) == (cells["break_even"] <= 1)
