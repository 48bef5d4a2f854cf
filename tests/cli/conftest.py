"""Run a command line in this process."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from ridgeline.cli.main import run


@dataclass(frozen=True)
class Done:
    """What a command line left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """stdout as one JSON document."""
        return json.loads(self.out)


Ridgeline = Callable[..., Done]


@pytest.fixture
def ridgeline(capsys: pytest.CaptureFixture[str]) -> Ridgeline:
    """``ridgeline("model", path)`` -> exit code, stdout, stderr."""

    def call(*arguments: object) -> Done:
        code = run([str(item) for item in arguments])
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return call
