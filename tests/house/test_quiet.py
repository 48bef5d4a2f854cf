"""Nothing prints but the command line and the renderers; no address of a registry and no machine's path."""

import ast
import re

from tests.house.source import ROOT, SRC, modules, shown, texts, tree

LOUD = (SRC / "cli", SRC / "report")
# Spelt in pieces so that this file does not name them.
REGISTRIES = re.compile(
    "|".join(["py" + r"pi\.(org|python)", "pythonhosted" + r"\.org", "npm" + r"js\.org", "index" + "-url"])
)
PATHS = re.compile(
    r"(?<![\w./])/(?:" + "|".join(["ro" + "ot", "ho" + "me", "wo" + "rk", "Us" + "ers", "t" + "mp"]) + r")/\w"
)


def test_no_prints() -> None:
    loud = [
        f"{shown(p)}:{node.lineno}"
        for p in modules()
        if not any(p.is_relative_to(folder) for folder in LOUD)
        for node in ast.walk(tree(p))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert loud == []


def test_no_registry_addresses() -> None:
    found = [f"{shown(p)}: {m.group()}" for p, text in texts() for m in REGISTRIES.finditer(text)]
    assert found == []


def test_no_machine_paths() -> None:
    found = [f"{shown(p)}: {m.group()}" for p, text in texts() for m in PATHS.finditer(text)]
    assert found == []


def test_nothing_is_left_unfinished() -> None:
    marks = re.compile("|".join(["TO" + "DO", "FIX" + "ME", "X" * 3, "NotImplemented" + "Error"]))
    found = [f"{shown(p)}: {m.group()}" for p, text in texts() if p.suffix == ".py" for m in marks.finditer(text)]
    assert found == []


def test_pins_are_exact() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert len(pins) > 20
    assert [line for line in pins if not re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][\w.+!]*", line)] == []


def test_imports_never_start_at_the_root() -> None:
    found = [
        f"{shown(p)}:{node.lineno}"
        for p in modules()
        for node in ast.walk(tree(p))
        if isinstance(node, ast.ImportFrom) and (node.module == "ridgeline" or node.level)
    ]
    assert found == []
