"""What a deployment's engine is told, and what of its memory was read from a log instead of worked out."""

from typing import Annotated

from pydantic import Field

from ridgeline.arithmetic.kv import Caching
from ridgeline.core import parse
from ridgeline.core.specs import Spec, typed

_Size = Annotated[float, typed(parse.size, "a size such as 2GiB")]
_Count = Annotated[int, Field(ge=1, le=2**30, strict=True)]


class Settings(Spec):
    """The keys of ``--spec``. What is not given is the engine's default or worked out from the model.

    ``utilisation`` is the share of the memory the engine may use, ``chunk`` the tokens of a prefill step, ``sequences``
    the most sequences of a step, ``page`` the tokens of a page. ``windows`` false: the allocator keeps windowed layers
    whole. ``aligned`` false: states are not padded to pages. ``mtp`` true: prediction modules are served; ``drafts`` is
    how many tokens speculation proposes, for models with states. ``memory``, ``model``, ``activations``, ``graphs`` and
    ``outside`` are bytes on one chip, as a log says them.
    """

    utilisation: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] | None = None
    chunk: _Count | None = None
    sequences: _Count | None = None
    page: _Count | None = None
    windows: bool = True
    aligned: bool = True
    mtp: bool = False
    drafts: Annotated[int, Field(ge=0, le=1024, strict=True)] = 0
    state: str = "fp32"
    memory: _Size | None = None
    model: _Size | None = None
    activations: _Size | None = None
    graphs: _Size | None = None
    outside: _Size | None = None

    def caching(self, dtype: str) -> Caching:
        """How the engine keeps a cache of that type, to the byte; convolutions remember their inputs in 16 bits."""
        return Caching(dtype, self.state, "bf16", self.windows, self.mtp, index="scaled", drafts=self.drafts)
