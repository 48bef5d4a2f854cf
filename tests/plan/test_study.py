"""The study: what people type, the defaults, and what is refused, with its place."""

from pathlib import Path
from typing import Any

import pytest
from tests.plan.studies import BUDGET, NEED, study

from ridgeline.core.errors import InputError
from ridgeline.core.specs import build
from ridgeline.plan.plan import make_plan
from ridgeline.plan.study import Need, Study, need_of, read_study, traffic_of

FLAGSHIP = """
candidates = ["70B", "30B"]

[budget]
chips = "1000xH100"
days = 30
mfu = 0.4
unique_tokens = "15T"

[need]
prefill = "8k"
budget = "1s"
also = ["TPU v5e"]

[[traffic]]
served = "1e12"

[[traffic]]
served = "1e14"

[moe]
experts = 64
top_k = 8
"""


def read(folder: Path, text: str) -> Study:
    (folder / "study.toml").write_text(text)
    return read_study(folder)[0]


def test_folder_and_file_are_the_same(tmp_path: Path) -> None:
    found = read(tmp_path, FLAGSHIP)
    assert read_study(tmp_path / "study.toml") == (found, tmp_path / "study.toml")
    assert found.budget.chips == (1000, "H100")
    assert found.budget.days == 30 * 86400
    assert found.candidates == (70e9, 30e9)
    assert found.need is not None
    assert (found.need.prefill, found.need.budget) == (8192, 1.0)
    assert found.traffic[1].served == 1e14


@pytest.mark.parametrize(
    ("field", "typed", "held"),
    [
        ("chips", "1kxH100", (1000, "H100")),
        ("chips", "16 TPU v5e", (16, "TPU v5e")),
        ("days", "720h", 30 * 86400),
        ("days", "2 weeks", 14 * 86400),
        ("unique_tokens", "15T", 15e12),
        ("unique_tokens", "15,000B tokens", 15e12),
    ],
)
def test_what_people_type(field: str, typed: Any, held: Any) -> None:
    assert getattr(study({field: typed}).budget, field) == held


@pytest.mark.parametrize(
    ("old", "new", "place", "said"),
    [
        ("mfu =", "mfuu =", "$.budget.mfuu", "did you mean mfu?"),
        ("[moe]", "[moa]", "$.moa", "did you mean moe"),
        ("mfu = 0.4", "mfu = -0.4", "$.budget.mfu", "greater than 0"),
        ("mfu = 0.4", "mfu = 40", "$.budget.mfu", "less than or equal to 1"),
        ("mfu = 0.4", "mfu = nan", "$.budget.mfu", "nan"),
        ("mfu = 0.4", "mfu = true", "$.budget.mfu", "a text or a number, got True"),
        ("mfu = 0.4", 'mfu = "forty"', "$.budget.mfu", "'forty'"),
        ("mfu = 0.4", "mfu = [0.4]", "$.budget.mfu", "a valid number"),
        ("mfu = 0.4", "pue = 0.9", "$.budget.pue", "greater than or equal to 1"),
        ("mfu = 0.4", "dollars_per_chip_hour = -1", "$.budget.dollars_per_chip_hour", "greater than 0"),
        ("mfu = 0.4", "site_power_mw = 0", "$.budget.site_power_mw", "greater than 0"),
        ("1000xH100", "0xH100", "$.budget.chips", "above zero"),
        ("1000xH100", "H100", "$.budget.chips", "chips such as 1000xH100"),
        ("1000xH100", "1.5xH100", "$.budget.chips", "a whole number of chips"),
        ("1000xH100", "20000000xH100", "$.budget.chips", "at most 10,000,000 chips"),
        ("days = 30", "days = -3", "$.budget.days", "above zero"),
        ("days = 30", "days = true", "$.budget.days", "a text or a number, got True"),
        ("days = 30", 'days = "1e6d"', "$.budget.days", "at most 100 years"),
        ("days = 30", "", "$.budget.days", "a value, got none"),
        ('"15T"', '"1e400"', "$.budget.unique_tokens", "check the exponent"),
        ('"15T"', '"1e25"', "$.budget.unique_tokens", "at most 1e+20 tokens"),
        ('"15T"', '"plenty"', "$.budget.unique_tokens", "tokens such as"),
        ('budget = "1s"', 'budget = "0.25s"', "$.need.budget", "above the fixed overhead of 0.25 s"),
        ('budget = "1s"', 'budget = "2s"\noverhead = "3s"', "$.need.budget", "above the fixed overhead of 3 s"),
        ('budget = "1s"', "", "$.need.budget", "a value, got none"),
        ('prefill = "8k"', 'prefill = "8.1k"', "$.need.prefill", "a context length"),
        ('prefill = "8k"', "weight_bits = 3", "$.need.weight_bits", "4, 8 or 16"),
        ('prefill = "8k"', "chips_per_conversation = 0", "$.need.chips_per_conversation", "greater than 0"),
        ('prefill = "8k"', "chips_per_conversation = true", "$.need.chips_per_conversation", "got True"),
        ('served = "1e14"', 'sent = "1e14"', "$.traffic[1].served", "a value, got none"),
        ('served = "1e14"', "served = 0", "$.traffic.served", "above zero"),
        ('served = "1e14"', 'served = "1e400"', "$.traffic.served", "check the exponent"),
        ("top_k = 8", "top_k = 65", "$.moe.top_k", "at most the 64 experts, got 65"),
        ("experts = 64", "experts = 1", "$.moe.experts", "greater than 1"),
        ('"30B"]', '"-30B"]', "$.candidates", "above zero"),
        ('"30B"]', "30]", "$.candidates", "10000 to 1e+16 parameters, got '30'"),
        ('"30B"]', '"1e29"]', "$.candidates", "10000 to 1e+16 parameters"),
        ('["70B", "30B"]', '"70B"', "$.candidates", "got '70B'"),
        ('candidates = ["70B", "30B"]', 'choice = "x"', "$.choice", "parameters such as 70B"),
        ('candidates = ["70B", "30B"]', "vocab = 0", "$.vocab", "greater than 0"),
        ('candidates = ["70B", "30B"]', "sequence = 0", "$.sequence", "above zero"),
        ("[budget]", "[budget", "study.toml", "a valid study file"),
        ("[budget]", "[other]", "$.budget", "a value, got none"),
    ],
)
def test_a_field_that_cannot_be(tmp_path: Path, old: str, new: str, place: str, said: str) -> None:
    assert old in FLAGSHIP
    with pytest.raises(InputError) as caught:
        read(tmp_path, FLAGSHIP.replace(old, new, 1))
    text = str(caught.value)
    assert text.startswith("Expected ")
    assert place in caught.value.where
    assert str(tmp_path / "study.toml") in caught.value.where
    assert said in text


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"not toml at all", FLAGSHIP.encode()[:60]])
def test_a_file_that_cannot_be(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "study.toml").write_bytes(content)
    with pytest.raises(InputError, match=r"Expected .*study\.toml"):
        read_study(tmp_path)


def test_a_folder_without_a_study(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Expected a readable study file, got 'No such file.*study\.toml"):
        read_study(tmp_path)


@pytest.mark.parametrize(
    ("changes", "place", "said"),
    [
        ({"budget": {"chips": "10xH1000"}}, "$.budget.chips", "did you mean H100"),
        ({"need": NEED | {"chip": "TPU v77"}}, "$.need", "a known accelerator, got 'TPU v77'"),
        ({"need": NEED | {"also": ["abacus"]}}, "$.need", "a known accelerator, got 'abacus'"),
        ({"budget": {"dtype": "bf17"}}, "$.budget.dtype", "a data type, got 'bf17'"),
        ({"budget": {"chips": "8xV100-SXM2-32GB"}}, "$.budget.dtype", "a published dense peak on V100-SXM2-32GB"),
        ({"laws": ["hofman"]}, "$.laws", "a known scaling law, got 'hofman'"),
        ({"laws": ["kaplan"]}, "$.laws", "a law that says where the optimum lies"),
        ({"laws": ["20x"]}, "$.laws", "at least one law that predicts loss"),
        ({"laws": ["hoffmann", "chinchilla"]}, "$.laws", "each law once, got 'chinchilla'"),
    ],
)
def test_a_name_that_is_not_known(changes: dict[str, Any], place: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        make_plan(study(**changes))
    assert place in caught.value.where
    assert said in str(caught.value)


def test_the_overhead_of_a_need_is_an_assumption_until_it_is_given() -> None:
    assert Need.model_fields["overhead"].default is None
    with pytest.raises(InputError, match=r"above the fixed overhead of 0\.25 s"):
        build(Need, {"budget": "0.2s"})


@pytest.mark.parametrize(
    ("turn", "serve_on", "need"),
    [
        ("8k+128@1s", "", {"prefill": "8k", "decode": "128", "budget": "1s"}),
        ("", "8xH100", {"budget": "1s", "chips_per_conversation": 8, "chip": "H100"}),
        (
            "32k+1k@2.5s",
            "16xTPU v5e",
            {"prefill": "32k", "decode": "1k", "budget": "2.5s", "chips_per_conversation": 16, "chip": "TPU v5e"},
        ),
    ],
)
def test_the_need_of_the_flags(turn: str, serve_on: str, need: dict[str, Any]) -> None:
    assert need_of(turn, serve_on) == need
    assert build(Study, {"budget": BUDGET, "need": need}).need is not None


@pytest.mark.parametrize("turn", ["8k", "8k+128", "8k@1s", "+128@1s", "8k+@1s", "8k+128@"])
def test_a_turn_that_is_not_whole(turn: str) -> None:
    with pytest.raises(
        InputError, match=r"Expected a turn such as 8k\+128@1s.*at --turn\nhint: PREFILL\+DECODE@BUDGET"
    ):
        need_of(turn, "")


@pytest.mark.parametrize(
    ("typed", "served"),
    [
        ("1e12..1e16", [1e12, 1e14, 1e16]),
        ("1e16..1e12", [1e12, 1e14, 1e16]),
        ("1T,50T", [1e12, 50e12]),
        ("15T", [15e12]),
        ("1T..1T", [1e12]),
    ],
)
def test_the_scenarios_of_the_flag(typed: str, served: list[float]) -> None:
    found = traffic_of(typed)
    assert [item["served"] for item in found] == pytest.approx(served)
    assert len({item["name"] for item in found}) == len(served)
    assert "e+" not in "".join(item["name"] for item in found)


@pytest.mark.parametrize("typed", ["..", "1e12..", "many", "0", "-1e12..1e13", "1e400"])
def test_served_tokens_that_cannot_be(typed: str) -> None:
    with pytest.raises(InputError, match="at --served"):
        traffic_of(typed)
