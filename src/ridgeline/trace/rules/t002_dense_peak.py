"""T002: is the denominator the dense peak of the data type that the matmuls run in."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive, given
from ridgeline.trace.audit import Audit
from ridgeline.trace.context import RunContext
from ridgeline.trace.facts import TraceFacts


@rule("T002", "MFU is over the dense peak")
def check(facts: TraceFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The peak under the reported MFU (`mfu.peak`) against the device's dense peak in the run's data type, its peaks with
    structured sparsity, and those of other data types. Where no peak is stated: whether the reported number is what a
    sparse peak would give.

    ## Why it matters
    Datasheets print the sparse figure in large type. A sparse denominator halves the MFU, and half of the lost
    performance never existed; an fp8 peak under a bf16 run does the same.

    ## How to confirm
    `ridgeline devices NAME` lists every peak with its source. Look up the constant in your trainer.

    ## What to do, cheapest first
    1. Divide by the dense peak of the data type of the matmuls.
    2. Let the trainer refuse a device that it does not know, instead of falling back to another one's peak.

    ## Sources
    `core/data/accelerators`, each figure with its source.
    """
    found, context = facts.audit, facts.context
    if found is None or context.peak is None:
        yield this.found(
            Verdict.UNKNOWN, "The device or its dense peak is not known, so the denominator is not checked.",
            "Give machine.chips and machine.dtype in run.toml.",
        )  # fmt: skip
        return
    if found.denominator is None:
        yield _from_readings(found, this)
        return
    if found.denominator == "dense":
        yield this.found(Verdict.PASS, f"MFU is over the dense peak, {{{context.peak.name}}}.", "", value=context.peak)
        return
    yield _wrong(found, context, this)


def _wrong(found: Audit, context: RunContext, this: Rule) -> Finding:
    assert context.peak is not None
    assert context.file.mfu.peak is not None
    what = {"sparse": "the peak with structured sparsity", "other dtype": "the peak of another data type"}
    said = what.get(str(found.denominator), "no peak of this device")
    stated = given("audit.stated_peak", context.file.mfu.peak, "FLOP/s/chip", "mfu.peak").titled(
        "Peak of the reported MFU"
    )
    cites = [stated, context.peak]
    corrected = ""
    if context.reported is not None:
        inputs = {"reported": context.reported, "stated": stated, "dense": context.peak}
        true = derive("audit.reported_dense", "reported*stated/dense", "%", **inputs)
        cites.append(true.titled("Reported MFU over the dense peak"))
        corrected = f" Over the dense peak the reported MFU is {{{true.name}}}."
    return this.found(
        Verdict.FAIL,
        f"MFU is over {{{stated.name}}}, {said}; the dense peak is {{{context.peak.name}}}.{corrected}",
        "Divide by the dense peak of the data type of the matmuls.",
        cites=tuple(cites),
    )


def _from_readings(found: Audit, this: Rule) -> Finding:
    near = found.matches(within=1.0)
    fix = "Give mfu.peak in run.toml: the constant that your trainer divides by."
    if near and all(reading.denominator == "sparse" for reading in near):
        first = near[0]
        sentence = f"The reported MFU is what {first.title} over the sparse peak gives, {{{first.mfu.name}}}."
        return this.found(Verdict.WARN, sentence, fix, value=first.mfu)
    return this.found(Verdict.UNKNOWN, "The peak under the reported MFU is not stated.", fix)
