"""The recorded arguments of an operator call, made safe: shapes, data types, and scalars as texts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

Dims = tuple[int, ...]
# C++ type name -> (data type of the catalog, or an own name; bytes by the type's definition)
_DTYPES: Mapping[str, tuple[str, int]] = {
    "double": ("fp64", 8), "float": ("fp32", 4), "c10::BFloat16": ("bf16", 2), "c10::Half": ("fp16", 2),
    "c10::Float8_e4m3fn": ("fp8", 1), "c10::Float8_e5m2": ("fp8", 1), "c10::Float8_e4m3fnuz": ("fp8", 1),
    "c10::Float8_e5m2fnuz": ("fp8", 1), "c10::Float8_e8m0fnu": ("fp8", 1), "c10::Float4_e2m1fn_x2": ("fp4", 1),
    "signed char": ("int8", 1), "unsigned char": ("uint8", 1), "bool": ("bool", 1), "short int": ("int16", 2),
    "int": ("int32", 4), "long int": ("int64", 8), "long": ("int64", 8), "c10::complex<float>": ("complex64", 8),
    "c10::complex<double>": ("complex128", 16),
}  # fmt: skip


@dataclass(frozen=True)
class Call:
    """An operator's recorded arguments, made safe: shapes without surprises, dtypes and texts of equal length."""

    shapes: tuple[Dims, ...]
    dtypes: tuple[str, ...]
    concrete: tuple[str, ...]

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> "Call":
        """From the details of an operator; anything unexpected becomes an empty shape or text."""
        shapes = tuple(_dims(item) for item in _listed(meta.get("shapes")))
        types = [item if isinstance(item, str) else "" for item in _listed(meta.get("dtypes"))]
        texts = [item if isinstance(item, str) else "" for item in _listed(meta.get("concrete"))]
        n = len(shapes)
        return cls(shapes, tuple((types + [""] * n)[:n]), tuple((texts + [""] * n)[:n]))

    def shape(self, at: int, rank: int = 0) -> Dims | None:
        """A shape of that many dimensions (0: at least one); None where the argument is something else."""
        found = self.shapes[at] if at < len(self.shapes) else ()
        return found if found and rank in (0, len(found)) else None

    def size(self, at: int) -> int:
        """Bytes of one tensor argument; 0 for scalars."""
        return prod(self.shapes[at]) * self.item(at) if at < len(self.shapes) and self.shapes[at] else 0

    def item(self, at: int) -> int:
        """Bytes of one element."""
        return _DTYPES.get(self.dtypes[at], ("", 0))[1] if at < len(self.dtypes) else 0

    def dtype(self, at: int = 0) -> str:
        """The data type as the catalog names it, else the recorded text."""
        text = self.dtypes[at] if at < len(self.dtypes) else ""
        return _DTYPES.get(text, (text, 0))[0]

    @property
    def tensors(self) -> list[int]:
        """Positions of tensor arguments."""
        return [i for i, shape in enumerate(self.shapes) if shape and self.dtypes[i] in _DTYPES]

    def ints(self, at: int) -> Dims | None:
        """The numbers of a recorded list or scalar, such as ``[2, 2]``; None where it is no such thing."""
        text = self.concrete[at].strip() if at < len(self.concrete) else ""
        plain = 0 < len(text) <= 200 and set(text) <= set("[]-0123456789, ")
        found = re.findall(r"-?\d{1,18}", text) if plain else []
        return tuple(int(item) for item in found) or None

    def flag(self, at: int) -> bool | None:
        """A recorded ``True`` or ``False``."""
        text = self.concrete[at] if at < len(self.concrete) else ""
        return {"True": True, "False": False}.get(text)


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _dims(value: Any) -> Dims:
    whole = isinstance(value, list | tuple) and 0 < len(value) <= 16 and all(type(item) is int for item in value)
    return tuple(value) if whole and all(0 <= item < 2**40 for item in value) else ()
