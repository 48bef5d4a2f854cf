"""A small sample of every format of a request trace, by the name of its reader."""

import io
import json
from pathlib import Path

ROWS = [(0.0, 600, 40), (0.25, 1500, 10), (1.5, 90, 7), (4.0, 2048, 128)]
BLOCKS = [[0, 1], [0, 1, 2], [3], [0, 1, 4, 5]]


def _csv(header: str, rows: list[str]) -> bytes:
    return "\n".join([header, *rows, ""]).encode()


def _lines(items: list[dict[str, object]]) -> bytes:
    return "".join(json.dumps(item) + "\n" for item in items).encode()


def parquet() -> bytes:
    """The rows as Parquet, with block hashes."""
    import polars as pl

    frame = pl.DataFrame(
        {"arrival_s": [t for t, _, _ in ROWS], "input_tokens": [i for _, i, _ in ROWS],
         "output_tokens": [o for _, _, o in ROWS], "hash_ids": BLOCKS}
    )  # fmt: skip
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


def _result() -> bytes:
    times, given, made = zip(*ROWS, strict=True)
    starts = [1000.0 + time for time in times]
    return json.dumps({"model_id": "m", "input_lens": given, "output_lens": made, "start_times": starts}).encode()


FORMATS = {
    "Azure LLM trace": _csv(
        "TIMESTAMP,ContextTokens,GeneratedTokens",
        [f"2023-11-16 18:17:0{int(t)}.{round(t % 1 * 1e7):07d},{i},{o}" for t, i, o in ROWS],
    ),
    "BurstGPT": _csv(
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type",
        [f"{t},ChatGPT,{i},{o},{i + o},Conversation log" for t, i, o in ROWS],
    ),
    "CSV": _csv("arrival_s,input_tokens,output_tokens", [f"{t},{i},{o}" for t, i, o in ROWS]),
    "JSON Lines": _lines([{"arrival_time_ns": int(t * 1e9), "input_toks": i, "output_toks": o} for t, i, o in ROWS]),
    "Mooncake": _lines(
        [{"timestamp": int(t * 1e3), "input_length": i, "output_length": o, "hash_ids": b}
         for (t, i, o), b in zip(ROWS, BLOCKS, strict=True)]
    ),
    "Splitwise": _csv(
        "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size",
        [f"{n},0,0,{t},1,{i},{o}" for n, (t, i, o) in enumerate(ROWS)],
    ),
    "vLLM benchmark": _result(),
    "Vidur": _csv("arrived_at,num_prefill_tokens,num_decode_tokens", [f"{t},{i},{o}" for t, i, o in ROWS]),
    "Parquet": parquet(),
}  # fmt: skip


def write(path: Path, content: bytes | str) -> Path:
    """A file of that content."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
