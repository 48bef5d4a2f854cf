"""What follows from a step: every figure is derived, and recomputes from its inputs."""

import pytest
from tests.arithmetic.models import PUBLISHED

from ridgeline.core.catalog import device
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import given
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.steps.quantities import Latency, Prices, Traffic, quantities
from ridgeline.serve.steps.step import steps

MODEL = steps(Deployment(PUBLISHED["llama3-70b"](), device("h100-sxm-80gb"), tp=4))
TRAFFIC = Traffic(batch=32, prompt=2000, output=500)
PRICES = Prices(given("chip", 2.0, "USD/(chip*h)"), given("power", 800, "W/chip"), given("queue", 0.1, "s"))


def asked(traffic: Traffic = TRAFFIC, prices: Prices | None = PRICES) -> Latency:
    return quantities(MODEL, traffic, prices)


def test_names_are_those_of_the_contract() -> None:
    assert [item.name for item in asked().all] == [
        "latency.tpot", "latency.prefill", "latency.ttft", "serve.tokens_per_s", "serve.mbu", "serve.mfu",
        "serve.dollars_per_million_tokens", "serve.joules_per_million_tokens",
    ]  # fmt: skip
    assert all(item.formula for item in asked().all)
    assert quantities(MODEL, TRAFFIC, prefix="a").tpot.name == "a.latency.tpot"


def test_the_waterfall_adds_up_to_the_model() -> None:
    found = asked()
    assert sum(float(item.value) for item in found.step.values()) == pytest.approx(found.tpot.value)
    assert found.tpot.value == pytest.approx(MODEL.decode(32, 2250).seconds[0])
    assert found.prefill.value == pytest.approx(MODEL.prefill(2000).seconds[0])
    assert found.ttft.value == pytest.approx(found.prefill.value + 0.1)
    low, high = found.ends["latency.tpot"]
    assert low < found.tpot.value < high
    assert "expert_exchange" not in found.step


def test_rates_and_prices() -> None:
    found = asked()
    rate = 32 / (found.tpot.value + 32 / 500 * found.prefill.value)
    assert found.tokens_per_s.value == pytest.approx(rate)
    assert found.dollars is not None
    assert found.joules is not None
    assert found.dollars.value == pytest.approx(2.0 * 4 / 3600 / rate * 1e6)
    assert found.joules.value == pytest.approx(800 * 4 / rate * 1e6)
    decode = MODEL.decode(32, 2250)
    assert found.mbu.value == pytest.approx(100 * decode.bytes[0] / decode.seconds[0] / (4 * 3.35e12), rel=0.01)
    assert 30 < float(found.mfu.value) < 80


def test_a_cached_prompt_is_cheaper_and_never_free() -> None:
    half, whole = (asked(Traffic(32, 2000, 500, cached)).prefill.value for cached in (1000, 2000))
    assert whole < half < asked().prefill.value
    assert whole == pytest.approx(MODEL.prefill(1, 1999).seconds[0])


def test_without_prices_there_are_no_costs() -> None:
    found = asked(prices=None)
    assert found.dollars is None
    assert found.joules is None
    assert found.ttft.value == found.prefill.value


@pytest.mark.parametrize(
    "traffic", [Traffic(0, 10, 10), Traffic(1, 0, 10), Traffic(1, 10, 0), Traffic(1, 10, float("nan"))]
)
def test_bad_traffic_is_refused(traffic: Traffic) -> None:
    with pytest.raises(InputError):
        asked(traffic)


def test_a_negative_price_is_refused() -> None:
    with pytest.raises(InputError, match="zero or more"):
        asked(prices=Prices(given("chip", -1.0, "USD/(chip*h)")))
