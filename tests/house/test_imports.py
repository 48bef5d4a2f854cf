"""What an import may load, and how fast the command line answers. Each check is a fresh process."""

import json
import resource
import subprocess
import sys

import pytest

HEAVY = [
    "scipy",
    "polars",
    "pydantic",
    "pint",
    "altair",
    "vl_convert",
    "jinja2",
    "rich",
    "typer",
    "jax",
    "ray",
    "msgspec",
]
HELP_S = 0.3
TRIES = 7  # the machine is shared: the least processor time of several is what the code costs


def children_s() -> float:
    """Processor time of all processes that have ended, user and system."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def loaded_after(code: str) -> set[str]:
    """Top-level modules in a fresh process after running ``code``."""
    report = "import sys, json; print(json.dumps(sorted({m.partition('.')[0] for m in sys.modules})))"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_import_loads_numpy_at_most() -> None:
    loaded = loaded_after("import ridgeline")
    assert "ridgeline" in loaded
    assert loaded & set(HEAVY) == set()


@pytest.mark.parametrize(
    ("arguments", "parser"),
    [(["--help"], {"typer"}), (["--version"], {"typer"}), (["model", "--help"], {"typer", "pydantic"})],
)
def test_help_loads_no_tool(arguments: list[str], parser: set[str]) -> None:
    loaded = loaded_after(f"from ridgeline.cli.main import run; run({arguments!r})")
    assert loaded & {*HEAVY, "numpy"} <= parser, "Typer itself brings pydantic in once it parses values"


def test_public_names_are_there() -> None:
    import ridgeline

    assert [name for name in ridgeline.__all__ if not hasattr(ridgeline, name)] == []
    assert dir(ridgeline) == sorted(ridgeline.__all__)
    with pytest.raises(AttributeError, match="nothing_of_ours"):
        _ = ridgeline.nothing_of_ours


def test_help_is_fast() -> None:
    took = []
    for _ in range(TRIES):
        start = children_s()
        subprocess.run([sys.executable, "-m", "ridgeline.cli.main", "--help"], capture_output=True, check=True)
        took.append(children_s() - start)
    assert min(took) < HELP_S
