"""The case of a capacity."""

from dataclasses import replace
from typing import Any

import pytest
from tests.serve.capacity.asked import SPECS, llama, small
from tests.serve.capacity.test_tiers import AGENT, CHAT, CODE, tiers

from ridgeline.core.case import Case, dumps
from ridgeline.core.catalog import device
from ridgeline.report import html, terminal
from ridgeline.serve.capacity.capacity import capacity
from ridgeline.serve.capacity.case import capacity_case, described, layer_names
from ridgeline.serve.capacity.facts import facts_of

NAMES = ("kv.bytes_per_token", "kv.bytes_per_request", "capacity.sequences", "capacity.max_context")


def made(name: str, **sizes: Any) -> Case:
    return capacity_case(facts_of(small(name, **sizes)))


def test_stable_names() -> None:
    case = capacity_case(facts_of(llama()))
    assert {case.find(name).name for name in NAMES} == set(NAMES)
    assert case.find("kv.bytes_per_token").value == 327_680
    assert case.find("kv.bytes_per_request").value == 327_680 * 8192


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("sizes", [{}, {"tp": 8}, {"tp": 2, "pp": 4}, {"dp_attention": 8}])
def test_every_architecture_makes_a_case(name: str, sizes: dict[str, int]) -> None:
    case = made(name, **sizes)
    assert dumps(case.to_json())
    assert {"capacity.layers", "capacity.memory"} <= set(case.charts)
    assert max(map(len, terminal.card(case.to_json()).splitlines())) <= 80
    layers = sum(float(row[2].base) for row in case.tables["capacity.layers"].rows)
    assert layers == pytest.approx(float(case.find("kv.bytes_per_request").base))


def test_the_memory_of_a_chip_adds_up() -> None:
    case = capacity_case(facts_of(llama()))
    sizes = [float(row[2].base) for row in case.tables["capacity.memory"].rows]
    assert sum(sizes) == pytest.approx(80e9)


def test_the_curve_bends_with_windows() -> None:
    rows = dict(made("windows", context=65_536).tables["capacity.curve"].rows)
    plain = dict(made("full", context=65_536).tables["capacity.curve"].rows)
    assert plain[4096] / plain[32_768] == pytest.approx(8, rel=0.02)
    assert rows[4096] / rows[32_768] < 7.5
    assert list(rows.values()) == sorted(rows.values(), reverse=True)


def test_tiers_are_a_table() -> None:
    case = capacity_case(facts_of(llama(), tiers(CHAT, CODE, AGENT)))
    assert [row[0] for row in case.tables["capacity.tiers"].rows] == ["chat", "code", "agent"]
    assert "tiers.chat.sequences" in case.quantities


def test_the_page_draws() -> None:
    page = html.render(made("windows").to_json())
    assert "The cache of one request by kind of layer" in page


def test_described() -> None:
    assert described(llama().deployment) == "8 x H100-SXM-80GB (tp=8)"
    assert described(small(kv="fp8").deployment) == "1 x H100-SXM-80GB (cache fp8)"


@pytest.mark.parametrize(
    ("name", "words"),
    [("full", ["8 full attention layers"]), ("only windows", ["8 windowed layers of 1,000 tokens"]),
     ("windows", ["4 windowed layers of 1,000 tokens", "4 full attention layers"]),
     ("latents", ["8 layers of latents"]),
     ("states", ["4 layers with a state", "4 full attention layers"])],
)  # fmt: skip
def test_layers_are_named_in_words(name: str, words: list[str]) -> None:
    case = made(name)
    for table in ("capacity.layers", "capacity.equation"):
        assert [row[0] for row in case.tables[table].rows] == words


def test_layers_that_keep_the_same_are_counted() -> None:
    rows = small().whole.rows
    names = layer_names(small().deployment, (*rows, *rows))
    assert names == ["8 full attention layers", "8 full attention layers, kind 2"]


def test_a_tpu_holds_no_graphs() -> None:
    plain = capacity_case(facts_of(capacity(replace(small().deployment, device=device("TPU v5p")), 4096)))
    table = plain.tables["capacity.memory"]
    assert "Captured graphs" not in [row[1] for row in table.rows]
    assert table.rows[table.highlight or 0][1] == "Cache"
    assert "compiled ahead" in plain.sections[0].paragraphs[0]
    assert "Captured graphs" in [row[1] for row in made("full").tables["capacity.memory"].rows]
