"""P202: are the widths that one chip holds multiples of the tile."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import lcm

from ridgeline.arithmetic.spec import MLP, ModelSpec, MoE
from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Quantity, derive, given
from ridgeline.plan.prelaunch.reshaped import resized, with_ffns
from ridgeline.plan.prelaunch.review_facts import ReviewFacts


@rule("P202", "Widths on one chip are multiples of the tile", threshold=0.1, unit="%",
      why="MFU points: a width is free to choose before launch, so a tenth of a point is worth a digit")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    d_model, and the widths of the MLP and of the experts divided by their tensor parallelism, against the matmul tile.
    The price of a width is what the step model gains with the next multiple, or what the tile pads on a device whose
    matmuls were not measured.

    ## Why it matters
    What a tile pads is multiplied and thrown away. A row that does not start on 16 bytes is worse: the one public
    measurement lost a third of the rate to d_ff = 10,922 where 10,944 had none of it.

    ## How to confirm
    Time one MLP matmul at the local width and at the next multiple.

    ## What to do, cheapest first
    1. Round the width to a multiple of the tile times the tensor parallelism.
    2. Choose a tensor parallelism that divides the width into whole tiles.

    ## Sources
    NVIDIA, Matrix Multiplication Background; Machine Learning Engineering Open Book, d_ff of Llama-2-7B.
    """
    tile = facts.cluster.device.tile
    if tile is None:
        yield this.found(
            Verdict.UNKNOWN, "The matmul tile of the device is not known, so neither is what the widths cost.",
            "Give a device TOML with design.tile.",
        )  # fmt: skip
        return
    widths = list(_widths(facts, int(tile.value)))
    bad = [width for width in widths if width.model % (width.step)]
    if not bad:
        names = ", ".join(f"{width.what} {width.model / width.split:,g}" for width in widths)
        yield this.found(
            Verdict.PASS,
            f"Widths on one chip are multiples of the tile of {{{tile.name}}}: {names}.",
            "",
            cites=(tile,),
        )
    for width in bad:
        yield _finding(facts, this, width, tile)


@dataclass(frozen=True)
class _Width:
    """A width of the ``model`` that ``split`` chips share; ``step`` is the multiple that it should be of."""

    what: str
    model: int
    split: int
    step: int


def _widths(facts: ReviewFacts, tile: int) -> Iterable[_Width]:
    tp, etp = facts.axis("tp"), facts.axis("etp")
    split = tp if facts.axis("sequence_parallel") else 1
    yield _Width("d_model", facts.spec.d_model, 1, lcm(tile, split))
    blocks = [ffn for kind in facts.spec.kinds for ffn in kind.ffns]
    for size in sorted({block.d_ff for block in blocks if isinstance(block, MLP)}):
        yield _Width("d_ff", size, tp, tile * tp)
    for size in sorted({block.expert_ff for block in blocks if isinstance(block, MoE)}):
        yield _Width("expert_ff", size, etp, tile * etp)


def _finding(facts: ReviewFacts, this: Rule, width: _Width, tile: Quantity) -> Finding:
    name = f"width.{width.what}.{width.model}"
    local = derive(
        f"{name}.local", "width/chips", "1",
        width=given(f"{name}.model", width.model, "1", "the model"),
        chips=given(f"{name}.chips", width.split, "1", "the plan"),
    ).titled(f"{width.what} on one chip")  # fmt: skip
    nearest = -(-width.model // width.step) * width.step
    points = _points(facts, width, name, nearest)
    holds = points is not None and this.holds(points)
    worth = "" if points is None else f", worth {{{points.name}|2}} of peak"
    return this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"{width.what} {width.model:,} is {{{local.name}|5}} on one chip, no multiple of {{{tile.name}}}{worth}.",
        "" if holds else f"Take {nearest:,}, or {nearest - width.step:,}.",
        value=points, cost=Cost() if holds or points is None else facts.points(points), cites=(local, tile),
    )  # fmt: skip


def _points(facts: ReviewFacts, width: _Width, name: str, nearest: int) -> Quantity | None:
    padded = facts.geometry.of(width.what) if facts.geometry else None
    if not facts.measured and padded is not None:
        return facts.unpadded(padded)
    if width.what == "d_model":
        return None
    changed = _changed(facts.spec, width.what, width.model, nearest)
    return facts.instead(name, spec=changed)


def _changed(spec: ModelSpec, what: str, size: int, nearest: int) -> ModelSpec:
    """The model with one width rounded up."""
    return with_ffns(spec, lambda ffn: resized(ffn, **{what: nearest}) if getattr(ffn, what, None) == size else ffn)
