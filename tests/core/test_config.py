"""``ridgeline.toml``: found upward, checked key by key."""

from pathlib import Path

import pytest

from ridgeline.core import config
from ridgeline.core.errors import InputError
from ridgeline.core.finding import RuleConfig

WHOLE = """
[rules]
select = ["p", "T1"]
ignore = ["P004"]
[rules.threshold]
p002 = 0.9
T103 = 5
"""


def test_no_file_is_the_default(tmp_path: Path) -> None:
    assert config.load(tmp_path) == RuleConfig()


def test_the_nearest_file_upward_applies(tmp_path: Path) -> None:
    (tmp_path / config.NAME).write_text(WHOLE)
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert config.find(inner) == tmp_path / config.NAME
    assert config.load(inner) == RuleConfig(("P", "T1"), ("P004",), {"P002": 0.9, "T103": 5.0})
    (inner / config.NAME).write_text("")
    assert config.load(inner) == RuleConfig()


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("[rule]\nselect = []", "$.rule", "rules"),
        ("[rules]\nselct = []", "$.rules.selct", "select"),
        ("[rules]\nselect = 'P'", "$.rules.select", ""),
        ("[rules]\nselect = [1]", "$.rules.select[0]", ""),
        ("[rules.threshold]\nP002 = 'high'", "$.rules.threshold.P002", ""),
        ("[rules.threshold]\nP002 = true", "$.rules.threshold.P002", ""),
        ("[rules.threshold]\nP002 = nan", "$.rules.threshold.P002", ""),
        ("[rules", config.NAME, ""),
    ],
)
def test_refusals_name_the_place(tmp_path: Path, text: str, place: str, hint: str) -> None:
    (tmp_path / config.NAME).write_text(text)
    with pytest.raises(InputError) as caught:
        config.load(tmp_path)
    assert caught.value.where.endswith(place)
    assert hint in caught.value.hint


def test_kernels_of_the_user(tmp_path: Path) -> None:
    assert config.kernels(tmp_path) == {}
    (tmp_path / config.NAME).write_text('[trace.kernels]\n"my_ring.*" = "comm"\nfoo = "compute:matmul"\n')
    assert dict(config.kernels(tmp_path)) == {"my_ring.*": "comm", "foo": "compute:matmul"}
    (tmp_path / config.NAME).write_text("[trace.kernels]\nfoo = 3\n")
    with pytest.raises(InputError, match=r"\$\.trace\.kernels"):
        config.kernels(tmp_path)
