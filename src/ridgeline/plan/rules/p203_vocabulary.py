"""P203: is the vocabulary on one chip a multiple of the widest tile."""

from collections.abc import Iterable

from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.plan.prelaunch.review_facts import ReviewFacts


@rule("P203", "Vocabulary on one chip is a multiple of the tile", threshold=0.05, unit="%",
      why="points of peak: padding the table is free, so what shows in the first decimal is worth it")  # fmt: skip
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    The vocabulary over the chips that share it, against a tile of 256. The value is the head's share of the
    FLOPs times what the tile pads, in points of peak; the price is that of this design's own step.

    ## Why it matters
    The head is one matmul as wide as the vocabulary. A part that ends inside a tile pads it in every micro-batch, and
    one that is odd in elements loses the aligned loads as well.

    ## How to confirm
    `ridgeline why CASE geometry.vocab.points` shows the part, the tile and the share of the FLOPs.

    ## What to do, cheapest first
    1. Pad the table to a multiple of the tile times the chips; mask the added logits.
    2. Lower the expectation by these points.

    ## Sources
    Worked numbers of the MFU incident, geometry audit; docs/design/surfaces.md for the tiles.
    """
    padded = facts.geometry.of("vocab") if facts.geometry else None
    if padded is None:
        yield this.found(
            Verdict.UNKNOWN, "The matmul tile of the device is not known, so neither is what the vocabulary costs.",
            "Give geometry.tile or a device TOML with design.tile.",
        )  # fmt: skip
        return
    holds = this.holds(padded.points)
    multiple = int(padded.tile.value) * (facts.proposal.file.geometry.vocab_shards or facts.axis("tp"))
    nearest = -(-facts.spec.vocab // multiple) * multiple
    yield this.found(
        Verdict.PASS if holds else Verdict.WARN,
        f"A vocabulary of {facts.spec.vocab:,} is {{{padded.size.name}|4}} on one chip in tiles of "
        f"{{{padded.tile.name}}}: {{{padded.points.name}|2}} of peak on {{{padded.share.name}|2}} of the FLOPs.",
        "" if holds else f"Pad the table to {nearest:,}.",
        value=padded.points, cost=Cost() if holds else facts.points(facts.unpadded(padded)),
        cites=(padded.size, padded.tile, padded.share, padded.efficiency),
    )  # fmt: skip
