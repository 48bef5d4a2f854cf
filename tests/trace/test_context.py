"""The run file: read, looked up, and refused with the place."""

from pathlib import Path
from typing import Any

import pytest
from tests.trace.runs import context, number

from ridgeline.core.errors import InputError
from ridgeline.core.specs import build
from ridgeline.trace.context import RunContext, RunFile, context_of, read_context


def test_everything_is_optional() -> None:
    found = RunContext()
    for name in ("chips", "peak", "tokens", "flops", "ideal", "step", "mfu", "expected", "reported", "price", "month"):
        assert getattr(found, name) is None, name
    assert found.tokens_rate is None


def test_the_example_reads(repo: Path) -> None:
    found = read_context(repo / "examples" / "incident")
    assert found.spec is not None
    assert [Path(item.path).name for item in found.inputs] == ["run.toml", "model.toml"]
    assert found.file.parallel.tp == 8
    assert found.file.log is not None
    assert found.resolve(found.file.log).is_file()
    assert number(found.price) == 2.7


def test_ideal_step_and_mfu() -> None:
    found = context()
    assert number(found.ideal) == pytest.approx(6 * 70e9 * 256 * 8192 / (256 * 918e12))
    assert number(found.mfu) == pytest.approx(100 * number(found.ideal) / 15)
    assert number(found.tokens_rate) == pytest.approx(8192 / 15)


def test_a_plain_number_of_parameters_allows_6n_only() -> None:
    assert context(mfu={"convention": "palm"}).flops is None
    assert context(mfu={"convention": ""}).flops is not None


def test_a_model_file_is_counted_in_the_named_convention(repo: Path) -> None:
    folder = repo / "examples" / "incident"
    plain = read_context(folder)
    mfu = plain.file.mfu.model_copy(update={"convention": "palm"})
    palm = context_of(plain.file.model_copy(update={"mfu": mfu}), folder / "run.toml")
    attention = 12 * 49 * 112 * 96 * 8192 * number(plain.tokens)
    assert number(palm.flops) - number(plain.flops) == pytest.approx(attention)


def test_price_comes_from_the_file_or_the_catalog() -> None:
    assert number(context(machine={"dollars_per_chip_hour": 9.0}).price) == 9.0
    without = context(machine={"dollars_per_chip_hour": None}).price
    assert without is None or without.kind != "specified"


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"machine": {"chips": "256xTPU v66"}}, "$.machine.chips"),
        ({"machine": {"dtype": "bf17"}}, "$.machine.dtype"),
        ({"mfu": {"convention": "plam"}}, "did you mean palm"),
        ({"mfu": {"expected": 50}}, "$.mfu.expected"),
        ({"mfu": {"expected": "half"}}, "$.mfu.expected"),
        ({"observed": {"step": "-3s"}}, "$.observed.step"),
        ({"observed": {"step": True}}, "$.observed.step"),
        ({"observed": {"step": "fast"}}, "$.observed.step"),
        ({"batch": {"sequences": 0}}, "$.batch.sequences"),
        ({"batch": {"squences": 3}}, "$.batch.squences"),
        ({"model": {"params": "70B", "path": "x"}}, "$.model"),
        ({"buckets": {"compute": -1.0}}, "$.buckets.compute"),
        ({"counters": {"tensor_active": 31}}, "$.counters.tensor_active"),
        ({"cause": [{"name": "a", "seconds": {"compute": 0.0}}]}, "$.cause[0].seconds.compute"),
        ({"cause": [{"name": "a", "seconds": {"compute": 1.0}, "lever": "magic"}]}, "$.cause[0].lever"),
    ],
)
def test_refusals_name_the_place(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        context(**tables)
    assert said in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"run\.toml"):
        read_context(tmp_path)


def test_a_file_that_is_no_toml(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("name = ")
    with pytest.raises(InputError, match="valid run file"):
        read_context(tmp_path / "run.toml")


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('[model]\npath = "nowhere.toml"\n')
    with pytest.raises(InputError, match=r"nowhere\.toml"):
        read_context(tmp_path)


def test_an_empty_file_is_a_run_about_which_nothing_is_known() -> None:
    assert context_of(build(RunFile, {})).ideal is None


def test_a_log_that_is_not_there_is_refused(repo: Path) -> None:
    found = read_context(repo / "examples" / "incident")
    assert found.log is not None
    assert found.log.name == "steps.csv"
    wrong = context_of(found.file.model_copy(update={"log": "nosuch.csv"}), found.path)
    with pytest.raises(InputError, match=r"Expected a log file, got '.*nosuch.csv', at .*run.toml: \$.log"):
        assert wrong.log
