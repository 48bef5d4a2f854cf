"""The sample document, and golden files that ``UPDATE_GOLDEN=1`` rewrites."""

import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden"


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    """The sample Case as a reader gets it: through JSON text, so nothing but plain types is left."""
    spec = importlib.util.spec_from_file_location("report_sample", HERE / "sample.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    document: dict[str, Any] = json.loads(module.sample().dumps())
    document["version"] = document["evidence"][0]["version"] = "0.0.0"  # golden files outlive releases
    return document


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare a text with a file in tests/golden, or write it."""

    def check(name: str, text: str) -> None:
        file = GOLDEN / name
        if os.environ.get("UPDATE_GOLDEN"):
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8")

    return check
