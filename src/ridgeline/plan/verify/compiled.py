"""What the compiler made of a twin, read from its program: collectives, FLOPs of dots and bytes.

One child process compiles any number of twins: XLA takes the number of virtual devices from its environment when it
starts. Three of its passes are off: the one that merges all-reduces into one instruction; the one that removes the
barriers behind which fully sharded layers are gathered again (without them the CPU compiler keeps every layer whole
from its forward to its backward pass); and the one that moves gathers out of the loop over micro-batches. LLVM's
effort is at its lowest: it changes machine code alone.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ridgeline.arithmetic.flops import Term
from ridgeline.arithmetic.hlo import parse
from ridgeline.arithmetic.hlo_collectives import HloCollective, collectives, members
from ridgeline.arithmetic.hlo_cost import flops
from ridgeline.arithmetic.hlo_module import HloModule
from ridgeline.core.errors import InputError, MissingExtraError
from ridgeline.plan.verify.twin import Twin

CHILD = "ridgeline.plan.verify.child"
DISABLED = ("cpu-all-reduce-combiner", "cse_barrier_expander", "while-loop-invariant-code-motion")
_QUICK = ("--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true")
_WORD = re.compile(r"[a-z_]+")
_LAST_LINES = 3


@dataclass(frozen=True)
class Key:
    """A term of the traffic by its scope, kind and group; groups that the plan does not have are raw text."""

    term: str
    kind: str
    group: str


@dataclass(frozen=True)
class Amount:
    """How many collectives a step, and their bytes together."""

    count: float
    bytes: float


@dataclass(frozen=True)
class Program:
    """A compiled step: its HLO, the sizes of its buffers in bytes, and XLA's own FLOP count."""

    twin: Twin
    hlo: str
    memory: Mapping[str, int]
    cost_flops: float

    @cached_property
    def module(self) -> HloModule:
        """The program as data."""
        return parse(self.hlo)

    @cached_property
    def merged(self) -> int:
        """Instructions that hold several collectives."""
        return sum(len(_scopes(item)) > 1 for item in collectives(self.module))

    def collectives(self, terms: Sequence[str]) -> dict[Key, Amount]:
        """Every collective by term: what is under no known scope has the term ``unnamed``."""
        found: dict[Key, list[tuple[float, float]]] = defaultdict(list)
        for item in collectives(self.module):
            scopes = _scopes(item)
            for scope in scopes:
                term = next((word for word in reversed(_WORD.findall(scope)) if word in terms), "unnamed")
                key = Key(term, item.kind, self._group(item, term))
                found[key].append((item.runs, item.runs * item.size_bytes / len(scopes)))
        return {key: Amount(*(sum(part) for part in zip(*rows, strict=True))) for key, rows in found.items()}

    def _group(self, item: HloCollective, term: str) -> str:
        """The plan's name of the ranks that take part; of groups with the same ranks the one the term is about."""
        ranks = members(item.groups, self.module.partitions)
        same = [name for name in GROUP_OF.values() if self.twin.members(name) == ranks]
        own = GROUP_OF.get(term, "")
        return own if own in same else next(iter(same), item.groups)

    def flops(self) -> dict[str, int]:
        """FLOPs of dots on one device by `arithmetic.flops.Term`; ``other`` for dots under no such scope."""
        found: dict[str, int] = defaultdict(int)
        names = {str(term) for term in Term}
        for item in self.module:
            if item.opcode in ("dot", "convolution"):
                words = [word for word in _WORD.findall(item.op_name) if word in names]
                found[words[-1] if words else "other"] += flops(self.module, item) * self.module.runs[item.computation]
        return dict(found)


GROUP_OF: Mapping[str, str] = {
    "layer_stream": "tp", "embedding_stream": "tp", "head_stream": "tp", "loss_rows": "tp", "copied_gradients": "tp",
    "expert_tokens": "ep", "gradients": "shard", "parameters": "shard", "shards": "shard",
    "expert_gradients": "expert_data", "expert_parameters": "expert_data", "expert_shards": "expert_data",
    "replica_gradients": "replica",
}  # fmt: skip


def _scopes(item: HloCollective) -> list[str]:
    """The framework's paths of the collectives in one instruction: several where the compiler merged them.

    The parts of a joint all-to-all are one collective.
    """
    operands = len(item.instruction.operands)
    if item.kind == "all_to_all" or operands == 1:
        return [item.instruction.op_name]
    parts = item.instruction.op_name.split(":")
    return parts if len(parts) == operands else [item.instruction.op_name] * operands


def compile_twins(twins: Sequence[Twin]) -> list[Program]:
    """Compile them on virtual CPU devices, in one child process.

    Raises `MissingExtraError` without JAX, `InputError` where the child fails.
    """
    if importlib.util.find_spec("jax") is None:
        raise MissingExtraError("jax", "lab")
    devices = max(twin.plan.chips for twin in twins)
    flags = (f"--xla_force_host_platform_device_count={devices}", f"--xla_disable_hlo_passes={','.join(DISABLED)}")
    done = subprocess.run(
        [sys.executable, "-m", CHILD],
        input=json.dumps([twin.dump() for twin in twins]),
        env=os.environ | {"XLA_FLAGS": " ".join((*flags, *_QUICK)), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = " / ".join(done.stderr.strip().splitlines()[-_LAST_LINES:]).removeprefix(f"{sys.executable}: ")
        hint = 'it needs JAX 0.7 or later: pip install -U "ridgeline[lab]"'
        raise InputError(f"The compiler could not build the twin: {said}", hint=hint)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return [Program(twin, **item) for twin, item in zip(twins, found, strict=True)]
