"""The child process: what it needs, and what it says when it fails."""

import importlib.util
import sys
from pathlib import Path

import pytest
from tests.plan.verify.combos import COMBOS

from ridgeline.core.errors import InputError, MissingExtraError
from ridgeline.plan.verify import compiled


def test_without_jax_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'pip install "ridgeline\[lab\]"'):
        compiled.compile_twins([COMBOS["DP"].twin()])


def test_a_child_that_fails_is_quoted_wherever_it_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 90) / "python"
    deep.parent.mkdir()
    deep.symlink_to(sys.executable)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(sys, "executable", str(deep))
    monkeypatch.setattr(compiled, "CHILD", "ridgeline.plan.verify.nowhere")
    with pytest.raises(InputError, match=r"ridgeline\.plan\.verify\.nowhere") as raised:
        compiled.compile_twins([COMBOS["DP"].twin()])
    assert str(deep) not in raised.value.message
