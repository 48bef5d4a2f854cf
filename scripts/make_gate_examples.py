"""The inputs of ``examples/gates``, the same each time: ``python -m scripts.make_gate_examples [NAME ...]``.

Each gate has a file of ``scripts/gate_examples`` with its ``EXAMPLE``. ``--golden`` also runs the command of each and
writes what must stay as it is to ``tests/golden/gates``.
"""

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.gate_examples.example import Example, golden

from ridgeline.core import plugins

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples" / "gates"
GOLDEN = ROOT / "tests" / "golden" / "gates"


def examples() -> dict[str, Example]:
    """Every example by the name of its gate."""
    found = plugins.load("scripts.gate_examples", Example, kind="gate_example")
    return {item.gate: item for item in sorted(found, key=lambda item: item.gate)}


def write(example: Example) -> None:
    """The files of one example, and its page."""
    folder = FOLDER / example.gate
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in example.drawn().items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    (folder / "README.md").write_text(example.readme(), encoding="utf-8")


def decide(example: Example, here: str, variant: str = "") -> tuple[dict[str, Any], int]:
    """The case of the example's command, and the exit code. Its files are in ``here``."""
    from ridgeline.cli.main import run

    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run([*example.arguments(here, variant), "--json", "-o", place])
    if not out.getvalue():
        raise ValueError(f"gate {example.gate} {variant}: exit {code}: {err.getvalue()}")
    document: dict[str, Any] = json.loads(out.getvalue())
    return document, code


def goldens(example: Example, here: str) -> dict[str, Any]:
    """What is kept of the example's command, and of its variants by their words."""
    found = golden(*decide(example, here))
    more = {name: golden(*decide(example, here, name)) for name in example.variants}
    return {**found, "variants": more} if more else found


def main(arguments: Sequence[str]) -> None:
    """Write the examples that are named, or all."""
    names, known = [item for item in arguments if not item.startswith("-")], examples()
    for name in names or known:
        write(known[name])
        print(f"wrote examples/gates/{name}")
        if "--golden" in arguments:
            GOLDEN.mkdir(parents=True, exist_ok=True)
            text = json.dumps(goldens(known[name], str(FOLDER / name)), indent=1) + "\n"
            (GOLDEN / f"{name}.json").write_text(text, encoding="utf-8")
            print(f"wrote tests/golden/gates/{name}.json")


if __name__ == "__main__":
    main(sys.argv[1:])
