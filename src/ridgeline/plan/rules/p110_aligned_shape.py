"""P110: is there a tile-aligned shape of the chosen size, and does it fit a chip."""

from collections.abc import Iterable

from ridgeline.core.finding import Finding, Rule, Verdict, rule
from ridgeline.plan.plan import Plan


@rule("P110", "An aligned recipe fits a chip", threshold=85, unit="%",
      why="the rest is for the layer being gathered, communication buffers and the allocator")  # fmt: skip
def check(plan: Plan, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    That a shape of the chosen size exists whose sharded dimensions are multiples of the matmul tile, and that its
    training state at ZeRO-3 with the activations of one sequence fits a chip.

    ## Why it matters
    A dimension that is not a multiple of the tile is padded, every step, for the whole run. A plan that needs full
    recomputation to fit pays up to a third more FLOPs.

    ## How to confirm
    `ridgeline why CASE recipe.balanced.memory.device` shows every term. Run one step of the shape.

    ## What to do, cheapest first
    1. Take a neighbouring size: the recipe table lists the closest.
    2. Use full recomputation, more tensor parallelism or context parallelism.
    3. Change the vocabulary to a multiple of the tile.

    ## Sources
    Korthikanti et al. 2022 (arXiv:2205.05198) for the activations; Rajbhandari et al. 2020 (arXiv:1910.02054).
    """
    if not plan.recipes:
        first_line = plan.no_shape.splitlines()[0]
        yield this.found(Verdict.WARN, f"{first_line}.", "Give a smaller vocab, or another size.")
        return
    first = plan.recipes[0]
    if first.room is None:
        yield this.found(
            Verdict.UNKNOWN, "The memory of the chip is not known, so whether a recipe fits is not either.",
            "Give a device TOML with hbm.bytes.",
        )  # fmt: skip
        return
    tile, vocab = plan.cluster.tile, first.recipe.shape.vocab
    if vocab % int(tile.value):
        yield this.found(
            Verdict.WARN, f"A vocabulary of {vocab:,} is padded to a multiple of the matmul tile, {{{tile.name}}}.",
            "Pad the vocabulary yourself, once, in the tokenizer's table.", cites=(tile,),
        )  # fmt: skip
    fits = this.holds(first.room)
    yield this.found(
        Verdict.PASS if fits else Verdict.FAIL,
        f"The {first.recipe.style} recipe takes {{{first.device.name}}} a chip: {{{first.room.name}}} of its memory.",
        "" if fits else "Use full recomputation or context parallelism, or a smaller model.",
        value=first.room, cites=(first.device,),
    )  # fmt: skip
