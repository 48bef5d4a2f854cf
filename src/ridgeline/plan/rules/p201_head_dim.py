"""P201: does the head dimension fill the matrix unit."""

from collections.abc import Iterable

from ridgeline.arithmetic import kernels
from ridgeline.arithmetic.geometry import Padded
from ridgeline.arithmetic.spec import Attention
from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import derive
from ridgeline.plan.prelaunch.review_facts import ReviewFacts


@rule("P201", "Head dimension fills the matrix unit", threshold=0.5, unit="%",
      why="points of peak: half a point is the least that a later profile could tell from noise")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The head dimension of plain attention layers against the lanes of the matrix unit: slots that hold padding, in
    points of peak. The price is that of this design's own step: by the measured time per FLOP where attention was
    measured at this head dimension, elsewhere as if the kernel pads it.

    ## Why it matters
    A head of 96 on 128 lanes multiplies a quarter of zeros, in every layer, for the whole run. Head dimension 64 loses
    a quarter to nearly half of attention's rate on every device that was measured.

    ## How to confirm
    Time one attention layer at this head dimension and at the next multiple of the lanes: the same time means that the
    padding is executed.

    ## What to do, cheapest first
    1. Regroup the same width into fewer, wider heads: it costs no parameters.
    2. Lower the expectation by these points.

    ## Sources
    Worked numbers of the MFU incident, geometry audit; measured attention tables, docs/design/surfaces.md.
    """
    blocks = [mixer for kind in facts.spec.kinds for mixer in kind.mixers if isinstance(mixer, Attention)]
    dims = sorted({block.head_dim for block in blocks})
    if not dims:
        return
    padded = facts.geometry.of("head_dim") if facts.geometry else None
    if padded is None:
        yield this.found(
            Verdict.UNKNOWN, f"Head dimensions of {', '.join(map(str, dims))}: their share or the tile is not known.",
            "Give geometry.tile, or one head dimension for all layers.",
        )  # fmt: skip
        return
    cost, how = _price(facts, padded, dims[0])
    holds = this.holds(padded.points)
    said = f"Heads of {{{padded.size.name}|2}} fill {{{padded.efficiency.name}}} of {{{padded.tile.name}}} lanes"
    price = "" if holds or cost.mfu_points is None else f"; this design loses {{{cost.mfu_points.name}|2}} {how}"
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"{said}, on {{{padded.share.name}|2}} of the FLOPs: {{{padded.points.name}|2}} of peak{price}.",
        "" if holds else _fix(blocks[0], int(padded.tile.value)),
        value=padded.points, cost=Cost() if holds else cost,
        cites=(padded.size, padded.tile, padded.efficiency, padded.share),
    )  # fmt: skip


def _price(facts: ReviewFacts, padded: Padded, dim: int) -> tuple[Cost, str]:
    """The measured price where this head dimension was measured; elsewhere what a kernel that pads it takes."""
    device, core, aligned = facts.cluster.device, facts.terms.get("attention"), int(padded.tile.value)
    if core is None or not {dim, aligned} <= set(kernels.attention(device).dims):
        return facts.points(facts.unpadded(padded)), "if the kernel pads"
    penalty = kernels.head_dim_penalty(device, dim, aligned).titled("Time per FLOP over a full head, less one")
    inputs = {"attention": core, "penalty": penalty}
    seconds = derive("head_dim.lost", "attention*max(penalty, 0)/(1 + penalty)", "s", **inputs)
    return facts.lost(seconds.titled("Attention time that the head dimension takes")), "by measured attention times"


def _fix(block: Attention, aligned: int) -> str:
    width = block.heads * block.head_dim
    if width % aligned:
        return f"Choose heads of {aligned} in the next model, and lower the expectation by these points."
    return f"Regroup {block.heads} heads of {block.head_dim} into {width // aligned} of {aligned}: the same parameters."
