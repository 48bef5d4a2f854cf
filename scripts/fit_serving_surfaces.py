"""Fit the serving surfaces of ``core/data/surfaces/serving`` to public kernel tables.

``make surfaces``, or ``python scripts/fit_serving_surfaces.py --data ../shared/data``; ``--check`` prints the errors of
the stored files and writes nothing. The method is that of ``scripts/fit_surfaces.py``, whose fit is used: see
docs/design/serving-surfaces.md. One file per measured system and ``typical.json``, the fit to all systems together,
whose interval is that of leaving one system out. The raw tables are not shipped.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.fit_surfaces import (
    QUANTILES,
    SOURCE,
    SYSTEMS,
    Model,
    Rows,
    check,
    fit,
    link_bandwidth,
    packed,
    ramp,
    reference_of,
    report,
    typical_ramp,
    typical_surface,
    write,
)

from ridgeline.arithmetic.decode import thin_gemm
from ridgeline.arithmetic.serving_work import decode_work, expert_work, experts_hit, latent_prefill_work, latent_work
from ridgeline.arithmetic.surface_terms import attention_work
from ridgeline.core import catalog
from ridgeline.core.surfaces import SCALE, SERVING, TYPICAL, Floats, Grid

DTYPES = {"bfloat16": "bf16", "fp8": "fp8"}
# Of each type one kind of kernel: with a scale a block, as fp8 checkpoints of mixtures have, and in fp4 the units of
# the device where it has some.
EXPERT_DTYPES = {"bfloat16": "bf16", "fp8_block": "fp8", "int4_wo": "int4"}
NATIVE_FP4, WIDENED_FP4 = {"nvfp4": "fp4"}, {"w4a16_mxfp4": "fp4"}
BYTES = {"bf16": 2.0, "fp8": 1.0, "int4": 0.5, "fp4": 0.5}
DECODE_NODES = ((16, 128, 512, 2048, 8192, 32768, 131072), (1, 8, 32, 128, 512, 2048, 16384), (1, 4, 8, 16, 64))
PREFILL_NODES = (
    (16, 64, 256, 1024, 2048, 4096, 8192, 16384),
    (1, 4, 16, 64, 256, 1024, 4096),
    (1 / 128, 1 / 16, 1 / 4, 1),
)
LATENT_NODES = ((16, 128, 512, 2048, 8192, 32768, 131072), (1, 8, 32, 128, 1024), (1, 8, 16, 32, 64, 128))
LATENT_PREFILL_NODES = ((16, 64, 256, 1024, 4096, 16384), (1, 4, 16, 64, 256), (1, 8, 32, 128))
EXPERT_NODES = (
    (1, 4, 16, 64, 256, 1024, 4096, 16384, 131072),
    (1, 4, 16, 64, 256, 512),
    (2**17, 2**19, 2**21, 2**23, 2**25),
)
EXPERT_TERMS = ("skew", "skew_parts", "slim", "top_k")
PLAIN_EXPERTS = {(2688, 1856), (1024, 2688), (2048, 5120), (4096, 2688)}  # two matmuls, no gate
LATENT, ROPE, SCORE, VALUE = 512.0, 64.0, 192.0, 128.0  # DeepSeek-V3, whose kernels were measured
WIDTH, QUERY = 7168.0, 1536.0  # its residual stream, and the latent of its queries
LEAST = 0.2  # of a module's time is at least attention, whatever its projections take alone
SLOPED = ("bf16", "fp8", "fp4")  # measured for so many models that a slope in an expert's sides holds for others
LARGE_BYTES = 1e9
AXES = {
    "decode": ("seen", "caches", "group"),
    "prefill": ("seq", "blocks", "seen"),
    "latent": ("seen", "batch", "heads"),
    "latent_prefill": ("seq", "batch", "heads"),
    "experts": ("rows", "experts", "matrix"),
}
NODES: dict[str, tuple[tuple[float, ...], ...]] = {
    "decode": DECODE_NODES,
    "prefill": PREFILL_NODES,
    "latent": LATENT_NODES,
    "latent_prefill": LATENT_PREFILL_NODES,
    "experts": EXPERT_NODES,
}
TERMS: dict[str, tuple[str, ...]] = {
    "decode": ("past",),
    "prefill": ("grouping",),
    "latent": ("none",),
    "latent_prefill": ("none",),
}
TERMS |= {"experts": EXPERT_TERMS}
GROUPS = {"meta-llama/Llama-3.1-8B": 4, "Qwen/Qwen3-32B": 8, "Qwen/Qwen3-30B-A3B-Instruct-2507": 8}
MIXED_NODES = (tuple(2.0**power for power in range(-6, 7)), (1.0, 4.0, 16.0, 64.0, 256.0), (4.0, 8.0))
MIXED_SOURCE = {
    "title": "LLMServingSim 2.0, layer profiles of vLLM 0.19",
    "url": "https://github.com/casys-kaist/LLMServingSim",
    "repository": "casys-kaist/LLMServingSim",
    "commit": "5daddb2",
    "licence": "MIT",
    "read_on": "2026-11-29",
    "changes": "the coefficients of a fit; the measured rows themselves are not here",
}
SERVED = ("a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm", "l40s")


@dataclass(frozen=True)
class Made:
    """Rows of one surface with its reference, and the shares of peak or of bandwidth of its large shapes."""

    rows: Rows
    reference: dict[str, float]
    top: Floats


def fastest(data: Path, name: str, shape: Sequence[str]) -> pl.DataFrame:
    """The fastest kernel of each shape."""
    table = pl.read_parquet(data / "serve" / "kernels" / f"aic_{name}_perf.parquet")
    return table.group_by(*shape).agg(pl.col("latency").min()).sort(*shape)


def columns(table: pl.DataFrame, *names: str) -> list[Floats]:
    """Columns as floats."""
    return [table[name].fill_null(0).to_numpy().astype(np.float64) for name in names]


def rate_of(slug: str, dtype: str) -> str:
    """The type that a device multiplies weights of ``dtype`` in: bf16 where it has no units for theirs."""
    return dtype if dtype != "int4" and catalog.device(slug).peak(dtype) is not None else "bf16"


def made(
    slug: str, rate: str, work: tuple[Floats, Floats], seconds: Floats, coordinates: tuple[Floats, ...],
    terms: Floats, column: Floats,
) -> Made:  # fmt: skip
    """Rows against the roofline of that device; none is above its peak, and none reads a cache three times too fast."""
    flops, moved = work
    launch_s = float(np.quantile(seconds, 0.01))
    reference = reference_of(slug, rate, launch_s)
    base = launch_s + flops / reference["peak_flops_s"] + moved / reference["bandwidth_bytes_s"]
    share = flops / seconds / reference["peak_flops_s"]
    read = moved / seconds / reference["bandwidth_bytes_s"]
    rows = Rows(coordinates, terms, np.log(seconds / base), flops, column.astype(np.int64), share, launch_s)
    keep = (share < 1) & (read < 3)
    return Made(rows[keep], reference, np.maximum(read, share)[keep & (moved > LARGE_BYTES)])


def decode_made(data: Path, system: str, slug: str) -> dict[str, Made]:
    """By ``dtype/dim``."""
    shape = ["system", "batch_size", "step", "num_heads", "num_key_value_heads", "head_dim", "kv_cache_dtype"]
    table = fastest(data, "generation_attention", [*shape, "window_size"]).filter(pl.col("system") == system)
    found = {}
    for (kv, dim), part in sorted(table.group_by("kv_cache_dtype", "head_dim")):
        batch, step, heads, kv_heads, window = columns(
            part, "batch_size", "step", "num_heads", "num_key_value_heads", "window_size"
        )
        context = step + 1
        seen = np.where((window > 0) & (window < context), window, context)
        dtype = DTYPES[str(kv)]
        work = decode_work(batch, heads, kv_heads, seen, np.full(len(batch), float(dim)), BYTES[dtype])
        coordinates = (seen, batch * kv_heads, heads / kv_heads)
        terms = np.log(context / seen)[:, None]
        seconds = columns(part, "latency")[0] / 1e3
        found[f"{dtype}/{dim}"] = made(slug, "bf16", work, seconds, coordinates, terms, heads * 1000 + kv_heads)
    return found


def prefill_made(data: Path, system: str, slug: str) -> dict[str, Made]:
    """By head dim, with a bf16 cache."""
    shape = ["system", "batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim", "kv_cache_dtype"]
    table = fastest(data, "context_attention", [*shape, "window_size"])
    table = table.filter((pl.col("system") == system) & (pl.col("kv_cache_dtype") == "bfloat16") & (pl.col("isl") > 1))
    found = {}
    for (dim,), part in sorted(table.group_by("head_dim")):
        batch, seq, heads, kv_heads, window = columns(
            part, "batch_size", "isl", "num_heads", "num_key_value_heads", "window_size"
        )
        seen = np.where((window > 0) & (window < seq), window, seq)
        work = attention_work(seq, heads, kv_heads, np.full(len(seq), float(dim)), batch, seen)
        terms, coordinates = np.log(heads / kv_heads)[:, None], (seq, batch * heads, seen / seq)
        seconds = columns(part, "latency")[0] / 1e3
        found[str(dim)] = made(slug, "bf16", work, seconds, coordinates, terms, heads * 1000 + kv_heads)
    return found


def module_rest(data: Path, name: str, system: str, slug: str) -> pl.DataFrame:
    """Modules of latent attention with 16-bit weights, and what their time leaves beside their projections.

    The kernels alone were measured with the host's launches in them (a time of 0.16 ms whatever the batch); modules
    were not.
    """
    shape = ["system", "batch_size", "isl", "step", "num_heads", "kv_cache_dtype"]
    table = pl.read_parquet(data / "serve" / "kernels" / f"aic_mla_{name}_module_perf.parquet")
    table = table.filter((pl.col("system") == system) & (pl.col("gemm_type") == "bfloat16") & (pl.col("step") >= 0))
    table = table.group_by(*shape).agg(pl.col("latency").min()).sort(*shape)
    if not len(table):
        return table
    batch, new, heads, latency = columns(table, "batch_size", "isl", "num_heads", "latency")
    rows, surface, seconds = batch * new, thin_gemm(catalog.device(slug), "bf16"), latency / 1e3
    sides = ((WIDTH, QUERY + LATENT + ROPE), (QUERY, SCORE * heads), (LATENT, (SCORE - ROPE + VALUE) * heads),
             (VALUE * heads, WIDTH))  # fmt: skip
    projections = sum(surface.seconds(rows, n, k).seconds for k, n in sides)
    return table.with_columns(pl.Series("seconds", np.maximum(seconds - projections, LEAST * seconds)))


def latent_made(data: Path, system: str, slug: str) -> dict[str, Made]:
    """Decode of latent attention, by element type of the cache."""
    found = {}
    for (kv,), part in sorted(module_rest(data, "generation", system, slug).group_by("kv_cache_dtype")):
        batch, seen, heads, seconds = columns(part, "batch_size", "step", "num_heads", "seconds")
        dtype = DTYPES[str(kv)]
        work = latent_work(batch, heads, seen, LATENT, ROPE, BYTES[dtype])
        none = np.zeros((len(seen), 1))
        found[dtype] = made(slug, "bf16", work, seconds, (seen, batch, heads), none, heads * 1000 + batch)
    return found


def latent_prefill_made(data: Path, system: str, slug: str) -> dict[str, Made]:
    """Prefill of latent attention without a past, by element type of the cache."""
    found = {}
    table = module_rest(data, "context", system, slug).filter((pl.col("isl") > 1) & (pl.col("step") == 0))
    for (kv,), part in sorted(table.group_by("kv_cache_dtype")):
        batch, seq, heads, seconds = columns(part, "batch_size", "isl", "num_heads", "seconds")
        work = latent_prefill_work(seq, batch, heads, SCORE, VALUE)
        none = np.zeros((len(seq), 1))
        found[DTYPES[str(kv)]] = made(slug, "bf16", work, seconds, (seq, batch, heads), none, heads * 1000 + batch)
    return found


def experts_made(data: Path, system: str, slug: str) -> dict[str, Made]:
    """By element type of the weights. ``skew`` is the exponent of the power law of the experts' popularity."""
    shape = ["num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size"]
    table = pl.read_parquet(data / "serve" / "kernels" / "aic_moe_perf.parquet").filter(pl.col("system") == system)
    dtypes = EXPERT_DTYPES | (NATIVE_FP4 if "fp4" in catalog.device(slug).peaks else WIDENED_FP4)
    table = table.filter(pl.col("moe_dtype").is_in(list(dtypes)))
    table = table.with_columns(pl.col("moe_dtype").replace_strict(dtypes).alias("dtype"))
    table = table.group_by("dtype", "distribution", *shape).agg(pl.col("latency").min()).sort("dtype", *shape)
    found = {}
    for (kind,), part in sorted(table.group_by("dtype")):
        tokens, hidden, inter, top_k, experts, parts_tp, parts, latency = columns(part, *shape, "latency")
        skew = part["distribution"].str.extract(r"([\d.]+)$").cast(pl.Float64).fill_null(0).to_numpy()
        dtype, own = str(kind), inter / parts_tp
        rows, here = np.maximum(tokens * top_k / parts, 1.0), experts / parts
        plain = np.array([pair in PLAIN_EXPERTS for pair in zip(hidden, inter, strict=True)])
        hit = np.maximum(experts_hit(experts, top_k, tokens) / parts, 1.0)
        work = expert_work(rows, hit, hidden, own, BYTES[dtype], np.where(plain, 2.0, 3.0))
        column = hidden * 1_000_003 + inter * 1009 + experts
        known = float(dtype in SLOPED)
        terms = np.stack([skew, skew * np.log(parts), known * np.log(hidden / own), known * np.log(top_k)], axis=1)
        found[dtype] = made(slug, rate_of(slug, dtype), work, latency / 1e3, (rows, here, hidden * own), terms, column)
    return found


MAKERS: Mapping[str, Callable[[Path, str, str], dict[str, Made]]] = {
    "decode": decode_made,
    "prefill": prefill_made,
    "latent": latent_made,
    "latent_prefill": latent_prefill_made,
    "experts": experts_made,
}


def nodes_of(kernel: str, rows: Rows) -> tuple[tuple[float, ...], ...]:
    """The grid, cut to the range that was measured, one node beyond it at both ends."""
    cut = []
    for axis, values in zip(NODES[kernel], rows.coordinates, strict=True):
        low, high = values.min() * (1 + 1e-9), values.max() * (1 - 1e-9)
        first = max([i for i, node in enumerate(axis) if node <= low], default=0)
        last = min([i for i, node in enumerate(axis) if node >= high], default=len(axis) - 1)
        cut.append(tuple(axis[first : last + 1]))
    return tuple(cut)


def all_reduce(data: Path, system: str) -> dict[str, Any]:
    """The all-reduce of a captured graph; sizes of the table are elements of two bytes, as its NCCL twin's are."""
    table = pl.read_parquet(data / "serve" / "kernels" / "aic_custom_allreduce_perf.parquet")
    table = (
        table.filter((pl.col("system") == system) & (pl.col("backend") == "vllm_graph"))
        .select(
            pl.col("num_gpus").alias("group"),
            (pl.col("message_size") * 2).alias("bytes"),
            (pl.col("latency") / 1e3).alias("seconds"),
        )
        .sort("group", "bytes")
    )
    smaller = pl.col("seconds").reverse().cum_min().reverse().over("group")  # a smaller message takes no longer
    return ramp(table.with_columns(smaller))


def nested(found: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """``{"bf16/128": x}`` as ``{"bf16": {"128": x}}``; plain keys stay."""
    tree: dict[str, Any] = {}
    for key, item in found.items():
        first, _, second = key.partition("/")
        if second:
            tree.setdefault(first, {})[second] = item
        else:
            tree[first] = item
    return tree


Kept = dict[tuple[str, str], dict[str, Made]]


def one_system(data: Path, system: str, kept: Kept) -> dict[str, Any]:
    """The file of one system; its rows are kept for the surfaces over all."""
    slug = SYSTEMS[system].devices[0]
    found: dict[str, Any] = {"system": system, "source": SOURCE}
    for kernel, maker in MAKERS.items():
        surfaces: dict[str, dict[str, Any]] = {}
        for key, item in maker(data, system, slug).items():
            kept.setdefault((kernel, key), {})[system] = item
            nodes = nodes_of(kernel, item.rows)
            checked = check(nodes, item.rows)
            model = fit(nodes, item.rows)
            surfaces[key] = packed(AXES[kernel], model, item.rows, checked, item.reference, TERMS[kernel], item.top)
            report(system, f"{kernel} {key}", checked)
        found[kernel] = nested(surfaces)
    found["all_reduce"] = all_reduce(data, system)
    print(system, "all-reduce", found["all_reduce"]["errors"])
    return found


def over_all(kept: Kept, files: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """``typical.json``: surfaces over all systems that have the kernel, at least three of them."""
    found: dict[str, Any] = {"system": TYPICAL, "source": SOURCE}
    for kernel in MAKERS:
        surfaces: dict[str, dict[str, Any]] = {}
        for (owner, key), items in kept.items():
            if owner != kernel or len(items) < 3:
                continue
            surfaces[key] = typical_surface(
                AXES[kernel], NODES[kernel], {name: item.rows for name, item in items.items()}, TERMS[kernel]
            )
            tops = [np.quantile(item.top, (0.5, *QUANTILES)) for item in items.values() if len(item.top)]
            surfaces[key]["ceiling"] = np.round(np.median(tops, axis=0), 4).tolist() if tops else None
            print(TYPICAL, kernel, key, surfaces[key]["held_out"]["systems"], flush=True)
        found[kernel] = nested(surfaces)
    switched = {
        name: link_bandwidth(SYSTEMS[name].devices[0])
        for name in files
        if catalog.device(SYSTEMS[name].devices[0]).links["scale_up"].topology == "switched"
    }
    found["all_reduce"] = typical_ramp("all_reduce", {name: files[name]["all_reduce"] for name in switched}, switched)
    return found


def mixed_rows(data: Path) -> tuple[Rows, NDArray[np.int64]]:
    """ln(mixed/prefill alone) by decode/prefill, sequences that decode, and queries a key head; the profile of each."""
    table = pl.read_parquet(data / "serve" / "kernels" / "lss_attention.parquet")
    own, prompt, cached = ["hw", "model", "tp"], ["prefill_chunk", "kv_prefill"], ["n_decode", "kv_decode"]
    chunk, decodes, time_us = pl.col("prefill_chunk"), pl.col("n_decode"), pl.col("time_us").median()
    alone = table.filter((decodes == 0) & (chunk > 0)).group_by(*own, *prompt).agg(time_us.alias("prompt"))
    decode = table.filter((chunk == 0) & (decodes > 0)).group_by(*own, *cached).agg(time_us.alias("decode"))
    table = table.filter((chunk > 0) & (decodes > 0)).join(alone, on=[*own, *prompt]).join(decode, on=[*own, *cached])
    table = table.sort(*own, *prompt, *cached)
    mixed, first, second, sequences = columns(table, "time_us", "prompt", "decode", "n_decode")
    group = table["model"].replace_strict(GROUPS).to_numpy().astype(np.float64)
    _, profile = np.unique((table["hw"] + table["model"] + table["tp"].cast(pl.String)).to_numpy(), return_inverse=True)
    none = np.zeros((len(mixed), 1))
    y, share = np.log(mixed / first), np.full(len(mixed), 0.5)
    return Rows((second / first, sequences, group), none, y, mixed, profile.astype(np.int64), share, 0.0), profile


def growing(model: Model) -> Floats:
    """The grid with a time that falls neither with the prompt's nor with the decodes' own, nor with their number."""
    shape = [len(axis) for axis in model.nodes]
    values = np.round(model.values[: int(np.prod(shape))].reshape(shape) * SCALE)  # as stored: rounding bends no line
    step = np.floor(np.diff(np.log(np.asarray(model.nodes[0]))) * SCALE)[:, None, None]
    rise = np.clip(np.diff(values, axis=0), 0.0, step)
    grown = values[:1] + np.concatenate([np.zeros((1, *shape[1:])), np.cumsum(rise, axis=0)])
    found: Floats = np.maximum.accumulate(grown + np.round(np.median(values - grown)), axis=1) / SCALE
    return found


def mixed(data: Path) -> dict[str, Any]:
    """``mixed.json``: attention of a step with both a prompt and decodes, with the errors of leaving a profile out."""
    rows, profile = mixed_rows(data)

    def predict(model: Model, some: Rows) -> Floats:
        grid = Grid(tuple(np.log(np.asarray(axis, dtype=np.float64)) for axis in model.nodes), growing(model).ravel())
        return grid.at(*(np.log(item) for item in some.coordinates))

    left = np.zeros(len(rows.y))
    for held in np.unique(profile):
        out = profile == held
        left[out] = rows[out].y - predict(fit(MIXED_NODES, rows[~out]), rows[out])
    off = np.abs(np.expm1(-left))
    errors = [round(float(np.median(off)), 4), round(float(np.quantile(off, 0.9)), 4)]
    print("mixed", errors, flush=True)
    return {
        "source": MIXED_SOURCE,
        "devices": ["rtx-4090", "rtx-pro-6000-blackwell-server"],
        "rows": len(rows.y),
        "nodes": dict(zip(("ratio", "sequences", "group"), MIXED_NODES, strict=True)),
        "log_ratio": [round(float(value) * SCALE) for value in growing(fit(MIXED_NODES, rows)).ravel()],
        "spread": [round(float(end), 4) for end in np.quantile(left, QUANTILES)],
        "held_out": {"profiles": errors},
    }


def main() -> None:
    """Write every file of ``core/data/surfaces/serving``, or with ``--check`` print the errors of the stored ones."""
    parser = argparse.ArgumentParser(description="Fit the serving surfaces to public kernel tables.")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("RIDGELINE_DATA", "../shared/data")))
    parser.add_argument("--out", type=Path, default=SERVING)
    parser.add_argument("--check", action="store_true", help="print the errors of the stored files on all rows")
    options = parser.parse_args()
    if options.check:
        print_errors(options.data, options.out)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    files: dict[str, dict[str, Any]] = {}
    kept: Kept = {}
    for system in SERVED:
        files[system] = one_system(options.data, system, kept)
        write(options.out, system, files[system])
    write(options.out, TYPICAL, over_all(kept, files))
    write(options.out, "mixed", mixed(options.data))


def print_errors(data: Path, folder: Path) -> None:
    """Median and 90th percentile of the stored surfaces on all rows, beside those of rows that were held out."""
    for system in SERVED:
        stored = json.loads((folder / f"{system}.json").read_text(encoding="utf-8"))
        for kernel, maker in MAKERS.items():
            for key, item in maker(data, system, SYSTEMS[system].devices[0]).items():
                first, _, second = key.partition("/")
                surface = stored[kernel][first][second] if second else stored[kernel][first]
                print(system, kernel, key, len(item.rows.y), stored_errors(surface, kernel, item), surface["held_out"])


def stored_errors(surface: Mapping[str, Any], kernel: str, item: Made) -> tuple[float, float]:
    """Median and 90th percentile of a stored surface on all its rows."""
    nodes = tuple(tuple(surface["nodes"][axis]) for axis in AXES[kernel])
    values = np.array([*(value / SCALE for value in surface["log_ratio"]), *surface["terms"].values()])
    off = np.abs(np.expm1(Model(nodes, values).predict(item.rows) - item.rows.y))
    return round(float(np.median(off)), 4), round(float(np.quantile(off, 0.9)), 4)


if __name__ == "__main__":
    main()
