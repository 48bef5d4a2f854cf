"""Tiers of a product."""

from pathlib import Path

import pytest
from tests.serve.capacity.asked import llama, small

from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.core.specs import build
from ridgeline.serve.capacity.admission import request_bytes
from ridgeline.serve.capacity.tiers import Tiers, check, fill, read_tiers

CHAT = {"name": "chat", "context": "1k", "output": 500, "share": 0.75}
CODE = {"name": "code", "context": 6000, "output": "1k", "share": 0.25}
AGENT = {"name": "agent", "context": "7k", "output": 1000, "concurrency": 10}


def tiers(*rows: dict[str, object]) -> Tiers:
    return build(Tiers, {"tiers": list(rows)})


def test_together_they_fill_the_room() -> None:
    found = llama()
    filled = fill(found, tiers(CHAT, CODE, AGENT))
    counts = {tier.spec.name: int(tier.sequences.value) for tier in filled}
    taken = sum(float(tier.per_request.base) * counts[tier.spec.name] for tier in filled)
    assert counts["agent"] == 10
    assert counts["chat"] == pytest.approx(3 * counts["code"], abs=3)
    assert found.free_bytes * 0.98 < taken <= found.free_bytes
    for tier in filled:
        each = request_bytes(tier.spec.tokens, found.kinds, found.page_tokens)
        assert float(tier.per_request.base) == pytest.approx(each)


def test_one_tier_is_the_plain_question() -> None:
    found = small(context=4096, dp_attention=2)
    only = {"name": "all", "context": 4000, "output": 96, "share": 1.0}
    assert float(fill(found, tiers(only))[0].sequences.value) == pytest.approx(float(found.sequences.value), abs=1)


def test_guaranteed_requests_that_do_not_fit() -> None:
    with pytest.raises(InfeasibleError) as caught:
        fill(llama(), tiers(AGENT | {"concurrency": 500}))
    assert caught.value.limit == "chip.free"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([CHAT], "shares that sum to 1"),
        ([CHAT, CODE | {"share": 0.5}], "shares that sum to 1"),
        ([CHAT, CHAT | {"share": 0.25}], "a name of its own"),
        ([CHAT | {"share": 1.0}, {"name": "x", "context": 10, "output": 10}], "either a share or a concurrency"),
        ([AGENT | {"share": 1.0}], "either a share or a concurrency"),
    ],
)
def test_tiers_that_do_not_fit_together(rows: list[dict[str, object]], said: str) -> None:
    with pytest.raises(InputError, match=said):
        check(tiers(*rows), where="tiers.toml")


@pytest.mark.parametrize(
    "row",
    [CHAT | {"share": 0}, CHAT | {"share": float("nan")}, CHAT | {"context": 0}, CHAT | {"output": "x"},
     AGENT | {"concurrency": 0}, AGENT | {"concurency": 1}, CHAT | {"name": "a b"}],
)  # fmt: skip
def test_refused(row: dict[str, object]) -> None:
    with pytest.raises(InputError):
        tiers(row)


def test_a_tier_above_the_limit_of_the_model() -> None:
    with pytest.raises(InputError, match="at most the 8,192 tokens"):
        fill(llama(), tiers(AGENT | {"context": "8k"}))


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "tiers.toml"
    file.write_text('[[tiers]]\nname = "a"\ncontext = "2k"\noutput = 10\nshare = 1.0\n', encoding="utf-8")
    assert read_tiers(file).tiers[0].tokens == 2058
    file.write_text("tiers = []\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"tiers\.toml"):
        read_tiers(file)
