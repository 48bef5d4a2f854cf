"""What the rules and the tables say about a capacity: copies, windows, pages, and what a gigabyte buys."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ridgeline.arithmetic.kv import DS_MLA, KvCache, Row, Share, kept
from ridgeline.arithmetic.params import Leaves
from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.core.quantity import Quantity, derive, given, leaf, renamed
from ridgeline.serve.capacity.capacity import Capacity, capacity
from ridgeline.serve.capacity.tiers import Tier, Tiers, fill
from ridgeline.serve.capacity.weights import share_of

LATENTS = ("latent", "compressed past")
# What a reader may change: the types of the weights and of the cache.
VARIANTS = (("weights", "fp8"), ("weights", "int4"), ("kv", "fp8"), ("kv", DS_MLA), ("kv", "fp4"))


@dataclass(frozen=True)
class Gain:
    """``sequences`` (request) with one thing changed; ``more`` is the difference."""

    what: str
    sequences: Quantity
    more: Quantity


@dataclass(frozen=True)
class CapacityFacts:
    """A `Capacity` and what follows from it.

    ``copies`` (1) is how often a group of chips holds the cache of the layers with heads (``heads``) and of those with
    latents (``latents``). ``windowed`` (1) is a cache that keeps windowed layers whole over one that does not, None
    without windows. ``waste`` (B) is what pages take beyond the tokens of a request of unknown length, ``worst`` (B)
    for the worst length, ``fragmentation`` (%) the former as a share. ``per_gb`` (request) and ``tokens_per_gb``
    (token) are what one more gigabyte on every chip buys.
    """

    capacity: Capacity
    copies: dict[str, Quantity]
    windowed: Quantity | None
    waste: Quantity
    worst: Quantity
    fragmentation: Quantity
    bytes_per_token: Quantity
    bytes_per_request: Quantity
    per_gb: Quantity
    tokens_per_gb: Quantity
    gains: tuple[Gain, ...] = ()
    tiers: tuple[Tier, ...] = field(default=())


def facts_of(found: Capacity, tiers: Tiers | None = None) -> CapacityFacts:
    """Everything that the case of a capacity holds. Raises `InputError` for tiers that do not fit together."""
    waste, worst = _waste(found, expected=True), _waste(found, expected=False)
    inputs = {"waste": waste, "kept": found.dense.per_sequence}
    share = derive("kv.fragmentation", "waste/(kept + waste)", "%", **inputs)
    one = given("capacity.gigabyte", 1, "GB", "the question")
    groups = found.sequences.inputs["groups"]
    per_gb = derive("capacity.sequences_per_gb", "groups*one/kv", "request",
                    groups=groups, one=one, kv=found.paged.per_sequence)  # fmt: skip
    tokens = derive("capacity.tokens_per_gb", "count(per_gb)*context", "token", per_gb=per_gb, context=found.context)
    return CapacityFacts(
        capacity=found,
        copies=_copies(found),
        windowed=_windowed(found),
        waste=waste,
        worst=worst,
        fragmentation=share.titled("Share of the cache lost to pages"),
        bytes_per_token=found.whole.per_token.named("kv.bytes_per_token"),
        bytes_per_request=found.whole.per_sequence.named("kv.bytes_per_request"),
        per_gb=per_gb.titled("Requests for one more gigabyte on every chip"),
        tokens_per_gb=tokens.titled("Tokens for one more gigabyte on every chip"),
        gains=_gains(found),
        tiers=fill(found, tiers) if tiers else (),
    )


def _copies(found: Capacity) -> dict[str, Quantity]:
    """How many times one group of chips holds each sort of cache: 1 where it is divided."""
    spec = found.deployment.spec
    own = share_of(found.deployment, found.stage, mtp=found.settings.mtp)
    undivided = Share(leaf("one.group", 1, "1"), own.layers, "stage")
    stage = kept(Leaves(spec), found.context, found.settings.caching(found.deployment.kv), undivided)
    result = {}
    for name in ("heads", "latents"):
        sort = [_is_latent(found, row) == (name == "latents") for row in found.dense.rows]
        if not any(wanted and row.per_token for wanted, row in zip(sort, found.dense.rows, strict=True)):
            continue
        on_chip = _total(f"chip.kv.{name}", found.dense.rows, sort)
        in_all = _total(f"stage.kv.{name}", stage.rows, sort)
        inputs = {"tp": own.tp, "chip": on_chip, "stage": in_all}
        result[name] = derive(f"kv.copies.{name}", "tp*chip/stage", "1", **inputs).titled(f"Copies of the {name}")
    return result


def _is_latent(found: Capacity, row: Row) -> bool:
    """Whether the row has no heads that chips could share out."""
    compressed = {r.label for r in found.dense.rows if r.what == "compressed past"}
    return row.what in LATENTS or row.label in compressed


def _total(name: str, rows: Sequence[Row], wanted: Sequence[bool]) -> Quantity:
    terms = [row.per_token for row, ours in zip(rows, wanted, strict=True) if ours and row.per_token is not None]
    inputs = {f"part{index}": item for index, item in enumerate(terms)}
    return derive(name, " + ".join(inputs), "B/token", **inputs)


def _windowed(found: Capacity) -> Quantity | None:
    """All layers whole over windows respected, at the context; None for a model without windows."""
    spec = found.deployment.spec
    plain = found.settings.caching(found.deployment.kv)
    kinds = {on: kept(Leaves(spec), found.context, replace(plain, windows=on)) for on in (True, False)}
    if not any(row.window for row in kinds[True].rows):
        return None
    full, bounded = (_apart(kinds[windows], name) for windows, name in ((False, "unbounded"), (True, "bounded")))
    return derive("kv.windows_ignored", "full/bounded", "1", full=full, bounded=bounded).titled(
        "Cache with windowed layers kept whole, over windows respected"
    )


def _apart(cache: KvCache, name: str) -> Quantity:
    """The bytes of a request under names of their own."""
    return _beneath(name, cache.per_sequence, "kv.per_token", "kv.per_sequence", "kv.state", "kv.tokens_kept")


def _beneath(prefix: str, quantity: Quantity, *ours: str) -> Quantity:
    """The quantity with ``prefix`` before every name in its derivation that starts as one of ``ours``."""
    return renamed([quantity], lambda name: f"{prefix}.{name}" if name.startswith(ours) else name)[0]


def _waste(found: Capacity, *, expected: bool) -> Quantity:
    """Bytes of one request on one chip that hold no token: the open page, and what windows and states round up."""
    length, page = int(found.context.value), found.page_tokens
    growing, rounded = [], []
    for paged, dense in zip(found.paged.rows, found.dense.rows, strict=True):
        if paged.per_token is not None and (not paged.window or -(-length // page) < 1 + -(-paged.window // page)):
            growing.append(paged.per_token)
        else:
            name = f"chip.kv.rounded.{paged.label}.{paged.what.replace(' ', '_')}"
            rounded.append(derive(name, "paged - dense", "B", paged=paged.whole, dense=dense.whole))
    inputs = {f"open{i}": q for i, q in enumerate(growing)} | {f"rounded{i}": q for i, q in enumerate(rounded)}
    terms = [f"open{i}*(P - one)" + ("/2" if expected else "") for i in range(len(growing))]
    terms += [f"rounded{i}" for i in range(len(rounded))]
    extra = {"P": found.page, "one": leaf("one.token", 1, "token")} if growing else {}
    return derive(f"kv.waste.{'expected' if expected else 'worst'}", " + ".join(terms), "B", **inputs, **extra)


def _gains(found: Capacity) -> tuple[Gain, ...]:
    """The same deployment with the weights or the cache in fewer bits."""
    gains = []
    for flag, dtype in VARIANTS:
        own = found.deployment
        try:
            changed = replace(own, weights=dtype) if flag == "weights" else replace(own, kv=dtype)
            made = capacity(changed, int(found.context.value), found.settings)
        except (InputError, InfeasibleError):
            continue  # the layout does not exist for this model
        if changed == own:
            continue
        name = f"with.{flag}.{dtype}"
        there = _beneath(name, made.sequences, "chip.", "capacity.", "kv.per_", "kv.state", "kv.paged", "kv.tokens")
        more = derive(f"{name}.more", "there - here", "request", there=there, here=found.sequences)
        gains.append(Gain(f"{flag} in {dtype}", there, more))
    return tuple(gains)
