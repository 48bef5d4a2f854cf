"""Which function reads which ``model_type``: one file per family in this folder, found by walking it.

    @reads("llama", "mistral")
    def llama(f: Fields) -> ModelSpec: ...

``f.model_type`` tells the types of one reader apart. Entry points of the group ``ridgeline.config_reader`` are loaded
too: a module that uses ``reads`` is all a plug-in needs.
"""

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.plugins import modules

FamilyReader = Callable[[Fields], ModelSpec]
_INFRASTRUCTURE = frozenset({"fields", "registry", "reader", "parts", "vision", "hybrid_parts"})
_readers: dict[str, FamilyReader] = {}


def reads(*model_types: str) -> Callable[[FamilyReader], FamilyReader]:
    """Register the decorated function as the reader of these ``model_type`` values."""

    def register(reader: FamilyReader) -> FamilyReader:
        for model_type in model_types:
            known = _readers.get(model_type)
            assert known is None or known.__module__ == reader.__module__, f"two readers for {model_type}"
            _readers[model_type] = reader
        return reader

    return register


@cache
def readers() -> dict[str, FamilyReader]:
    """Every ``model_type`` and its reader."""
    for module in modules("ridgeline.arithmetic.configs"):
        assert module.__doc__, f"{module.__name__} does not say what it reads"
    for entry in entry_points(group="ridgeline.config_reader"):
        entry.load()
    return dict(sorted(_readers.items()))
