"""What a recipe costs: exact parameters, tokens on the budget, memory on the cluster, chips of a conversation."""

from dataclasses import dataclass, fields, replace

from ridgeline.arithmetic import laws
from ridgeline.arithmetic.activations import Keeping, activations
from ridgeline.arithmetic.budget import tokens_for
from ridgeline.arithmetic.flops import Term, flops
from ridgeline.arithmetic.kv import kv_cache
from ridgeline.arithmetic.latency import ChipsNeeded, Served, chips_needed
from ridgeline.arithmetic.memory import state_of_count, training_state
from ridgeline.arithmetic.pairs import Batch
from ridgeline.arithmetic.params import params
from ridgeline.arithmetic.sharding import Sharding
from ridgeline.core.catalog import constant
from ridgeline.core.law import Law
from ridgeline.core.quantity import Quantity, derive, renamed
from ridgeline.plan.budget import Cluster
from ridgeline.plan.candidates import Candidate, Product
from ridgeline.plan.recipes import Recipe, moe_of, recipes
from ridgeline.plan.study import Study

# First parts of the names that belong to one recipe and not to the plan.
_OWN = ("params", "model", "flops", "memory", "kv", "batch", "plan")


@dataclass(frozen=True)
class RecipeFacts:
    """A recipe with its numbers. What rests on an unknown device figure, or on no fitting law, is None.

    ``attention`` is the share of the step's FLOPs that 6N leaves out. ``device`` is the training memory of one
    chip (state at ZeRO-3 and activations of one sequence, selective recompute), ``room`` its share of the chip's.
    """

    recipe: Recipe
    total: Quantity
    active: Quantity
    tokens: Quantity
    loss: Quantity | None
    attention: Quantity
    device: Quantity
    room: Quantity | None
    cache: Quantity
    weights: Quantity
    needed: ChipsNeeded | None = None

    @property
    def all(self) -> list[Quantity]:
        """Everything that a Case should carry."""
        serving = [self.needed.hold, self.needed.exact, self.needed.time.total] if self.needed else []
        return [*(value for value in vars(self).values() if isinstance(value, Quantity)), *serving]

    def under(self, prefix: str) -> "RecipeFacts":
        """The same with the names that are the recipe's own below ``prefix``."""

        def rename(name: str) -> str:
            return f"{prefix}.{name}" if name.partition(".")[0] in _OWN else name

        own = {f.name: q for f in fields(self) if isinstance(q := getattr(self, f.name), Quantity)}
        # one call for all, so that what they share stays shared
        return replace(self, **dict(zip(own, renamed(own.values(), rename), strict=True)))  # type: ignore[arg-type]


def recipe_facts(
    study: Study, machine: Cluster, chosen: Candidate, law: Law, need: Product | None
) -> tuple[RecipeFacts, ...]:
    """The dense recipes for the chosen size, and the mixture of experts at equal active parameters where asked."""
    tile = int(machine.tile.value)
    found = recipes(float(chosen.params.value), study.vocab or int(constant("planning.vocab").value), tile)
    if study.moe is not None:
        mixture = study.moe
        found.append(moe_of(found[0], experts=mixture.experts, top_k=mixture.top_k, shared=mixture.shared, tile=tile))
    return tuple(_facts(item, study, machine, law, need) for item in found)


def state_share(machine: Cluster, chosen: Candidate) -> Quantity | None:
    """The fully sharded training state over the memory of all chips; None where that memory is not known."""
    if machine.device.hbm_bytes is None:
        return None
    each = state_of_count(chosen.params, Sharding.of()).total
    state = renamed([each], lambda name: f"state.{name}" if name.partition(".")[0] in _OWN else name)[0]
    state = state.named("state.bytes").titled("Training state, held once")
    memory = derive("state.memory", "chips*each", "B", chips=machine.chips, each=machine.device.hbm_bytes)
    share = derive("state.share", "state/memory", "%", state=state, memory=memory.titled("Memory of all chips"))
    return share.titled("Training state as a share of all memory")


def sharding(machine: Cluster) -> Sharding:
    """ZeRO-3 over the whole tensor-parallel groups that the chips make."""
    chips = int(machine.chips.value)
    tp = min(int(constant("recipes.tensor_parallel").value), chips)
    return Sharding.of(zero=3, dp=chips // tp, tp=tp, sequence_parallel=1)


def _facts(recipe: Recipe, study: Study, machine: Cluster, law: Law, need: Product | None) -> RecipeFacts:
    counted, split, batch = params(recipe.spec), sharding(machine), _one_sequence(study)
    tokens = tokens_for(machine.compute, counted.active).named("params.tokens").titled("Tokens on this budget, 6ND")
    width = need.bytes_per_param if need else constant("planning.bytes_per_weight")
    weights = derive("params.weights", "params*width", "B", params=counted.total, width=width)
    device = _device_memory(recipe, split, batch)
    prefix = f"recipe.{recipe.style}"
    facts = RecipeFacts(
        recipe, counted.total, counted.active, tokens,
        laws.loss(law, counted.total, tokens, "params.loss") if recipe.shape.experts is None else None,
        _attention_share(recipe, batch), device, _room(device, machine), _cache(recipe, need, batch),
        weights.titled("Bytes of weights"),
    ).under(prefix)  # fmt: skip
    return replace(facts, needed=_needed(facts, need, prefix)) if need else facts


def _one_sequence(study: Study) -> Batch:
    """One training sequence; its length is the study's, else an assumption."""
    length = study.sequence or int(constant("planning.seq_len").value)
    batch = Batch.of(length)
    return batch if study.sequence else replace(batch, seq=constant("planning.seq_len").named(batch.seq.name))


def _cache(recipe: Recipe, need: Product | None, batch: Batch) -> Quantity:
    """The cache of one sequence: of a turn's prefill where a need is given, else of a training sequence."""
    return kv_cache(recipe.spec, need.turn.prefill if need else batch.seq).per_sequence


def _attention_share(recipe: Recipe, batch: Batch) -> Quantity:
    step = flops(recipe.spec, batch, mask="half")
    core = {str(term): step.step_parts[term] for term in (Term.SCORES, Term.VALUES)}
    text = f"({' + '.join(core)})/step"
    return derive("flops.attention_share", text, "%", step=step.train_step, **core).titled("Attention, not in 6N")


def _device_memory(recipe: Recipe, split: Sharding, batch: Batch) -> Quantity:
    state = training_state(recipe.spec, split).total
    kept = activations(recipe.spec, batch, split, Keeping("selective")).total
    found = derive("memory.device", "state + activations", "B", state=state, activations=kept)
    return found.titled("Training memory per chip")


def _room(device: Quantity, machine: Cluster) -> Quantity | None:
    if machine.device.hbm_bytes is None:
        return None
    found = derive("memory.share", "device/count(memory)", "%", device=device, memory=machine.device.hbm_bytes)
    return found.titled("Share of a chip's memory")


def _needed(facts: RecipeFacts, need: Product, prefix: str) -> ChipsNeeded:
    swept = derive(f"{prefix}.swept", "active*width", "B", active=facts.active, width=need.bytes_per_param)
    model = Served(active=facts.active, stored=facts.weights, swept=swept, cache=facts.cache)
    return chips_needed(model, need.chips[need.main], need.turn, prefix=prefix)
