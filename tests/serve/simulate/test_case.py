"""The case of a run: names that stay, charts that are small, a document without gaps."""

from typing import Any

import pytest
from tests.serve.simulate.studies import NOTHING, facts_of

from ridgeline.core.case import Case
from ridgeline.core.errors import InfeasibleError
from ridgeline.report import terminal
from ridgeline.serve.simulate.case import Wanted, simulate_case

NAMES = {
    f"simulate.{name}.{figure}" for name in ("ttft", "tpot", "e2e", "queueing")
    for figure in ("mean", "p50", "p95", "p99")
} | {"simulate.requests_per_s", "simulate.output_tokens_per_s", "simulate.busy", "simulate.batch", "simulate.kv.mean",
     "simulate.kv.peak", "simulate.hit_rate", "simulate.makespan", "simulate.growth",
     "serve.dollars_per_million_tokens", "simulate.joules_per_token"}  # fmt: skip
SLO = {"slo": {"ttft": "1s", "tpot": "50ms"}}


def case_of(wanted: Wanted = NOTHING, **tables: Any) -> Case:
    return simulate_case(facts_of(wanted, **tables), command="ridgeline serve simulate")


@pytest.fixture(scope="module")
def whole() -> Case:
    return case_of(Wanted(), **SLO)


def test_names_are_stable(whole: Case) -> None:
    document = whole.to_json()
    assert set(document["quantities"]) >= NAMES | {"simulate.goodput", "simulate.goodput.share", "simulate.max_rate"}
    assert whole.dumps()


def test_charts_have_few_points(whole: Case) -> None:
    assert set(whole.charts) == {
        "simulate.bound", "simulate.frontier.ttft", "simulate.distribution", "simulate.queue", "simulate.memory",
    }  # fmt: skip
    assert max(len(table.rows) for table in whole.tables.values()) <= 300
    assert len(whole.dumps()) < 300_000


def test_the_decision_has_its_numbers(whole: Case) -> None:
    text = whole.text(whole.decision)
    assert "of the requests meet ttft 1.00 s, tpot 50.0 ms" in text
    assert "The SLO is met up to" in text
    assert "Alone in the system a request has TTFT 60.0 ms and TPOT 10.1 ms." in whole.text(whole.because)


def test_the_card_has_eighty_columns(whole: Case) -> None:
    assert max(map(len, terminal.card(whole.to_json()).splitlines())) <= 80


def test_a_run_is_repeated_to_the_letter() -> None:
    assert case_of(Wanted(), **SLO).dumps() == case_of(Wanted(), **SLO).dumps()


def test_without_an_slo() -> None:
    case = case_of(Wanted())
    assert "simulate.goodput" not in case.quantities
    assert "are served with a TTFT" in case.text(case.decision)
    assert "simulate.frontier.ttft" in case.charts


def test_a_closed_loop_counts_clients() -> None:
    case = case_of(Wanted(), traffic={"rate": None, "concurrency": 4}, **SLO)
    loads = [row[0] for row in case.tables["simulate.frontier"].rows]
    assert loads == [1, 2, 4, 8]
    assert case.tables["simulate.frontier"].columns[0].title == "Clients"
    assert "simulate.max_rate" not in case.quantities


def test_when_nothing_can_be_served() -> None:
    case = case_of(Wanted(), traffic={"input": {"p50": 9000}, "requests": 5}, **SLO)
    assert case.text(case.decision) == "No request can be served."
    assert case.lost == ["not served, prompt and answer exceed max_context: requests 0, 1, 2, 3, 4 (counted from 0)"]
    assert case.dumps()


def test_one_request() -> None:
    case = case_of(Wanted(), traffic={"requests": 1}, **SLO)
    assert "The requests arrive all at once" in case.text(case.because)
    assert case.dumps()


def test_a_list_too_short_for_a_highest_rate_is_answered_all_the_same() -> None:
    case = case_of(Wanted(), traffic={"requests": 3}, slo={"ttft": "60s"})
    assert "No highest rate: more requests" in case.text(case.because)


def test_an_slo_below_the_floor_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="alone in the system"):
        case_of(Wanted(), slo={"ttft": "1ms"})


def test_own_watts_and_prices() -> None:
    plain, own = (
        case_of(money={"busy_watts": watts, "idle_watts": 0, "dollars_per_chip_hour": price})
        for watts, price in ((500.0, 1.0), (250.0, 3.0))
    )
    for name, ratio in (("simulate.joules_per_token", 0.5), ("serve.dollars_per_million_tokens", 3.0)):
        first, second = (float(case.quantities[name].base) for case in (plain, own))
        assert second / first == pytest.approx(ratio)
