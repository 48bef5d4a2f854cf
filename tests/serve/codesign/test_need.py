"""What is asked: a study's budget and need, flags over it, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from tests.serve.codesign.asked import need

from ridgeline.core.errors import InputError, UnknownDeviceError
from ridgeline.core.quantity import given
from ridgeline.serve.codesign.need import asked_of, batches_of, from_study, merged, need_of, study_file


def test_the_flagship_study(repo: Path) -> None:
    keys, compute = from_study(study_file(repo / "examples" / "flagship"))
    assert float(compute.base) == pytest.approx(1000 * 989.4e12 * 0.4 * 30 * 86400, rel=1e-12)
    found = need_of(asked_of(keys, "study.toml"), compute)
    assert (found.device.slug, int(found.chips.value), int(found.prompt.value)) == ("h100-sxm-80gb", 4, 8192)
    assert float(found.limits["turn"].base) == 1.0
    assert float(found.overhead.base) == 0.25
    assert found.price is not None
    assert float(found.price.value) == 2.5
    assert found.batches == (1,)


def test_later_keys_win_and_axes_merge() -> None:
    keys = merged({"chips": 4, "axes": {"kv": ["bf16"]}}, {"chips": 8}, {"axes": {"widest": 4096}}, batches=[2])
    assert keys == {"chips": 8, "axes": {"kv": ["bf16"], "widest": 4096, "batches": [2]}}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"chips": 0}, "chips"),
        ({"compute": "nan"}, "FLOPs"),
        ({"compute": "-1e24"}, "FLOPs"),
        ({"ceiling": float("nan")}, "ceiling"),
        ({"tpot": "0s"}, "above zero"),
        ({"law": "llama3-2024"}, "predicts the loss"),
        ({"turn": "0.2s"}, "fixed overhead"),
        ({"axes": {"aspects": [1000]}}, "d_model per layer"),
        ({"axes": {"mixtures": [[4, 8]]}}, "smaller top-k"),
        ({"axes": {"attention": ["mqa"]}}, "gqa or mla"),
        ({"axes": {"kv": ["fp3"]}}, "fp3"),
        ({"axes": {"weights": ["bf17"]}}, "bf17"),
        ({"axes": {"wide": 3}}, "known field"),
        ({"axes": {"kv_heads": []}}, r"at least one value to try.*the test: \$\.axes\.kv_heads"),
        ({"axes": {"weights": []}}, "at least one value to try"),
        ({"compute": 1}, "1e\\+18 to 1e\\+28 FLOP"),
        ({"compute": 1e30}, "1e\\+18 to 1e\\+28 FLOP"),
        ({"ceiling": float("inf")}, "finite price above zero"),
        ({"price": -1.0}, "finite price above zero"),
    ],
)
def test_refusals(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        need(**keys)


def test_compute_of_a_study_is_bounded_too() -> None:
    with pytest.raises(InputError, match=r"1e\+18 to 1e\+28 FLOP.*study.toml: \$\.budget"):
        need_of(asked_of({"device": "H100", "tpot": "20ms"}, "study.toml"), given("compute", 1.0, "FLOP"), "study.toml")


@pytest.mark.parametrize(
    ("flags", "place"), [({"tpot"}, "at --tpot$"), ((), r"at study.toml: \$\.tpot$"), ({"ttft"}, r"\$\.tpot$")]
)
def test_what_is_refused_names_where_it_came_from(flags: set[str], place: str) -> None:
    with pytest.raises(InputError, match=place):
        asked_of({"tpot": "soon", "ttft": "1s"}, "study.toml", flags)


def test_batches() -> None:
    assert batches_of("") == []
    assert batches_of("1, 16,64") == [1, 16, 64]
    for text in ("0", "1,,2", "8k", "1.5", "nan", "70000"):
        with pytest.raises(InputError, match=r"whole numbers of sequences.*--batch"):
            batches_of(text)


def test_what_is_missing_is_named() -> None:
    for keys, said in (
        ({}, "compute"),
        ({"compute": "1e24"}, "device"),
        ({"compute": "1e24", "device": "H100"}, "limit"),
    ):
        with pytest.raises(InputError, match=said):
            need_of(asked_of(keys, "the test"))
    with pytest.raises(UnknownDeviceError):
        need(device="H1000")
    with pytest.raises(InputError, match="price"):
        need(device="TPU v4", ceiling=1.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [("name = 'x'\n", "chips and days"), ("budget = 3\n", "a table"),
     ("[budget]\nchips='8xH100'\ndays=30\nmfu='x'\n", "a share")],
)  # fmt: skip
def test_a_study_that_says_too_little(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(InputError, match=said):
        from_study(study_file(tmp_path))
