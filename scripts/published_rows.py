"""Published training runs of the public tables as typed runs: model, cluster, batch, plan, software, seconds a step.

The tables are read from $RIDGELINE_DATA and stay there. What a source leaves open is filled by rule and said in
``assumed``: an unknown micro-batch or plan is the fastest that divides, unknown recompute is the least that fits.
"""

import csv
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from ridgeline.arithmetic.read_model import read_model
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core.errors import RidgelineError
from ridgeline.plan.steps.cluster import Cluster, cluster
from ridgeline.plan.steps.fits import held, which_fit
from ridgeline.plan.steps.layout import RECOMPUTES, Layout
from ridgeline.plan.steps.machine import Software
from ridgeline.plan.steps.step import predict

DATA = Path(os.environ.get("RIDGELINE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
TABLES = ("published_runs.csv", "published_runs_vtrain_single.csv")
_DEVICES = (
    ("H100", "h100-sxm-80gb"), ("H200", "h200-sxm-141gb"), ("GB200", "gb200"), ("GB300", "gb300"),
    ("B200", "b200-sxm"), ("B300", "b300-sxm"), ("A100-40GB", "a100-sxm-40gb"), ("A100", "a100-sxm-80gb"),
    ("V100", "v100-sxm2-16gb"), ("TPU-v6e", "tpu-v6e"), ("TPU-v5p", "tpu-v5p"), ("Gaudi2", "gaudi2"),
    ("Trainium1", "trainium1"), ("trn1", "trainium1"),
)  # fmt: skip
_CONFIGS = {
    "DeepSeekV3": "deepseek-ai--DeepSeek-V3",
    "Kimi_K2": "moonshotai--Kimi-K2-Instruct",
    "Nemotron_3_Super": "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
    "Nemotron_3_Ultra": "nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-FP8",
    "Nemotron_3_Nano": "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "Nemotron_3_5_Lightning": "nvidia--NVIDIA-Nemotron-3.5-Lightning-30B-A3B-NVFP4",
    "GPT OSS 20B": "openai--gpt-oss-20b",
}
_UNFUSED = ("Megatron-DeepSpeed", "Alpa", "OneFlow-GPT", "DeepSpeed ZeRO-3")  # and Megatron-LM before flash attention
_MICRO = (1, 2, 4, 8, 16)
_GPT_VOCAB = 50304  # 50,257 padded to a multiple of 128


@dataclass(frozen=True)
class Row:
    """One published run. ``group`` is (source, configuration): repeats of a configuration share it.

    ``plan`` holds the columns of a `Layout` that the source states; ``options`` what is open.
    """

    row_id: str
    source: str
    group: tuple[str, str]
    spec: ModelSpec
    cluster: Cluster
    batch: tuple[int, int]
    plan: Mapping[str, int | str]
    software: Software
    step_s: float
    chip: str
    moe: bool
    recompute_stated: bool
    assumed: tuple[str, ...] = field(default=())


def rows(tables: tuple[str, ...] = TABLES) -> list[Row]:
    """Every row with dimensions, chips, batch and step time that is not marked as held out."""
    return [row for table in tables for row in _table(table)]


def _table(table: str) -> Iterator[Row]:
    with (DATA / "plan" / table).open(encoding="utf-8") as file:
        for record in csv.DictReader(file):
            if record["held_out"] == "1" or not record["step_time_s"] or not record["d_model"]:
                continue
            if not record["n_layers"] and record["model_family"] not in _CONFIGS:
                continue
            found = row_of(record)
            if found is not None:
                yield found


def row_of(record: Mapping[str, str]) -> Row | None:
    """One record of a table as a run; None where the chip is unknown or no batch is stated."""
    slug = next((slug for key, slug in _DEVICES if key in record["accelerator"]), None)
    sequences = _int(record, "global_batch_seqs")
    if slug is None or not sequences or not record["seq_len"]:
        return None
    try:
        spec = _spec(record)
        on = cluster(_int(record, "accel_count"), slug, network=_network(record))
    except RidgelineError:
        return None
    dtype = _dtype(record["precision"], slug)
    framework = _framework(record)
    flash = not _old(record)
    gradients = "fp16" if "fp16" in record["precision"].lower() else "fp32"  # loss scaling reduces in fp16
    software = Software(dtype, "flash" if flash else "unfused", not flash, framework, gradients)
    plan, assumed, stated = _plan(record)
    config = "|".join(
        [spec.name, record["seq_len"], str(sequences), slug, str(on.chips), record["precision"], record["framework"]]
        + [f"{key}{value}" for key, value in plan.items()]
    )
    return Row(
        record["row_id"], record["source_id"], (record["source_id"], config), spec, on,
        (sequences, _int(record, "seq_len")), plan, software, float(record["step_time_s"]),
        record["accelerator"], record["arch"] != "dense", stated, tuple(assumed),
    )  # fmt: skip


def _old(record: Mapping[str, str]) -> bool:
    """Frameworks before fused attention; they also train with dropout."""
    if record["source_id"] in ("narayanan2021", "korthikanti2022", "oneflow-dlperf"):
        return True
    return any(record["framework"].startswith(name) for name in _UNFUSED) and record["source_id"] != "gaudi2"


_FRAMEWORKS = (
    ("Habana", "megatron-habana"), ("Megatron-DeepSpeed", "megatron-deepspeed"), ("MegaScale", "megascale"),
    ("Megatron-Bridge", "megatron-bridge"), ("AutoModel", "nemo-automodel"), ("NeMo", "nemo"),
    ("llm-foundry", "llm-foundry"), ("torchtitan", "torchtitan"), ("FMS", "fms-fsdp"), ("fms", "fms-fsdp"),
    ("ZeRO-3", "deepspeed-zero3"), ("MaxText", "maxtext"), ("Pax", "pax"), ("Alpa", "alpa"), ("OneFlow", "oneflow"),
    ("InternEvo", "internevo"), ("Primus", "primus"),
)  # fmt: skip


def _framework(record: Mapping[str, str]) -> str:
    """The framework by its name in ``core/data/expected.toml``; Megatron-LM before and after fused attention apart."""
    found = next((slug for word, slug in _FRAMEWORKS if word in record["framework"]), "")
    return found or ("megatron-lm-unfused" if _old(record) else "megatron-lm")


def _dtype(precision: str, slug: str) -> str:
    text = precision.lower()
    if "nvfp4" in text:
        return "fp4"
    if "fp8" in text or "float8" in text:
        return "fp8"
    return "fp16" if slug.startswith("v100") else "bf16"


def _network(record: Mapping[str, str]) -> str:
    """The scale-out link where the source states it per node or per chip."""
    text = record["interconnect"]
    if "800 Gbps" in text or "4x Omni-Path" in text:
        return "infiniband_edr" if "400 Gbps" not in text else ""
    if "1600 Gbps" in text:
        return "ethernet_200g"
    if "400 Gbps per node" in text or "4x100Gb" in text:
        return "infiniband_edr"
    return ""


def _plan(record: Mapping[str, str]) -> tuple[dict[str, int | str], list[str], bool]:
    """The stated columns of the plan, what had to be assumed, and whether recompute is stated."""
    plan: dict[str, int | str] = {}
    assumed = []
    chips = _int(record, "accel_count")
    for name, column in (("tp", "tp"), ("pp", "pp"), ("cp", "cp"), ("ep", "ep"), ("chunks", "vpp")):
        plan[name] = max(1, _int(record, column))
    if not record["tp"]:
        assumed.append("parallel sizes")
    plan["dp"] = max(1, chips // (int(plan["tp"]) * int(plan["pp"]) * int(plan["cp"])))
    if record["n_experts"] not in ("", "0") and not record["ep"]:
        plan["ep"] = math.gcd(int(plan["dp"]), _int(record, "n_experts"))
        assumed.append("ep")
    if plan["pp"] == 1:
        plan["chunks"] = 1
    micro = _int(record, "micro_batch")
    if micro:
        plan["micro_batch"] = micro
    else:
        assumed.append("micro_batch")
    plan |= _sharding(record, int(plan["dp"]) * int(plan["cp"]))
    recompute = _recompute(record["act_ckpt"])
    if recompute:
        plan["recompute"] = recompute
    else:
        assumed.append("recompute")
    plan["sequence_parallel"] = int(int(plan["tp"]) > 1 and not (_old(record) and "SP" not in record["act_ckpt"]))
    return plan, assumed, bool(recompute)


def _sharding(record: Mapping[str, str], ranks: int) -> dict[str, int]:
    text = record["zero_fsdp"]
    stage = 0 if _old(record) else 1
    if "SHARD_GRAD_OP" in text or "ZeRO-2" in text:
        stage = 2
    elif "FSDP" in text or "FULL_SHARD" in text or "ZeRO-3" in text:
        stage = 3
    elif "ZeRO-1" in text or "distributed optimizer" in text:
        stage = 1
    found = {"zero": stage}
    if "HSDP" in text and "FSDP/HSDP" not in text:
        found |= {"zero": 3, "shard": min(8, ranks)}
    return found


def _recompute(text: str) -> str:
    low = text.lower()
    if "full" in low:
        return "full"
    if "selective" in low or "remat custom" in low:
        return "selective"
    return "none" if low == "none" else ""


def _spec(record: Mapping[str, str]) -> ModelSpec:
    """From the public config of an unusual architecture where there is one, else from the row's dimensions."""
    name = _CONFIGS.get(record["model_family"])
    if name is not None:
        found = _config(name)
        if record["model_family"] == "DeepSeekV3" and float(record["implied_gflop_per_token"] or 0) < 255:
            found = found.model_copy(update={"mtp": (), "mtp_extra": None})
        return found
    shape: dict[str, object] = {
        "name": re.sub(r"\s+\d+x.*|\s+DGX.*", "", record["run"])[:40],
        "layers": _int(record, "n_layers"),
        "d_model": _int(record, "d_model"),
        "d_ff": _int(record, "d_ff") or 4 * _int(record, "d_model"),
        "heads": _int(record, "n_heads") or _int(record, "d_model") // 128,
        "kv_heads": _int(record, "n_kv_heads") or None,
        "head_dim": _int(record, "head_dim") or None,
        "vocab": _int(record, "vocab") or _GPT_VOCAB,
        "gated": record["gated_mlp"] == "1",
        "tied": record["gated_mlp"] != "1",
    }
    if record["n_experts"] not in ("", "0"):
        width = _int(record, "moe_d_ff") or _int(record, "d_ff")
        shape |= {"experts": _int(record, "n_experts"), "top_k": _int(record, "topk"), "expert_ff": width}
        shape["shared_ff"] = (_int(record, "n_shared_experts") or 0) * width
        shape.pop("d_ff")
    return model(Shape.model_validate(shape))


def layout_of(row: Row) -> Layout:
    """The row's plan. An unknown micro-batch is the one that fits and is the fastest; recompute is none if unsaid."""
    plan = dict(row.plan)
    if "micro_batch" in plan:
        plan.setdefault("recompute", _usual(row))
        return Layout.of(**plan)
    sizes = [size for size in _MICRO if row.batch[0] % (int(plan["dp"]) * size) == 0] or [1]
    policies = [str(plan["recompute"])] if "recompute" in plan else _policies(row)
    every = [plan | {"micro_batch": size, "recompute": policy} for size in sizes for policy in policies]
    plans = Layout.join(Layout.of(**item) for item in every)
    fit = which_fit(held(row.spec, row.batch, plans, row.software), row.cluster)
    taken = np.flatnonzero(fit) if fit.any() else np.array([0])
    step_s = predict(row.spec, row.cluster, row.batch, plans.take(taken), row.software).step_s
    return plans.take(taken[[int(np.argmin(step_s))]])


def _usual(row: Row) -> str:
    """Recompute where a source does not say: full before fused attention, else none."""
    return "full" if row.software.attention == "unfused" else "none"


def _policies(row: Row) -> list[str]:
    return ["full"] if row.software.attention == "unfused" else list(RECOMPUTES)


@lru_cache(maxsize=32)
def _config(name: str) -> ModelSpec:
    for folder in sorted((DATA / "plan" / "hf_configs").iterdir()):
        path = folder / f"{name}_config.json"
        if path.is_file():
            return read_model(path)[0]
    raise FileNotFoundError(name)


def _int(record: Mapping[str, str], column: str) -> int:
    text = record[column]
    return int(float(text)) if text else 0
