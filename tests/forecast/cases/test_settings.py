"""Settings from a file and from flags: flags win, tables are joined, what does not fit is refused with its place."""

from pathlib import Path

import pytest

from ridgeline.core.errors import InputError
from ridgeline.forecast.cases.settings import pairs, settings_of


def test_flags_stand_above_the_file(tmp_path: Path) -> None:
    file = tmp_path / "how.toml"
    file.write_text('objective = "lad"\nlevel = 0.9\n[columns]\nN = "size"\nD = "tokens"\n')
    found = settings_of(file, objective="huber", params="", columns={"N": "params"})
    assert (found.objective, found.level, found.params) == ("huber", 0.9, "")
    assert found.columns == {"N": "params", "D": "tokens"}


def test_the_reader_is_told_everything() -> None:
    found = settings_of(None, columns={"N": "x"}, where={"recipe": ["a", "b"]}, params="total").reading
    assert (found.columns, found.params) == ({"N": "x"}, "total")
    assert found.where == {"recipe": ["a", "b"]}


@pytest.mark.parametrize("line", ["level = 1.5", "draws = 3", "loss_unit = 'bytes'", "seed = -1", "nonesuch = 1"])
def test_what_does_not_fit_is_refused_with_the_file(tmp_path: Path, line: str) -> None:
    file = tmp_path / "how.toml"
    file.write_text(line + "\n")
    with pytest.raises(InputError, match=r"how\.toml"):
        settings_of(file)


def test_pairs_collect_values_of_one_name() -> None:
    assert pairs(["a=1", "b = x=y", "a=2", "a=3"], where="--where") == {"a": ["1", "2", "3"], "b": "x=y"}


@pytest.mark.parametrize("item", ["a", "=1", "a=", ""])
def test_a_pair_needs_both_sides(item: str) -> None:
    with pytest.raises(InputError, match="NAME=VALUE"):
        pairs([item], where="--column")
