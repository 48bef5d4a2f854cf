"""Vision towers and projectors, gathered as weights that are added to what is outside the layers.

A tower's symbols start with ``v_`` so that they never collide with those of the language model.
"""

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.parts import Extra
from ridgeline.arithmetic.spec import Part, Weight


class Tower:
    """Collects the weights of a vision tower; names and shapes as in ``Weight``."""

    def __init__(self, **dims: int) -> None:
        self.dims = dict(dims)
        self.weights: list[Weight] = []

    def add(self, name: str, *shape: str, matmul: bool = True, copies: str = "1") -> None:
        """One tensor, ``copies`` times."""
        weight = Weight(name=f"vision.{name}", part=Part.VISION, shape=shape, matmul=matmul, copies=copies)
        self.weights.append(weight)

    def linear(self, name: str, rows: str, cols: str, *, bias: bool = True, copies: str = "1") -> None:
        """A projection and its bias."""
        self.add(name, rows, cols, copies=copies)
        if bias:
            self.add(f"{name}.bias", cols, matmul=False, copies=copies)

    def norm(self, name: str, width: str = "v_width", *, bias: bool = True, copies: str = "1") -> None:
        """A LayerNorm, or an RMSNorm without bias."""
        self.add(name, width, matmul=False, copies=copies)
        if bias:
            self.add(f"{name}.bias", width, matmul=False, copies=copies)

    def encoder(self, *, gated: bool = False, bias: bool = True, norm_bias: bool = True) -> None:
        """``v_depth`` transformer layers of width ``v_width`` and MLP width ``v_ff``."""
        for side in ("q_proj", "k_proj", "v_proj"):
            self.linear(side, "v_width", "v_heads_width", bias=bias, copies="v_depth")
        self.linear("o_proj", "v_heads_width", "v_width", bias=bias, copies="v_depth")
        for name in ("gate_proj", "up_proj") if gated else ("up_proj",):
            self.linear(name, "v_width", "v_ff", bias=bias, copies="v_depth")
        self.linear("down_proj", "v_ff", "v_width", bias=bias, copies="v_depth")
        for name in ("norm1", "norm2"):
            self.norm(name, bias=norm_bias, copies="v_depth")

    @property
    def extra(self) -> Extra:
        """The gathered weights."""
        return Extra(tuple(self.weights), self.dims)


def patches(f: Fields, image: str = "image_size", patch: str = "patch_size") -> int:
    """Number of patches of a square image."""
    side = f.dim(image) // f.dim(patch)
    return f.derived("patches", side * side)


def vit_dims(f: Fields, *, depth: str = "num_hidden_layers", heads: str = "num_attention_heads") -> dict[str, int]:
    """Width, depth and MLP width of a plain vision transformer whose heads fill its width."""
    width = f.dim("hidden_size")
    f.dim(heads)
    return {
        "v_width": width,
        "v_heads_width": width,
        "v_depth": f.layers(depth),
        "v_ff": f.dim("intermediate_size"),
        "v_channels": f.dim("num_channels", "in_channels", "in_chans", default=3),
        "v_patch": f.dim("patch_size"),
    }
