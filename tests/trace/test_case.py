"""The case of a run: the decision names what costs most, every number is there, hostile names stay words."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.trace.kineto_job import HOSTILE, write_job

from ridgeline.core.case import Case
from ridgeline.core.errors import InputError
from ridgeline.core.finding import Finding, RuleConfig, Verdict
from ridgeline.core.quantity import given
from ridgeline.report import html, markdown, terminal, why
from ridgeline.trace.analyse import analyse
from ridgeline.trace.audit import audit
from ridgeline.trace.case import quoted, trace_case
from ridgeline.trace.context import read_context
from ridgeline.trace.facts import TraceFacts


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> TraceFacts:
    """Two ranks, the second late."""
    return analyse(write_job(tmp_path_factory.mktemp("job")))


@pytest.fixture(scope="module")
def case(facts: TraceFacts) -> Case:
    """Its case."""
    return trace_case(facts, command="ridgeline trace job")


def test_the_decision_names_share_and_cause(case: Case) -> None:
    text = case.text(case.decision)
    assert "of the step of 10.0 ms is exposed communication" in text
    assert "rank1" in text
    assert "wait for rank1, 2.00 ms a step" in text
    assert "2 ranks, 12 steady steps each" in case.text(case.because)


def test_the_quantities_of_every_rank(case: Case) -> None:
    for rank in ("rank0", "rank1"):
        parts = {name: case.find(f"{rank}.{name}") for name in ("span", "compute", "comm", "overlap", "exposed_comm",
                                                                 "exposed_copy", "idle")}  # fmt: skip
        assert {q.unit for q in parts.values()} == {"s"}
        assert parts["idle"].kind == "derived"
        known = sum(float(parts[name].value) for name in ("compute", "exposed_comm", "exposed_copy", "idle"))
        assert known == pytest.approx(float(parts["span"].value))
    assert float(case.find("rank0.exposed_comm").value) == pytest.approx(12 * 2.9e-3)


def test_sections_tables_and_charts(case: Case) -> None:
    wanted = {"trace.parts", "trace.timeline", "trace.heat", "trace.matrix", "bridge.bars"}
    assert wanted <= set(case.charts)
    tables = {"trace.buckets", "trace.steps", "trace.collectives", "trace.operations", "trace.families"}
    assert tables <= set(case.tables)
    assert next(iter(case.sections)).show[0] == "trace.buckets"
    assert {chart.table for chart in case.charts.values()} <= set(case.tables)


def test_absent_levels_are_said_and_their_rules_do_not_run(case: Case) -> None:
    assert any(line.startswith("L3: ") for line in case.lost)
    assert not any(finding.code.startswith("T3") for finding in case.findings)
    assert any(finding.code == "T152" and finding.verdict is Verdict.FAIL for finding in case.findings)


def test_the_bridge_is_reconciled_once(case: Case) -> None:
    assert [finding.code for finding in case.findings].count("T008") == 1


def test_rules_may_be_selected(facts: TraceFacts) -> None:
    found = trace_case(facts, config=RuleConfig(select=("T15",)))
    assert {finding.code[:3] for finding in found.findings} == {"T15"}


def test_it_renders_everywhere(case: Case) -> None:
    document = json.loads(case.dumps())
    lines = terminal.card(document, 80, "trace.html", "trace.json").splitlines()
    assert max(map(len, lines)) <= 80
    assert "<svg" in html.render(document)
    assert "rank1" in markdown.render(document)
    for name in document["quantities"]:
        assert name in why.tree(document, name)


def test_a_run_without_a_bridge_still_has_a_case(facts: TraceFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    from ridgeline.core.errors import InputError

    def refuse(*args: Any) -> None:
        raise InputError("Expected causes that leave some of the step", where="the causes")

    monkeypatch.setattr("ridgeline.trace.case.bridge_of", refuse)
    found = trace_case(facts)
    assert "no bridge: Expected causes that leave some of the step at the causes" in found.lost
    assert "bridge.bars" not in found.charts


def test_one_rank(tmp_path: Path) -> None:
    found = trace_case(analyse(write_job(tmp_path / "job", ranks=1)))
    assert any(line.startswith("L4: one rank") for line in found.lost)
    assert "trace.heat" not in found.charts
    assert "1 rank, " in found.text(found.because)


def test_the_card_says_what_of_the_input_was_lost(tmp_path: Path) -> None:
    folder = write_job(tmp_path / "job", ranks=3)
    (folder / "rank1.json").write_text("")
    cut = (folder / "rank2.json").read_text()
    (folder / "rank2.json").write_text(cut[: len(cut) // 2])
    case = trace_case(analyse(folder))
    assert "Of the input: file not read: no trace is in rank1.json: 1" in case.text(case.because)
    assert "more in the report." in case.text(case.because)


def test_work_of_no_length_is_no_step(tmp_path: Path) -> None:
    row = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 0}
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": [row, row]}))
    case = trace_case(analyse(tmp_path))
    assert "neither a trace of a device nor a step log" in case.text(case.decision)
    assert any(text.startswith("L0: no work on a device") for text in case.lost)


def test_a_bridge_that_was_asked_for_is_built_or_refused(repo: Path) -> None:
    context = read_context(repo / "examples" / "incident")
    wrong = context.file.cause[0].model_copy(update={"seconds": {"exposed_com": 2.75}})
    context = replace(context, file=context.file.model_copy(update={"cause": (wrong,)}))
    facts = TraceFacts(context=context, audit=audit(context))
    with pytest.raises(InputError, match="a bucket of the step"):
        trace_case(facts, lead="bridge")
    assert any(text.startswith("no bridge: Expected a bucket") for text in trace_case(facts).lost)


def test_device_samples_alone(tmp_path: Path) -> None:
    rows = "\n".join(f"    {gpu}    500   {90 if gpu == 1 else 60}     -     95     50      0      0   2600   "
                     f"{1200 if gpu == 1 else 1700}" for _ in range(20) for gpu in range(4))  # fmt: skip
    head = "# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk\n# Idx      W      C      C      %"
    (tmp_path / "dmon.log").write_text(f"{head}      %      %      %    MHz    MHz\n{rows}\n")
    found = trace_case(analyse(tmp_path / "dmon.log"))
    assert "Of 4 devices stand out: rank1 (throttled by heat)" in found.text(found.decision)
    assert [item.path for item in found.inputs] == [str(tmp_path / "dmon.log")]


def test_a_step_that_computes(tmp_path: Path) -> None:
    found = trace_case(analyse(write_job(tmp_path / "job", ranks=1, comm_us=0)))
    assert found.text(found.decision).startswith("The device computes for")


def test_no_trace_at_all(repo: Path) -> None:
    context = read_context(repo / "examples" / "incident")
    found = trace_case(TraceFacts(context=context, audit=audit(context)), lead="bridge")
    text = found.text(found.decision)
    assert "50.0% was expected" in text
    assert "from 25.0% to 45.0% MFU" in text
    assert any(line.startswith("L0 to L2: no trace") for line in found.lost)


def test_hostile_names_stay_words(tmp_path: Path) -> None:
    case = trace_case(analyse(write_job(tmp_path / "job", kernel=HOSTILE)))
    document = json.loads(case.dumps())
    page = html.render(document)
    assert "<img src=x" not in page
    assert "gemm</script>" not in page
    card = terminal.card(document)
    assert not {"\x1b", "\u202e", "\x9b"} & set(card)
    assert "alert(1)" in json.dumps(document["tables"])


def test_braces_in_a_sentence_name_only_quantities_of_the_finding() -> None:
    step = given("own.step", 1.0, "s")
    found = Finding("T201", "Matmuls", Verdict.FAIL, "{own.step} in {rank0.span} and {x{own.step|2}}", "do {this}",
                    value=step)  # fmt: skip
    assert quoted(found).sentence == "{own.step} in (rank0.span) and {x{own.step|2}}"
    assert quoted(found).fix == "do (this)"
    made = Case("trace", "x")
    made.add_findings([quoted(replace(found, sentence="{own.step} in {kernel}"))])
    assert made.to_json()["findings"][0]["sentence"] == "1.00 s in (kernel)"


@pytest.mark.data
def test_the_eight_ranks(data_dir: Path) -> None:
    case = trace_case(analyse(data_dir / "trace" / "gpt_8xh100"))
    assert "wait for rank1" in case.decision
    for name, value_ms in (("span", 176.292), ("compute", 122.122), ("comm", 48.340), ("overlap", 7.684),
                           ("exposed_comm", 40.656), ("idle", 11.927)):  # fmt: skip
        assert float(case.find(f"rank0.{name}").value) * 1e3 == pytest.approx(value_ms, abs=0.01)


@pytest.mark.data
def test_a_job_that_copies(data_dir: Path) -> None:
    case = trace_case(analyse(data_dir / "trace" / "nsys" / "h100_2gpu_1s.sqlite"))
    assert "exposed copies" in case.text(case.decision)
