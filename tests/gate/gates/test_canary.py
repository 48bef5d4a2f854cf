"""The canary gate: every depth of every length decides, and nothing that could hide a loss ships."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.gate.canary.simulated import Found, at_rate, canary, run

from ridgeline.core.errors import InputError
from ridgeline.core.finding import Finding, Verdict
from ridgeline.gate.canary.configs import read_serving
from ridgeline.gate.canary.generate import Recipe
from ridgeline.gate.canary.results import read_run
from ridgeline.gate.canary.sets import CanarySet
from ridgeline.gate.case import Decided, case_of
from ridgeline.gate.decision import Check, Outcome
from ridgeline.gate.gates.canary import DEPTHS, Evidence, decide, label, stratum
from ridgeline.gate.registration.plan import Plan

PLAN = Plan(gate="canary", margin=0.06, slice_margin=0.15)
CONTEXTS = 40


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> CanarySet:
    return canary(tmp_path_factory.mktemp("set"), Recipe((1000, 3000), CONTEXTS, 10))[0]


Judge = Callable[..., Decided]


@pytest.fixture
def judge(held: CanarySet, tmp_path: Path) -> Judge:
    def judged(base: Found, cand: Found, plan: Plan = PLAN, failed: frozenset[str] = frozenset()) -> Decided:
        first = read_run(run(held, tmp_path / "base.jsonl", base, 1))
        second = read_run(run(held, tmp_path / "cand.jsonl", cand, 2, failed))
        return decide(Evidence(first, second, held), plan)

    return judged


def named(found: Decided, name: str) -> Check:
    return next(check for check in found.checks if check.name == name)


def code(found: Decided, wanted: str) -> list[Finding]:
    return [item for item in found.findings if item.code == wanted]


def always(*_: object) -> bool:
    return True


def test_ships_only_where_every_depth_of_every_length_holds(judge: Judge) -> None:
    found = judge(at_rate(0.99), at_rate(0.99))
    names = {check.name for check in found.checks}
    cells = {f"{stratum(d)}, {length}" for d in range(DEPTHS) for length in ("to 1K", "to 4K")}
    assert names == {"overall", *cells, *(stratum(d) for d in range(DEPTHS))}
    assert all(check.required for check in found.checks)
    assert found.outcome is Outcome.SHIP
    assert {check.interval.n for check in found.checks if "," in check.name} == {CONTEXTS}


def test_one_lost_depth_of_one_length_is_enough(judge: Judge) -> None:
    def lost(c: object, n: object, r: np.random.Generator) -> bool:
        return not (c.length > 1500 and 0.5 <= n.depth < 0.6 and r.random() < 0.7)  # type: ignore[attr-defined]

    found = judge(always, lost)
    assert named(found, "overall").outcome is Outcome.SHIP
    assert found.outcome is Outcome.NO_SHIP
    failing = [check.name for check in found.checks if check.outcome is Outcome.NO_SHIP]
    assert failing == ["depth 50-60%", "depth 50-60%, to 4K"]
    case = case_of(found)
    worst = min(case.tables["canary.cells"].rows, key=lambda row: row[2])
    assert worst[:2] == ("50-60%", "to 4K")
    assert worst[2] < -30


def test_fewer_contexts_than_thirty_are_no_evidence(tmp_path: Path) -> None:
    few = canary(tmp_path, Recipe((1000,), 20, 10))[0]
    runs = [read_run(run(few, tmp_path / f"{name}.jsonl", always)) for name in ("a", "b")]
    found = decide(Evidence(runs[0], runs[1]), PLAN)
    assert found.outcome is Outcome.INCONCLUSIVE
    cells = [check for check in found.checks if check.name != "overall"]
    assert {check.interval.degenerate for check in cells} == {"20 of the 30 contexts that are asked for"}
    assert {check.needed for check in cells} == {10}


def test_a_depth_that_nobody_asked_is_no_evidence(judge: Judge, held: CanarySet, tmp_path: Path) -> None:
    shallow = replace(held, contexts={
        name: replace(item, needles=tuple(n for n in item.needles if n.depth < 0.9))
        for name, item in held.contexts.items()
    })  # fmt: skip
    runs = [read_run(run(shallow, tmp_path / f"{name}.jsonl", always)) for name in ("a", "b")]
    found = decide(Evidence(runs[0], runs[1]), PLAN)
    empty = [check for check in found.checks if check.interval.degenerate]
    assert [check.name for check in empty] == ["depth 90-100%", "depth 90-100%, to 1K", "depth 90-100%, to 4K"]
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "no needle stands there" in case_of(found).because


def test_a_baseline_that_finds_little_cannot_show_a_loss(judge: Judge) -> None:
    found = judge(at_rate(0.2), at_rate(0.2))
    assert found.outcome is not Outcome.SHIP
    assert all("so that a loss cannot show" in c.interval.degenerate for c in found.checks if c.name.endswith("K"))


def test_errors_are_misses(judge: Judge, held: CanarySet) -> None:
    failed = frozenset(list(held.contexts)[: CONTEXTS // 2])
    found = judge(always, always, failed=failed)
    assert named(found, "overall").interval.estimate == -0.25
    assert found.outcome is Outcome.NO_SHIP


def test_needles_of_a_context_are_one_cluster(judge: Judge, held: CanarySet) -> None:
    def whole(c: object, n: object, r: np.random.Generator) -> bool:
        return not str(c.id).endswith("7")  # type: ignore[attr-defined]

    found = named(judge(always, whole), "overall")
    assert found.interval.clusters == 2 * CONTEXTS
    assert found.interval.estimate == pytest.approx(-0.1)
    assert found.interval.high - found.interval.low > 0.08  # 800 needles that are 80 contexts


def test_one_context_is_no_evidence(tmp_path: Path) -> None:
    one = canary(tmp_path, Recipe((1000,), 1, 10))[0]
    runs = [read_run(run(one, tmp_path / f"{name}.jsonl", always)) for name in ("a", "b")]
    found = decide(Evidence(runs[0], runs[1]), PLAN)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert named(found, "overall").interval.degenerate == "one group"


def test_eviction_blocks_and_says_where(judge: Judge) -> None:
    def near(c: object, n: object, r: np.random.Generator) -> bool:
        return bool(c.length - n.position <= 2048)  # type: ignore[attr-defined]

    found = judge(at_rate(0.99), near)
    assert found.outcome is Outcome.NO_SHIP
    failed = [item for item in code(found, "G124") if item.verdict is Verdict.FAIL]
    assert len(failed) == 1
    assert "beyond the last 2,048 tokens" in failed[0].sentence
    assert named(found, "canary G124").outcome is Outcome.INCONCLUSIVE


def test_a_window_in_both_runs_is_seen_though_their_difference_is_none(judge: Judge) -> None:
    def near(c: object, n: object, r: np.random.Generator) -> bool:
        return bool(c.length - n.position <= 2048)  # type: ignore[attr-defined]

    found = judge(near, near)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert [item.verdict for item in code(found, "G124")] == [Verdict.WARN, Verdict.WARN, Verdict.PASS]
    assert "finds 0% there" in named(found, "depth 0-10%, to 4K").interval.degenerate


def test_a_configuration_that_forgets_never_ships(held: CanarySet, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 2, "sliding_window": 512, "max_model_len": 8192}')
    serving = (read_serving(tmp_path / "config.json"),)
    runs = [read_run(run(held, tmp_path / f"{name}.jsonl", at_rate(0.99), seed)) for name, seed in (("a", 1), ("b", 2))]
    assert decide(Evidence(runs[0], runs[1], held), PLAN).outcome is Outcome.SHIP
    found = decide(Evidence(runs[0], runs[1], held, serving), PLAN)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert "config.json: $.sliding_window" in named(found, "canary G120").interval.degenerate
    alone = decide(Evidence(serving=serving), PLAN)
    assert [check.name for check in alone.checks] == ["results", "canary G120"]
    assert case_of(alone).decision.startswith("INCONCLUSIVE")


def test_prompts_that_were_cut_never_ship(held: CanarySet, tmp_path: Path) -> None:
    paths = [run(held, tmp_path / f"{name}.jsonl", at_rate(0.99), seed) for name, seed in (("a", 1), ("b", 2))]
    for path in paths:
        text = path.read_text()
        for tokens in {item.length for item in held.contexts.values() if item.length > 1500}:
            text = text.replace(f'"prompt_tokens": {tokens}', '"prompt_tokens": 1500')
        path.write_text(text)
    found = decide(Evidence(read_run(paths[0]), read_run(paths[1])), PLAN)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert [item.verdict for item in code(found, "G126")] == [Verdict.FAIL, Verdict.FAIL]


def test_answers_that_were_cut_are_said(held: CanarySet, tmp_path: Path) -> None:
    paths = [run(held, tmp_path / f"{name}.jsonl", at_rate(0.99), seed) for name, seed in (("a", 1), ("b", 2))]
    paths[1].write_text(paths[1].read_text().replace('"finish": "stop"', '"finish": "length"', 3))
    found = decide(Evidence(read_run(paths[0]), read_run(paths[1])), PLAN)
    warned = [item for item in code(found, "G126") if item.verdict is Verdict.WARN]
    assert ["3 of 80 answers" in item.sentence for item in warned] == [True]


def test_runs_of_two_sets_are_refused(held: CanarySet, tmp_path: Path) -> None:
    other = canary(tmp_path, Recipe((1000, 3000), CONTEXTS, 10, seed=9))[0]
    runs = [read_run(run(item, tmp_path / f"{i}.jsonl", always)) for i, item in enumerate((held, other))]
    with pytest.raises(InputError, match="two runs over one canary set"):
        decide(Evidence(runs[0], runs[1]), PLAN)


def test_one_run_alone_or_nothing_is_refused(held: CanarySet, tmp_path: Path) -> None:
    only = read_run(run(held, tmp_path / "a.jsonl", always))
    with pytest.raises(InputError, match="two runs"):
        decide(Evidence(only), PLAN)
    with pytest.raises(InputError, match="one file twice"):
        decide(Evidence(only, only), PLAN)
    with pytest.raises(InputError, match="results or a configuration"):
        decide(Evidence(), PLAN)
    with pytest.raises(InputError, match="a plan of one look"):
        decide(Evidence(only, only), Plan(gate="canary", sequential=True, n=1000))


def table(path: Path, move: int = 0) -> Path:
    rows = [f"{c}-{d},c{c},{100 * d + 50 + (move if c == d == 3 else 0)},1000,1" for c in range(40) for d in range(10)]
    path.write_text(f"id,context,position,length,hit,{path.stem}\n" + ",0\n".join(rows) + ",0\n", encoding="utf-8")
    return path


def test_tables_are_judged_alike_and_places_must_agree(tmp_path: Path) -> None:
    base = read_run(table(tmp_path / "a.csv"))
    found = decide(Evidence(base, read_run(table(tmp_path / "bb.csv"))), PLAN)
    assert [check.outcome for check in found.checks if "to 1K" in check.name] == [Outcome.SHIP] * 10
    with pytest.raises(InputError, match="one position of every needle"):
        decide(Evidence(base, read_run(table(tmp_path / "ccc.csv", move=20))), PLAN)


def test_a_margin_of_one_depth_or_cell(judge: Judge) -> None:
    plan = PLAN.model_copy(update={"margins": {"depth 0-10%": 0.2, "depth 10-20%, to 4K": 0.3}})
    found = judge(always, always, plan)
    assert named(found, "depth 0-10%, to 4K").margin == 0.2
    assert named(found, "depth 10-20%, to 4K").margin == 0.3
    assert named(found, "depth 10-20%, to 1K").margin == 0.15


@pytest.mark.parametrize(
    ("tokens", "name"), [(512, "to 512"), (1024, "to 1K"), (131072, "to 128K"), (2**20, "to 1M"), (2**21, "to 2M")]
)
def test_lengths_are_named_as_contexts_are(tokens: int, name: str) -> None:
    assert label(tokens) == name


def test_the_case_holds_its_pictures(judge: Judge) -> None:
    case = case_of(judge(at_rate(0.99), at_rate(0.99)))
    assert {"canary.heat", "canary.distance", "gate.forest"} <= set(case.charts)
    assert {"canary.cells", "canary.distance", "canary.windows", "gate.checks"} <= set(case.tables)
    assert len(case.tables["canary.cells"].rows) == 20
    case.to_json()
