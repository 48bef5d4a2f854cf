"""Which tensors a block keeps for the backward pass, in bytes per token, as formulas over its dimensions.

Symbols beside the block's own: ``act`` bytes of an activation, ``mask`` of a dropout mask, ``fp32``, ``T`` the
sequence. Sources: Korthikanti et al. 2022 (arXiv:2205.05198), section 4, for the tensors of attention, MLP, norm and
dropout; Dao et al. 2022 (arXiv:2205.14135), section 3.1, for the one logarithm per query that a fused kernel keeps.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from ridgeline.arithmetic.spec import MLA, MLP, Attention, Block, CompressedAttention, Mixer, MoE, Part

Kernel = Literal["flash", "unfused"]


@dataclass(frozen=True)
class Kept:
    """Terms by how they are split: ``wide`` as the residual stream, ``split`` over tensor-parallel chips, and the
    ``core`` of attention, which selective recompute drops."""

    wide: tuple[str, ...] = ()
    split: tuple[str, ...] = ()
    core: tuple[str, ...] = ()
    PARTS: ClassVar[tuple[str, ...]] = ("wide", "split", "core")

    @property
    def parts(self) -> dict[str, tuple[str, ...]]:
        """The terms by part."""
        return {"wide": self.wide, "split": self.split, "core": self.core}


def kept_by(block: Block, *, kernel: Kernel, dropout: bool) -> Kept:
    """The tensors of one block."""
    masks = ("mask*d_model",) if dropout else ()
    if isinstance(block, Attention):
        return _attention(block, _core(kernel, dropout=dropout), masks)
    if isinstance(block, MLA):
        return _mla(block, _core(kernel, dropout=dropout), masks)
    if isinstance(block, CompressedAttention):
        return _compressed(block, _core(kernel, dropout=dropout), masks)
    if isinstance(block, MLP):
        return Kept(("act*d_model", *masks), (f"{_inner(gated=block.gated)}*act*d_ff",))
    if isinstance(block, MoE):
        return _moe(block, masks)
    return _mixer(block) if isinstance(block, Mixer) else _norms(block)


def _core(kernel: Kernel, *, dropout: bool) -> tuple[str, ...]:
    """Scores: the softmax output, and with dropout its mask and its output."""
    if kernel == "flash":
        return ("fp32*heads",)
    return ("(2*act + mask)*heads*count(T)",) if dropout else ("act*heads*count(T)",)


def _attention(block: Attention, core: tuple[str, ...], masks: tuple[str, ...]) -> Kept:
    split = ["act*heads*head_dim", "act*heads*v_head_dim"]  # queries; the input of the output projection
    if not block.kv_shared:
        split += ["act*kv_heads*head_dim", "act*kv_heads*v_head_dim"]
    if block.qk_norm != "none":
        split.append("act*heads*head_dim" if block.kv_shared else "act*(heads + kv_heads)*head_dim")
    if block.out_gate:
        split.append("2*act*heads*head_dim")  # the gate, and the attention output before it
    return Kept(("act*d_model", *masks), tuple(split), core)


def _mla(block: MLA, core: tuple[str, ...], masks: tuple[str, ...]) -> Kept:
    latents = ["act*d_model", "act*(2*kv_rank + qk_rope)"]  # each latent before and after its norm, on every chip
    if block.q_rank is not None:
        latents.append("2*act*q_rank")
    heads = ("2*act*heads*(qk_nope + qk_rope)", "2*act*heads*v_head_dim")
    return Kept((*latents, *masks), heads, core)


def _compressed(block: CompressedAttention, core: tuple[str, ...], masks: tuple[str, ...]) -> Kept:
    """One key-value head on every chip; the compressor keeps its entries and gates before they are pooled."""
    wide = ["act*d_model", "2*act*q_rank", "2*act*head_dim"]
    if block.compress:
        wide.append("4*act*head_dim" if block.overlap else "2*act*head_dim")
    if block.index_heads:
        wide.append("4*act*index_dim")
    return Kept((*wide, *masks), ("2*act*heads*head_dim", "act*out_groups*out_rank"), core)


def _inner(*, gated: bool) -> int:
    """Tensors of MLP width: the activation's input and output; gate, up and their product when gated."""
    return 3 if gated else 2


def _moe(block: MoE, masks: tuple[str, ...]) -> Kept:
    inner = _inner(gated=block.gated)
    wide = ("act*d_model", "fp32*experts", "2*act*top_k*d_model", *masks)  # copies sent to experts, and their outputs
    split = [f"{inner}*act*top_k*expert_ff"]
    if block.shared_ff:
        split.append(f"{inner}*act*shared_ff")
    return Kept(wide, tuple(split))


def _mixer(block: Mixer) -> Kept:
    sides = [side for weight in block.weights if weight.matmul for side in (weight.shape[0], weight.shape[-1])]
    inner = [side for side in dict.fromkeys(sides) if side != "d_model"]
    return Kept(("act*d_model",), tuple(f"act*({side})" for side in inner))


def _norms(block: Block) -> Kept:
    gains = [w for w in block.weights if w.part is Part.NORM and not w.name.endswith(".bias")]
    return Kept(tuple(f"act*{weight.formula()}" for weight in gains))
