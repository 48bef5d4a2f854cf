"""What the compiled module knows about the collectives of a trace: type, size, and which chips take part.

XProf names the instruction of each event, and only a TPU's profile has its text. Where the module lies beside the
trace, its instructions fill in what is missing. Without groups the k-th call on every chip would count as one call.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ridgeline.arithmetic.hlo import HloModule
from ridgeline.arithmetic.hlo_collectives import HloCollective, collectives
from ridgeline.trace.events import Events, Run
from ridgeline.trace.hlo_resharding import members

GROUP_TEXT = 200  # characters that are kept of a grouping's text: enough to tell groupings of equal size apart
Meta = Mapping[str, Any]


def with_modules(run: Run, modules: Sequence[HloModule]) -> Run:
    """The run with {"dtype", "in_numel", "out_numel", "group", "group_size", "group_ranks"} of its XLA collectives.

    What the trace itself says stays. A module is that of the trace by its name; of several with one name none is
    taken. The ranks of a group are known where each partition of the module is a rank of the run.
    """
    names = Counter(module.name for module in modules)
    known = {(module.name, name): found for module in modules if names[module.name] == 1
             for name, found in _by_instruction(module).items()}  # fmt: skip
    return replace(run, ranks=tuple(_filled(events, known, len(run)) for events in run))


def _by_instruction(module: HloModule) -> dict[str, HloCollective]:
    """Each collective by its instruction, and by the one that waits for it."""
    found = {c.instruction.name: c for c in collectives(module)}
    done = {user.name: c for name, c in found.items()
            for user in module.computations[c.instruction.computation].users.get(name, ())
            if user.opcode.endswith("-done")}  # fmt: skip
    return found | done


def _filled(events: Events, known: Mapping[tuple[str, str], HloCollective], world: int) -> Events:
    rank = events.info.rank
    metas = [_with_ranks(_from_module(meta, known), rank, world) if "collective" in meta else meta
             for meta in events.metas]  # fmt: skip
    return replace(events, metas=tuple(metas))


def _from_module(meta: Meta, known: Mapping[tuple[str, str], HloCollective]) -> Meta:
    found = known.get((str(meta.get("hlo_module", "")), str(meta.get("hlo_op", ""))))
    if found is None or "group" in meta or not found.instruction.shapes:
        return meta
    shape = found.instruction.shapes[-1]
    whole = found.size_bytes * 8 // shape.bits if shape.bits else 0
    part = whole // found.group if found.group else whole
    inside = part if found.kind == "all_gather" else whole
    outside = part if found.kind == "reduce_scatter" else whole
    filled: dict[str, Any] = {"dtype": shape.dtype, "in_numel": inside, "out_numel": outside}
    if found.groups:
        filled |= {"group": found.groups, "group_size": found.group}
    return {**filled, **meta}


def _with_ranks(meta: Meta, rank: int | None, world: int) -> Meta:
    """With the chips of this rank's group, and one spelling for equal groupings; partitions count as ranks do."""
    groups = members(str(meta.get("group", "")), world)
    if groups is None or "group_ranks" in meta or sum(map(len, groups)) != world:
        return meta
    mine = next((group for group in groups if rank in group), None)
    text = ",".join("{" + ",".join(map(str, group)) + "}" for group in sorted(groups))[:GROUP_TEXT]
    return meta if mine is None else {**meta, "group": text, "group_ranks": list(mine)}
