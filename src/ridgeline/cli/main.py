"""The frame of the command line.

A command is a file of this folder with a function ``command``; the file's name is the command's name and the
docstring its help. ``trace_bridge.py`` is the command of two words ``trace bridge``; further words are joined by
hyphens (``gate trace-safety``). A command imports its tool inside that function, so that ``--help`` stays fast.
Exit codes: 0 all pass, 1 a finding failed, 2 bad input, 3 a bug of ours.
stdout is data, stderr is talk.
"""

import errno
import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Annotated

import typer

from ridgeline.cli import _talk

# Our matrices are small and worked in threads of our own; those of BLAS would only wait for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
EXIT_FAILED, EXIT_INPUT, EXIT_BUG = 1, 2, 3
_CONTEXT = {"help_option_names": ["-h", "--help"]}
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ANYWHERE = ("--debug", "--quiet")  # accepted before or after the command
_COMPLETION = "_RIDGELINE_COMPLETE"  # set by the shell that asks for names
# one word for two jobs: the option tells which
_BY_OPTION = {("plan", "--model"): "plan layout", ("plan", "--cluster"): "plan layout"}


def names() -> dict[str, str]:
    """The module of every command, by the name that people type: the files of the folder, none of them imported."""
    folder = importlib.import_module("ridgeline.cli")
    files = sorted(i.name for i in pkgutil.iter_modules(folder.__path__) if i.name != "main" and i.name[0] != "_")
    return {file.replace("_", " ", 1).replace("_", "-"): file for file in files}


def commands(only: str = "") -> dict[str, ModuleType]:
    """The command modules by the name that people type: the one named ``only``, or every one."""
    known = names()
    wanted = {only: known[only]} if only in known else known
    return {name: importlib.import_module(f"ridgeline.cli.{file}") for name, file in wanted.items()}


def build(only: str = "") -> typer.Typer:
    """The application with every command found, or with the one named ``only``."""
    app = typer.Typer(
        name="ridgeline",
        rich_markup_mode=None,  # Rich help costs 0.1 s of the 0.3 s budget
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings=_CONTEXT,
    )
    app.callback()(_root)
    for name, module in commands(only).items():
        app.command(name, context_settings=_CONTEXT)(module.command)
    return app


def main() -> None:
    """The entry point of the console script."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; nothing but a bug shows a traceback, and only when asked."""
    _talk.settings.quiet = False
    _talk.settings.debug = os.environ.get("RIDGELINE_DEBUG", "") not in ("", "0")
    try:
        words = _hoist(arguments)
        build(_named(words))(args=words, prog_name="ridgeline")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except BrokenPipeError:
        _silence()
        return EXIT_FAILED
    except Exception as error:  # the last line of defence
        return _refuse(error)
    raise AssertionError("Typer returns only through SystemExit")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        _talk.emit(f"ridgeline {version('ridgeline')}")
        raise typer.Exit


def _root(
    version: Annotated[  # the callback answers; Typer still wants the parameter
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_version)
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress and no remarks on stderr.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks; also RIDGELINE_DEBUG=1.")] = False,
) -> None:
    """Plan large-model pre-training: from a compute budget to a memo, every number with its derivation.

    Exit codes: 0 all pass, 1 a finding failed, 2 bad input, 3 a bug of ours.
    """
    _talk.settings.quiet |= quiet
    _talk.settings.debug |= debug


def _hoist(arguments: Sequence[str]) -> list[str]:
    """Move the global flags to the front, so that they may stand anywhere before a ``--``."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    early, rest = arguments[:end], arguments[end:]
    flags = [item for item in early if item in _ANYWHERE]
    return [*flags, *_two_words([item for item in early if item not in _ANYWHERE]), *rest]


def _two_words(arguments: list[str]) -> list[str]:
    """The name of a command of two words as one argument, so that ``trace bridge`` is not a file of ``trace``."""
    name = " ".join(arguments[:2])
    if " " in name and name in names():
        return [name, *arguments[2:]]
    flags = [item.partition("=")[0] for item in arguments]
    meant = next((whole for (word, flag), whole in _BY_OPTION.items() if flags[:1] == [word] and flag in flags), "")
    return [meant, *arguments[1:]] if meant else arguments


def _named(words: Sequence[str]) -> str:
    """The command that will run, so that no other is imported; empty where the list of all is wanted."""
    command = next((word for word in words if word not in _ANYWHERE), "")
    return command if command in names() and _COMPLETION not in os.environ else ""


def _refuse(error: Exception) -> int:
    from ridgeline.core.errors import RidgelineError

    if _talk.settings.debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, RidgelineError):
        _talk.warn(f"error: {error}")
        return error.exit_code
    if isinstance(error, OSError) and error.filename is not None:
        _talk.warn(f"error: Expected a file that can be used, got {error.strerror!r}, at {error.filename}")
        return EXIT_INPUT
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        _talk.warn(f"error: Expected room for the output, got {error.strerror!r}")
        return EXIT_INPUT
    _talk.warn(
        f"internal error: {type(error).__name__}: {error}\n"
        "This is a bug in ridgeline, not in your input.\n"
        "hint: run the same command with --debug and open an issue with its output and `ridgeline --version`"
    )
    return EXIT_BUG


def _silence() -> None:
    """Send what is left to nowhere: whoever read our output has gone, and the interpreter flushes at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


if __name__ == "__main__":
    main()
