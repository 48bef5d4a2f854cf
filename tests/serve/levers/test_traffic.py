"""The traffic of a ledger: what is read, and what is refused."""

from pathlib import Path

import pytest

from ridgeline.core.errors import InputError
from ridgeline.serve.levers.traffic import read_traffic

FILE = """
input = "4k"
output = 300
rate = 2
hit_rate = "30%"
achievable_hit_rate = 0.6
tpot = "25ms"
price = 2.0
[speculation]
drafter = "ngram"
acceptance = 0.4
[routing]
share = 0.3
cost = 0.2
"""


def test_a_file_and_an_option_in_its_place(tmp_path: Path) -> None:
    file = tmp_path / "traffic.toml"
    file.write_text(FILE, encoding="utf-8")
    found = read_traffic(file, rate="5", hit_rate="", input=None)
    assert (found.input, found.output, found.rate) == (4096, 300, 5.0)
    assert found.hit_rate == pytest.approx(0.3)
    assert found.achievable == 0.6
    assert found.context == 4096 + 150
    assert found.tpot == pytest.approx(0.025)
    assert found.price == 2.0
    assert found.speculation.acceptance == 0.4
    assert found.routing is not None
    assert found.routing.cost == 0.2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"hit_rate": "1.2"}, "share from 0 to 1, got '1.2', at hit_rate"),
        ({"hit_rate": "-0.1"}, "share from 0 to 1"),
        ({"hit_rate": "nan"}, "hit_rate"),
        ({"hit_rate": 0.5, "achievable_hit_rate": 0.4}, "achievable hit rate of at least"),
        ({"price": "nan"}, "price"),
        ({"price": float("nan")}, "price"),
        ({"price": "-2"}, "price"),
        ({"rate": "-1"}, "rate"),
        ({"rate": "often"}, "rate"),
        ({"input": "0"}, "input"),
        ({"output": "-3"}, "output"),
        ({"max_sequences": 0}, "max_sequences"),
        ({"routing": {"share": 1.5, "cost": 0.1}}, "routing.share"),
        ({"routing": {"share": 0.5, "cost": -0.1}}, "routing.cost"),
        ({"speculation": {"drafted": 0}}, "drafted"),
        ({"hitrate": 0.5}, "hit_rate"),
    ],
)
def test_refusals(options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_traffic(None, **({"input": 1000, "output": 100} | options))


def test_lengths_are_needed() -> None:
    with pytest.raises(InputError, match="--input"):
        read_traffic(None, output=3)
    with pytest.raises(InputError, match="--answer"):
        read_traffic(None, input=3)
