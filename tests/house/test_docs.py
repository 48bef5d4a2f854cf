"""Docs are fresh, and every public name says what it is."""

import ast
import re
from pathlib import Path

import pytest
from scripts.docs import pages
from tests.house.source import ROOT, modules, shown, tree

TERMS = re.compile(r"^\*\*(.+?)\*\*: (.+)$", re.MULTILINE)
NEEDED = (
    "MFU", "HFU", "ZeRO", "GQA", "MLA", "KV cache", "IsoFLOP", "Ridge point", "Exposed communication", "Goodput",
)  # fmt: skip


@pytest.mark.parametrize("name", sorted(pages()))
def test_generated_pages_are_fresh(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8") == pages()[name], "run `make docs`"


def glossary() -> dict[str, str]:
    return dict(TERMS.findall((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")))


def test_glossary_has_the_terms() -> None:
    terms = glossary()
    assert len(terms) >= 40
    assert [term for term in NEEDED if not any(term in name for name in terms)] == []
    assert list(terms) == sorted(terms, key=str.casefold)


def test_glossary_entries_are_short() -> None:
    assert {term: text for term, text in glossary().items() if not 20 <= len(text) <= 400} == {}


def test_links_of_the_docs_lead_somewhere() -> None:
    broken = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "README.md"]:
        targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
        broken += [f"{shown(page)}: {t}" for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert broken == []


def test_every_page_is_on_its_shelf() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    names = sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))
    assert [name for name in names if name != "README.md" and f"]({name})" not in index] == []


def is_overload(node: ast.FunctionDef | ast.ClassDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list)


def undocumented(path: Path, interface: set[str]) -> list[str]:
    """Public names without a docstring; a method may inherit the one of the method it overrides."""
    missing = [] if ast.get_docstring(tree(path)) else [shown(path)]
    for node in tree(path).body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node) and not is_overload(node):
            missing.append(f"{shown(path)}:{node.lineno} {node.name}")
        inside = node.body if isinstance(node, ast.ClassDef) else []
        methods = [m for m in inside if isinstance(m, ast.FunctionDef) and m.name[0] != "_"]
        missing += [f"{shown(path)}:{m.lineno} {node.name}.{m.name}" for m in methods if m.name not in interface]
    return missing


def documented_methods(path: Path) -> set[str]:
    """Names of the methods of a file that have a docstring somewhere."""
    classes = [node for node in tree(path).body if isinstance(node, ast.ClassDef)]
    methods = [m for c in classes for m in c.body if isinstance(m, ast.FunctionDef)]
    return {m.name for m in methods if ast.get_docstring(m)}


def test_every_public_name_is_documented() -> None:
    assert [name for path in modules() for name in undocumented(path, documented_methods(path))] == []
