"""P101: the training state against the memory of all chips."""

from pathlib import Path

import pytest
from tests.plan.studies import finding, number, plan


def test_pass_with_the_share_of_all_memory() -> None:
    found = finding(plan(), "P101")
    assert str(found.verdict) == "pass"
    assert number(found.value) == pytest.approx(100 * 16 * number(plan().optimum.params) / (1000 * 80e9))
    assert found.margin == pytest.approx(1 - number(found.value) / 50)
    assert found.fix == ""


def test_a_single_chip_cannot_hold_its_model() -> None:
    found = finding(plan({"chips": "1xH100"}), "P101")
    assert str(found.verdict) == "fail"
    assert number(found.value) > 50
    assert found.margin is not None
    assert found.margin < 0
    assert "8 bits" in found.fix


def test_the_threshold_moves_the_verdict() -> None:
    share = number(finding(plan(), "P101").value)
    assert str(finding(plan(), "P101", share).verdict) == "pass"  # at the limit is inside
    assert str(finding(plan(), "P101", share * 0.99).verdict) == "fail"


def test_it_looks_at_the_chosen_model() -> None:
    assert number(finding(plan(choice="30B"), "P101").value) < number(finding(plan(), "P101").value)


def test_unknown_without_the_memory_of_the_chip(tmp_path: Path) -> None:
    file = tmp_path / "chip.toml"
    file.write_text('name = "Chip"\npeak.bf16 = 1e15\n')
    found = finding(plan({"chips": f"64x{file}"}), "P101")
    assert (str(found.verdict), found.value) == ("unknown", None)
    assert "hbm.bytes" in found.fix
