"""The engine that serves a workload: its scheduler, memory, replicas and what they do when memory runs out."""

import math
from dataclasses import dataclass, fields

from ridgeline.core.errors import InputError
from ridgeline.serve.simulate.engine.policy import Scheduler, find_scheduler

PREEMPTION = ("recompute", "swap")
ROUTING = ("round-robin", "least-loaded", "prefix", "random")
MAX_DRAFTS = 16


@dataclass(frozen=True)
class Speculation:
    """Draft ``tokens`` ahead and verify them in one step of ``tokens + 1`` tokens per sequence.

    ``acceptance`` has one probability per draft position: that it is accepted, given that all before it were.
    ``draft_step_s`` is what one draft pass costs a step, ``draft_sequence_s`` what each sequence adds to it.
    """

    tokens: int
    acceptance: tuple[float, ...]
    draft_step_s: float = 0.0
    draft_sequence_s: float = 0.0

    def __post_init__(self) -> None:
        if not 1 <= self.tokens <= MAX_DRAFTS:
            raise InputError.expected(f"1 to {MAX_DRAFTS} draft tokens", self.tokens, where="speculation")
        if len(self.acceptance) != self.tokens or not all(0 <= p <= 1 for p in self.acceptance):
            raise InputError.expected(f"{self.tokens} probabilities", self.acceptance, where="speculation: acceptance")
        for name in ("draft_step_s", "draft_sequence_s"):
            _at_least(self, name, 0.0)

    @classmethod
    def of_length(cls, tokens: int, length: float, **costs: float) -> "Speculation":
        """The equal probability per position whose mean accepted length, the sampled token included, is ``length``.

        Solves ``1 + p + ... + p^tokens = length`` by bisection. Raises `InputError` outside 1 to ``tokens + 1``.
        """
        if not 1 <= length <= tokens + 1:
            raise InputError.expected(f"1 to {tokens + 1} tokens per step", length, where="acceptance length")
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if sum(middle**i for i in range(tokens + 1)) < length else (low, middle)
        return cls(tokens, (high,) * tokens, **costs)

    @property
    def length(self) -> float:
        """Mean tokens emitted per sequence and step while the answer has that many left."""
        return 1 + sum(math.prod(self.acceptance[: i + 1]) for i in range(self.tokens))


@dataclass(frozen=True)
class Pools:
    """Prefill and decode on separate workers. Every prompt's cache crosses once, ``latency_s`` plus bytes / bandwidth.

    Transfers do not contend with each other. ``prefill_stages`` above 1 cuts each prefill worker into that many equal
    layer stages which work on successive chunks: a step takes the same time, but one can begin every
    ``1 / prefill_stages`` of it.
    """

    prefill: int
    decode: int
    bandwidth_bytes_per_s: float
    latency_s: float = 0.0
    prefill_stages: int = 1

    def __post_init__(self) -> None:
        for name in ("prefill", "decode", "prefill_stages"):
            _at_least(self, name, 1)
        _at_least(self, "latency_s", 0.0)
        if not self.bandwidth_bytes_per_s > 0:
            raise InputError.expected("a bandwidth above 0", self.bandwidth_bytes_per_s, where="pools")


@dataclass(frozen=True)
class Engine:
    """``kv_blocks`` is per replica, ``max_num_seqs`` and ``max_num_batched_tokens`` too.

    ``by_priority`` orders the queue and the victims of preemption by the workload's priorities before arrival.
    ``whole_prompt`` admits a request only where all its known tokens would fit, not just the first chunk (vLLM's
    ``scheduler_reserve_full_isl``, on by default); the blocks are still taken chunk by chunk.
    ``pools`` replaces ``replicas``. ``kv_bytes_per_token`` is what swapping and transfers move.
    ``max_context`` (0: no limit but the memory) is the longest prompt and answer together.
    Raises `InputError`.
    """

    kv_blocks: int
    scheduler: str = "vllm"
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 2048
    block_size: int = 16
    max_context: int = 0
    whole_prompt: bool = True
    prefix_cache: bool = True
    by_priority: bool = False
    preemption: str = "recompute"
    swap_bytes_per_s: float = 0.0
    kv_bytes_per_token: float = 0.0
    replicas: int = 1
    routing: str = "round-robin"
    pools: Pools | None = None
    speculation: Speculation | None = None

    def __post_init__(self) -> None:
        for name in ("kv_blocks", "max_num_seqs", "max_num_batched_tokens", "block_size", "replicas"):
            _at_least(self, name, 1)
        for name in ("max_context", "swap_bytes_per_s", "kv_bytes_per_token"):
            _at_least(self, name, 0)
        for name, known in (("preemption", PREEMPTION), ("routing", ROUTING)):
            if getattr(self, name) not in known:
                raise InputError.expected(f"one of {', '.join(known)}", getattr(self, name), where=name)
        self._check_scheduler()
        if self.preemption == "swap" and not (self.swap_bytes_per_s > 0 and self.kv_bytes_per_token > 0):
            raise InputError.expected(
                "swap_bytes_per_s and kv_bytes_per_token", self.swap_bytes_per_s, where="preemption by swap"
            )
        if self.pools is not None and (self.replicas > 1 or not self.kv_bytes_per_token):
            raise InputError.expected("kv_bytes_per_token, and pools or replicas", self.replicas, where="pools")

    def _check_scheduler(self) -> None:
        policy = find_scheduler(self.scheduler)
        if self.max_num_batched_tokens < self.max_num_seqs * self.drafted and (policy.drain or not policy.mixed):
            raise InputError.expected(
                f"a budget of {self.max_num_seqs * self.drafted} tokens, so that every sequence decodes",
                self.max_num_batched_tokens,
                where="max_num_batched_tokens",
            )
        if self.max_num_batched_tokens < self.drafted:
            raise InputError.expected(
                f"at least {self.drafted}", self.max_num_batched_tokens, where="max_num_batched_tokens"
            )
        if policy.drain and (self.pools is not None or self.speculation is not None):
            raise InputError.expected("one pool without speculation", "more", where=f"scheduler {policy.name}")

    @property
    def drafted(self) -> int:
        """Tokens of one decode in one step."""
        return 1 + (self.speculation.tokens if self.speculation else 0)

    @property
    def policy(self) -> Scheduler:
        """The scheduler's flags."""
        return find_scheduler(self.scheduler)

    @property
    def workers(self) -> int:
        """Replicas, or prefill and decode workers together."""
        return self.pools.prefill + self.pools.decode if self.pools else self.replicas

    @property
    def capacity_tokens(self) -> int:
        """Tokens that one replica's blocks hold."""
        return self.kv_blocks * self.block_size


def _at_least(options: object, name: str, least: float) -> None:
    value = getattr(options, name)
    whole = {item.name: item.type for item in fields(options)}[name] in (int, "int")  # type: ignore[arg-type]
    if (whole and (isinstance(value, bool) or not isinstance(value, int))) or not least <= value < math.inf:
        raise InputError.expected(
            f"{'a whole number' if whole else 'a number'} of at least {least:g}", value, where=name
        )
