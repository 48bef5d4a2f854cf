"""Models that several arithmetic tests share, by their published dimensions."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ridgeline.arithmetic.shape import Shape, model
from ridgeline.arithmetic.spec import (
    MLA,
    MLP,
    Attention,
    Block,
    CompressedAttention,
    Layer,
    ModelSpec,
    MoE,
    Part,
    embedding_block,
    linear,
    norm,
)


def shaped(**keys: object) -> ModelSpec:
    """A pre-norm decoder from the keys of a shape file."""
    return model(Shape.model_validate(keys))


def gpt(d_model: int, layers: int, heads: int, vocab: int = 51200) -> ModelSpec:
    """A GPT-3 block: multi-head attention, plain MLP of width 4d, LayerNorm, tied table; biases left out."""
    head_dim = d_model // heads
    mixer = Attention(d_model=d_model, heads=heads, kv_heads=heads, head_dim=head_dim, v_head_dim=head_dim)
    gains = norm("input_norm", "d_model", bias=True) + norm("post_norm", "d_model", bias=True)
    layer = Layer(
        mixers=(mixer,),
        ffns=(MLP(d_model=d_model, d_ff=4 * d_model, gated=False),),
        norms=Block(d_model=d_model, extra=gains),
    )
    embed = embedding_block(d_model, vocab, tied=True, norm_bias=True)
    return _of("gpt", layer, (0,) * layers, embed)


def deepseek2_16b() -> ModelSpec:
    """DeepSeek-V2-Lite: latent attention without a query latent, 64 experts of which 6, the first layer dense."""
    d = 2048
    mixer = MLA(d_model=d, heads=16, kv_rank=512, qk_nope=128, qk_rope=64, v_head_dim=128)
    gains = Block(d_model=d, extra=norm("input_norm", "d_model") + norm("post_norm", "d_model"))
    experts = MoE(d_model=d, experts=64, top_k=6, expert_ff=1408, shared_ff=2816)
    dense = Layer(mixers=(mixer,), ffns=(MLP(d_model=d, d_ff=10944),), norms=gains)
    sparse = Layer(mixers=(mixer,), ffns=(experts,), norms=gains)
    embed = embedding_block(d, 102400, tied=False)
    return ModelSpec(
        name="deepseek2-16b", family="test", d_model=d, vocab=102400, tied=False,
        kinds=(dense, sparse), pattern=(0,) + (1,) * 26, embed=embed,
    )  # fmt: skip


def deepseek3_attention(layers: int = 61) -> ModelSpec:
    """The latent attention of DeepSeek-V3, with a small MLP: what its cache depends on."""
    d = 7168
    mixer = MLA(d_model=d, heads=128, q_rank=1536, kv_rank=512, qk_nope=128, qk_rope=64, v_head_dim=128)
    layer = Layer(mixers=(mixer,), ffns=(MLP(d_model=d, d_ff=18432),), norms=Block(d_model=d))
    return _of("deepseek3-attention", layer, (0,) * layers, embedding_block(d, 129280, tied=False))


def compressed(window: int, compress: int, top_k: int | None = None, *, overlap: bool = False) -> ModelSpec:
    """One layer of windowed attention with a compressed past, an indexer where ``top_k`` is given."""
    indexer = {"index_heads": 2, "index_dim": 4, "sparse_top_k": top_k} if top_k else {}
    block = CompressedAttention.model_validate(
        {
            "d_model": 8, "heads": 2, "head_dim": 4, "q_rank": 6, "out_groups": 2, "group_width": 4, "out_rank": 5,
            "window": window, "compress": compress, "overlap": overlap, **indexer,
        }
    )  # fmt: skip
    layer = Layer(mixers=(block,), ffns=(MLP(d_model=8, d_ff=8),), norms=Block(d_model=8))
    return _of("compressed", layer, (0,), embedding_block(8, 8, tied=True))


def with_mtp(spec: ModelSpec) -> ModelSpec:
    """The model with one multi-token-prediction module like its last layer, and its projection."""
    projection = Block(d_model=spec.d_model, extra=linear("eh_proj", Part.MTP, "2*d_model", "d_model"))
    return spec.model_copy(update={"mtp": (spec.kinds[-1],), "mtp_extra": projection})


def _of(name: str, layer: Layer, pattern: tuple[int, ...], embed: Block) -> ModelSpec:
    tied = not any(weight.name == "lm_head" for weight in embed.weights)
    return ModelSpec(
        name=name, family="test", d_model=embed.d_model, vocab=embed.dims["vocab"], tied=tied,
        kinds=(layer,), pattern=pattern, embed=embed,
    )  # fmt: skip


def _dense(layers: int, d_model: int, d_ff: int, heads: int, **other: object) -> Callable[[], ModelSpec]:
    return lambda: shaped(layers=layers, d_model=d_model, d_ff=d_ff, heads=heads, **other)


def _moe(layers: int, d_model: int, heads: int, kv_heads: int, **other: object) -> Callable[[], ModelSpec]:
    return lambda: shaped(layers=layers, d_model=d_model, heads=heads, kv_heads=kv_heads, head_dim=128, **other)


# Dimensions as the models' cards publish them; Gemma's vocabulary as MaxText pads it, Qwen3's 30B as Megatron pads it.
PUBLISHED: Mapping[str, Callable[[], ModelSpec]] = MappingProxyType(
    {
        "llama2-7b": _dense(32, 4096, 11008, 32, vocab=32000),
        "llama2-13b": _dense(40, 5120, 13824, 40, vocab=32000),
        "llama2-70b": _dense(80, 8192, 28672, 64, kv_heads=8, vocab=32000),
        "llama3-8b": _dense(32, 4096, 14336, 32, kv_heads=8, vocab=128256),
        "llama3-70b": _dense(80, 8192, 28672, 64, kv_heads=8, vocab=128256),
        "mistral-7b": _dense(32, 4096, 14336, 32, kv_heads=8, vocab=32000),
        "gemma-7b": _dense(28, 3072, 24576, 16, head_dim=256, vocab=256128, tied=True),
        "gemma-2b": _dense(18, 2048, 16384, 8, kv_heads=1, head_dim=256, vocab=256128, tied=True),
        "mixtral-8x7b": _moe(32, 4096, 32, 8, vocab=32000, experts=8, top_k=2, expert_ff=14336),
        "qwen3-30b": _moe(48, 2048, 32, 4, vocab=151680, experts=128, top_k=8, expert_ff=768),
        "qwen3-235b": _moe(94, 4096, 64, 4, vocab=151936, experts=128, top_k=8, expert_ff=1536),
        "deepseek2-16b": deepseek2_16b,
    }
)
