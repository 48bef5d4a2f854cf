"""Fit the efficiency surfaces of ``core/data/surfaces`` to public kernel tables.

``make surfaces``, or ``python scripts/fit_surfaces.py --data ../shared/data``: it needs the ``dev`` extra and the data
sets of ``$RIDGELINE_DATA``. One JSON file per measured system is written, and ``typical.json``, the fit to all systems
together, for devices that nobody measured. The raw tables are not shipped.

The method is in docs/design/surfaces.md: ln(time/reference) on a grid, by iteratively reweighted least squares (Huber
weights) with a small penalty on bends, plus tile and wave terms. Rows above peak are dropped, and NCCL sizes of
``half`` are counted in elements. Errors are those of rows held out three ways: at random, whole (n, k) columns (for
attention: whole head counts), and the largest shapes.
"""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags, eye, hstack, identity, kron, vstack
from scipy.sparse.linalg import spsolve

from ridgeline.arithmetic.surface_terms import Tiles, attention_work, bus_bytes, gemm_terms, gemm_work
from ridgeline.core import catalog
from ridgeline.core.surfaces import FOLDER, SCALE, TYPICAL, Floats, corners

SOURCE = {
    "title": "aiconfigurator, measured kernel tables",
    "url": "https://github.com/ai-dynamo/aiconfigurator",
    "repository": "ai-dynamo/aiconfigurator",
    "commit": "095f58a5",
    "licence": "Apache-2.0",
    "read_on": "2026-11-29",
    "changes": "medians over serving stacks, then the coefficients of a fit; the measured rows themselves are not here",
}
DTYPES = {"bfloat16": "bf16", "fp8": "fp8", "nvfp4": "fp4"}
KINDS = {"all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter"}
KINDS |= {"alltoall": "all_to_all"}
SMALL_M = (1, 8, 32, 128)
LARGE_M = (256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
WIDTHS = (256, 512, 1024, 2048, 4096, 8192, 16384, 65536)
SEQUENCES, BLOCKS, SEEN = (1024, 2048, 4096, 8192, 16384), (1, 4, 16, 64, 256, 1024, 4096), (1 / 128, 1 / 16, 1 / 4, 1)
BUSY = 2**29  # pairs (times heads and sequences) from which the launch is a small part of the time
BEND, ROUNDS = 0.02, 4  # weight of the penalty on bends, rounds of reweighting
QUANTILES = (0.1, 0.9)
NODE_BYTES = tuple(2**power for power in range(10, 31, 2))


@dataclass(frozen=True)
class System:
    """A measured system: the catalog's devices that it is, and relatives with the same matrix units."""

    devices: tuple[str, ...]
    stand_in_for: tuple[str, ...] = ()


SYSTEMS = {
    "a100_sxm": System(("a100-sxm-80gb",), ("a100-sxm-40gb", "a800-sxm-80gb")),
    "h100_sxm": System(("h100-sxm-80gb",), ("h800-sxm-80gb", "gh200-sxm-96gb")),
    "h200_sxm": System(("h200-sxm-141gb",), ("gh200-sxm-141gb",)),
    "b200_sxm": System(("b200-sxm",)),
    "gb200": System(("gb200",)),
    "b300_sxm": System(("b300-sxm",)),
    "gb300": System(("gb300",)),
    "l40s": System(("l40s",)),
    "rtx_pro_6000_server": System(("rtx-pro-6000-blackwell-server",)),
}


@dataclass(frozen=True)
class Rows:
    """Measured rows of one kernel: coordinates (not logarithms), extra terms, ln(time/reference), FLOPs, columns."""

    coordinates: tuple[Floats, ...]
    terms: Floats
    y: Floats
    flops: Floats
    column: NDArray[np.int64]
    share: Floats  # of peak
    launch_s: float

    def __getitem__(self, keep: NDArray[np.bool_]) -> "Rows":
        coordinates = tuple(item[keep] for item in self.coordinates)
        cut = (self.terms[keep], self.y[keep], self.flops[keep], self.column[keep], self.share[keep])
        return Rows(coordinates, *cut, self.launch_s)


@dataclass(frozen=True)
class Model:
    """A grid's nodes, and the fitted values: those of the nodes, then those of the extra terms."""

    nodes: tuple[tuple[float, ...], ...]
    values: Floats

    def predict(self, rows: Rows) -> Floats:
        """The fitted ln(time/reference) of rows."""
        found: Floats = design(self.nodes, rows.coordinates, rows.terms) @ self.values
        return found


def design(nodes: Sequence[Sequence[float]], coordinates: Sequence[Floats], terms: Floats) -> Any:
    """The sparse matrix of interpolation weights, one row per point, with the extra terms as last columns."""
    axes = [np.log(np.asarray(axis, dtype=np.float64)) for axis in nodes]
    found = list(corners(axes, [np.log(item) for item in coordinates]))
    count = len(coordinates[0])
    size = int(np.prod([len(axis) for axis in nodes]))
    places = (np.tile(np.arange(count), len(found)), np.concatenate([index for index, _ in found]))
    grid = csr_matrix((np.concatenate([weight for _, weight in found]), places), shape=(count, size))
    return hstack([grid, csr_matrix(terms)]).tocsr()


def penalty(nodes: Sequence[Sequence[float]]) -> Any:
    """Second differences along every axis: kept small, they let empty nodes follow their neighbours."""
    blocks = []
    for place, axis in enumerate(nodes):
        step = np.diff(np.log(np.asarray(axis, dtype=np.float64)))
        rows = np.zeros((max(0, len(axis) - 2), len(axis)))
        for row, (before, after) in enumerate(pairwise(step)):
            rows[row, row : row + 3] = (1 / before, -1 / before - 1 / after, 1 / after)
        parts = [eye(len(item)) for item in nodes]
        parts[place] = csr_matrix(rows)
        block = parts[0]
        for part in parts[1:]:
            block = kron(block, part)
        blocks.append(block)
    return vstack([block for block in blocks if block.shape[0]])


def fit(nodes: tuple[tuple[float, ...], ...], rows: Rows) -> Model:
    """Huber regression of the grid and of the terms.

    A last axis that ends at 1 is the share of keys seen. A window only adds partly masked tiles, so where a device is
    busy a seen pair costs no less than it does without one; few windows were measured, and a line through them could
    say otherwise.
    """
    matrix = design(nodes, rows.coordinates, rows.terms)
    bend = penalty(nodes)
    bend = hstack([bend, csr_matrix((bend.shape[0], rows.terms.shape[1]))]).tocsr()
    ridge = BEND * (bend.T @ bend) + 1e-9 * identity(matrix.shape[1])
    weight = np.ones(len(rows.y))
    for _ in range(ROUNDS):
        values = spsolve((matrix.T @ diags(weight) @ matrix + ridge).tocsc(), matrix.T @ (weight * rows.y))
        left = np.abs(rows.y - matrix @ values)
        weight = 1 / np.maximum(1, left / (1.5 * 1.4826 * np.median(left) + 1e-9))
    values = np.asarray(values)
    if nodes[-1][-1] == 1:
        seq, blocks = (np.asarray(axis, dtype=np.float64) for axis in nodes[:2])
        busy = (seq[:, None] ** 2 * blocks >= BUSY).ravel()
        grid = values[: busy.size * len(nodes[-1])].reshape(busy.size, -1)
        grid[busy] = np.maximum(grid[busy], grid[busy, -1:])
    return Model(nodes, values)


@dataclass(frozen=True)
class Check:
    """Errors of held-out rows (median, p90) by hold-out, the random one's residuals, and those of large shapes."""

    errors: dict[str, tuple[float, float]]
    residuals: Floats
    flops: Floats
    large: Floats


def check(nodes: tuple[tuple[float, ...], ...], rows: Rows) -> Check:
    """Hold rows out three ways, and predict them."""
    draw = np.random.default_rng(0)
    names = np.unique(rows.column)
    holds = {
        "random": draw.random(len(rows.y)) < 0.2,
        "columns": np.isin(rows.column, draw.permutation(names)[: max(1, len(names) // 5)]),
        "largest": rows.flops > np.quantile(rows.flops, 0.9),
    }
    errors, left = {}, {}
    for name, held in holds.items():
        left[name] = rows[held].y - fit(nodes, rows[~held]).predict(rows[held])
        off = np.abs(np.expm1(-left[name]))
        errors[name] = (round(float(np.median(off)), 4), round(float(np.quantile(off, 0.9)), 4))
    flops = np.concatenate([rows[holds["random"]].flops, rows[holds["columns"]].flops])
    return Check(errors, np.concatenate([left["random"], left["columns"]]), flops, left["largest"])


def spread(checked: Check) -> dict[str, Any]:
    """The 80% interval of the residuals by FLOPs, in bands of equal count, and what extrapolation adds."""
    edges = np.unique(np.quantile(checked.flops, (0.2, 0.4, 0.6, 0.8)))
    band = np.searchsorted(edges, checked.flops)
    ends = [np.quantile(checked.residuals[band == item], QUANTILES) for item in range(len(edges) + 1)]
    beyond = np.quantile(checked.large, QUANTILES)
    return {
        "edges_flops": [float(f"{edge:.3g}") for edge in edges],
        "low": [round(min(float(end[0]), 0.0), 4) for end in ends],
        "high": [round(max(float(end[1]), 0.0), 4) for end in ends],
        "beyond": [round(min(float(beyond[0]), 0.0), 4), round(max(float(beyond[1]), 0.0), 4)],
    }


def packed(
    axes: Sequence[str],
    model: Model,
    rows: Rows,
    checked: Check,
    reference: Mapping[str, float],
    terms: Sequence[str],
    top: Floats | None = None,
) -> dict[str, Any]:
    """A fitted surface as it is stored. ``top`` are the shares of peak of large shapes."""
    size = int(np.prod([len(axis) for axis in model.nodes]))
    if top is None:
        top = rows.share[np.min(np.stack(rows.coordinates), axis=0) >= 4096] if axes[0] == "m" else _full(rows)
    ceiling = [round(float(item), 4) for item in np.quantile(top, (0.5, *QUANTILES))] if len(top) else None
    return {
        "rows": len(rows.y),
        "reference": {name: float(f"{value:.6g}") for name, value in reference.items()},
        "nodes": {name: list(axis) for name, axis in zip(axes, model.nodes, strict=True)},
        "terms": {name: round(float(value), 4) for name, value in zip(terms, model.values[size:], strict=True)},
        "log_ratio": [round(float(value) * SCALE) for value in model.values[:size]],
        "spread": spread(checked),
        "held_out": checked.errors,
        "ceiling": ceiling,
    }


def _full(rows: Rows) -> Floats:
    """Shares of peak of long sequences without a window."""
    kept: Floats = rows.share[(rows.coordinates[0] >= 4096) & (rows.coordinates[2] >= 1)]
    return kept


def reference_of(slug: str, dtype: str, launch_s: float) -> dict[str, float]:
    """The reference from the catalog's figures of today, which are stored with the grid."""
    device = catalog.device(slug)
    peak, bandwidth = device.peak(dtype), device.hbm_bandwidth
    assert peak is not None
    assert bandwidth is not None
    return {
        "launch_s": launch_s,
        "peak_flops_s": float(np.asarray(peak.base)),
        "bandwidth_bytes_s": float(np.asarray(bandwidth.base)),
    }


def gemm_rows(table: pl.DataFrame, slug: str, dtype: str) -> Rows:
    """The rows of one system and data type, without those above peak."""
    device = catalog.device(slug)
    m, n, k, time_ms = (table[name].to_numpy().astype(np.float64) for name in ("m", "n", "k", "latency_ms"))
    seconds = time_ms / 1e3
    launch_s = float(np.quantile(seconds, 0.01))
    reference = reference_of(slug, dtype, launch_s)
    flops, moved = gemm_work(m, n, k, dtype)
    base = launch_s + flops / reference["peak_flops_s"] + moved / reference["bandwidth_bytes_s"]
    share = flops / seconds / reference["peak_flops_s"]
    terms = np.stack(gemm_terms(m, n, Tiles.of(device)), axis=1)
    column = (n * 1_000_003 + k).astype(np.int64)
    return Rows((m, n, k), terms, np.log(seconds / base), flops, column, share, launch_s)[share < 1]


def gemm_tables(data: Path) -> dict[tuple[str, str], pl.DataFrame]:
    """The measured rows by system and data type: medians over stacks, with small m and fp4 from the serving table."""
    large = pl.read_csv(data / "plan" / "gemm_measured.csv.gz").rename({"latency_ms_median": "latency_ms"})
    small = pl.read_parquet(data / "serve" / "kernels" / "aic_gemm_perf.parquet").rename({"latency": "latency_ms"})
    small = small.filter(((pl.col("m") < 256) | (pl.col("gemm_dtype") == "nvfp4")) & (pl.col("n") >= 256))
    small = small.filter(pl.col("k") >= 256)
    shape = ("system", "gemm_dtype", "m", "n", "k")
    keep = ["system", "gemm_dtype", "m", "n", "k", "latency_ms"]
    both = pl.concat(
        [item.select(keep).cast({"m": pl.Int64, "n": pl.Int64, "k": pl.Int64, "latency_ms": pl.Float64})
         for item in (large, small.group_by(*shape).agg(pl.col("latency_ms").median()))]
    ).sort(keep)  # fmt: skip
    return {
        (str(system), DTYPES[str(dtype)]): table
        for (system, dtype), table in both.group_by("system", "gemm_dtype")
        if dtype in DTYPES
    }


TERMS = ("pad", "wide_waves", "square_waves")


def gemm_nodes(rows: Rows) -> tuple[tuple[float, ...], ...]:
    """The grid, with nodes at small m only where such rows were measured."""
    first = (*SMALL_M, *LARGE_M) if rows.coordinates[0].min() < LARGE_M[0] else LARGE_M
    return (first, WIDTHS, WIDTHS)


def attention_rows(table: pl.DataFrame, slug: str) -> Rows:
    """Causal forward rows of one system and head dim: the fastest stack of each shape."""
    batch, seq, heads, kv, dim, window = (
        table[name].to_numpy().astype(np.float64)
        for name in ("batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim", "window_size")
    )
    seconds = best_seconds(table)
    launch_s = float(np.quantile(seconds, 0.01))
    seen = np.where((window > 0) & (window < seq), window, seq)
    flops, moved = attention_work(seq, heads, kv, dim, batch, seen)
    reference = reference_of(slug, "bf16", launch_s)
    base = launch_s + flops / reference["peak_flops_s"] + moved / reference["bandwidth_bytes_s"]
    share = flops / seconds / reference["peak_flops_s"]
    terms = np.log(heads / kv)[:, None]
    rows = Rows(
        (seq, batch * heads, seen / seq), terms, np.log(seconds / base), flops, (heads * 1000 + kv).astype(np.int64),
        share, launch_s,
    )  # fmt: skip
    return rows[share < 1]


def best_seconds(table: pl.DataFrame) -> Floats:
    """Seconds of the fastest stack.

    The table's rate counts half of all pairs, whatever the window, over the fastest time.
    """
    batch, seq, heads, dim, rate = (
        table[name].to_numpy().astype(np.float64)
        for name in ("batch_size", "isl", "num_heads", "head_dim", "causal_tflops_best")
    )
    found: Floats = 2 * batch * heads * seq * seq * dim / (rate * 1e12)
    return found


def ramp(table: pl.DataFrame) -> dict[str, Any]:
    """Seconds of one collective on the nodes of (group, bytes): medians over library versions, and their spread."""
    groups = sorted(table["group"].unique().to_list())
    nodes = [size for size in NODE_BYTES if size in set(table["bytes"].to_list())]
    middle = table.group_by("group", "bytes").agg(pl.col("seconds").median())
    held = {(row["group"], row["bytes"]): row["seconds"] for row in middle.iter_rows(named=True)}
    values = [float(np.log(held[group, size])) for group in groups for size in nodes]
    axes = [np.log(np.asarray(item, dtype=np.float64)) for item in (groups, nodes)]
    points = [np.log(table[name].to_numpy().astype(np.float64)) for name in ("group", "bytes")]
    flat = np.asarray(values)
    fitted = sum(weight * flat[index] for index, weight in corners(axes, points))
    left = np.log(table["seconds"].to_numpy()) - fitted
    ends = np.quantile(left, QUANTILES)
    off = np.abs(np.expm1(-left))
    return {
        "rows": len(table),
        "group": groups,
        "bytes": nodes,
        "log_seconds": [round(value * SCALE) for value in values],
        "spread": [round(float(ends[0]), 4), round(float(ends[1]), 4)],
        "errors": [round(float(np.median(off)), 4), round(float(np.quantile(off, 0.9)), 4)],
        "latency_s": 0.0,
    }


def nccl_table(data: Path) -> pl.DataFrame:
    """Rows of ``half``: (system, kind, group, bytes, seconds), the source's elements turned into bytes."""
    table = pl.read_csv(data / "plan" / "nccl_measured.csv.gz").filter(pl.col("nccl_dtype") == "half")
    return table.select(
        "system",
        pl.col("op_name").replace_strict(KINDS).alias("kind"),
        pl.col("num_gpus").alias("group"),
        (pl.col("message_size_as_in_source") * 2).alias("bytes"),
        (pl.col("latency_ms") / 1e3).alias("seconds"),
    )


def link_bandwidth(slug: str) -> float:
    """The catalog's scale-up bandwidth in B/s."""
    link = catalog.device(slug).scale_up
    assert link is not None
    return float(np.asarray(link.bandwidth.base))


def bus_efficiency(found: Mapping[str, Mapping[str, Any]], bandwidth: float) -> dict[str, float]:
    """The share of the link that the largest measured message of the largest group gets, by collective."""
    share = {}
    for kind, item in found.items():
        seconds = np.exp(item["log_seconds"][-1] / SCALE)
        sent = bus_bytes(kind, np.asarray(float(item["bytes"][-1])), np.asarray(float(item["group"][-1])))
        share[kind] = round(float(sent / seconds / bandwidth), 4)
    return share


def typical_ramps(files: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """ln(seconds/(latency + bytes sent/link)) as a mean over systems with a switched link, and their spread."""
    switched = {
        name: link_bandwidth(SYSTEMS[name].devices[0])
        for name in files
        if catalog.device(SYSTEMS[name].devices[0]).links["scale_up"].topology == "switched"
    }
    return {
        kind: typical_ramp(kind, {name: files[name]["collectives"][kind] for name in switched}, switched)
        for kind in KINDS.values()
    }


def typical_ramp(kind: str, items: Mapping[str, dict[str, Any]], links: Mapping[str, float]) -> dict[str, Any]:
    """The same for one collective from the ramps of several systems and their link bandwidths (B/s)."""
    latency_s = float(np.median([np.exp(item["log_seconds"][0] / SCALE) for item in items.values()]))
    nodes = next(item["bytes"] for item in items.values())
    groups = max((item["group"] for item in items.values()), key=len)
    ratios: list[Floats] = []
    for name, item in items.items():
        group, size = np.meshgrid(np.asarray(groups, float), np.asarray(nodes, float), indexing="ij")
        base = latency_s + bus_bytes(kind, size, group) / links[name]
        seconds = np.full(base.shape, np.nan)
        shape = (len(item["group"]), len(nodes))
        seconds[: shape[0]] = np.exp(np.asarray(item["log_seconds"], float).reshape(shape) / SCALE)
        ratios.append(np.log(seconds / base))
    stack = np.stack(ratios)
    mean = np.nanmean(stack, axis=0)
    ends = np.nanquantile((stack - mean) * len(items) / (len(items) - 1), QUANTILES)
    return {
        "rows": sum(item["rows"] for item in items.values()), "group": groups, "bytes": nodes,
        "log_seconds": [round(float(value) * SCALE) for value in mean.ravel()],
        "spread": [round(float(end), 4) for end in ends], "errors": [], "latency_s": float(f"{latency_s:.3g}"),
    }  # fmt: skip


def pooled(rows: Mapping[str, Rows]) -> Rows:
    """The rows of several systems as one table; ``column`` names the system."""
    every = list(rows.values())
    terms, y, flops, share = (
        np.concatenate([getattr(item, name) for item in every]) for name in ("terms", "y", "flops", "share")
    )
    coordinates = tuple(np.concatenate([item.coordinates[axis] for item in every]) for axis in range(3))
    column = np.concatenate([np.full(len(item.y), place, dtype=np.int64) for place, item in enumerate(every)])
    launch_s = float(np.median([item.launch_s for item in every]))
    return Rows(coordinates, terms, y, flops, column, share, launch_s)


def typical_surface(
    axes: Sequence[str], nodes: tuple[tuple[float, ...], ...], rows: Mapping[str, Rows], terms: Sequence[str]
) -> dict[str, Any]:
    """One surface over all systems, with the errors of leaving one system out."""
    every = pooled(rows)
    left = np.zeros(len(every.y))
    for place in range(len(rows)):
        held = every.column == place
        left[held] = every[held].y - fit(nodes, every[~held]).predict(every[held])
    off = np.abs(np.expm1(-left))
    errors = {"systems": (round(float(np.median(off)), 4), round(float(np.quantile(off, 0.9)), 4))}
    checked = Check(errors, left, every.flops, left[every.flops > np.quantile(every.flops, 0.9)])
    reference = {"launch_s": every.launch_s, "peak_flops_s": 1.0, "bandwidth_bytes_s": 1.0}
    return packed(axes, fit(nodes, every), every, checked, reference, terms)


def main() -> None:
    """Write every file of ``core/data/surfaces``."""
    parser = argparse.ArgumentParser(description="Fit the efficiency surfaces to public kernel tables.")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("RIDGELINE_DATA", "../shared/data")))
    parser.add_argument("--out", type=Path, default=FOLDER)
    options = parser.parse_args()
    gemms, nccl = gemm_tables(options.data), nccl_table(options.data)
    attention = pl.read_csv(options.data / "plan" / "attention_fwd_measured.csv.gz", infer_schema_length=None)
    files: dict[str, dict[str, Any]] = {}
    kept: dict[tuple[str, str], dict[str, Rows]] = {}
    for name, system in SYSTEMS.items():
        files[name] = one_system(name, system, gemms, attention, nccl, kept)
        write(options.out, name, files[name])
    shared: dict[str, Any] = {"system": TYPICAL, "devices": [], "stand_in_for": [], "units": None, "source": SOURCE}
    gemm_axes, attention_axes = ("m", "n", "k"), ("seq", "blocks", "seen")
    shared["gemm"] = {
        key: typical_surface(gemm_axes, ((*SMALL_M, *LARGE_M), WIDTHS, WIDTHS), rows, TERMS)
        for (kernel, key), rows in kept.items()
        if kernel == "gemm" and len(rows) > 2
    }
    shared["attention"] = {
        key: typical_surface(attention_axes, (SEQUENCES, BLOCKS, SEEN), rows, ("grouping",))
        for (kernel, key), rows in kept.items()
        if kernel == "attention" and len(rows) > 2
    }
    shared["collectives"] = typical_ramps(files)
    shared["bus_efficiency"] = {}
    write(options.out, TYPICAL, shared)


def one_system(
    name: str, system: System, gemms: Mapping[tuple[str, str], pl.DataFrame], attention: pl.DataFrame,
    nccl: pl.DataFrame, kept: dict[tuple[str, str], dict[str, Rows]],
) -> dict[str, Any]:  # fmt: skip
    """The file of one system; its rows are kept for the surface over all."""
    slug = system.devices[0]
    count = catalog.device(slug).sm_count
    found: dict[str, Any] = {
        "system": name, "devices": list(system.devices), "stand_in_for": list(system.stand_in_for),
        "units": None if count is None else int(np.asarray(count.value)), "source": SOURCE, "gemm": {}, "attention": {},
    }  # fmt: skip
    for (owner, dtype), table in sorted(gemms.items()):
        if owner == name:
            rows = gemm_rows(table, slug, dtype)
            kept.setdefault(("gemm", dtype), {})[name] = rows
            nodes, reference = gemm_nodes(rows), reference_of(slug, dtype, rows.launch_s)
            checked = check(nodes, rows)
            found["gemm"][dtype] = packed(("m", "n", "k"), fit(nodes, rows), rows, checked, reference, TERMS)
            report(name, dtype, checked)
    for (dim,), table in sorted(attention.filter(pl.col("system") == name).group_by("head_dim")):
        rows = attention_rows(table, slug)
        kept.setdefault(("attention", str(dim)), {})[name] = rows
        nodes = (SEQUENCES, BLOCKS, SEEN if rows.coordinates[2].min() < 1 else (1.0,))
        reference, checked = reference_of(slug, "bf16", rows.launch_s), check(nodes, rows)
        axes = ("seq", "blocks", "seen")
        found["attention"][str(dim)] = packed(axes, fit(nodes, rows), rows, checked, reference, ("grouping",))
        report(name, f"attention {dim}", checked)
    found["attention"] = without_fallbacks(found["attention"])
    for key in [key for kernel, key in kept if kernel == "attention" and key not in found["attention"]]:
        kept["attention", key].pop(name, None)
    tables = {kind: nccl.filter((pl.col("system") == name) & (pl.col("kind") == kind)) for kind in KINDS.values()}
    found["collectives"] = {kind: ramp(table) for kind, table in tables.items()}
    found["bus_efficiency"] = bus_efficiency(found["collectives"], link_bandwidth(slug))
    print(name, "collectives", {kind: item["errors"] for kind, item in found["collectives"].items()})
    return found


def without_fallbacks(by_dim: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Head dims without those whose large shapes reach under half of what the head dims next to them do.

    There every stack fell back to a kernel for older devices: it says nothing about the device.
    """
    dims = sorted(by_dim, key=int)
    best = {dim: by_dim[dim]["ceiling"][0] for dim in dims}
    near = {dim: [best[other] for other in dims[max(0, i - 1) : i + 2] if other != dim] for i, dim in enumerate(dims)}
    left = [dim for dim in dims if near[dim] and best[dim] < min(near[dim]) / 2]
    if left:
        print("left out as fallback kernels:", left)
    return {dim: by_dim[dim] for dim in dims if dim not in left}


def report(name: str, what: str, checked: Check) -> None:
    """One line of held-out errors: median/p90 per hold-out."""
    print(
        name, what, " ".join(f"{key} {low:.1%}/{high:.1%}" for key, (low, high) in checked.errors.items()), flush=True
    )


def write(folder: Path, name: str, data: Mapping[str, Any]) -> None:
    """One file, one key a line, so that a later fit shows as a short difference."""
    lines = ",\n".join(f'"{key}": {json.dumps(item, separators=(",", ":"))}' for key, item in data.items())
    (folder / f"{name}.json").write_text("{\n" + lines + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
