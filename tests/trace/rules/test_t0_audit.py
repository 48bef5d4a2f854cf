"""T001 to T009: each rule seen passing, failing and not knowing."""

from pathlib import Path

import pytest
from tests.trace.runs import context, facts, finding, number
from tests.trace.scenes import Scene, job
from tests.trace.traces import steady_rank

from ridgeline.core.plugins import rules
from ridgeline.trace.attribution import Cause
from ridgeline.trace.bridge import bridge
from ridgeline.trace.context import RunContext, read_context
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.incident import ends_of

NOTHING = facts(RunContext())


@pytest.fixture(scope="module")
def example() -> RunContext:
    return read_context(Path(__file__).resolve().parents[3] / "examples" / "incident")


def with_mfu(of: RunContext, **changed: object) -> RunContext:
    """A context read from files, with another table ``[mfu]``."""
    file = of.file.model_copy(update={"mfu": of.file.mfu.model_copy(update=changed)})
    return RunContext(file, of.path, of.spec, of.device)


@pytest.mark.parametrize("code", [f"T00{number}" for number in range(1, 10)])
def test_unknown_without_inputs(code: str) -> None:
    found = finding(NOTHING, code)
    assert str(found.verdict) == "unknown"
    assert found.fix
    assert found.cost.figures == {}


@pytest.mark.parametrize(
    ("mfu", "verdict", "said"),
    [
        ({}, "pass", "includes stalls"),
        ({"with_stalls": False}, "warn", "leaves stalls out"),
        ({"with_stalls": None}, "warn", "not said"),
        ({"convention": None}, "warn", "names no FLOP convention"),
    ],
)
def test_t001(mfu: dict[str, object], verdict: str, said: str) -> None:
    found = finding(facts(context(mfu=mfu)), "T001")
    assert (str(found.verdict), said in found.sentence) == (verdict, True), found.sentence


def test_t001_names_the_convention_that_matches() -> None:
    assert "what 6N" in finding(facts(context(mfu={"convention": None})), "T001").sentence


@pytest.mark.parametrize(
    ("peak", "verdict", "said"),
    [
        (989e12, "pass", "dense peak"),
        (1979e12, "fail", "structured sparsity"),
        (1234e12, "fail", "no peak of this device"),
    ],
)
def test_t002_on_an_h100(peak: float, verdict: str, said: str) -> None:
    found = finding(facts(context(machine={"chips": "256xH100"}, mfu={"peak": peak})), "T002")
    assert (str(found.verdict), said in found.sentence) == (verdict, True), found.sentence


def test_t002_corrects_the_reported_number() -> None:
    found = finding(facts(context(machine={"chips": "256xH100"}, mfu={"peak": 1978.8e12})), "T002")
    assert number(found.cites[-1]) == pytest.approx(50, abs=0.01)


def test_t002_without_a_stated_peak() -> None:
    h100 = context(machine={"chips": "256xH100"}, mfu={"peak": None})
    dense = number(h100.mfu) / 100
    assert str(finding(facts(h100), "T002").verdict) == "unknown"
    halved = context(machine={"chips": "256xH100"}, mfu={"peak": None, "reported": dense / 2})
    found = finding(facts(halved), "T002")
    assert (str(found.verdict), "sparse peak" in found.sentence) == ("warn", True)


def test_t003_passes_at_its_own_convention(example: RunContext) -> None:
    assert str(finding(facts(example), "T003").verdict) == "pass"


@pytest.mark.parametrize(
    ("reported", "said"),
    [(0.375, "an HFU"), (0.281, "PaLM"), (0.9, "No published convention"), (0.2745, "peak gives.")],
)
def test_t003_says_which_convention_it_is(example: RunContext, reported: float, said: str) -> None:
    found = finding(facts(with_mfu(example, reported=reported)), "T003")
    assert str(found.verdict) == "fail"
    assert said in found.sentence
    assert number(found.value) > 2


def test_t003_threshold(example: RunContext) -> None:
    assert str(finding(facts(with_mfu(example, reported=0.26)), "T003", 5).verdict) == "pass"


def test_t004() -> None:
    assert str(finding(facts(context()), "T004").verdict) == "pass"
    found = finding(facts(context(model={"params": "35B"})), "T004")
    assert str(found.verdict) == "fail"
    assert number(found.value) > 90


@pytest.mark.parametrize(("hbm", "said"), [(0.5, "memory-bound"), (0.1, "communication and the host")])
def test_t004_reads_the_counters(hbm: float, said: str) -> None:
    found = finding(facts(context(counters={"tensor_active": 0.3, "hbm_active": hbm})), "T004")
    assert said in found.sentence


def test_t005_on_the_incident(example: RunContext) -> None:
    found = finding(facts(example), "T005")
    assert str(found.verdict) == "warn"
    assert number(found.cost.seconds) == pytest.approx(number(example.ideal) * (1 / 0.46927 - 1 / 0.5), rel=1e-3)
    assert "head_dim" in found.sentence
    assert str(finding(facts(example), "T005", 4).verdict) == "pass"


def test_t006() -> None:
    assert str(finding(facts(context()), "T006").verdict) == "pass"
    slow = finding(facts(context(observed={"profiled": "18s"})), "T006")
    assert str(slow.verdict) == "warn"
    assert number(slow.value) == pytest.approx(20)


def test_t006_from_the_trace() -> None:
    of = context(observed={"profiled": None})
    found = finding(facts(of, l0=(steady_rank(14),)), "T006")
    assert str(found.verdict) == "warn"
    assert "misses stalls" in found.sentence


def test_t007() -> None:
    assert str(finding(facts(context(), l0=(steady_rank(1),)), "T007").verdict) == "pass"
    cut = steady_rank(1, label="rank1", status=("warm-up", "steady", "steady", "partial"))
    found = finding(facts(context(), l0=(steady_rank(1), cut)), "T007")
    assert (str(found.verdict), number(found.value)) == ("warn", 2)
    assert "1 partial, 1 warm-up" in found.sentence


def test_t007_without_markers() -> None:
    found = finding(facts(context(), l0=(steady_rank(1, status=("steady",), source="none"),)), "T007")
    assert str(found.verdict) == "unknown"


def bridged(of: RunContext, **seconds: float) -> TraceFacts:
    """Facts with a bridge in which one cause takes so many seconds of each bucket."""
    base = facts(of)
    assert base.audit is not None
    buckets = {"compute": 9.0, "exposed_comm": 3.6, "host_gap": 2.4}
    causes = [Cause(f"c {bucket}", {bucket: value}) for bucket, value in seconds.items()]
    return facts(of, bridge=bridge(ends_of(of, base.audit), buckets, causes))


def test_t008() -> None:
    good = finding(bridged(context(), compute=3.0, exposed_comm=3.0, host_gap=1.3), "T008")
    assert str(good.verdict) == "pass"
    short = finding(bridged(context(), exposed_comm=3.0), "T008")
    assert str(short.verdict) == "warn"
    assert "Most is left in host gap" in short.sentence
    assert number(short.cost.seconds) == pytest.approx(12 - number(context().ideal) * 2)


def test_t008_says_when_causes_explain_too_much() -> None:
    found = finding(bridged(context(), compute=4.0, exposed_comm=3.6, host_gap=2.0), "T008")
    assert str(found.verdict) == "warn"
    assert "more than separates" in found.sentence
    assert found.cost.figures == {}


def test_t009_a_possible_run() -> None:
    assert str(finding(facts(context()), "T009").verdict) == "pass"


def test_t009_a_step_that_is_too_short() -> None:
    found = finding(facts(context(machine={"chips": "256xH100"}, observed={"step": "2s"})), "T009")
    assert str(found.verdict) == "fail"
    assert number(found.value) == pytest.approx(174, abs=1)
    assert "off by" in found.sentence
    assert "the fp8 peak gives" in found.sentence
    assert number(found.cites[1]) == pytest.approx(87, abs=1)


def test_t009_a_report_above_the_peak() -> None:
    found = finding(facts(context(mfu={"reported": 1.1})), "T009")
    assert str(found.verdict) == "fail"
    assert number(found.value) == pytest.approx(110)


def test_t009_names_the_conventions_that_fit(example: RunContext) -> None:
    named = with_mfu(example, convention="nanogpt", reported=None)
    file = named.file.model_copy(update={"observed": named.file.observed.model_copy(update={"step": 3.8})})
    found = finding(facts(RunContext(file, named.path, named.spec, named.device)), "T009")
    assert str(found.verdict) == "fail"
    assert "counting as 6N of all active parameters gives" in found.sentence


@pytest.mark.parametrize(("numel", "fails"), [(8 << 20, False), (800 << 20, True)])
def test_t009_a_wire_that_is_too_fast(numel: int, fails: bool) -> None:
    scene = Scene(comm=[(9_000_000, 900_000, {"numel": numel})], launch=70)
    of = job(scene, scene, context=context(("batch", "mfu"), machine={"chips": "2xH100"}))
    found = [item for item in rules()["T009"].check(of, rules()["T009"]) if str(item.verdict) == "fail"]
    assert [item.sentence.startswith("all-") for item in found] == [True] * fails
