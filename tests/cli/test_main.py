"""The frame: exit codes, one-screen refusals, global flags, pipes."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from ridgeline.cli import _talk, main
from ridgeline.core.errors import InfeasibleError, InputError

COMMAND = [sys.executable, "-m", "ridgeline.cli.main"]
FULL = Path("/dev/full")
Install = Callable[[Callable[[], None]], None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Replace every command by one named ``try``."""

    def put(function: Callable[[], None]) -> None:
        module = ModuleType("ridgeline.cli.try_")
        module.command = function  # type: ignore[attr-defined]
        monkeypatch.setattr(main, "commands", lambda only="": {"try": module, "other": module})

    return put


def raising(error: BaseException) -> Callable[[], None]:
    def command() -> None:
        """Raise."""
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "first"),
    [
        (InputError.expected("a count", -1, where="--layers", hint="above zero"), 2, "error: Expected a count, got -1"),
        (InfeasibleError("Nothing fits", limit="memory"), 1, "error: Nothing fits"),
        (FileNotFoundError(2, "No such file or directory", "absent.json"), 2, "error: Expected a file"),
        (PermissionError(13, "Permission denied", "case.json"), 2, "error: Expected a file"),
        (ZeroDivisionError("division by zero"), 3, "internal error: ZeroDivisionError"),
        (AssertionError("ours"), 3, "internal error: AssertionError"),
    ],
)
def test_errors_fit_one_screen(
    install: Install, capsys: pytest.CaptureFixture[str], error: Exception, code: int, first: str
) -> None:
    install(raising(error))
    assert main.run(["try"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(first)
    assert "Traceback" not in err
    assert len(err.splitlines()) < 24
    assert "hint:" in err or code != 3


@pytest.mark.parametrize("how", ["flag before", "flag after", "environment"])
def test_debug_shows_the_traceback(
    install: Install, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    install(raising(ZeroDivisionError("division by zero")))
    if how == "environment":
        monkeypatch.setenv("RIDGELINE_DEBUG", "1")
    arguments = {"flag before": ["--debug", "try"], "flag after": ["try", "--debug"]}.get(how, ["try"])
    assert main.run(arguments) == 3
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "quiet"), [(["try"], False), (["--quiet", "try"], True), (["try", "--quiet"], True)]
)
def test_quiet_silences_remarks_only(
    install: Install, capsys: pytest.CaptureFixture[str], arguments: list[str], quiet: bool
) -> None:
    def command() -> None:
        """Talk."""
        _talk.emit("data")
        _talk.say("remark")

    install(command)
    assert main.run(arguments) == 0
    out, err = capsys.readouterr()
    assert out == "data\n"
    assert err == ("" if quiet else "remark\n")


@pytest.mark.parametrize("arguments", [[], ["nope"], ["model", "--nope"], ["why"], ["model", "--context"]])
def test_usage_errors_are_bad_input(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(arguments) == 2
    said = "".join(capsys.readouterr())
    assert "Usage: ridgeline" in said or said.startswith("Error: ")
    assert "Traceback" not in said


def test_flags_after_two_dashes_are_left_alone() -> None:
    assert main._hoist(["model", "--debug", "a", "--", "--quiet"]) == ["--debug", "model", "a", "--", "--quiet"]


def test_two_words_are_one_command() -> None:
    assert main._hoist(["trace", "bridge", "x"]) == ["trace bridge", "x"]
    assert main._hoist(["trace", "--quiet", "bridge", "x"]) == ["--quiet", "trace bridge", "x"]
    assert main._hoist(["trace", "./bridge"]) == ["trace", "./bridge"]
    assert main._hoist(["trace bridge", "x"]) == ["trace bridge", "x"]
    assert main._hoist(["trace"]) == ["trace"]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0
    name, number = capsys.readouterr().out.split()
    assert name == "ridgeline"
    assert number[0].isdigit()


def test_commands_are_the_files_of_the_folder() -> None:
    found = main.commands()
    assert {"devices", "model", "rule", "why"} <= set(found)
    assert all(callable(module.command) for module in found.values())
    assert list(main.names()) == list(found)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [(["--quiet", "trace", "bridge", "x"], "trace bridge"), (["model", "--help"], "model"), (["--help"], ""),
     (["nope"], "")],
)  # fmt: skip
def test_a_command_is_imported_alone(arguments: list[str], wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    known = main.commands()

    def put(only: str = "") -> dict[str, ModuleType]:
        asked.append(only)
        return known

    monkeypatch.setattr(main, "commands", put)
    main.run(arguments)
    assert asked == [wanted]


def test_a_closed_pipe_is_quiet() -> None:
    reader = subprocess.Popen(
        [*COMMAND, "devices", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert reader.stdout is not None
    assert reader.stderr is not None
    reader.stdout.close()  # whoever read us has gone
    err = reader.stderr.read()
    reader.stderr.close()
    reader.wait(timeout=30)
    assert err == ""
    assert reader.returncode != 3


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_full_disk_is_no_bug_of_ours() -> None:
    with FULL.open("w") as full:
        done = subprocess.run([*COMMAND, "devices"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: Expected room for the output")


def test_no_colour_codes_in_a_pipe() -> None:
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run([*COMMAND, "devices"], capture_output=True, text=True, check=True, env=environment)
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_shell_completion_knows_the_commands() -> None:
    environment = {
        **os.environ,
        "_RIDGELINE_COMPLETE": "complete_bash",
        "COMP_WORDS": "ridgeline mo",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False, env=environment)
    assert "model" in done.stdout.split()
