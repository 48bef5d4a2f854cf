"""Plug-ins are found by walking a folder and the entry points."""

import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path, PurePosixPath

import pytest

from ridgeline.core import plugins
from ridgeline.core.errors import InputError
from ridgeline.core.finding import RuleConfig

ANOTHER = PurePosixPath("elsewhere/a")
MODULE = "from pathlib import PurePosixPath\nHERE = PurePosixPath({name!r})\nTEXT = 'not a plug-in'\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A package of two plug-ins, ``b`` written before ``a``."""
    name = f"plugged_{abs(hash(request.node.name))}"
    package = tmp_path / name
    package.mkdir()
    (package / "__init__.py").touch()
    for module in ("b", "a"):
        (package / f"{module}.py").write_text(MODULE.format(name=module))
    monkeypatch.syspath_prepend(tmp_path)
    return name


def entry_point(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    point = EntryPoint("outside", target, "ridgeline.thing")
    monkeypatch.setattr(plugins, "entry_points", lambda group: EntryPoints([point]).select(group=group))


def test_modules_come_in_name_order(folder: str) -> None:
    assert [m.__name__ for m in plugins.modules(folder)] == [f"{folder}.a", f"{folder}.b"]
    assert f"{folder}.a" in sys.modules


def test_load_takes_only_the_wanted_type(folder: str) -> None:
    assert plugins.load(folder, PurePosixPath, kind="thing") == [PurePosixPath("a"), PurePosixPath("b")]


def test_load_adds_entry_points(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry_point(monkeypatch, "ridgeline.core.plugins:__name__")
    assert plugins.load(folder, str, kind="thing")[-1] == "ridgeline.core.plugins"


def test_an_entry_point_of_another_type_is_refused(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entry_point(monkeypatch, "ridgeline.core.plugins:__name__")
    with pytest.raises(InputError, match="outside"):
        plugins.load(folder, PurePosixPath, kind="thing")


def test_an_unknown_rule_shows_close_ones() -> None:
    with pytest.raises(InputError, match="NOPE") as caught:
        plugins.find_rule("NOPE")
    assert caught.value.hint


def test_rules_are_sorted_by_code() -> None:
    codes = list(plugins.rules())
    assert codes == sorted(codes)
    assert all(plugins.find_rule(code.lower()).code == code for code in codes)


def test_a_command_runs_the_rules_of_its_room() -> None:
    own = {rule.code for rule in plugins.rules_of("serve")}
    assert own == {code for code in plugins.rules() if code.startswith("S")}
    assert plugins.rules_of("core") == []


def test_a_threshold_may_be_of_another_room() -> None:
    assert plugins.rules_of("serve", RuleConfig(thresholds={"P101": 1.0})) == list(plugins.rules().values())


def test_by_name_refuses_a_second_of_one_name(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(plugins.by_name(folder, PurePosixPath, kind="thing")) == ["a", "b"]
    entry_point(monkeypatch, "tests.core.test_plugins:ANOTHER")
    with pytest.raises(InputError, match="one thing per name"):
        plugins.by_name(folder, PurePosixPath, kind="thing")
