"""The hooks, against stand-ins for the two libraries: neither is a dependency."""

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from ridgeline.core.errors import InputError
from ridgeline.observe import StepTimer, hooks


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, attribute: str) -> None:
    for part in ("lightning", name):
        monkeypatch.setitem(sys.modules, part, types.ModuleType(part))
    setattr(sys.modules[name], attribute, type(attribute, (), {}))


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_trainer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, "transformers", "TrainerCallback")
    hook = hooks.hf_trainer(StepTimer(tmp_path / "s.jsonl"))
    hook.on_log(None, None, None, logs={"loss": 3.0})
    hook.on_step_end(None, None, None)
    hook.on_save(None, None, None)
    hook.on_evaluate(None, None, None)
    hook.on_step_end(None, None, None)
    hook.on_train_end(None, None, None)
    found = rows(tmp_path / "s.jsonl")
    assert [row.get("event", row.get("loss")) for row in found] == [3.0, "checkpoint", "evaluation", 3.0]


class Loss:
    """A loss with a graph."""

    def detach(self) -> float:
        return 0.25


@pytest.mark.parametrize("outputs", [{"loss": Loss()}, Loss(), {"loss": 0.25}])
def test_lightning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, outputs: object) -> None:
    stand_in(monkeypatch, "lightning.pytorch", "Callback")
    hook = hooks.lightning(StepTimer(tmp_path / "s.jsonl"))
    hook.on_train_batch_end(None, None, outputs, None, 0)
    hook.on_validation_start(None, None)
    hook.on_save_checkpoint(None, None, {})
    hook.on_train_end(None, None)
    found = rows(tmp_path / "s.jsonl")
    assert [row.get("event", row.get("loss")) for row in found] == [0.25, "evaluation", "checkpoint"]


@pytest.mark.parametrize(("make", "package"), [(hooks.hf_trainer, "transformers"), (hooks.lightning, "lightning")])
def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, make: Any, package: str) -> None:
    for name in ("transformers", "lightning", "lightning.pytorch"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=f"pip install {package}"):
        make(StepTimer(None))
