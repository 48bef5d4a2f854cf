"""Prices of prompt tokens: typed, named, and found by the model of a log."""

import pytest

from ridgeline.core.errors import InputError
from ridgeline.serve.hygiene.money import named_prices, price, price_of_log, price_of_model


def test_two_prices() -> None:
    found = price("2.50/0.25")
    assert (found.input.value, found.cached.value) == (2.5, 0.25)
    assert found.input.unit == "USD/Mtoken"


@pytest.mark.parametrize("text", ["2.50", "nan/0.1", "2.5/nan", "inf/1", "0.1/2", "-1/-2", "0/0", "2/x", "1e999/1"])
def test_prices_that_cannot_be_used(text: str) -> None:
    with pytest.raises(InputError, match="price"):
        price(text)


def test_a_model_that_is_not_known() -> None:
    with pytest.raises(InputError, match="a model with a known price") as caught:
        price("claude-sonet-4.5")
    assert "claude-sonnet-4-5" in caught.value.hint


@pytest.mark.parametrize("name", ["claude-sonnet-4-5", "anthropic/claude-sonnet-4.5", "claude-sonnet-4-5-20250929"])
def test_names_as_logs_write_them(name: str) -> None:
    found = price_of_model(name)
    assert found is not None
    assert found.input.source is not None
    assert float(found.cached.value) < float(found.input.value)


@pytest.mark.parametrize("name", ["", "gpt", "claude-sonnet-4-5-mini", "gpt-5-4-nano"])
def test_another_model_has_no_price(name: str) -> None:
    assert price_of_model(name) is None


def test_a_log_of_two_models_has_no_single_price() -> None:
    assert price_of_log({"gpt-5.4": 1.0}) is not None
    assert price_of_log({"gpt-5.4": 1.0, "gpt-5.5": 1.0}) is None
    assert price_of_log({}) is None


def test_every_named_price_is_a_pair() -> None:
    assert named_prices()
    assert all(price(name).cached.base < price(name).input.base for name in named_prices())
