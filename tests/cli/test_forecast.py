"""``ridgeline forecast`` and its words: the card, the document, the report, exit codes, what is refused."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ridgeline.core.case import load

TRUTH = {"A": 480.0, "B": 2100.0, "E": 1.82, "alpha": 0.35, "beta": 0.37}
TARGET = "1e22"  # one decade above the ladder
ALONE = ("--json", "-o", "case.json")  # the case without the page


def ladder(path: Path, *, shift: float = 0.0, seed: int = 0, header: str = "N") -> Path:
    """IsoFLOP runs of a known law with 0.1% of noise: five budgets of seven sizes over two decades."""
    rng = np.random.default_rng(seed)
    rows = []
    for compute in np.geomspace(1e19, 1e21, 5):
        best = 0.12 * np.sqrt(compute)
        for n in best * np.geomspace(0.25, 4, 7):
            d = compute / (6 * n)
            loss = TRUTH["E"] + shift + TRUTH["A"] / n ** TRUTH["alpha"] + TRUTH["B"] / d ** TRUTH["beta"]
            rows.append((n, d, 6 * n * d, loss * np.exp(0.001 * rng.standard_normal()), f"{compute:.1e}", "plain"))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([header, "D", "C", "loss", "budget", "recipe"])
        writer.writerows(rows)
    return path


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No ``ridgeline.toml`` of this repository, or of whoever runs the tests, has a say."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ridgeline.toml").write_text("")


@pytest.fixture
def points(tmp_path: Path) -> Path:
    return ladder(tmp_path / "points.csv")


def test_the_card_has_the_verdict_the_fit_and_eighty_columns(ridgeline: Any, points: Path) -> None:
    done = ridgeline("forecast", points, "--target", TARGET)
    assert done.code in (0, 1)
    assert done.out.splitlines()[2].partition(":")[0] in ("Decide", "Indicative", "Refuse")
    assert "Chinchilla fitted to 35 runs" in done.out
    assert "< target" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert {path.name for path in Path("forecast-report").iterdir()} == {"forecast.html", "forecast.json"}


def test_the_document_has_stable_names(ridgeline: Any, points: Path) -> None:
    done = ridgeline("forecast", points, "--target", TARGET, *ALONE)
    found = {name: entry["value"] for name, entry in done.json["quantities"].items()}
    assert {f"fit.{symbol}" for symbol in (*TRUTH, "objective", "A.low", "beta.high", "E.error")} <= set(found)
    assert found["fit.E"] == pytest.approx(TRUTH["E"], rel=0.05)
    truth = TRUTH["E"] + TRUTH["A"] / found["forecast.params"] ** 0.35 + TRUTH["B"] / found["forecast.tokens"] ** 0.37
    assert found["forecast.low"] < truth < found["forecast.high"]
    assert found["forecast.params"] * found["forecast.tokens"] * 6 == pytest.approx(1e22)
    assert found["forecast.decades"] == pytest.approx(1.0)
    assert done.json["inputs"][0]["path"] == str(points)
    assert done.json == load("case.json")
    assert not Path("forecast-report").exists()


def test_the_interval_follows_from_its_parts(ridgeline: Any, points: Path) -> None:
    document = ridgeline("forecast", points, "--target", TARGET, *ALONE).json
    found = {name: entry["value"] for name, entry in document["quantities"].items()}
    half = np.sqrt(found["forecast.noise"] ** 2 + found["forecast.constants.high"] ** 2 + found["forecast.growth"] ** 2)
    assert found["forecast.high"] == pytest.approx(found["forecast.loss"] * np.exp(half))
    assert "sqrt(noise**2" in document["quantities"]["forecast.high"]["formula"]


def test_why_shows_the_law_with_its_constants(ridgeline: Any, points: Path) -> None:
    ridgeline("forecast", points, "--target", TARGET, "--law", "chinchilla", *ALONE)
    done = ridgeline("why", "case.json", "forecast.loss")
    assert "E + A / N^alpha + B / D^beta" in done.out.replace("α", "alpha").replace("β", "beta") or "A/N" in done.out
    assert "fit.A" in done.out
    assert "Chinchilla fitted to" in done.out


def test_the_charts_have_titles_alt_text_and_tables(ridgeline: Any, points: Path) -> None:
    document = ridgeline("forecast", points, "--target", TARGET, *ALONE).json
    assert {"forecast.fan", "isoflop.curves", "isoflop.optimum", "fit.residuals"} <= set(document["charts"])
    for chart in document["charts"].values():
        assert chart["title"]
        assert chart["alt"].endswith(".")
        assert chart["table"] in document["tables"]


def test_calibrate_counts_what_the_interval_held(ridgeline: Any, points: Path) -> None:
    done = ridgeline("forecast", points, "--target", TARGET, "--calibrate", *ALONE)
    table = done.json["tables"]["forecast.calibration"]
    covered = [column["name"] for column in table["columns"]].index("covered")
    shares = [row[covered] for row in table["rows"] if row[covered] is not None]
    assert shares
    assert all(0 <= share <= 100 for share in shares)
    assert np.mean(shares) >= 80  # the runs are of the law that is fitted
    assert done.json["command"].endswith("--calibrate")


def test_a_target_may_be_parameters_and_tokens(ridgeline: Any, points: Path) -> None:
    done = ridgeline("forecast", points, "--target", "3Bx100B", *ALONE)
    found = {name: entry["value"] for name, entry in done.json["quantities"].items()}
    assert (found["forecast.params"], found["forecast.tokens"]) == (3e9, 100e9)
    assert found["target"] == pytest.approx(1.8e21)


@pytest.mark.parametrize("name", ["point", "group", "residual", "average"])
def test_every_interval_holds_its_forecast(ridgeline: Any, points: Path, name: str) -> None:
    done = ridgeline("forecast", points, "--target", TARGET, "--interval", name, *ALONE)
    found = {key: entry["value"] for key, entry in done.json["quantities"].items()}
    assert found["forecast.low"] < found["forecast.loss"] < found["forecast.high"]


def test_a_spec_file_says_what_flags_say(ridgeline: Any, points: Path, tmp_path: Path) -> None:
    spec = tmp_path / "how.toml"
    spec.write_text('objective = "logls"\nlaws = ["chinchilla"]\ndraws = 50\n[where]\nrecipe = "plain"\n')
    done = ridgeline("forecast", points, "--target", TARGET, "--spec", spec, *ALONE)
    assert "objective logls" in done.json["quantities"]["fit.A"]["source"]["where"]
    flags = ("--objective", "logls", "--law", "chinchilla", "--where", "recipe=plain")
    same = ridgeline("forecast", points, "--target", TARGET, *flags, *ALONE)
    assert same.json["quantities"]["fit.A"]["value"] == done.json["quantities"]["fit.A"]["value"]


def test_a_header_is_mapped(ridgeline: Any, tmp_path: Path) -> None:
    odd = ladder(tmp_path / "odd.csv", header="weights in the net")
    done = ridgeline("forecast", odd, "--target", TARGET, "--column", "N=weights in the net", *ALONE)
    assert done.json["quantities"]["fit.alpha"]["value"] == pytest.approx(0.35, rel=0.3)


def test_dropped_rows_are_in_the_ledger(ridgeline: Any, points: Path) -> None:
    points.write_text(points.read_text() + "1e9,2e10,1.2e20,nan,x,plain\n")
    done = ridgeline("forecast", points, "--target", TARGET, *ALONE)
    assert any("line 37" in text for text in done.json["lost"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--target", "-1"), "above zero"),
        (("--target", "much"), "a compute in FLOP"),
        (("--target", TARGET, "--objective", "hubre"), "an objective"),
        (("--target", TARGET, "--law", "chinchila"), "chinchilla"),
        (("--target", TARGET, "--interval", "wide"), "a kind of interval"),
        (("--target", TARGET, "--where", "recipe"), "NAME=VALUE"),
        (("--target", TARGET, "--where", "recipe=fancy"), "fancy"),
        (("--target", TARGET, "--params", "some"), "non-embedding"),
        (("--target", TARGET, "--column", "N=nothing"), "nothing"),
        (("--target", "1e15"), "the smallest run of"),
        (("--target", "1e6x1e6"), "the smallest run of"),
        (("--target", TARGET, "--law", "data-constrained"), "at --law"),
    ],
)
def test_bad_options_are_refused(ridgeline: Any, points: Path, options: tuple[str, ...], said: str) -> None:
    done = ridgeline("forecast", points, *options)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


@pytest.mark.parametrize(
    ("header", "row", "flag"),
    [
        (
            "count of N,N,D,loss,param_count",
            ["1,1e8,2e9,3.2,kaplan", "1,2e8,2e9,3.1,standard"],
            "--where 'param_count=kaplan'",
        ),
        ("params_total,params_active,D,loss", ["2e8,1e8,2e9,3.2", "4e8,2e8,2e9,3.1"], "--params total"),
        ("sizes of nets,D,loss", ["1e8,2e9,3.2", "2e8,2e9,3.1"], "--column 'N="),
    ],
)
def test_hints_are_flags(ridgeline: Any, tmp_path: Path, header: str, row: list[str], flag: str) -> None:
    odd = tmp_path / "odd.csv"
    odd.write_text("\n".join([header, *row]) + "\n")
    done = ridgeline("forecast", odd, "--target", TARGET)
    assert done.code == 2
    assert flag in done.err


def test_a_bad_spec_names_the_place(ridgeline: Any, points: Path, tmp_path: Path) -> None:
    spec = tmp_path / "how.toml"
    spec.write_text('objectiv = "huber"\n')
    done = ridgeline("forecast", points, "--target", TARGET, "--spec", spec)
    assert done.code == 2
    assert "$.objectiv" in done.err
    assert "objective" in done.err


def test_two_points_are_refused(ridgeline: Any, tmp_path: Path) -> None:
    few = tmp_path / "few.csv"
    few.write_text("N,D,loss\n1e8,2e9,3.2\n2e8,4e9,3.0\n")
    done = ridgeline("forecast", few, "--target", TARGET)
    assert done.code == 2
    assert "Expected at least" in done.err


def test_compare_finds_the_shift(ridgeline: Any, points: Path, tmp_path: Path) -> None:
    better = ladder(tmp_path / "better.csv", shift=-0.05, seed=1)
    done = ridgeline("forecast", "compare", points, better, "--target", "3e21", "--chip", "H100", *ALONE)
    found = {name: entry["value"] for name, entry in done.json["quantities"].items()}
    assert found["compare.delta"] == pytest.approx(-0.05, abs=0.02)
    assert found["compare.delta.low"] < found["compare.delta"] < found["compare.delta.high"]
    assert found["compare.candidate.serving_price"] > 0
    assert done.json["decision"].startswith("Choose better")
    card = ridgeline("forecast", "compare", points, better, "--target", "3e21", "-o", "case.json").out
    assert max(map(len, card.splitlines())) <= 80


def test_compare_admits_what_it_cannot_tell(ridgeline: Any, points: Path, tmp_path: Path) -> None:
    same = ladder(tmp_path / "same.csv", seed=1)
    done = ridgeline("forecast", "compare", points, same, "--target", TARGET, "-o", "case.json")
    assert "Not enough evidence" in done.out
    assert done.code == 0


def test_next_names_runs_within_the_budget(ridgeline: Any, points: Path) -> None:
    done = ridgeline("forecast", "next", points, "--target", TARGET, "--budget", "2e20", "--chip", "H100", *ALONE)
    found = {name: entry["value"] for name, entry in done.json["quantities"].items()}
    spent = [value for name, value in found.items() if name.startswith("next.") and name.endswith(".compute")]
    assert 0 < sum(spent) <= 2e20 * (1 + 1e-9)
    assert found["next.after"] <= found["next.before"]
    assert len(spent) == len(done.json["tables"]["next.best"]["rows"])


def test_next_refuses_a_budget_below_every_run(ridgeline: Any, points: Path) -> None:
    done = ridgeline("forecast", "next", points, "--target", TARGET, "--budget", "1e10")
    assert done.code == 2
    assert "--budget" in done.err


def test_ladder_gives_the_worked_numbers(ridgeline: Any) -> None:
    done = ridgeline("forecast", "ladder", "--flagship", "1e25", "--sizes", "1", "--seeds", "1", *ALONE)
    found = {name: entry["value"] for name, entry in done.json["quantities"].items()}
    budgets = [found[f"ladder.budget.{i}"] for i in range(1, 6)]
    assert budgets == pytest.approx([1e18, 1.968e19, 3.873e20, 7.622e21, 1.5e23], rel=1e-3)
    assert found["ladder.total"] == pytest.approx(1.58e23, rel=1e-3)
    assert found["ladder.decades"] == pytest.approx(5.2, abs=0.05)


def test_ladder_writes_the_file_that_forecast_reads(ridgeline: Any) -> None:
    done = ridgeline("forecast", "ladder", "--flagship", "1e25", "--chip", "H100", "-o", "plan")
    assert done.code == 0
    assert "of chip-hours" in done.out
    header, *rows = Path("plan/ladder.csv").read_text().splitlines()
    assert header.split(",")[-1] == "loss"
    assert len(rows) == 5 * 3 + 2 * 2  # budgets of three sizes; two more seeds at the two smallest
    refused = ridgeline("forecast", "plan/ladder.csv", "--target", "1e25")
    assert refused.code == 2


def test_laws_are_listed_and_shown(ridgeline: Any) -> None:
    listed = ridgeline("forecast", "laws")
    assert {"chinchilla", "coupled", "farseer"} <= set(listed.out.split())
    shown = ridgeline("forecast", "laws", "precision")
    assert "What its source leaves open" in shown.out or "sign" in shown.out
    assert ridgeline("forecast", "laws", "nonesuch").code == 2


def test_every_law_of_size_and_tokens_makes_a_case(ridgeline: Any, points: Path) -> None:
    for law in ("kaplan", "overtraining", "farseer"):
        done = ridgeline("forecast", points, "--target", "3Bx100B", "--law", law, *ALONE)
        assert done.code in (0, 1), (law, done.err)
        assert done.json["quantities"]["forecast.loss"]["value"] > 0


@pytest.mark.parametrize("place", ["ladder.json", "."])
def test_a_ladder_is_not_written_over(ridgeline: Any, tmp_path: Path, place: str) -> None:
    rows = list(csv.DictReader(ladder(tmp_path / "points.csv").read_text().splitlines()))
    name = tmp_path / ("forecast.json" if place == "." else place)
    name.write_text(json.dumps([{key: float(row[key]) for key in ("N", "D", "C", "loss")} for row in rows]))
    before = name.read_bytes()
    done = ridgeline("forecast", name, "--target", TARGET, "-o", tmp_path / place)
    assert done.code == 2
    assert "that was read" in done.err
    assert name.read_bytes() == before


def test_filled_in_losses_are_not_written_over(ridgeline: Any) -> None:
    order = ("forecast", "ladder", "--flagship", "1e25", "-o", "plan")
    assert ridgeline(*order).code == 0
    assert ridgeline(*order, "--sizes", "1").code == 0
    runs = Path("plan/ladder.csv")
    header, first, *rest = runs.read_text().splitlines()
    runs.write_text("\n".join([header, first + "3.1", *rest]) + "\n")
    before = runs.read_text()
    done = ridgeline(*order)
    assert done.code == 2
    assert "filled in" in done.err
    assert runs.read_text() == before


@pytest.mark.parametrize("share", ["1.5", "0", "-1", "nan"])
def test_a_share_is_a_share(ridgeline: Any, share: str) -> None:
    done = ridgeline("forecast", "ladder", "--flagship", "1e25", "--fraction", share)
    assert done.code == 2
    assert "at --fraction" in done.err


def test_one_file_is_not_two_recipes(ridgeline: Any, points: Path) -> None:
    done = ridgeline("forecast", "compare", points, points, "--target", TARGET)
    assert done.code == 2
    assert "the same runs" in done.err


def test_a_lopsided_target_is_warned_of(ridgeline: Any, points: Path) -> None:
    found = ridgeline("forecast", points, "--target", "1Tx1B", *ALONE).json["findings"]
    said = next(item for item in found if item["code"] == "F111")
    assert said["verdict"] == "warn"
    assert "tokens a parameter" in said["sentence"]
