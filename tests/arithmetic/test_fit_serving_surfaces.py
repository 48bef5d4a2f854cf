"""``scripts/fit_serving_surfaces.py``: the stored files are what it makes, and the mixed grid never falls."""

import json
from pathlib import Path

import numpy as np
import pytest
from scripts.fit_serving_surfaces import (
    MIXED_NODES,
    decode_made,
    growing,
    main,
    mixed,
    nested,
    nodes_of,
    one_system,
    stored_errors,
)
from scripts.fit_surfaces import Model, Rows

from ridgeline.core import surfaces


def test_growing_keeps_the_time_from_falling() -> None:
    draw = np.random.default_rng(0)
    shape = [len(axis) for axis in MIXED_NODES]
    found = growing(Model(MIXED_NODES, draw.normal(size=int(np.prod(shape)) + 1)))
    rise = np.diff(found, axis=0)
    assert np.all(rise >= 0)
    assert np.all(rise <= np.log(2))
    assert np.all(np.diff(found, axis=1) >= 0)


def test_growing_leaves_a_sum_as_it_is() -> None:
    ratio = np.asarray(MIXED_NODES[0])
    values = np.broadcast_to(np.log1p(ratio)[:, None, None], [len(axis) for axis in MIXED_NODES])
    assert growing(Model(MIXED_NODES, np.append(values.ravel(), 0.0))) == pytest.approx(values, abs=0.01)


def test_nodes_are_cut_to_what_was_measured() -> None:
    seen, caches, group = np.array([100.0, 3000.0]), np.array([8.0, 40.0]), np.array([4.0, 8.0])
    none = np.zeros(2)
    rows = Rows((seen, caches, group), none[:, None], none, none, none.astype(np.int64), none, 0.0)
    assert nodes_of("decode", rows) == ((16, 128, 512, 2048, 8192), (8, 32, 128), (4, 8))


def test_nested_keys() -> None:
    assert nested({"bf16/64": {"a": 1}, "fp8": {"b": 2}}) == {"bf16": {"64": {"a": 1}}, "fp8": {"b": 2}}


@pytest.mark.data
@pytest.mark.slow
def test_a_stored_file_is_what_the_script_makes(data_dir: Path) -> None:
    again = json.loads(json.dumps(one_system(data_dir, "a100_sxm", {})))
    stored = json.loads((surfaces.SERVING / "a100_sxm.json").read_text(encoding="utf-8"))
    assert again["all_reduce"] == stored["all_reduce"]
    mine, theirs = again["decode"]["bf16"]["128"], stored["decode"]["bf16"]["128"]
    assert np.asarray(mine["log_ratio"]) == pytest.approx(np.asarray(theirs["log_ratio"]), abs=2)
    assert mine["rows"] == theirs["rows"]
    stored = json.loads((surfaces.SERVING / "mixed.json").read_text(encoding="utf-8"))
    assert np.asarray(mixed(data_dir)["log_ratio"]) == pytest.approx(np.asarray(stored["log_ratio"]), abs=2)


@pytest.mark.data
def test_stored_surfaces_are_near_their_rows(data_dir: Path) -> None:
    stored = json.loads((surfaces.SERVING / "a100_sxm.json").read_text(encoding="utf-8"))
    made = decode_made(data_dir, "a100_sxm", "a100-sxm-80gb")["bf16/128"]
    middle, tail = stored_errors(stored["decode"]["bf16"]["128"], "decode", made)
    assert middle < 0.09
    assert middle < tail < 0.3


@pytest.mark.data
@pytest.mark.slow
def test_check_writes_nothing(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in surfaces.SERVING.glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    before = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    monkeypatch.setattr("sys.argv", ["fit", "--check", "--data", str(data_dir), "--out", str(tmp_path)])
    main()
    assert {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == before
