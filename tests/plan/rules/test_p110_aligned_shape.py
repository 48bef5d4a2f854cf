"""P110: an aligned recipe, and whether it fits a chip."""

from pathlib import Path

from tests.plan.studies import finding, number, plan


def test_pass_with_the_share_of_a_chip() -> None:
    made = plan()
    found = finding(made, "P110")
    assert str(found.verdict) == "pass"
    assert found.value is made.recipes[0].room
    assert found.fix == ""


def test_a_sequence_that_does_not_fit() -> None:
    found = finding(plan(sequence="1M"), "P110")
    assert str(found.verdict) == "fail"
    assert number(found.value) > 85
    assert found.fix


def test_no_aligned_shape_is_a_warning() -> None:
    found = finding(plan({"chips": "1xH100", "days": "1s"}), "P110")
    assert (str(found.verdict), found.value) == ("warn", None)
    assert found.sentence.startswith("No aligned shape has about")


def test_the_threshold_moves_the_verdict() -> None:
    share = number(finding(plan(), "P110").value)
    assert [str(finding(plan(), "P110", share + d).verdict) for d in (1, -1)] == ["pass", "fail"]


def test_unknown_without_the_memory_of_the_chip(tmp_path: Path) -> None:
    file = tmp_path / "chip.toml"
    file.write_text('name = "Chip"\npeak.bf16 = 1e15\n')
    found = finding(plan({"chips": f"64x{file}"}), "P110")
    assert (str(found.verdict), found.value) == ("unknown", None)
