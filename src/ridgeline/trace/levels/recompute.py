"""Forward work that backward repeats: activation checkpointing as it shows on the device.

With Python stacks in the trace: device work launched inside the frames that checkpointing runs. Without them, from
operators alone: a node of the autograd engine runs its own function, whose operators are derivative formulas. When a
saved tensor has to be recomputed first, forward operators run there that no derivative formula calls (a linear, a
normalization, an attention). All work of the node up to the last of them is recomputation, and so is a residual
addition right behind. A reentrant checkpoint is a node of its own, and everything in it outside the backward that it
starts is recomputation. What the compiler fused into its own backward graph shows in neither.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ridgeline.trace.events import NONE, Category, Events, Ints, Kind, Mask
from ridgeline.trace.intervals import covered, union
from ridgeline.trace.levels.families import named, recompute_rules
from ridgeline.trace.levels.linking import Links, ancestor_among

Method = Literal["python stacks", "operators", "HLO metadata", "none"]
ENGINE = "autograd::engine::evaluate_function"


@dataclass(frozen=True, eq=False)
class Recompute:
    """``rows``: a mask of the device events that repeat forward work.

    ``kernels`` and ``kernel_ns`` count kernels, communication left out; ``backward_ns`` is all such time under
    backward nodes, the repeated part included. ``method`` says how it was found; ``none`` where the trace has neither
    stacks nor backward nodes. ``unlinked`` kernels have no known operator: they could not be looked at.
    ``opaque_ns`` is the kernel time of compiled backward graphs, whose own recomputation does not show.
    """

    rows: Mask
    kernels: int
    kernel_ns: int
    backward_ns: int
    unlinked: int
    opaque_ns: int
    method: Method

    @property
    def share(self) -> float | None:
        """Of the kernel time in backward; None without backward nodes."""
        return self.kernel_ns / self.backward_ns if self.backward_ns else None


def recompute(events: Events, links: Links, *, stacks: bool | None = None) -> Recompute:
    """Find repeated forward work. ``stacks`` True or False insists on one method; None takes what the trace has."""
    kernels = (events.category == Category.KERNEL) & (events.kind != Kind.COMM)
    node = ancestor_among(links.parent, _starting(events, ENGINE))
    inside = _under(events, links, node)
    frames = (events.category == Category.PYTHON) & named(events, recompute_rules().frames)
    method: Method = "none"
    rows = np.zeros(len(events), np.bool_)
    if stacks is not False and frames.any():
        method, rows = "python stacks", _by_frames(events, links, frames)
    elif not stacks and inside.any():
        method, rows = "operators", _by_operators(events, links, node)
    again, backward = rows & kernels, (inside | rows) & kernels
    return Recompute(
        rows,
        int(again.sum()),
        int(events.dur[again].sum()),
        int(events.dur[backward].sum()),
        int((kernels & (links.op == NONE)).sum()),
        int(events.dur[kernels & _under(events, links, _compiled(events, links))].sum()),
        method,
    )


def by_paths(events: Events, rows: Ints, phase: Ints) -> Recompute:
    """The same of kernels that XLA made, from the phase (0 forward, 1 backward, 2 recomputed) of each device row."""
    mask = np.zeros(len(events), np.bool_)
    mask[rows[phase == 2]] = True
    again, backward = rows[phase == 2], rows[phase > 0]
    return Recompute(
        mask, len(again), int(events.dur[again].sum()), int(events.dur[backward].sum()), 0, 0, "HLO metadata"
    )  # fmt: skip


def backward_rows(events: Events, links: Links) -> Mask:
    """Device events that were launched under a node of the autograd engine."""
    node = ancestor_among(links.parent, _starting(events, ENGINE))
    return _under(events, links, node)


def _under(events: Events, links: Links, node: Ints) -> Mask:
    """Device events whose operator lies under a node."""
    found = np.zeros(len(events), np.bool_)
    rows = np.flatnonzero(events.on_device & (links.op != NONE))
    found[rows] = node[links.op[rows]] != NONE
    return found


def _starting(events: Events, prefix: str) -> Mask:
    names = np.array([name.startswith(prefix) for name in events.names], dtype=np.bool_)
    found: Mask = events.category == Category.HOST_OP
    return found & names[events.name] if len(names) else np.zeros(len(events), np.bool_)


def _compiled(events: Events, links: Links) -> Ints:
    """The innermost compiled backward graph around each event."""
    return ancestor_among(links.parent, (events.category == Category.HOST_OP) & named(events, recompute_rules().opaque))


def _by_frames(events: Events, links: Links, frames: Mask) -> Mask:
    """Device work whose launch call lies in a frame of its own thread."""
    found = np.zeros(len(events), np.bool_)
    linked = np.flatnonzero(links.launch != NONE)
    call = links.launch[linked]
    for thread in np.unique(events.thread[frames]):
        mine = frames & (events.thread == thread)
        spans = union(events.ts[mine], events.dur[mine])
        start = events.ts[call]
        found[linked] |= (events.thread[call] == thread) & (covered(spans, start, start + 1) > 0)
    return found


def _by_operators(events: Events, links: Links, node: Ints) -> Mask:
    """Device work under repeated operators: see the module."""
    rules = recompute_rules()
    function = _functions(events, links, node)
    top = _tops(links.parent, function)
    step = np.flatnonzero((top == np.arange(len(top))) & (top != NONE))  # direct children of functions, in time order
    owner = links.parent[step]
    marker = named(events, rules.forward_only)[step]
    last = np.full(len(events), NONE, np.int64)
    np.maximum.at(last, owner[marker], step[marker])
    again = step <= last[owner]
    again |= _residual(events, step, owner, last)
    again |= named(events, rules.reentrant)[owner]
    repeated = np.zeros(len(events), np.bool_)
    repeated[step[again]] = True
    found = np.zeros(len(events), np.bool_)
    work = np.flatnonzero(events.on_device & (links.op != NONE))
    above = top[links.op[work]]
    found[work] = (above != NONE) & repeated[above]
    return found


def _functions(events: Events, links: Links, node: Ints) -> Mask:
    """The functions of nodes: operators right under an engine's node that carry the name of the node."""
    engine = node == np.arange(len(node))
    child = (links.parent != NONE) & (events.category == Category.HOST_OP)
    child[child] = engine[links.parent[child]]
    names = np.array(["Backward" in name or "::" not in name for name in events.names], dtype=np.bool_)
    found: Mask = child & names[events.name]
    return found


def _tops(parent: Ints, function: Mask) -> Ints:
    """For each event the ancestor (or itself) that is a direct child of the innermost function above it."""
    direct = parent != NONE
    direct[direct] = function[parent[direct]]
    top = ancestor_among(parent, direct | function)
    own = np.flatnonzero(top != NONE)
    nested = function[top[own]] & ~direct[top[own]]
    top[own[nested]] = NONE  # the function itself, or what an engine starts inside it
    return top


def _residual(events: Events, step: Ints, owner: Ints, last: Ints) -> Mask:
    """The addition of a residual right behind the last forward operator of a node that does not add itself."""
    adds = named(events, recompute_rules().residual)[step]
    before = np.r_[NONE, step[:-1]]
    names = np.array(["Add" in name for name in events.names], dtype=np.bool_)
    follows: Mask = adds & (last[owner] != NONE) & (before == last[owner]) & ~names[events.name[owner]]
    return follows
