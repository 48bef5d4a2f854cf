"""xLSTM 7B: matrix-memory LSTM layers and gated feed-forward blocks."""

import math

from ridgeline.arithmetic.configs.fields import Fields
from ridgeline.arithmetic.configs.hybrid_parts import check_splits
from ridgeline.arithmetic.configs.parts import assemble, norms
from ridgeline.arithmetic.configs.registry import reads
from ridgeline.arithmetic.mixers import mlstm
from ridgeline.arithmetic.spec import MLP, Layer, ModelSpec, embedding_block

_RUNTIME = ("chunkwise_kernel", "sequence_kernel", "step_kernel", "mode", "chunk_size", "return_last_states")
_NUMERICS = ("autocast_kernel_dtype", "inference_state_dtype", "norm_reduction_force_float32", "*_soft_cap")


@reads("xlstm")
def xlstm(f: Fields) -> ModelSpec:
    """xLSTM; ``weight_mode`` fuses projections and changes no count."""
    d_model, n = f.dim("hidden_size", "embedding_dim"), f.layers("num_hidden_layers", "num_blocks")
    heads, bias = f.dim("num_heads", default=8), f.flag("use_bias", default=False)
    qk_width = f.derived("qk_width", int(d_model * f.number("qk_dim_factor", default=0.5)))
    v_width = f.derived("v_width", int(d_model * f.number("v_dim_factor", default=1.0)))
    check_splits(f, "num_heads", heads, qk_width, "query width")
    check_splits(f, "num_heads", heads, v_width, "value width")
    multiple = f.dim("ffn_round_up_to_multiple_of", default=64)
    d_ff = multiple * math.floor((d_model * f.number("ffn_proj_factor", default=2.667) + multiple - 1) / multiple)
    f.skip(*_RUNTIME, *_NUMERICS, "weight_mode", "max_inference_chunksize")
    f.require("add_out_norm", True)
    f.require("tie_word_embeddings", False)
    layer = Layer(
        mixers=(mlstm(d_model, heads, qk_width, v_width, bias=bias),),
        ffns=(MLP(d_model=d_model, d_ff=f.derived("d_ff", d_ff), bias=bias),),
        norms=norms(d_model, "mlstm_norm", "ffn_norm", bias=bias),
    )
    embed = embedding_block(d_model, f.dim("vocab_size"), tied=False)
    return assemble(f, embed, ((layer,), (0,) * n), tied=False)
