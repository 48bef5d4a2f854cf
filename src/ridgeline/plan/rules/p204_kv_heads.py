"""P204: do query and key-value heads divide over the tensor-parallel group."""

from collections.abc import Iterable

from ridgeline.arithmetic.flops import Term, flops
from ridgeline.arithmetic.spec import Attention
from ridgeline.core.finding import Cost, Finding, Rule, Verdict, rule
from ridgeline.core.quantity import Quantity, derive, given
from ridgeline.plan.prelaunch.review_facts import MATMULS, ReviewFacts


@rule("P204", "Key-value heads divide over tensor parallelism")
def check(facts: ReviewFacts, this: Rule) -> Iterable[Finding]:
    """
    ## What it checks
    Key-value heads against tensor parallelism, and query heads on one chip. With fewer key-value heads than chips in
    the group each is copied, and its projection is computed as often. Query heads that do not divide are refused
    before this rule: such a plan cannot run.

    ## Why it matters
    Copies cost matmul time, memory for their gradients and an all-reduce among the copies that frameworks forget.
    Neither a multiple nor a divisor means that no framework can place them.

    ## How to confirm
    Print the shape of the fused projection on one rank: it should hold heads/tp query and kv/tp key-value heads.

    ## What to do, cheapest first
    1. Choose tensor parallelism of at most the key-value heads, and more pipeline or data parallelism.
    2. Choose as many key-value heads as tensor-parallel chips in the next model.

    ## Sources
    Ainslie et al. 2023, GQA (arXiv:2305.13245); Shoeybi et al. 2019, Megatron-LM (arXiv:1909.08053).
    """
    tp = facts.axis("tp")
    blocks = [mixer for kind in facts.spec.kinds for mixer in kind.mixers if isinstance(mixer, Attention)]
    for kv_heads in sorted({block.kv_heads for block in blocks}):
        heads = next(block.heads for block in blocks if block.kv_heads == kv_heads)
        if kv_heads % tp == 0:
            yield this.found(
                Verdict.PASS, f"{heads} query and {kv_heads} key-value heads over tp={tp}: {heads // tp} and "
                f"{kv_heads // tp} on one chip.", "",
            )  # fmt: skip
        elif tp % kv_heads == 0:
            cost = _cost(facts, next(block for block in blocks if block.kv_heads == kv_heads), tp)
            yield this.found(
                Verdict.WARN, f"{kv_heads} key-value heads over tp={tp} are copied {tp // kv_heads} times.",
                f"Choose tp={kv_heads} or less.", cost=cost,
            )  # fmt: skip
        else:
            yield this.found(
                Verdict.FAIL, f"{kv_heads} key-value heads neither divide over tp={tp} nor copy evenly.",
                f"Choose a tp that divides {kv_heads}.",
            )  # fmt: skip


def _cost(facts: ReviewFacts, block: Attention, tp: int) -> Cost:
    """The projections of the copies: their share of the weights' FLOPs, at the mean rate of the matmuls."""
    name = f"kv_copies.{block.kv_heads}"
    parts: dict[str, Quantity] = {key: facts.terms[key] for key in MATMULS if key in facts.terms}
    matmuls = derive(f"{name}.matmuls", " + ".join(parts), "s", **parts).titled("Matmul time of a step")
    counted = flops(facts.spec, facts.batch, mask=facts.proposal.file.mask)
    core = {str(term): counted.step_parts[term] for term in (Term.SCORES, Term.VALUES)}
    wide = given(f"{name}.columns", block.kv_heads * (block.head_dim + block.v_head_dim), "1", "the model")
    layers = sum(facts.spec.uses(index) for index, kind in enumerate(facts.spec.kinds) if block in kind.mixers)
    inputs = {
        "matmuls": matmuls, "total": counted.train_step, **core, "tokens": facts.batch.tokens, "columns": wide,
        "d": given(f"{name}.d_model", facts.spec.d_model, "FLOP/token", "the model"),
        "layers": given(f"{name}.layers", layers, "1", "the model"),
        "copies": given(f"{name}.copies", tp // block.kv_heads, "1", "the plan"),
    }  # fmt: skip
    text = f"matmuls*6*d*columns*layers*tokens*(copies - 1)/(total - {' - '.join(core)})"
    seconds = derive(f"{name}.lost", text, "s", **inputs)
    return facts.lost(seconds.titled("Projections of copied key-value heads"))
