"""What the state-space and hybrid families share: layer types, "auto" sizes, the ``mamba_*`` fields."""

from collections.abc import Sequence

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.mixers import Mamba1, Mamba2

LINEAR, FULL = "linear_attention", "full_attention"
_OLD_NAMES = {"mamba": LINEAR, "attention": FULL}


def layer_types(f: Fields, *names: str, among: Sequence[str] = (LINEAR, FULL), length: int | None) -> list[str] | None:
    """The layer types under the first of ``names`` that the config has, old names ("mamba") turned into new ones."""
    found = f.names(*names, among=(*among, *(old for old, new in _OLD_NAMES.items() if new in among)), length=length)
    return None if found is None else [_OLD_NAMES.get(kind, kind) for kind in found]


def auto_dim(f: Fields, name: str, auto: int) -> int:
    """A size that may be absent, null or the word "auto": then it is ``auto``."""
    if f.config.get(name) not in (None, "auto"):
        return f.dim(name)
    f.text(name, default="auto", among=("auto",))
    return f.derived(name, auto)


def check_splits(f: Fields, name: str, parts: int, whole: int, what: str) -> None:
    """Refuse heads or groups that do not divide the width they split."""
    if whole % parts:
        raise f.error(name, f"a divisor of the {what} ({whole})", parts)


def mamba1_fields(f: Fields, *, inner_norms: bool = False, heads: int = 1) -> Mamba1:
    """A Mamba layer from ``mamba_*`` fields (Jamba, Zamba)."""
    d_model = f.dim("hidden_size")
    return Mamba1(
        d_model=d_model,
        d_inner=f.dim("mamba_expand", default=2) * d_model,
        d_state=f.dim("mamba_d_state", default=16),
        dt_rank=auto_dim(f, "mamba_dt_rank", -(-d_model // 16)),
        conv_kernel=f.dim("mamba_d_conv", default=4),
        proj_bias=f.flag("mamba_proj_bias", default=False),
        conv_bias=f.flag("mamba_conv_bias", default=True),
        inner_norms=inner_norms,
        heads=heads,
    )


def mamba2_fields(f: Fields, *, d_inner: int | None = None, out_bias: bool | None = None, norm: bool = True) -> Mamba2:
    """A Mamba-2 layer from ``mamba_*`` fields (Bamba, Falcon-H1, Granite 4).

    ``d_inner`` None: ``mamba_expand * hidden_size``; ``out_bias`` None: as ``mamba_proj_bias``.
    """
    d_model, expand = f.dim("hidden_size"), f.dim("mamba_expand", default=2)
    width = expand * d_model if d_inner is None else d_inner
    heads = f.dim("mamba_n_heads", default=128)
    check_splits(f, "mamba_n_heads", heads, width, "inner width of the Mamba layer")
    head_dim = auto_dim(f, "mamba_d_head", width // heads)
    if heads * head_dim != width:
        raise f.error("mamba_d_head", f"{width // heads}: the inner width {width} over {heads} heads", head_dim)
    in_bias = f.flag("mamba_proj_bias", default=False)
    f.skip("mamba_chunk_size", "mamba_norm_before_gate", "mamba_use_mem_eff_path", "time_step_*")
    return Mamba2(
        d_model=d_model,
        d_inner=width,
        heads=heads,
        d_state=f.dim("mamba_d_state", default=256),
        groups=f.dim("mamba_n_groups", default=1),
        conv_kernel=f.dim("mamba_d_conv", default=4),
        in_bias=in_bias,
        out_bias=in_bias if out_bias is None else out_bias,
        conv_bias=f.flag("mamba_conv_bias", default=True),
        gated_norm=norm,
    )
