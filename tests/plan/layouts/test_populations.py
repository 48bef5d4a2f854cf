"""Two populations: volumes by hand, memory, and the strategies against each other."""

from pathlib import Path
from typing import Any

import pytest
from tests.house.source import ROOT

from ridgeline.cli.main import run
from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.layouts.populations import Populations, populations
from ridgeline.plan.layouts.populations_case import populations_case
from ridgeline.plan.layouts.sparse import Split, Study, read_study, tables_on

EXAMPLE = ROOT / "examples" / "recommender" / "study.toml"
TRUNK = {"layers": 4, "d_model": 1024, "d_ff": 4096, "heads": 8, "vocab": 1}
TABLES = {"rows": "64B", "tables": 64, "largest_rows": "1B", "dim": 64, "lookups": 10}


def study(tables: dict[str, Any] | None = None, **keys: Any) -> Study:
    base = {"chips": "64xH100", "samples": 65536, "history": 128}
    return Study.model_validate({**base, **keys, "tables": {**TABLES, **(tables or {})}, "trunk": TRUNK})


@pytest.fixture(scope="module")
def example() -> Populations:
    return populations(read_study(EXAMPLE)[0])


def test_volumes_by_hand() -> None:
    found = tables_on(study(), Split(64, 8, 8, 1))
    assert float(found.held.base) == 64e9 * (64 * 2 + 4) / 64
    reads = 65536 * 64 * 10 / 64
    assert float(found.lookup.base) == pytest.approx(reads * (3 * 64 * 2 + 2 * 4) / 3.35e12)
    ids, partial, pooled = reads * 8 * 63 / 64, 65536 * 8 * 64 * 2 * 7 / 8, 65536 * 64 / 64 * 64 * 2 * 7 / 8
    assert float(found.sent.base) == pytest.approx(ids + 2 * partial + 2 * pooled)
    port = 50e9 * 0.9
    assert float(found.ids.base) == pytest.approx(ids / port + 5e-6)
    assert float(found.touched.base) == 0


def test_the_largest_table_binds_a_group() -> None:
    flat = tables_on(study(), Split(64, 64, 1, 1))
    skewed = tables_on(study({"largest_rows": "20B"}), Split(64, 64, 1, 1))
    assert float(flat.held.base) == 1e9 * 132
    assert float(skewed.held.base) == 20e9 * 132


def test_replicas_halve_a_group_and_exchange_touched_rows() -> None:
    one, two = (tables_on(study(), split) for split in (Split(64, 8, 8, 1), Split(64, 4, 8, 2)))
    assert float(two.held.base) == 2 * float(one.held.base)
    assert float(two.touched.base) > 0
    assert float(two.partial.base) == pytest.approx(float(one.partial.base))  # half the samples, twice the tables


def test_row_wise_over_all_chips_moves_every_partial_sum() -> None:
    grouped, flat = (tables_on(study(), split) for split in (Split(64, 8, 8, 1), Split(64, 1, 64, 1)))
    assert float(flat.partial.base) > 50 * float(grouped.partial.base)
    assert float(flat.pooled.base) == 0


def test_two_populations_beat_one_strategy(example: Populations) -> None:
    names = {item.name: item for item in example.strategies}
    best = example.best
    assert best.name.startswith("two populations")
    flat = names["uniform: everything over all chips"]
    assert flat.step is not None
    assert best.step is not None
    assert float(flat.step.base) > 1.5 * float(best.step.base)
    gathered = names["uniform: everything FSDP"]
    assert gathered.step is None
    assert "the largest table is whole" in gathered.binding
    assert names["uniform: whole tables on chips"].step is None


def test_a_step_is_its_parts(example: Populations) -> None:
    for item in example.strategies:
        if item.step is None:
            continue
        assert item.trunk is not None
        assert item.exchange is not None
        parts = [float(p.base) for p in (item.sparse, item.trunk, item.exchange) if p is not None]
        total = max(parts[:2]) + parts[2] if item.name.endswith("apart") else sum(parts)
        assert float(item.step.base) == pytest.approx(total)
        assert float(item.held.base) <= 180e9


def test_apart_is_the_slower_population_and_the_exchange(example: Populations) -> None:
    item = next(item for item in example.strategies if item.name.endswith("apart"))
    assert item.step is not None
    assert item.step.formula == "max(sparse, trunk) + between"
    assert "1024 chips for the trunk" in item.how


def test_tables_that_fit_nowhere() -> None:
    found = populations(study({"rows": "64T", "largest_rows": "1T"}))
    with pytest.raises(InfeasibleError, match="Expected a strategy that fits 64xH100"):
        populations_case(found)


def test_small_tables_may_be_copied() -> None:
    found = populations(study({"rows": "640M", "largest_rows": "10M"}))
    assert found.best.step is not None
    assert all(item.step is not None for item in found.strategies)


@pytest.mark.parametrize(
    ("tables", "keys", "text"),
    [
        ({"rows": "many"}, {}, "rows such as"),
        ({"largest_rows": "100B"}, {}, "rows in the largest of 64 tables"),
        ({"largest_rows": "1M"}, {}, "rows in the largest of 64 tables"),
        ({"dtype": "fp17"}, {}, "a known element type"),
        ({}, {"chips": "64xH1000"}, "a known accelerator"),
        ({}, {"network": "rope"}, "a known interconnect"),
    ],
)
def test_bad_input(tables: dict[str, Any], keys: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        populations(study(tables, **keys))


def test_a_misspelt_key_has_its_place(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(EXAMPLE.read_text().replace("lookups", "lookup"))
    with pytest.raises(InputError, match=r"study\.toml: \$\.tables\.lookup"):
        read_study(file)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["plan", "populations", str(EXAMPLE)]) == 0
    printed = capsys.readouterr().out
    assert "ranking-1.2T on 2048xB200-SXM" in printed
    assert Path("plan-report/populations.html").is_file()
