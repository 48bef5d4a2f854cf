"""A realistic Case, built through the core API: every part a renderer must show, at least once."""

from typing import Any

import numpy as np

from ridgeline.core import charts
from ridgeline.core.case import Case, Chart, Column, InputFile, Section, Table
from ridgeline.core.finding import Cost, Finding, Verdict
from ridgeline.core.quantity import Quantity, Source, derive, draws, given, leaf

SHEET = Source("H100 data sheet", "SXM column, without sparsity", "2026-01-10", "https://example.org/h100")
LIST = Source("list prices, three clouds", "", "2026-01-10")
LAW = Source("Hoffmann et al. 2022", "approach 3", "2026-01-10", "https://example.org/law")


def budget() -> dict[str, Quantity]:
    """The flagship's numbers, from the cluster to the optimum."""
    chips = given("cluster.chips", 1000, "chip", "--chips").titled("Chips")
    peak = leaf("cluster.peak", 989.4, "TFLOP/s/chip", "published", SHEET).titled("Dense bf16 peak")
    days = given("budget.days", 30, "day", "--days").titled("Days")
    mfu = leaf("mfu.assumed", 0.4, "1", "assumed", Source("usual range of dense runs", "0.35 to 0.45"),
               "No measurement of this cluster was given.").titled("MFU, PaLM convention")  # fmt: skip
    compute = derive("compute", "chips*peak*mfu*days", "FLOP", chips=chips, peak=peak, mfu=mfu, days=days)
    compute = compute.titled("Training compute")
    ratio = draws("law.ratio", np.linspace(17.5, 23.5, 101), "token/param", "published", LAW).titled("Tokens per param")
    params = derive("optimum.params", "(C/(6*ratio))**0.5", "param", C=compute, ratio=ratio)
    price = leaf("price.chip_hour", 2.5, "USD/(chip*h)", "assumed", LIST)
    money = derive("cost.training", "chips*days*price", "USD", chips=chips, days=days, price=price)
    stored = leaf("weights.count", 92.5e9, "param").titled("Weights stored")
    width = leaf("weights.width", 2, "B/param").titled("Bytes of a bf16 weight")
    memory = derive("memory.weights", "width*N", "B", width=width, N=stored)
    return {
        "compute": compute,
        "params": params.titled("Compute-optimal parameters"),
        "price": price.titled("Price of a chip-hour"),
        "money": money.titled("Cost of training"),
        "chips": chips,
        "memory": memory.titled("Weights in bf16"),
    }


def rank_table() -> Table:
    """Twenty-four ranks: longer than what is shown at first."""
    columns = (
        Column("rank", "Rank"),
        Column("exposed_s", "Exposed communication", "s", "communication that no compute hides"),
        Column("mfu", "MFU, PaLM convention", "%"),
        Column("note", "Note"),
    )
    rows = tuple(
        (str(rank), 0.040 + 0.0013 * rank, 41.7 - 0.13 * rank, None if rank == 5 else ("slow" if rank == 17 else ""))
        for rank in range(24)
    )
    return Table("Ranks by exposed communication", columns, rows, highlight=17, mark="the straggler")


def law_table() -> Table:
    """Loss over parameters under two laws."""
    columns = (
        Column("params", "Parameters", "param"), Column("loss", "Loss", "nat"), Column("law", "Law"),
    )  # fmt: skip
    rows = []
    for law, floor, scale in (("Hoffmann", 1.69, 406.4), ("Besiroglu", 1.82, 482.0)):
        sizes = (1e9, 3e9, 8e9, 24e9, 70e9, 200e9)
        rows += [(n, floor + scale / n**0.34 + 1e-13 * n, law) for n in sizes]
    return Table("Loss over size", columns, tuple(rows))


def step_table() -> Table:
    """Where one step goes, by activity."""
    columns = (Column("job", "Job"), Column("part", "Activity"), Column("time", "Time", "s"))
    parts = {"compute": 6.1, "communication": 2.2, "copies": 0.5, "host": 0.4, "idle": 0.9}
    jobs = {"baseline": 1.0, "overlap": 0.86}
    rows = [(job, part, value * share) for job, share in jobs.items() for part, value in parts.items()]
    return Table("Step time by activity", columns, tuple(rows))


def candidates(numbers: dict[str, Quantity]) -> Table:
    """A short list of models, with a quantity among the cells."""
    columns = (
        Column("model", "Model"), Column("params", "Parameters", "param"), Column("tokens", "Tokens", "token"),
        Column("loss", "Loss", "nat"), Column("chips", "Chips a turn", "chip"), Column("cost", "Training", "USD"),
    )  # fmt: skip
    rows = (
        ("optimum", numbers["params"], 1.85e12, 1.9312, 64, numbers["money"]),
        ("mid", 30.1e9, 5.68e12, 1.9478, 8, 1_800_000),
        ("small", 7.24e9, 23.6e12, 1.9891, 2, 1_800_000),
    )
    return Table("Candidates at equal compute", columns, rows, highlight=1, mark="chosen", note="Loss under Hoffmann.")


def findings(numbers: dict[str, Quantity]) -> list[Finding]:
    """All four verdicts, with and without a cost."""
    limit = leaf("need.chips", 8, "chip", "specified", Source("study.toml", "$.need")).titled("Chips a conversation")
    used = leaf("serve.chips", 64, "chip", "measured", Source("roofline of the turn", "section 3")).titled("Chips used")
    lost = leaf("serve.cost_per_year", 41_000_000, "USD", "assumed", Source("traffic scenario", "1e15 tokens"))
    hours = leaf("failure.chip_hours", 21_600, "chip*h", "assumed", Source("failures of published runs", "median"))
    mfu_gap = leaf("mfu.gap", 2.1, "%", "measured", Source("trace", "rank 17")).titled("MFU lost to the straggler")
    return [
        Finding("P031", "One conversation needs too many chips", Verdict.FAIL,
                "The compute-optimal {optimum.params} takes {serve.chips} for one turn of one second.",
                "Train the 30B candidate on {optimum.tokens} instead; its loss is 0.017 nat higher.",
                value=used, threshold=limit, cost=Cost(dollars=lost), cites=(numbers["params"], tokens(numbers))),
        Finding("P012", "Restarts are not in the budget", Verdict.WARN,
                "Failures at the usual rate take {failure.chip_hours} of 720,000.", "Set `budget.reserve` to 3%.",
                cost=Cost(chip_hours=hours)),
        Finding("T103", "One rank is late in every step", Verdict.WARN, "Rank 17 costs {mfu.gap} of MFU.",
                "Drain the node of rank 17 and run the link test.", cost=Cost(mfu_points=mfu_gap), cites=(mfu_gap,)),
        Finding("P020", "Unique tokens are not known", Verdict.UNKNOWN, "No figure for unique tokens was given.",
                "Give `unique_tokens`; a count of the corpus with one pass of `wc` is enough."),
        Finding("P040", "Power stays inside the site limit", Verdict.PASS, "The cluster draws 1.4 MW of 2.0 MW.", ""),
        Finding("P041", "Weights fit when sharded", Verdict.PASS, "Weights take {memory.weights}.", "",
                cites=(numbers["memory"],)),
    ]  # fmt: skip


def tokens(numbers: dict[str, Quantity]) -> Quantity:
    """Tokens for the optimum."""
    compute, params = numbers["compute"], numbers["params"]
    return derive("optimum.tokens", "C/(6*N)", "token", C=compute, N=params).titled("Compute-optimal tokens")


def evidence() -> dict[str, Any]:
    """What a trace tool drops into the study folder."""
    case = Case("trace", "Step trace of 24 ranks", "Rank 17 is late: {rank17.exposed_comm} of every step.")
    case.add(leaf("rank17.exposed_comm", 0.0621, "s", "measured", Source("rank17.json", "step 400")))
    case.add_table("ranks", rank_table())
    case.add_table("step", step_table())
    spec = charts.bars(step_table(), "job", "time", "part")
    case.charts["step"] = Chart("Communication takes a fifth of the step", "Stacked bars of step time", spec, "step")
    case.sections = [Section("Ranks", ("The worst rank shows {rank17.exposed_comm}.",), ("step", "ranks"))]
    case.command = "ridgeline trace run17/"
    return case.to_json()


def sample() -> Case:
    """The whole Case."""
    numbers = budget()
    case = Case("plan", "1,000 H100 for 30 days: what to train",
                "Train 30B on 5.7T tokens, not the compute-optimal {optimum.params}: "
                "{compute|4} at {mfu.assumed} MFU buys either, and only the smaller serves a turn on 8 chips. "
                "A need of 64 chips a conversation, or traffic below 2e13 tokens, would change this.",
                command="ridgeline memo examples/flagship")  # fmt: skip
    case.add(*numbers.values(), tokens(numbers))
    case.inputs = [InputFile.of("examples/flagship/study.toml", b"[budget]\nchips = '1000xH100'\n")]
    case.add_findings(findings(numbers))
    case.add_table("candidates", candidates(numbers))
    case.add_table("laws", law_table())
    look = charts.Look(log_x=True, mark_x=((92.5e9, "optimum"),))
    spec = charts.line(law_table(), "params", "loss", "law", look=look)
    case.charts["laws"] = Chart("The laws agree that 30B costs little", "Two curves of loss", spec, "laws")
    case.sections = [
        Section("The choice", ("{compute|4} over {cluster.chips} buys one of three models. It costs {cost.training}.",
                               "The table holds compute equal."), ("candidates", "laws")),
        Section("Memory", ("Weights in bf16 take {memory.weights}.",)),
    ]  # fmt: skip
    case.lost = ["rank 3 of the trace was cut after step 212"]
    case.evidence = [evidence()]
    return case
