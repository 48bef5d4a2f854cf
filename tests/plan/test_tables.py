"""The tables: units in the columns, the row that matters, the same numbers as the plan."""

import pytest
from tests.plan.studies import number, plan, product_plan

from ridgeline.core.case import Table
from ridgeline.core.quantity import Quantity
from ridgeline.plan import tables
from ridgeline.plan.plan import Plan


@pytest.fixture(scope="module")
def made() -> Plan:
    return product_plan(moe={"experts": 64, "top_k": 8})


def column(table: Table, name: str) -> list[object]:
    place = [c.name for c in table.columns].index(name)
    return [row[place] for row in table.rows]


ALL = [
    tables.budget_table, tables.law_table, tables.candidate_table, tables.lifetime_table, tables.scenario_table,
    tables.crossover_table, tables.recipe_table, tables.curve_table, tables.life_table, tables.chips_table,
]  # fmt: skip


@pytest.mark.parametrize("build", ALL, ids=lambda f: f.__name__)
def test_cells_fit_their_columns(made: Plan, build: object) -> None:
    table = build(made)  # type: ignore[operator]
    assert table.rows
    assert table.title
    for row in table.rows:
        assert len(row) == len(table.columns)
        for cell, head in zip(row, table.columns, strict=True):
            if isinstance(cell, Quantity) and head.unit:
                assert cell.to(head.unit) is not None  # raises for another dimension
            elif isinstance(cell, int | float):
                assert head.unit


def test_budget(made: Plan) -> None:
    table = tables.budget_table(made)
    assert table.title == "The budget: 1,000 H100-SXM-80GB"
    found = dict(zip(column(table, "what"), column(table, "value"), strict=True))
    assert found["Training compute, C"] is made.cluster.compute
    assert found["Cost of the chip-hours"] is made.money.rent
    kinds = dict(zip(column(table, "what"), column(table, "kind"), strict=True))
    assert kinds["Chips"] == "given"
    assert kinds["Training compute, C"] == "computed"
    assert kinds["Price of a chip-hour"] == "assumed"


def test_laws_mark_the_one_that_decides(made: Plan) -> None:
    table = tables.law_table(made)
    assert (table.highlight, table.mark) == (0, "decides")
    assert column(table, "params") == [best.params for best in made.optima.values()]
    assert column(table, "loss")[0] == "gives none"


def test_candidates_mark_the_chosen_one(made: Plan) -> None:
    table = tables.candidate_table(made)
    assert table.highlight is not None
    assert table.rows[table.highlight][0] is made.choice.params
    assert table.mark == "chosen"
    assert column(table, "fits") == ["no", "no", "yes", "yes", "yes"]
    assert [number(q) for q in column(table, "chips.h100-sxm-80gb")] == [12, 9, 4, 3, 1]  # type: ignore[arg-type]


def test_candidates_without_a_need_say_nothing_of_products() -> None:
    names = [c.name for c in tables.candidate_table(plan()).columns]
    assert names == ["size", "tokens", "ratio", "loss", "excess", "worth"]


def test_lifetime_has_a_row_for_every_scenario_and_model(made: Plan) -> None:
    table = tables.lifetime_table(made)
    assert len(table.rows) == 3 * 5
    assert column(table, "model")[:5] == ["92.5B", "70B", "30B", "17B", "8B"]
    assert [cell == "baseline" for cell in column(table, "saving")] == [True, *[False] * 4] * 3


def test_lifetime_without_a_price_has_one_baseline_a_scenario() -> None:
    table = tables.lifetime_table(plan({"chips": "256xTPU v3"}, traffic=[{"served": "1T"}], candidates=["8B", "1B"]))
    assert column(table, "saving") == ["baseline", None, None]
    assert column(table, "cost") == [None, None, None]


def test_crossover_names_what_cannot_get_there(made: Plan) -> None:
    table = tables.crossover_table(made)
    assert column(table, "model") == ["70B", "30B", "17B"]
    assert table.note == "No number of tokens brings 8B to that loss."


def test_recipes(made: Plan) -> None:
    table = tables.recipe_table(made)
    assert column(table, "style") == ["balanced", "deeper", "wider", "moe"]
    assert str(column(table, "ffn")[-1]).startswith("64 x ")
    assert str(column(table, "ffn")[-1]).endswith(", top 8")
    assert column(table, "loss")[-1] is None
    assert "128,000" in table.note


def test_recipes_without_a_need_have_no_column_of_a_turn() -> None:
    table = tables.recipe_table(plan())
    assert "chips" not in [c.name for c in table.columns]
    assert next(c.meaning for c in table.columns if c.name == "cache") == "of one training sequence"


def test_curve_lies_on_its_optimum_and_nowhere_below(made: Plan) -> None:
    table = tables.curve_table(made)
    by_law: dict[object, list[tuple[float, float]]] = {}
    for slug, params, excess in table.rows:
        by_law.setdefault(slug, []).append((params, excess))
    assert set(by_law) == {"besiroglu-2024", "hoffmann-2022"}
    for slug, points in by_law.items():
        lowest = min(points, key=lambda p: p[1])
        assert 0 <= lowest[1] < 1e-3
        best = number(made.optima[str(slug)].params)
        assert lowest[0] == pytest.approx(best, rel=0.2)
        assert min(p for p, _ in points) <= 8e9


def test_life_curve_is_six_nd_plus_two_n_served(made: Plan) -> None:
    for model, served, compute in tables.life_table(made).rows:
        params = next(number(c.params) for c in made.everyone if c.label == model)
        assert compute == pytest.approx(number(made.cluster.compute) + 2 * params * served, rel=1e-9)


def test_life_curve_of_a_single_scenario_spans_two_decades() -> None:
    served = {row[1] for row in tables.life_table(plan(traffic=[{"served": "1T"}])).rows}
    assert (min(served), max(served)) == (pytest.approx(1e12), pytest.approx(1e14))


def test_the_machine_in_words(made: Plan) -> None:
    assert tables.describe(made.cluster) == "1,000 H100-SXM-80GB for 30.0 days"
