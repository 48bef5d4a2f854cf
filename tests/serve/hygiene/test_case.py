"""An audit as a case: findings, costs that add up, tables, and nothing in it that must not be shown."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripts.request_log import FAULTS, Plan, records, text, with_usage, write

from ridgeline.core.case import Case
from ridgeline.core.finding import Finding, Verdict
from ridgeline.core.quantity import given
from ridgeline.report import html, terminal
from ridgeline.serve.hygiene.audit import Cache, audit
from ridgeline.serve.hygiene.case import hygiene_case
from ridgeline.serve.hygiene.facts import Hygiene
from ridgeline.serve.hygiene.money import price

PLAN = Plan(turns=10)


def case_of(path: Path, cache: Cache | None = None) -> Case:
    rate = given("hygiene.prefill_rate", 20_000, "token/s")
    return hygiene_case(Hygiene(audit(path, cache or Cache(16)), price("2.50/0.25"), rate))


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def by_code(case: Case) -> dict[str, Finding]:
    return {finding.code: finding for finding in case.findings}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Case:
    plan = replace(PLAN, faults=frozenset(FAULTS))
    return case_of(write(tmp_path_factory.mktemp("log") / "log", with_usage(records(plan))))


def test_every_fault_has_its_finding(faulty: Case) -> None:
    verdicts = {finding.code: finding.verdict for finding in faulty.findings}
    assert {code for code, verdict in verdicts.items() if verdict == Verdict.FAIL} >= {"S301", "S302", "S303", "S309"}
    assert {"S304", "S305"} <= {finding.code for finding in faulty.findings if finding.verdict != Verdict.PASS}


def test_costs_add_up(faulty: Case) -> None:
    parts = [
        q for name, q in faulty.quantities.items() if name.startswith("hygiene.cause.") and name.endswith(".dollars")
    ]
    whole = faulty.quantities["hygiene.refilled.dollars"]
    assert len(parts) == 5
    assert sum(float(q.value) for q in parts) == pytest.approx(float(whole.value))
    tokens = float(faulty.quantities["hygiene.refilled"].value)
    assert float(whole.value) == pytest.approx(tokens * 2.25e-6)
    assert float(faulty.quantities["hygiene.refilled.seconds"].value) == pytest.approx(tokens / 20_000)


def test_the_document_is_whole_and_both_faces_draw(faulty: Case) -> None:
    document = json.loads(faulty.dumps())
    assert {"causes", "examples", "tree", "order", "lines"} <= set(document["tables"])
    assert {"hygiene.hit_rate.achieved", "hygiene.hit_rate.achievable", "hygiene.hit_rate.ceiling"} <= set(
        document["quantities"]
    )
    card = terminal.card(document)
    assert max(map(len, card.splitlines())) <= 80
    assert "<svg" in html.render(document)


def test_nobody_is_named(faulty: Case) -> None:
    assert "Adaeze" not in faulty.dumps()
    assert "Esperanza" not in faulty.dumps()


def test_a_secret_in_the_prompt_is_not_shown(tmp_path: Path) -> None:
    rng, key = random.Random(1), "sk-live-9f8e7d6c5b4a39281706f5e4"
    rules = text(rng, 400)
    rows = [{"prompt": f"api_key={key} now 2026-11-02T08:00:{i:02d}Z\n{rules}"} for i in range(30)]
    case = case_of(lines(tmp_path / "log", rows))
    assert by_code(case)["S301"].verdict == Verdict.FAIL
    assert key[8:] not in case.dumps()


def test_a_clean_log_passes(tmp_path: Path) -> None:
    case = case_of(write(tmp_path / "log", with_usage(records(PLAN))))
    assert {finding.verdict for finding in case.findings} == {Verdict.PASS}
    assert case.decision.startswith("Nothing keeps these prompts apart")


def test_few_requests_are_unknown(tmp_path: Path) -> None:
    case = case_of(write(tmp_path / "log", records(replace(PLAN, conversations=1, turns=4))))
    assert by_code(case)["S309"].verdict == Verdict.UNKNOWN
    assert "S301" not in by_code(case)
    assert case.decision.startswith("Too few requests")


def test_a_small_cache_and_prompts_without_a_common_start(tmp_path: Path) -> None:
    path = write(tmp_path / "log", records(replace(PLAN, conversations=8)))
    assert by_code(case_of(path, Cache(16, capacity_tokens=4000)))["S308"].verdict == Verdict.WARN
    assert by_code(case_of(path, Cache(16, capacity_tokens=1e6)))["S308"].verdict == Verdict.PASS
    rng = random.Random(2)
    apart = lines(tmp_path / "apart", [{"prompt": f"{i} {text(rng, 100)}"} for i in range(30)])
    assert "share a whole block" in by_code(case_of(apart))["S309"].sentence


def usage_log(path: Path, cached: int) -> Path:
    used = {"prompt_tokens": 400, "prompt_tokens_details": {"cached_tokens": cached}}
    prompt = text(random.Random(3), 400)
    return lines(path, [{"prompt": prompt, "usage": used} for _ in range(30)])


@pytest.mark.parametrize(("cached", "verdict"), [(384, "pass"), (100, "warn"), (400, "warn"), (500, None)])
def test_what_the_server_found(cached: int, verdict: str | None, tmp_path: Path) -> None:
    found = by_code(case_of(usage_log(tmp_path / "log", cached)))
    assert (found["S310"].verdict if "S310" in found else None) == verdict
    assert found["S311"].verdict == (Verdict.WARN if cached > 400 else Verdict.PASS)


def test_unreadable_lines_are_told(tmp_path: Path) -> None:
    path = write(tmp_path / "log", records(PLAN))
    with path.open("a", encoding="utf-8") as file:
        file.write('{"prompt": "cut\nhello\n')
    case = case_of(path)
    assert by_code(case)["S312"].verdict == Verdict.WARN
    assert "line 31" in case.lost[0]


def test_hashes_have_no_parts(tmp_path: Path) -> None:
    rows = [{"timestamp": i, "input_length": 1024, "hash_ids": [0, i]} for i in range(30)]
    case = case_of(lines(tmp_path / "log", rows))
    assert "order" not in case.tables
    assert float(case.quantities["hygiene.hit_rate.achievable"].value) == pytest.approx(100 * 29 / 60)
