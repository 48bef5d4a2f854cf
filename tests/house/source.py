"""The repository's own files, parsed once for the house checks."""

import ast
import subprocess
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import typer

from ridgeline.cli.main import build

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "ridgeline"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules() -> list[Path]:
    """Every Python file of the package."""
    return sorted(SRC.rglob("*.py"))


def shown(path: Path) -> str:
    """A path as people write it."""
    return str(path.relative_to(ROOT))


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> Iterator[Function]:
    """Every function of a file, nested ones too."""
    for node in ast.walk(tree(path)):
        if isinstance(node, Function):
            yield node


@lru_cache(maxsize=1)
def tracked() -> list[Path]:
    """Every file that belongs to the repository; without Git, every file outside hidden and built folders."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        listed = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if not _built(p)]
    return [ROOT / name for name in listed if (ROOT / name).is_file()]


def _built(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return any(part.startswith(".venv") or part in ("__pycache__", ".git", "build", "dist") for part in parts)


def texts() -> Iterator[tuple[Path, str]]:
    """Every text file of the repository with its text."""
    for path in tracked():
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


@lru_cache(maxsize=1)
def group() -> Any:
    """The whole command line as Typer hands it to its parser."""
    return typer.main.get_command(build())


def params_of(name: str) -> list[str]:
    """The options and arguments of one command: option names, or an argument's metavar."""
    params = group().commands[name].params
    return [" ".join(p.opts) if p.param_type_name == "option" else p.metavar or p.name for p in params]
