"""A new command or option is agreed on by changing ``options.txt``."""

from tests.house.source import ROOT, group, params_of

AGREED = ROOT / "tests" / "house" / "options.txt"


def listed() -> list[str]:
    """One line per option or argument of the whole command line."""
    lines = [f"ridgeline: {' '.join(p.opts)}" for p in group().params]
    return [*lines, *(f"{name}: {param}" for name in group().commands for param in params_of(name))]


def test_no_option_without_agreement() -> None:
    agreed = AGREED.read_text(encoding="utf-8").splitlines()
    assert listed() == agreed, "write the new list to tests/house/options.txt if this is agreed"


def test_json_means_the_same_everywhere() -> None:
    without = [name for name in group().commands if "--json" not in params_of(name)]
    assert without == []


def test_every_command_and_option_has_help() -> None:
    silent = [name for name, command in group().commands.items() if not command.help]
    for name, command in group().commands.items():
        silent += [f"{name}: {p.name}" for p in command.params if not p.help]
    assert silent == []
