"""The job: one plan for one model on one cluster, as a neutral object that every format of `formats` reads and writes.

``job.toml`` holds it as people edit it::

    sequences = 512                   # of a step: the global batch
    seq = 8192                        # tokens of each
    steps = 1000                      # or tokens = "15T"
    dtype = "bf16"                    # of the matmuls: bf16, fp8, fp16, fp32
    gradients = "fp32"                # in which they are accumulated and reduced
    optimizer = "adam"
    [cluster]
    chips = "512xH100"
    [plan]
    tp = 8
    pp = 4                            # ... every column of `layout.Layout`; dp is what remains when it is not said
    [model]
    config = "config.json"            # or the keys of `arithmetic.shape`
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ridgeline.arithmetic.read_model import read_model
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core import parse
from ridgeline.core.errors import InfeasibleError, InputError, did_you_mean, located
from ridgeline.core.specs import build, read_toml
from ridgeline.plan.described import shape_of
from ridgeline.plan.steps import layout
from ridgeline.plan.steps.cluster import Cluster
from ridgeline.plan.steps.cluster import cluster as cluster_of

DTYPES = ("bf16", "fp8", "fp16", "fp32")
GRADIENTS = ("fp32", "bf16")
OPTIMIZERS = ("adam", "adam-8bit", "sgd-momentum", "adafactor", "muon")
_CHOICES = {"dtype": DTYPES, "gradients": GRADIENTS, "optimizer": OPTIMIZERS}
_SIZES = ("sequences", "seq", "steps")


@dataclass(frozen=True)
class Plan:
    """One row of a `layout.Layout`. What has no effect holds a neutral value, so that equal plans compare equal.

    ``etp`` is tp without expert parallelism, ``chunks`` 1 and ``schedule`` 1f1b without a pipeline, ``zero`` 0 in a
    group of one, ``shard`` dp*cp without ZeRO, ``sequence_parallel`` 0 without tensor parallelism.
    """

    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    etp: int
    chunks: int
    micro_batch: int
    zero: int
    shard: int
    sequence_parallel: int
    recompute: str
    schedule: str

    @classmethod
    def of(cls, **columns: Any) -> "Plan":
        """From the columns of a `Layout`, with its defaults and its refusals."""
        for name, value in columns.items():
            if isinstance(value, bool) or not isinstance(value, int | str | float | np.integer):
                raise InputError.expected("one size of a plan", value, where=f"plan.{name}")
        row: dict[str, Any] = layout.Layout.of(**columns).row(0)
        if row["ep"] == 1:
            row["etp"] = row["tp"]
        if row["pp"] == 1:
            row |= {"chunks": 1, "schedule": "1f1b"}
        if row["chunks"] == 1 and row["schedule"] == "interleaved":
            row["schedule"] = "1f1b"
        if row["shard"] == 1:
            row["zero"] = 0
        if row["zero"] == 0:
            row["shard"] = row["dp"] * row["cp"]
        if row["tp"] == 1:
            row["sequence_parallel"] = 0
        return cls(**row)

    @property
    def chips(self) -> int:
        """Chips that the plan occupies."""
        return self.tp * self.pp * self.dp * self.cp

    @property
    def columns(self) -> dict[str, Any]:
        """By the names of a `Layout`."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True)
class Job:
    """A plan, its batch and what runs under it. What a file does not say is None, empty or zero.

    ``sequences`` of ``seq`` tokens make one step. ``node_size`` is the scale-up domain in chips.
    """

    plan: Plan
    sequences: int
    seq: int | None = None
    steps: int | None = None
    model: ModelSpec | None = None
    device: str = ""
    node_size: int = 0
    dtype: str = "bf16"
    gradients: str = "fp32"
    optimizer: str = "adam"

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                got = getattr(self, name)
                hint = did_you_mean(str(got), allowed, "one of " + ", ".join(allowed))
                raise InputError.expected(f"a known {name}", got, where=f"$.{name}", hint=hint)
        for name in _SIZES:
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InputError.expected("a whole number of at least 1", value, where=f"$.{name}")
        layout.check_batch(self.sequences, self.seq or 1, "$.sequences")
        share = self.plan.dp * self.plan.micro_batch
        if self.sequences % share:
            text = f"Expected whole steps over dp*micro_batch, got {self.sequences} over {share}, at $.sequences"
            raise InfeasibleError(text, limit="whole micro-batches", nearest=f"{-(-self.sequences // share) * share}")

    @classmethod
    def of(
        cls, spec: ModelSpec, cluster: Cluster, row: Mapping[str, Any], sequences: int, seq: int, **more: Any
    ) -> "Job":
        """From a row of a `Layout` (`Layout.row`). Raises as `layout.check` for a plan that cannot run."""
        job = cls(
            Plan.of(**row),
            sequences,
            seq,
            model=spec,
            device=cluster.device.name,
            node_size=cluster.node_size,
            **more,
        )
        job.check(cluster.chips)
        return job

    def check(self, chips: int = 0) -> None:
        """Raise as `layout.check` does where the model and the sequence are known; ``chips`` 0: as many as it takes."""
        if self.model is not None and self.seq is not None:
            rows = layout.Layout.of(**self.plan.columns)
            layout.check(self.model, self.sequences, self.seq, rows, chips or self.plan.chips)

    @property
    def micro_batches(self) -> int:
        """Micro-batches that a replica runs in a step."""
        return self.sequences // (self.plan.dp * self.plan.micro_batch)

    @property
    def nodes(self) -> int:
        """Scale-up domains that the plan occupies; 1 where their size is not known."""
        return -(-self.plan.chips // self.node_size) if self.node_size else 1

    def without(self, names: Iterable[str]) -> "Job":
        """With those fields (``plan.recompute`` and the like too) as if nobody had said them."""
        blank, free = {f.name: f.default for f in fields(self)}, Plan.of().columns
        said = tuple(names)
        plain: dict[str, Any] = {name: blank[name] for name in said if name in blank}
        inner = {column: free[column] for column in free if f"plan.{column}" in said}
        return replace(self, plan=replace(self.plan, **inner), **plain)


def dumps(job: Job) -> str:
    """The job as TOML. A model that the keys of a shape cannot say is kept whole, as JSON."""
    lines = [f"{name} = {_value(getattr(job, name))}" for name in (*_SIZES, *_CHOICES) if getattr(job, name)]
    if job.device or job.node_size:
        lines += ["", "[cluster]"]
        lines += [f"chips = {_value(f'{job.plan.chips}x{job.device}')}"] if job.device else []
        lines += [f"node_size = {job.node_size}"] if job.node_size else []
    lines += ["", "[plan]", *(f"{name} = {_value(value)}" for name, value in job.plan.columns.items())]
    if job.model is not None:
        shape = shape_of(job.model)
        keys = {"spec": job.model.model_dump_json()} if shape is None else shape.model_dump(exclude_none=True)
        lines += ["", "[model]", *(f"{name} = {_value(value)}" for name, value in keys.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """A TOML value: JSON's texts, numbers and truth values are TOML's too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_job(path: str | Path) -> Job:
    """The job of a ``job.toml``. Raises `InputError` for what is unknown, missing or does not fit together."""
    data = read_toml(path, what="job file")
    with located(str(path)):
        return _job(data, Path(path).parent)


def _job(data: dict[str, Any], folder: Path) -> Job:
    known = (*_SIZES, *_CHOICES, "tokens", "cluster", "plan", "model")
    _only(data, known, "$")
    table, plan = _table(data, "cluster"), _table(data, "plan")
    _only(table, ("chips", "node_size"), "$.cluster")
    plain = {name: data[name] for name in (*_SIZES, *_CHOICES) if name in data}
    if "sequences" not in plain:
        raise InputError("Expected the sequences of a step, got none,", where="$.sequences")
    if "tokens" in data:
        plain["steps"] = _steps(data, plain)
    chips = 0
    if "chips" in table:
        chips, name = parse.chips(str(table["chips"]), where="$.cluster.chips")
        machine = cluster_of(chips, name, node_size=_size(table))
        plain |= {"device": machine.device.name, "node_size": machine.node_size}
    elif "node_size" in table:
        plain["node_size"] = _size(table)
    if chips and "dp" not in plan:
        plan = plan | {"dp": _remaining(plan, chips)}
    job = Job(plan=Plan.of(**plan), model=model_of(_table(data, "model"), folder), **plain)
    if chips and job.plan.chips > chips:
        raise InputError.expected(f"at most {chips} ranks, one a chip", job.plan.chips, where="$.plan")
    return job


def _size(table: Mapping[str, Any]) -> int:
    size = table.get("node_size", 0)
    if isinstance(size, bool) or not isinstance(size, int) or size < 0 or (size == 0 and "node_size" in table):
        raise InputError.expected("a whole number of at least 1", size, where="$.cluster.node_size")
    return size


def _steps(data: Mapping[str, Any], plain: Mapping[str, Any]) -> int:
    if "steps" in plain or not plain.get("seq"):
        raise InputError("Expected tokens with seq and without steps, got another mix,", where="$.tokens")
    tokens = parse.count(str(data["tokens"]), where="$.tokens", what="tokens")
    return int(-(-tokens // (int(plain["seq"]) * int(plain["sequences"]))))


def _remaining(plan: Mapping[str, Any], chips: int) -> int:
    used = Plan.of(**plan).chips
    if chips % used:
        text = f"Expected tp*pp*cp to divide the chips, got {used} of {chips}, at $.plan"
        raise InfeasibleError(text, limit="whole replicas", nearest=f"{chips // used * used} chips")
    return chips // used


def model_of(table: dict[str, Any], folder: Path) -> ModelSpec | None:
    """The model of a ``[model]`` table; paths are relative to ``folder``. None for an empty table."""
    if not table:
        return None
    for key in ("config", "spec"):
        if key in table and (len(table) > 1 or not isinstance(table[key], str)):
            raise InputError.expected(f"{key} as a text, alone", sorted(table), where="$.model")
    if "config" in table:
        return read_model(folder / table["config"])[0]
    if "spec" in table:
        try:
            data = json.loads(table["spec"])
        except ValueError as error:
            raise InputError.expected("a whole JSON document", str(error), where="$.model.spec") from None
        return build(ModelSpec, data, where="$.model.spec")
    return model(build(Shape, table, where="$.model"))


def _table(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = data.get(name, {})
    if not isinstance(table, dict):
        raise InputError.expected("a table", table, where=f"$.{name}")
    return table


def _only(data: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    names = tuple(known)
    for name in data:
        if name not in names:
            raise InputError.expected("a known field", name, where=f"{where}.{name}", hint=did_you_mean(name, names))
