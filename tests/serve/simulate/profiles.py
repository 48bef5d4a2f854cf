"""A small kernel profile on disk, linear in everything, whose step times are known in closed form."""

from itertools import product
from pathlib import Path

from ridgeline.arithmetic.named import find_model
from ridgeline.core.catalog import device
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.simulate.engine.engine import Engine

CHUNKS, PASTS, DECODES, CONTEXTS = (0, 64, 256), (0, 128), (0, 2, 8), (64, 512)
OPERATIONS = ("embedding", "final_layernorm", "layernorm", "qkv_proj", "rotary_emb", "o_proj", "gate_up_proj", "act_fn",
              "down_proj")  # fmt: skip
ENGINE = Engine(kv_blocks=1000, max_num_seqs=8, max_num_batched_tokens=256)


def attention_us(chunk: float, past: float, decodes: float, context: float) -> float:
    """The attention of one layer: one term for the prompt, one for the decodes, one for the two together."""
    return 1.0 + 0.5 * chunk + 0.01 * chunk * past + 0.02 * decodes * context + 0.001 * chunk * decodes


def attention_rows() -> list[str]:
    """Every row that a profiler can measure on the axes."""
    rows = []
    for chunk, past, decodes, context in product(CHUNKS, PASTS, DECODES, (0, *CONTEXTS)):
        if (chunk == 0 and (past or not decodes)) or (decodes == 0) != (context == 0):
            continue
        rows.append(f"{chunk},{past},{decodes},{context},{attention_us(chunk, past, decodes, context)}")
    return rows


def write(folder: Path, **tables: str | None) -> Path:
    """The profile, with some of its tables replaced or, with None, left out."""
    folder.mkdir(exist_ok=True)
    whole: dict[str, str | None] = {
        "dense": "layer,tokens,time_us\n"
        + "\n".join(f"{name},{tokens},{10 + tokens}" for name in OPERATIONS for tokens in (1, 64, 256)),
        "per_sequence": "layer,sequences,time_us\nlm_head,1,100\nlm_head,8,170\nsampler,1,10\nsampler,8,17\n",
        "attention": "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n" + "\n".join(attention_rows()),
    }
    for name, text in (whole | tables).items():
        if text is not None:
            (folder / f"{name}.csv").write_text(text)
    return folder


def deployment(
    model: str = "llama-3-8b", *, tp: int = 1, pp: int = 1, dp_attention: int = 1, ep: int = 1
) -> Deployment:
    """A model on an RTX PRO 6000."""
    spec, chip = find_model(model)[0], device("rtx-pro-6000-blackwell-server")
    return Deployment(spec, chip, tp=tp, pp=pp, dp_attention=dp_attention, ep=ep)
