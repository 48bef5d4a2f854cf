"""The S2 rules: each fires on a run that has its fault and passes on one that has not."""

from pathlib import Path
from typing import Any

from tests.serve.simulate.formats import FORMATS, write
from tests.serve.simulate.studies import facts_of

from ridgeline.core.finding import Finding, Rule, Verdict
from ridgeline.core.plugins import load
from ridgeline.serve.simulate.facts import Simulated

POOLS = {"bandwidth": "50GB/s"}


RULES = {rule.code: rule for rule in load("ridgeline.serve.rules", Rule, kind="rule")}


def check(code: str, facts: Simulated) -> list[Finding]:
    rule = RULES[code]
    return list(rule.check(facts, rule))


def verdict(code: str, **tables: Any) -> Verdict:
    found = check(code, facts_of(**tables))
    assert len(found) == 1
    return found[0].verdict


def test_s201_overload() -> None:
    assert verdict("S201") is Verdict.PASS
    assert verdict("S201", traffic={"rate": 60.0}) is Verdict.FAIL
    assert check("S201", facts_of(traffic={"rate": None, "concurrency": 8})) == []


def test_s202_preemption() -> None:
    assert verdict("S202") is Verdict.PASS
    tight = {"engine": {"kv_blocks": 260}, "traffic": {"rate": 50.0, "output": {"p50": 800}, "requests": 60}}
    assert verdict("S202", **tight) is Verdict.WARN


def test_s203_memory() -> None:
    assert verdict("S203") is Verdict.PASS
    assert verdict("S203", engine={"kv_blocks": 150}, traffic={"rate": 20.0}) is Verdict.WARN


def shared_prompts(folder: Path, blocks: int = 10) -> str:
    """Ten users in turn, each with a prompt of his own that every one of his requests begins with."""
    rows = [
        f'{{"timestamp": {2000 * n}, "input_length": {512 * blocks}, "output_length": 20, '
        f'"hash_ids": {[100 * (n % 10) + k for k in range(blocks)]}}}\n'
        for n in range(60)
    ]
    return str(write(folder / "t.jsonl", "".join(rows)))


def test_s204_prefix_cache(tmp_path: Path) -> None:
    traffic = {"trace": shared_prompts(tmp_path), "rate": None, "requests": None, "input": None, "output": None}
    assert check("S204", facts_of()) == []
    assert verdict("S204", traffic=traffic) is Verdict.PASS
    found = check("S204", facts_of(traffic=traffic, engine={"prefix_cache": False}))[0]
    assert found.verdict is Verdict.WARN
    assert "The prefix cache is off" in found.sentence
    assert verdict("S204", traffic=traffic, engine={"kv_blocks": 1000}) is Verdict.WARN


def test_s205_queueing() -> None:
    assert verdict("S205", traffic={"rate": 0.1}) is Verdict.PASS
    assert verdict("S205", traffic={"rate": 60.0}) is Verdict.WARN


def test_s206_pools() -> None:
    assert check("S206", facts_of()) == []
    assert verdict("S206", engine={"pools": {**POOLS, "prefill": 1, "decode": 8}}) is Verdict.PASS
    assert verdict("S206", engine={"pools": {**POOLS, "prefill": 8, "decode": 1}}) is Verdict.WARN


def test_s207_loop(tmp_path: Path) -> None:
    assert verdict("S207") is Verdict.PASS
    assert verdict("S207", traffic={"rate": None, "concurrency": 8}) is Verdict.WARN
    file = str(write(tmp_path / "result.json", FORMATS["vLLM benchmark"]))
    traffic = {"trace": file, "rate": None, "requests": None, "input": None, "output": None}
    assert verdict("S207", traffic=traffic) is Verdict.WARN


def test_s208_warm_cache(tmp_path: Path) -> None:
    row = '{{"timestamp": {}, "input_length": 1024, "output_length": 20, "hash_ids": [{}, {}]}}\n'
    rows = [row.format(2000 * n, 2 * n, 2 * n + 1) for n in range(40)]
    file = str(write(tmp_path / "t.jsonl", "".join(rows)))
    traffic = {"trace": file, "rate": None, "requests": None, "input": None, "output": None, "repeat": 2}
    assert verdict("S208", traffic=traffic) is Verdict.WARN
    assert check("S208", facts_of(traffic={**traffic, "repeat": 1})) == []
    assert check("S208", facts_of(traffic=traffic, engine={"prefix_cache": False})) == []


def test_s209_slo() -> None:
    assert check("S209", facts_of()) == []
    assert verdict("S209", slo={"ttft": "2s", "tpot": "100ms"}) is Verdict.PASS
    assert verdict("S209", slo={"ttft": "2s", "tpot": "11ms"}) is Verdict.FAIL


def test_s209_by_class() -> None:
    classes = [{"name": "Fast chat", "share": 0.5, "ttft": "61ms"}, {"name": "batch", "share": 0.5, "ttft": "60s"}]
    found = check("S209", facts_of(traffic={"rate": 3.0, "classes": classes}))
    assert [item.verdict for item in found] == [Verdict.FAIL, Verdict.PASS]
    assert found[0].value is not None
    assert found[0].value.name == "simulate.goodput.share.fast_chat"


def test_s210_served() -> None:
    assert verdict("S210") is Verdict.PASS
    found = check("S210", facts_of(traffic={"input": {"p50": 9000}, "requests": 5}))[0]
    assert found.verdict is Verdict.FAIL
    assert "5: prompt and answer exceed max_context" in found.sentence
