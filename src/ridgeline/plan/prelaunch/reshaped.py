"""A model with some of its blocks changed, built anew: a copied block would keep what it had derived from old sizes."""

from collections.abc import Callable, Sequence

from ridgeline.arithmetic.spec import AnyFfn, Layer, ModelSpec


def resized(block: AnyFfn, **sizes: int) -> AnyFfn:
    """The block with those fields replaced."""
    return type(block).model_validate(block.model_dump() | sizes)


def with_ffns(spec: ModelSpec, change: Callable[[AnyFfn], AnyFfn], pattern: Sequence[int] | None = None) -> ModelSpec:
    """The model with every feed-forward block passed through ``change``, and another pattern of layers where given."""

    def layer(kind: Layer) -> Layer:
        own = {name: getattr(kind, name) for name in Layer.model_fields}
        return Layer.model_validate(own | {"ffns": tuple(change(block) for block in kind.ffns)})

    own = {name: getattr(spec, name) for name in ModelSpec.model_fields}
    kept = spec.pattern if pattern is None else tuple(pattern)
    return ModelSpec.model_validate(own | {"kinds": tuple(layer(kind) for kind in spec.kinds), "pattern": kept})
