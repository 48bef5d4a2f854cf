"""How many requests a deployment holds at once, and how long one may be: the admission equation with its derivation.

The sums are those of `admission`, which a scheduler may copy; the tests hold the two together.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ridgeline.arithmetic.kv import Caching, KvCache, Row, Share, aligned_page, cached, kept
from ridgeline.arithmetic.params import Leaves
from ridgeline.arithmetic.spec import MLA, Attention, Mixer, ModelSpec
from ridgeline.core.catalog import constant
from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.core.quantity import Quantity, derive, given, leaf
from ridgeline.serve.capacity import admission
from ridgeline.serve.capacity.admission import Kind
from ridgeline.serve.capacity.memory import Room, room
from ridgeline.serve.capacity.settings import Settings
from ridgeline.serve.capacity.weights import share_of
from ridgeline.serve.deployment import Deployment, longest

_LONGEST = 2**40  # tokens: where a request has no longest


@dataclass(frozen=True)
class Capacity:
    """What fits. ``whole`` is the cache of one request over the model, ``dense`` its part on one chip to the byte and
    ``paged`` the same in pages; ``stage`` the pipeline stage with the least room, whose chip all figures describe.

    ``sequences`` (request) fit at once; ``max_context`` (token) is the longest single request, None where the model
    keeps nothing that grows and states no limit.
    """

    deployment: Deployment
    settings: Settings
    context: Quantity
    stage: int
    room: Room
    page: Quantity
    whole: KvCache
    dense: KvCache
    paged: KvCache
    sequences: Quantity
    max_context: Quantity | None

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The layer kinds of one chip as `admission` takes them."""
        return tuple(kind_of(row) for row in self.paged.rows)

    @property
    def free_bytes(self) -> float:
        """Bytes for the cache on one chip."""
        return float(self.room.free.base)

    @property
    def page_tokens(self) -> int:
        """Tokens of a page."""
        return int(self.page.value)


def capacity(deployment: Deployment, context: int, settings: Settings | None = None) -> Capacity:
    """What a deployment holds of requests of ``context`` tokens.

    Raises `InputError` for a context below one, key-value heads that the chips do not divide or a model that keeps
    nothing between tokens, and `InfeasibleError` where the weights leave no room, with the nearest number of chips
    that does.
    """
    settings = settings or Settings()
    if context < 1:
        raise InputError.expected("a context of at least 1 token", context, where="--context")
    require_heads(deployment)
    stages = _stages(deployment, settings)
    rooms = _rooms(deployment, settings, stages)
    tightest = _tightest(rooms)
    if tightest.free.value <= 0:
        raise _infeasible(deployment, settings, tightest)
    length = given("request.context", context, "token", "--context")
    places = [_Place(deployment, length, settings, stage, share) for stage, share in stages.items()]
    caching = [place for place in places if _caches(deployment.spec, place.share)]
    if not caching:
        raise InputError.expected("a model with a layer that caches", deployment.spec.name, where="the model")
    found = [_at_stage(place, rooms[place.stage]) for place in caching]
    return min(found, key=lambda item: (float(item.sequences.value), item.free_bytes))


@dataclass(frozen=True)
class Overfull:
    """A deployment whose weights leave no room: ``whole`` is the cache of one request, ``sequences`` are none."""

    deployment: Deployment
    context: Quantity
    room: Room
    whole: KvCache
    sequences: Quantity
    nearest: str


def overfull(deployment: Deployment, context: int, settings: Settings, nearest: str) -> Overfull:
    """What is known of a deployment that `capacity` refused as infeasible, naming the ``nearest`` that fits."""
    length = given("request.context", context, "token", "--context")
    memory = _tightest(_rooms(deployment, settings, _stages(deployment, settings)))
    whole = kept(Leaves(deployment.spec), length, settings.caching(deployment.kv))
    found = _sequences(deployment, memory, whole)
    return Overfull(deployment, length, memory, whole, found, nearest)


def _stages(deployment: Deployment, settings: Settings) -> dict[int, Share]:
    return {stage: share_of(deployment, stage, mtp=settings.mtp) for stage in _distinct(deployment, settings)}


def _rooms(deployment: Deployment, settings: Settings, stages: Mapping[int, Share]) -> dict[int, Room]:
    return {stage: room(deployment, settings, share, stage) for stage, share in stages.items()}


def _tightest(rooms: Mapping[int, Room]) -> Room:
    return min(rooms.values(), key=lambda item: float(item.free.base))


@dataclass(frozen=True)
class _Place:
    """One stage of a deployment with the question asked of it."""

    deployment: Deployment
    context: Quantity
    settings: Settings
    stage: int
    share: Share


def _caches(spec: ModelSpec, share: Share) -> bool:
    """Whether any layer of the stage keeps something between tokens."""
    here = [kind for index, kind in enumerate(spec.kinds) if share.layers.get(f"layer{index}")]
    return any(cached(block) or (isinstance(block, Mixer) and block.state) for kind in here for block in kind.mixers)


def _distinct(deployment: Deployment, settings: Settings) -> list[int]:
    """The first and the last stage, and one of every further make-up."""
    shares = {stage: share_of(deployment, stage, mtp=settings.mtp).layers for stage in range(deployment.pp)}
    chosen = {0, deployment.pp - 1}
    for stage, layers in shares.items():
        if all(shares[other] != layers for other in chosen):
            chosen.add(stage)
    return sorted(chosen)


def _at_stage(place: _Place, memory: Room) -> Capacity:
    deployment, settings, share, length = place.deployment, place.settings, place.share, place.context
    leaves = Leaves(deployment.spec)
    plain = settings.caching(deployment.kv)
    page = _page(leaves, plain, settings, share)
    paged = kept(leaves, length, replace(plain, page=page, aligned=settings.aligned), share)
    return Capacity(
        deployment=deployment,
        settings=settings,
        context=length,
        stage=place.stage,
        room=memory,
        page=page,
        whole=kept(leaves, length, plain),
        dense=kept(leaves, length, plain, share),
        paged=paged,
        sequences=_sequences(deployment, memory, paged),
        max_context=_max_context(deployment.spec, memory, page, paged),
    )


def _page(leaves: Leaves, caching: Caching, settings: Settings, share: Share) -> Quantity:
    base = constant("kv.page")
    if settings.page is not None:
        base = given("chip.page", settings.page, "token", "--spec, page")
    return aligned_page(leaves, caching, base, share) if settings.aligned else base


def _sequences(deployment: Deployment, memory: Room, paged: KvCache) -> Quantity:
    groups = given("deployment.dp_attention", deployment.dp_attention, "1", note="each group has requests of its own")
    inputs = {"groups": groups, "free": memory.free, "kv": paged.per_sequence}
    found = derive("capacity.sequences", "groups*max(0, floor(free/kv))", "request", **inputs)
    return found.titled("Requests at once")


def kind_of(row: Row) -> Kind:
    """One row of a chip's cache as `admission` takes it."""
    if row.per_token is None:
        return Kind(0.0, 0, float(row.whole.value))
    return Kind(float(row.per_token.value), row.window)


def _max_context(spec: ModelSpec, memory: Room, page: Quantity, paged: KvCache) -> Quantity | None:
    """The inverse of the bytes of a request, a line beyond the last window that is full at the answer."""
    limit = longest(spec)
    kinds, step = [kind_of(row) for row in paged.rows], int(page.value)
    tokens = admission.max_context(float(memory.free.base), kinds, step, _LONGEST)
    if tokens == _LONGEST:  # nothing grows
        return None if limit is None else _titled(limit.named("capacity.max_context"))
    full = [_full(row, tokens, step) for row in paged.rows]
    growing = _sum("capacity.growing", (r.per_token for r, f in zip(paged.rows, full, strict=True) if not f), "B/token")
    bounded = _sum("capacity.bounded", (_bounded(r, page) for r, f in zip(paged.rows, full, strict=True) if f), "B")
    inputs = {"P": page, "free": memory.free, "bounded": bounded, "each": growing}
    by_memory = derive("capacity.max_context.memory", "P*max(0, floor((free - bounded)/(each*P)))", "token", **inputs)
    if limit is None:
        return _titled(by_memory.named("capacity.max_context"))
    return _titled(derive("capacity.max_context", "min(memory, model)", "token", memory=by_memory, model=limit))


def _titled(quantity: Quantity) -> Quantity:
    return quantity.titled("Longest single request")


def _full(row: Row, tokens: int, page: int) -> bool:
    """Whether the row no longer grows at that length."""
    if row.per_token is None:
        return True
    return bool(row.window) and -(-tokens // page) >= 1 + -(-row.window // page)


def _bounded(row: Row, page: Quantity) -> Quantity:
    """All that a state or a full window takes."""
    if row.per_token is None:
        return row.whole
    inputs = {"each": row.per_token, "P": page, "W": leaf(f"chip.window.{row.label}", row.window, "1")}
    return derive(f"capacity.bounded.{row.label}", "each*P*(1 + ceil(W/count(P)))", "B", **inputs)


def _sum(name: str, terms: Iterable[Quantity | None], unit: str) -> Quantity:
    inputs = {f"part{index}": item for index, item in enumerate(q for q in terms if q is not None)}
    if not inputs:
        return leaf(name, 0, unit, note="nothing of the kind")
    return derive(name, " + ".join(inputs), unit, **inputs)


def require_heads(deployment: Deployment) -> None:
    """Raise `InputError` where the chips of a group neither divide the key-value heads nor are a multiple of them."""
    for layer in deployment.spec.kinds:
        for block in layer.mixers:
            if isinstance(block, MLA) or not isinstance(block, Attention) or block.kv_shared:
                continue
            if not _divide(block, deployment.tp):
                text = f"a number of chips that divides the {block.kv_heads} key-value heads, or a multiple of them"
                fit = [n for n in range(1, block.heads + 1) if _divide(block, n)]
                hint = f"tp may be {', '.join(map(str, fit))}: change the number of chips, or tp"
                raise InputError.expected(text, deployment.tp, where="tp", hint=hint)


def _divide(block: Attention, tp: int) -> bool:
    """Whether so many chips divide the heads, and the key-value heads or are a multiple of them."""
    return block.heads % tp == 0 and (block.kv_heads % tp == 0 or tp % block.kv_heads == 0)


def _infeasible(deployment: Deployment, settings: Settings, full: Room) -> InfeasibleError:
    """Which term is too large, and the fewest chips that leave room."""
    largest = max(full.terms, key=lambda q: float(q.base))
    sizes = ", ".join(f"{q.name.rpartition('.')[2]} {_gb(q)}" for q in full.terms)
    return InfeasibleError(
        f"Expected room for a cache on {deployment.chips} x {deployment.device.name}, got {_gb(full.free)} of "
        f"{_gb(full.usable)} usable on one chip ({sizes})",
        limit=f"{largest.name} on one chip",
        nearest=_nearest(deployment, settings),
        hint="more chips, weights in fp8 or int4, or a higher utilisation",
    )


def _gb(quantity: Quantity) -> str:
    return f"{float(quantity.to('GB')):,.1f} GB"


def _nearest(deployment: Deployment, settings: Settings) -> str:
    """The fewest chips, by tensor parallelism and then by stages, on which the weights leave room."""
    for tp, pp in _larger(deployment):
        try:
            trial = replace(deployment, tp=tp, pp=pp, ep=1)
            require_heads(trial)
        except InputError:
            continue
        frees = [
            room(trial, settings, share_of(trial, s, mtp=settings.mtp), s).free for s in _distinct(trial, settings)
        ]
        if min(float(free.value) for free in frees) > 0:
            return f"{trial.chips} chips (tp={tp}, pp={pp})"
    return "none up to 64 times the chips"


def _larger(deployment: Deployment) -> list[tuple[int, int]]:
    sizes = [(deployment.tp * a, deployment.pp * b) for a in range(1, 65) for b in (1, 2, 4, 8) if a * b > 1 and a <= 8]
    return sorted(sizes, key=lambda pair: (pair[0] * pair[1], pair[1]))
