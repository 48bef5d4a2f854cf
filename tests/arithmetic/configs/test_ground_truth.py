"""Every config of the public set is exact to the parameter, or refused by name. See README.md for the tally."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from ridgeline.arithmetic.params import counts, params
from ridgeline.arithmetic.read_model import read_model
from ridgeline.arithmetic.spec import Part
from ridgeline.core.errors import InputError

pytestmark = pytest.mark.data

ORIGINAL = ("aiconfigurator", "simai", "stored_repos")
# Listed with the count of a class with vision that ignores the sizes at the top level and takes its own defaults: they
# are those of the file but for the rows of the vocabulary (128,815 there). The file is the text part: rows it has more.
TEXT_ALONE = {
    "aiconfigurator/stepfun-ai--Step-3.7-Flash_config.json": 81,
    "aiconfigurator/stepfun-ai--Step-3.7-Flash-FP8_config.json": 81,
}
# Every refusal, and the place it names. Whatever is not here must be exact.
REFUSED = {
    "maxtext/qwen3_omni_30b_a3b.json": "$.model_type",
    "transformers_default/deepseek_v2.json": "$.num_experts_per_tok",  # null: a router that picks nothing
    "transformers_default/dots1.json": "$.n_routed_experts",  # null
    "transformers_default/glm4_moe.json": "$.num_attention_heads",  # 96 heads on a width of 4096, no head_dim
    "transformers_default/jetmoe.json": "$.model_type",
}


def index(data_dir: Path) -> list[dict[str, str]]:
    with (data_dir / "plan" / "hf_configs" / "INDEX.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def path(data_dir: Path, file: str) -> Path:
    return data_dir / "plan" / "hf_configs" / file


def outcome(data_dir: Path, row: dict[str, str]) -> str:
    """exact, uncounted (no figure to compare with), refused (where it has to be), or wrong with the figures."""
    try:
        spec, _ = read_model(path(data_dir, row["file"]))  # the file itself, as the command reads it
    except InputError as error:
        listed = error.where.endswith(f": {REFUSED.get(row['file'])}")
        return "refused" if listed else f"wrong: {row['file']} refused at {error.where}"
    if not row["exact_params_total"]:
        return "uncounted"
    found = params(spec)
    vision = counts(spec)[Part.VISION][0]
    got = (int(found.total.value), int(found.active.value), vision)
    want = (int(row["exact_params_total"]), int(row["exact_params_active"]), int(row["vision_params"] or 0))
    if row["file"] in TEXT_ALONE:
        more = 2 * TEXT_ALONE[row["file"]] * spec.d_model - want[2]
        want = (want[0] + more, want[1] + more, 0)
    return "exact" if got == want else f"wrong: {row['file']} {got} instead of {want}"


@pytest.fixture(scope="module")
def outcomes(data_dir: Path) -> dict[str, str]:
    return {row["file"]: outcome(data_dir, row) for row in index(data_dir)}


def test_exact_or_refused(outcomes: dict[str, str]) -> None:
    assert [text for text in outcomes.values() if text.startswith("wrong")] == []


def test_the_refusals_are_those_listed(outcomes: dict[str, str]) -> None:
    assert {file for file, text in outcomes.items() if text == "refused"} == set(REFUSED)


def test_nearly_all_original_configs_are_exact(outcomes: dict[str, str]) -> None:
    original = {file: text for file, text in outcomes.items() if file.startswith(ORIGINAL)}
    assert len(original) >= 80
    assert sum(text == "exact" for text in original.values()) >= 0.9 * len(original)


def test_the_readme_has_the_tally(outcomes: dict[str, str]) -> None:
    readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    folders = sorted({file.partition("/")[0] for file in outcomes})
    for folder in folders:
        tally = Counter(text for file, text in outcomes.items() if file.partition("/")[0] == folder)
        row = f"| {folder} | {sum(tally.values())} | {tally['exact']} | {tally['refused']} | {tally['uncounted']} |"
        assert row in readme


def test_checkpoint_indexes(data_dir: Path) -> None:
    """Totals from the weight indexes of published checkpoints, where their config is in the set."""
    with (data_dir / "plan" / "param_ground_truth.tsv").open(encoding="utf-8", newline="") as file:
        rows = [r for r in csv.DictReader(file, delimiter="\t") if r["config_in_set"] and r["agreement"] == "exact"]
    assert rows
    for row in rows:
        found = params(read_model(path(data_dir, row["config_in_set"]))[0])
        assert found.total.value == int(row["parameters"]), row["model"]
