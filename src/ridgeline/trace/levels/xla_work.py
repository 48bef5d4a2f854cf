"""What XLA says of its own kernels: the HLO instruction, its FLOPs and bytes, and the framework's operation behind it.

XProf's traces carry these with each kernel. Where the trace names only the instruction, an HLO dump of the same
compilation gives its FLOPs and bytes.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ridgeline.arithmetic.hlo import HloModule, Instruction, is_type
from ridgeline.arithmetic.hlo_cost import flops, traffic_bytes
from ridgeline.trace.events import NONE, Events, Ints, Mask
from ridgeline.trace.levels.op_flops import Work

_KEYS = ("hlo_op", "hlo", "tf_op")
_DTYPES = {"bf16": "bf16", "f16": "fp16", "f32": "fp32", "f64": "fp64", "s8": "int8", "u8": "int8"}
FORWARD, BACKWARD, RECOMPUTE = 0, 1, 2
Index = Mapping[str, tuple[HloModule, Instruction]]


def is_xla(meta: Mapping[str, Any]) -> bool:
    """Whether the details are those of a kernel that XLA made."""
    return any(key in meta for key in _KEYS)


def xla_rows(events: Events, rows: Ints) -> Mask:
    """Which of some device rows XLA made."""
    made = np.zeros(len(events.metas) + 1, np.bool_)
    for index in np.unique(events.meta[rows]):
        made[index + 1] = index != NONE and is_xla(events.metas[index])
    found: Mask = made[events.meta[rows] + 1]
    return found


def phase(meta: Mapping[str, Any]) -> int:
    """Forward, backward or recomputed forward, by the path that JAX gives an operation."""
    path = str(meta.get("tf_op", ""))
    if "rematted_computation" in path or ".remat" in str(meta.get("hlo_op", "")):
        return RECOMPUTE
    return BACKWARD if "transpose(" in path else FORWARD


def operation(meta: Mapping[str, Any]) -> str:
    """The framework's operation: the end of its path, such as ``dot_general``."""
    return str(meta.get("tf_op", "")).rstrip(":").rpartition("/")[2]


def identity(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """What makes two kernels the same work."""
    return tuple(str(meta.get(key, "")) for key in ("hlo_module", "hlo_op", "tf_op", "flops", "bytes", "hlo"))


def index(modules: Iterable[HloModule]) -> Index:
    """Every instruction of some modules by name; the first of a name wins."""
    found: dict[str, tuple[HloModule, Instruction]] = {}
    for module in modules:
        for item in module:
            found.setdefault(item.name, (module, item))
    return found


def xla_work(name: str, meta: Mapping[str, Any], known: Index) -> Work | None:
    """FLOPs and bytes of one kernel: the trace's own figures, else those of the instruction in a dump."""
    module, item = known.get(str(meta.get("hlo_op") or name), (None, None))
    kind = str(meta.get("hlo", "")).partition(" = ")[2].lstrip("(").partition("[")[0]
    kind = kind if is_type(kind) else (item.shapes[0].dtype if item is not None and item.shapes else "")
    dtype = "fp8" if kind.startswith("f8") else _DTYPES.get(kind, kind)
    own = [_count(meta.get(key)) for key in ("flops", "bytes")]
    if module is not None and item is not None:
        own = [own[0] or flops(module, item), own[1] or traffic_bytes(module, item)]
    return Work(dtype, own[0] or None, own[1] or None) if any(own) else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 < value < 2**60 else None
