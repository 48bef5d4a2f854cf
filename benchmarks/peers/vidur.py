"""The same workload through Vidur and through our engine, with the same step times.

    python benchmarks/peers/vidur.py prepare WORK --data SHARED_DATA --vidur CHECKOUT [--requests 4000]
    VIDUR_PYTHON benchmarks/peers/vidur.py peer WORK       # in an environment with its requirements, in CHECKOUT
    python benchmarks/peers/vidur.py ours WORK

``prepare`` writes the requests (lengths of the Azure conversation trace up to 4,096 tokens, Poisson arrivals) and the
attention profile that Vidur's repository keeps in large files: one made from measured A100 attention kernels, fitted
with the shapes that the kernels have. ``peer`` runs Vidur on them (Sarathi scheduler, chunk 512, at most 128 sequences,
light metrics) and keeps its step-time predictions; ``ours`` reads those predictions as a step table, so that what is
left to differ is the engine. CPU time is user + system of the simulation loop alone, memory the peak resident set.
"""

import argparse
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

SEED, RATE_PER_S, LONGEST, CHUNK, CAP = 1, 6.45, 4096, 512, 128
LAYERS, STEP = 32, 64  # of Llama-3-8B; Vidur's granularity of contexts
DEVICE_FILES = "data/profiling/compute/a100/meta-llama/Meta-Llama-3-8B"


def prepare(work: Path, data: Path, checkout: Path, count: int) -> None:
    """The trace and the attention profile."""
    import numpy as np
    import polars as pl

    work.mkdir(parents=True, exist_ok=True)
    lengths = pl.read_parquet(data / "serve/traces/azure2023_conv.parquet")
    kept = lengths.filter(pl.col("input_tokens") + pl.col("output_tokens") <= LONGEST).head(count)
    gaps = np.random.default_rng(SEED).exponential(1 / RATE_PER_S, len(kept))
    pl.DataFrame(
        {"arrived_at": np.cumsum(gaps), "num_prefill_tokens": kept["input_tokens"],
         "num_decode_tokens": kept["output_tokens"]}
    ).write_csv(work / "requests.csv")  # fmt: skip
    attention(data / "serve/kernels").write_csv(checkout / DEVICE_FILES / "attention.csv")
    (work / "checkout").write_text(str(checkout.resolve()))


def attention(kernels: Path) -> Any:
    """Vidur's attention table: rows on a grid from lines through the measured kernels of an A100 (ms)."""
    import numpy as np
    import polars as pl

    heads = (pl.col("system") == "a100_sxm") & (pl.col("num_heads") == 32) & (pl.col("num_key_value_heads") == 8)
    heads &= pl.col("head_dim") == 128
    prompt = pl.read_parquet(kernels / "aic_context_attention_perf.parquet").filter(
        heads & (pl.col("batch_size") == 1) & (pl.col("isl") <= LONGEST)
    )
    length, ms = prompt["isl"].to_numpy(), prompt["latency"].to_numpy()
    first = relative_fit(np.stack([np.ones(len(length)), length, length**2 / 2], axis=1), ms)
    token = pl.read_parquet(kernels / "aic_generation_attention_perf.parquet").filter(
        heads & (pl.col("batch_size") <= CAP) & (pl.col("step") < 2 * LONGEST)
    )
    batch, context, ms = (token[name].to_numpy() for name in ("batch_size", "step", "latency"))
    second = relative_fit(np.stack([np.ones(len(batch)), batch, batch * context], axis=1), ms)
    rows = [
        (1, chunk, past, first @ (1, chunk, chunk * (past + chunk / 2)), 0.0)
        for past in (0, *(2**k for k in range(6, 13)))
        for chunk in (1, 2, 4, 8, *range(16, CHUNK + 1, 16), 1024, 2048, 4096)
    ]
    rows += [
        (size, 0, past, 0.0, second @ (1, size, size * past))
        for size in (1, 2, *range(4, CAP + 1, 4))
        for past in (0, 64, 128, 256, *range(512, LONGEST + 1, 256))
    ]
    names = ["batch_size", "prefill_chunk_size", "kv_cache_size"]
    table = pl.DataFrame(rows, orient="row", schema=[*names, "time_stats.attn_prefill.median",
                                                     "time_stats.attn_decode.median"])  # fmt: skip
    fixed = {"n_embd": 4096, "n_q_head": 32, "n_kv_head": 8, "block_size": 16, "num_tensor_parallel_workers": 1,
             "max_model_len": LONGEST, "time_stats.attn_kv_cache_save.median": 0.005}  # fmt: skip
    return table.with_columns(*(pl.lit(value).alias(name) for name, value in fixed.items()))


def relative_fit(features: Any, values: Any) -> Any:
    """Non-negative coefficients with the least relative squares."""
    import numpy as np
    from scipy.optimize import nnls

    return nnls(features / values[:, None], np.ones(len(values)))[0]


def peer(work: Path) -> None:
    """Vidur, in its own environment and from its checkout; prints one JSON object."""
    sys.path.insert(0, (work / "checkout").read_text())
    sys.argv = [
        "vidur", "--replica_config_model_name", "meta-llama/Meta-Llama-3-8B", "--replica_config_device", "a100",
        "--replica_config_network_device", "a100_dgx", "--cluster_config_num_replicas", "1",
        "--request_generator_config_type", "trace_replay",
        "--trace_request_generator_config_trace_file", str(work / "requests.csv"),
        "--trace_request_generator_config_max_tokens", str(LONGEST),
        "--trace_request_generator_config_time_scale_factor", "1",
        "--replica_scheduler_config_type", "sarathi", "--sarathi_scheduler_config_batch_size_cap", str(CAP),
        "--sarathi_scheduler_config_chunk_size", str(CHUNK),
        "--random_forrest_execution_time_predictor_config_num_estimators", "50",
        "--random_forrest_execution_time_predictor_config_max_depth", "16",
        "--random_forrest_execution_time_predictor_config_min_samples_split", "2",
        "--random_forrest_execution_time_predictor_config_k_fold_cv_splits", "2",
        "--random_forrest_execution_time_predictor_config_num_training_job_threads", "1",
        "--metrics_config_output_dir", str(work / "vidur"), "--metrics_config_cache_dir", str(work / "cache"),
        *(f"--no-metrics_config_{name}" for name in (
            "enable_chrome_trace", "store_plots", "store_operation_metrics", "store_token_completion_metrics",
            "store_batch_metrics", "store_utilization_metrics")),
    ]  # fmt: skip
    from vidur.config import SimulationConfig
    from vidur.simulator import Simulator
    from vidur.utils.random import set_seeds

    config = SimulationConfig.create_from_cli_args()
    set_seeds(config.seed)
    begin = time.process_time()
    simulator = Simulator(config)
    built, begin = time.process_time() - begin, time.process_time()
    simulator.run()
    measured = {"build_cpu_s": built, "cpu_s": time.process_time() - begin, "peak_mib": peak_mib()}
    (work / "peer.json").write_text(json.dumps(measured))
    print(json.dumps(measured))


def ours(work: Path) -> None:
    """Our engine on the same requests, with Vidur's step times; prints both, request by request."""
    import numpy as np
    import polars as pl

    from ridgeline.serve.simulate.engine.engine import Engine
    from ridgeline.serve.simulate.engine.loop import simulate
    from ridgeline.serve.simulate.traffic.workload import Workload

    rows = pl.read_csv(work / "requests.csv")
    columns = ("arrived_at", "num_prefill_tokens", "num_decode_tokens")
    arrival, inputs, outputs = (rows[name].to_numpy() for name in columns)
    load = Workload(arrival, inputs, outputs)
    engine = Engine(kv_blocks=30_000, max_num_seqs=CAP, max_num_batched_tokens=CHUNK, prefix_cache=False)
    table = step_table(work / "cache")
    simulate(load.take(range(50)), table, engine)
    begin = time.process_time()
    result = simulate(load, table, engine)
    cpu_s = time.process_time() - begin
    theirs = pl.read_csv(next((work / "vidur").rglob("request_metrics.csv"))).sort("Request Id")
    said = {"ours": {"cpu_s": cpu_s, "peak_mib": peak_mib()}, "vidur": json.loads((work / "peer.json").read_text())}
    after = load.output_tokens - 1
    first = theirs["prefill_e2e_time"].to_numpy()
    whole = theirs["request_e2e_time"].to_numpy()
    figures = {
        "vidur": (first, np.where(after > 0, (whole - first) / np.maximum(after, 1), np.nan), whole),
        "ours": (result.ttft_s, result.tpot_s, result.e2e_s),
    }
    for name, values in figures.items():
        said[name]["requests_per_cpu_s"] = len(load) / said[name]["cpu_s"]
        for what, series in zip(("ttft", "tpot", "e2e"), values, strict=True):
            said[name][what] = [round(float(v), 4) for v in np.nanpercentile(series, (50, 90, 99))]
    paired = np.abs(figures["ours"][2] / figures["vidur"][2] - 1)
    said["per_request_e2e_error"] = [round(float(v), 4) for v in np.percentile(paired, (50, 90, 99))]
    print(json.dumps(said, indent=1))


def step_table(cache: Path) -> Any:
    """Vidur's predictions (ms) as a step table: operations by tokens rounded up to 8, attention as the sum it takes."""
    import numpy as np
    import polars as pl

    from ridgeline.serve.simulate.costs.table import Curve, Grid, StepTable, zero_curve

    def predicted(name: str) -> Any:
        return pl.read_csv(next(p for p in cache.glob(f"{name}_*_predictions.csv") if "training" not in p.name))

    tokens = np.arange(1, CHUNK + 1)
    rounded = np.minimum(-(-tokens // 8) * 8, CHUNK)
    dense = np.zeros(len(tokens))
    by_tokens = {"attn_pre_proj": 1, "attn_post_proj": 1, "mlp_up_proj": 1, "mlp_down_proj": 1, "mlp_act": 1,
                 "input_layernorm": 1, "post_attention_layernorm": 1, "attn_rope": 1, "add": 1,
                 "attn_kv_cache_save": 1}  # fmt: skip
    for name, times in by_tokens.items():
        found = predicted(name).sort("num_tokens")["prediction"].to_numpy()
        dense += times * found[(tokens if name == "attn_kv_cache_save" else rounded) - 1]
    decode = predicted("attn_decode").sort("batch_size", "kv_cache_size")
    alone = decode["prediction"].to_numpy().reshape(CAP, -1).copy()
    alone[1:] *= 1.1
    prompt = predicted("attn_prefill").sort("prefill_chunk_size_squared", "kv_cache_size")
    chunked = prompt["prediction"].to_numpy().reshape(LONGEST, -1)
    chunks = np.concatenate([[0], [1, 8, 16, 32], np.arange(64, CHUNK + 1, 32)])
    contexts = np.arange(0, LONGEST + 1, STEP).astype(float)
    decodes = np.concatenate([[0, 1, 2, 3, 4], np.arange(8, CAP + 1, 4)])
    first = np.concatenate([np.zeros((1, len(contexts))), chunked[chunks[1:] - 1]])
    second = np.concatenate([np.zeros((1, len(contexts))), alone[decodes[1:] - 1]])
    values = first[:, :, None, None] + second[None, None]
    # Vidur rounds contexts up to 64: on average half a step above what it was asked for.
    shifted = np.maximum(contexts - STEP / 2, [0.0, *contexts[:-1] + 1e-3])
    grid = Grid((chunks, shifted, decodes, shifted), values * LAYERS / 1e3)
    return StepTable(dense=Curve(tokens.astype(np.float64), dense * LAYERS / 1e3), head=zero_curve(), attention=grid)


def peak_mib() -> float:
    """The peak resident set of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Parse the command line and run one part."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", choices=("prepare", "peer", "ours"))
    parser.add_argument("work", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--vidur", type=Path)
    parser.add_argument("--requests", type=int, default=4000)
    given = parser.parse_args()
    if given.part == "prepare":
        prepare(given.work, given.data, given.vidur, given.requests)
    elif given.part == "peer":
        peer(given.work.resolve())
    else:
        ours(given.work)


if __name__ == "__main__":
    main()
