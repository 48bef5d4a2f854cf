"""``ridgeline serve latency``: the card, measured rows, tables of rows, and what it refuses."""

import csv
from pathlib import Path
from typing import Any

import pytest
from tests.serve.steps.test_published import BASE

from ridgeline.core.case import load

USUAL = ("serve", "latency", "llama-3-70b", "--device", "H100", "--count", "8", "--batch", "32")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports go to a folder of their own."""
    monkeypatch.chdir(tmp_path)


def _write(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(BASE))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_the_card_and_the_report(ridgeline: Any, tmp_path: Path) -> None:
    done = ridgeline(*USUAL, "--price", "2")
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) <= 80
    document = load(tmp_path / "serve-report" / "latency.json")
    found = {name: item["value"] for name, item in document["quantities"].items()}
    assert found["latency.floor"] < found["latency.tpot"] < 0.1
    assert found["latency.tpot.low80"] < found["latency.tpot"] < found["latency.tpot.high80"]
    whole_s = found["latency.ttft"] + 255 * found["latency.tpot"]
    assert found["serve.tokens_per_s"] == pytest.approx(32 * 256 / whole_s)
    assert found["serve.dollars_per_million_tokens"] == pytest.approx(
        2 * 8 / 3600 / found["serve.tokens_per_s"] * 1e6)  # fmt: skip
    assert {item["code"] for item in document["findings"]} >= {"S103", "S104", "S105", "S106", "S107", "S109"}
    assert (tmp_path / "serve-report" / "latency.html").stat().st_size > 10_000


def test_a_need_below_the_floor_fails_and_names_it(ridgeline: Any, tmp_path: Path) -> None:
    (tmp_path / "need.toml").write_text('slo_tpot_ms = 0.5\nslo_ttft_ms = 60000\nweights = "fp8"\n', encoding="utf-8")
    done = ridgeline(*USUAL, "--spec", "need.toml")
    assert done.code == 1
    assert "the floor is" in done.out


def test_measured_rows_set_the_level(ridgeline: Any, tmp_path: Path) -> None:
    rows = [{**BASE, "concurrency": str(c), "tpot_ms": str(t)} for c, t in ((8, 30), (16, 36), (32, 44))]
    _write(tmp_path / "mine.csv", rows)
    plain = ridgeline(*USUAL, "--json").json["quantities"]["latency.tpot"]["value"]
    done = ridgeline(*USUAL, "--measured", "mine.csv", "--json").json
    assert done["quantities"]["latency.tpot"]["value"] > plain
    assert "latency.check" in done["tables"]


def test_a_table_of_rows(ridgeline: Any, tmp_path: Path) -> None:
    _write(tmp_path / "rows.csv", [BASE, {**BASE, "row_id": "8", "hw": ""}])
    done = ridgeline("serve", "latency", "--rows", "rows.csv", "-o", "answers.csv")
    assert done.code == 0, done.err
    assert "1 of 2 rows are answered" in done.out
    with (tmp_path / "answers.csv").open(encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    assert [row["status"] for row in found] == ["answered", "refused"]
    assert float(found[0]["tpot_low80"]) < float(found[0]["tpot_ms"]) < float(found[0]["tpot_high80"])
    assert "accelerator" in found[1]["reason"]


def test_one_request_waits_for_no_other(ridgeline: Any) -> None:
    short, long = (ridgeline(*USUAL[:-1], "1", "--context", size, "--json").json["quantities"] for size in ("2k", "8k"))
    assert "latency.terms.interference" not in long
    assert long["latency.tpot"]["value"] < 1.2 * short["latency.tpot"]["value"]
    assert long["latency.ttft"]["value"] > 2 * short["latency.ttft"]["value"]


@pytest.mark.parametrize(
    ("extra", "code", "said"),
    [
        (("--count", "1"), 1, "binding limit: chip.weights on one chip"),
        (("--batch", "1000"), 1, "1,000 requests at once are asked, 151 requests fit"),
        (("--context", "16k"), 1, "16,384 tokens a request is more than the model's 8,192 tokens"),
    ],
)
def test_what_cannot_be_served_has_no_answer(ridgeline: Any, extra: tuple[str, ...], code: int, said: str) -> None:
    done = ridgeline(*USUAL, *extra)
    assert done.code == code
    assert said in " ".join((done.out + done.err).split())


@pytest.mark.parametrize("need", ["nan", "-4", "0", "inf"])
def test_needs_are_times(ridgeline: Any, tmp_path: Path, need: str) -> None:
    (tmp_path / "need.toml").write_text(f"slo_ttft_ms = {need}\n", encoding="utf-8")
    done = ridgeline(*USUAL, "--spec", "need.toml")
    assert done.code == 2
    assert "need.toml: $.slo_ttft_ms" in done.err


def test_latents_in_their_own_layout(ridgeline: Any, tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text('weights = "fp8"\nkv = "fp8_ds_mla"\n', encoding="utf-8")
    done = ridgeline("serve", "latency", "deepseek-v3", "--device", "H200", "--count", "8", "--spec", "spec.toml")
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("serve", "latency"), "a MODEL and a --device"),
        ((*USUAL, "--output-tokens", "8k"), "--output-tokens"),
        ((*USUAL[:-1], "0"), "--batch"),
        ((*USUAL[:-1], "nan"), "--batch"),
        ((*USUAL[:-1], "1e30"), "1 to 1,048,576 sequences, got '1e+30', at --batch"),
        ((*USUAL, "--price", "nan"), "--price"),
        ((*USUAL, "--price", "1e30"), "a price of 0 to 10,000 dollars per chip-hour"),
    ],
)
def test_bad_input_is_named(ridgeline: Any, words: tuple[str, ...], said: str) -> None:
    done = ridgeline(*words)
    assert done.code == 2
    assert said in done.err
