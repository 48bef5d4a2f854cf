"""What a review looks at: one model, one plan, one cluster and what the team expects, from ``review.toml`` or flags.

name = "Flagship, first design"
sequences = 500                  # of a step; or batch = "4M" tokens
seq = "8k"
tokens = "5.7T"                  # of the whole run; or steps = 1000
dtype = "bf16"
optimizer = "adam"
framework = "megatron-core"      # one of core/data/expected.toml
study = "study.toml"             # price and unique tokens from there where they are not said here
[cluster]
chips = "1000xH100"
network = "infiniband_ndr"       # a link of core/data/links.toml
[plan]
tp = 8                           # every column of `layout.Layout`; dp is what remains when it is not said
[model]
config = "config.json"           # or the keys of `arithmetic.shape`
[claim]
mfu = "50%"
provenance = "folklore"          # folklore, roofline, comparable, pilot
convention = "6n"
[data]
unique_tokens = "15T"
[checkpoint]
every = "15min"
bandwidth = "40GB/s"             # of all writers together
blocking = true
[price]
dollars_per_chip_hour = 2.50
[geometry]                       # tiles where they are not the device's
vocab_tile = 256

A ``job.toml`` is a review file without claim, data, checkpoint and price.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from ridgeline.arithmetic.named import find_model
from ridgeline.arithmetic.read_model import CONFIG
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core import parse
from ridgeline.core.case import InputFile
from ridgeline.core.errors import InfeasibleError, InputError, located
from ridgeline.core.specs import Spec, build, read_toml, typed
from ridgeline.plan.job import model_of
from ridgeline.plan.prelaunch.claim import Claim
from ridgeline.plan.steps import cluster as clusters
from ridgeline.plan.steps import layout
from ridgeline.plan.steps.cluster import Cluster
from ridgeline.plan.steps.layout import Layout
from ridgeline.plan.steps.machine import Software
from ridgeline.plan.study import read_study

FILE = "review.toml"
Size = Annotated[int, Field(gt=0, le=2**24, strict=True)]


class ClusterTable(Spec):
    """``[cluster]``: the chips, their scale-out link by name, and a scale-up domain other than the device's."""

    chips: str
    network: str = ""
    node_size: Size | None = None


class DataTable(Spec):
    """``[data]``: tokens that there are before one repeats."""

    unique_tokens: Annotated[float, typed(parse.count, "$.data.unique_tokens", what="tokens")]


class CheckpointTable(Spec):
    """``[checkpoint]``: how often, how fast all writers together are, and whether training waits for it."""

    every: Annotated[float, typed(parse.duration, "$.checkpoint.every")]
    bandwidth: Annotated[float | None, typed(parse.size, "$.checkpoint.bandwidth", unit="B/s")] = None
    blocking: bool = True


class PriceTable(Spec):
    """``[price]``: of a chip-hour, in dollars."""

    dollars_per_chip_hour: float = Field(gt=0, le=1e4)


class GeometryTable(Spec):
    """``[geometry]``: tiles where they are not the device's, and over how many chips the vocabulary is cut."""

    tile: Size | None = None
    head_tile: Size | None = None
    vocab_tile: Size | None = None
    vocab_shards: Size | None = None
    embedding_matmul: bool = False


class ReviewFile(Spec):
    """The whole file. ``sequences`` or ``batch``, and ``tokens`` or ``steps``, say the same thing."""

    name: str = ""
    question: str = ""
    sequences: Size | None = None
    batch: Annotated[int | None, typed(parse.context, "$.batch")] = None
    seq: Annotated[int, typed(parse.context, "$.seq")]
    tokens: Annotated[float | None, typed(parse.count, "$.tokens", what="tokens")] = None
    steps: Size | None = None
    dtype: str = "bf16"
    gradients: Literal["bf16", "fp32"] | None = None  # None: as `Software` has it
    optimizer: str = "adam"
    framework: str = "megatron-core"
    mask: Literal["full", "half", "exact"] = "half"
    study: str | None = None
    cluster: ClusterTable
    plan: Mapping[str, int | str]
    model: Mapping[str, Any]
    claim: Claim | None = None
    data: DataTable | None = None
    checkpoint: CheckpointTable | None = None
    price: PriceTable | None = None
    geometry: GeometryTable = GeometryTable()


@dataclass(frozen=True)
class Proposal:
    """The file with everything looked up. ``layouts`` holds the one plan, ``tokens`` of the run where they are known.

    ``price`` (USD a chip-hour) and ``unique_tokens`` are the file's or its study's.
    """

    file: ReviewFile
    spec: ModelSpec
    cluster: Cluster
    layouts: Layout
    sequences: int
    software: Software
    tokens: float | None
    unique_tokens: float | None
    price: float | None
    inputs: tuple[InputFile, ...] = ()
    own_file: bool = False  # described by a review file, not by a model and flags

    @property
    def batch(self) -> tuple[int, int]:
        """Sequences of a step and tokens of each."""
        return self.sequences, self.file.seq

    @property
    def name(self) -> str:
        """What the review is called."""
        return self.file.name or f"{self.spec.name} on {self.cluster.name}"


def read_review(path: str | Path, flags: Mapping[str, Any] | None = None) -> Proposal:
    """The proposal of a ``review.toml`` (or its folder), or of a model with flags for everything else.

    A model is a ``config.json``, its folder, a TOML of a shape, or the name of a published one.

    ``flags`` are tables and keys of the file that replace or complete it. Raises `InputError` for what is missing,
    unknown or does not fit together, `InfeasibleError` for a plan that does not divide.
    """
    place = Path(path)
    file = place / FILE if place.is_dir() else place
    if file.is_file() and file.suffix == ".toml" and not _is_model(file):
        data, inputs = read_toml(file, what="review file"), (InputFile.of(file),)
        if "budget" in data and "cluster" not in data:
            raise InputError.expected(f"a {FILE} beside the study", file.name, where=str(place), hint=_HINT)
    else:
        if place.is_dir() and not (place / CONFIG).is_file():
            raise InputError.expected(f"a folder with a {FILE} or a {CONFIG}", str(place), where="STUDY", hint=_HINT)
        spec, source = find_model(str(place))
        data, inputs = {"model": {"spec": spec.model_dump_json()}}, (source,)
        file = place
    found = propose(_merged(data, flags or {}), file.parent, str(file), inputs)
    return replace(found, own_file="cluster" in data)


_HINT = "docs/how-to/review-a-run-before-launch.md shows the file"


def _is_model(file: Path) -> bool:
    """A TOML that describes a model and nothing else."""
    data = read_toml(file, what="review file")
    return "cluster" not in data and "budget" not in data and ("d_model" in data or "model_type" in data)


def _merged(data: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(data)
    for key, value in flags.items():
        inner = merged.get(key)
        joined = isinstance(value, Mapping) and isinstance(inner, Mapping) and key not in ("plan", "claim")
        merged[key] = {**inner, **value} if joined else value  # type: ignore[dict-item]
        if key in ("batch", "sequences"):
            merged.pop("sequences" if key == "batch" else "batch", None)
    for key, flag in (("cluster", "--cluster"), ("plan", "--plan"), ("seq", "--seq")):
        if key not in merged:
            raise InputError.expected(f"the {key} of the run", None, where=f"$.{key}", hint=f"{flag} gives it")
    return merged


def propose(
    data: Mapping[str, Any], folder: Path, where: str = "the review", inputs: tuple[InputFile, ...] = ()
) -> Proposal:
    """A proposal from the tables of a review file; paths are relative to ``folder``."""
    with located(where):
        file = build(ReviewFile, data)
        spec = model_of(dict(file.model), folder)
        if spec is None:
            raise InputError.expected("a model", None, where="$.model")
        machine = clusters.parse(
            file.cluster.chips, network=file.cluster.network, node_size=file.cluster.node_size or 0
        )
        layouts = _layout(file.plan, machine)
        sequences = _sequences(file)
        layout.check_batch(sequences, file.seq, "$.batch and $.seq")
        layout.check(spec, sequences, file.seq, layouts, machine.chips)
        software = Software(dtype=file.dtype, framework=file.framework, gradients=file.gradients or Software.gradients)
        tokens = file.tokens or (float(file.steps * sequences * file.seq) if file.steps else None)
        price, unique, read = _from_study(file, folder)
    return Proposal(file, spec, machine, layouts, sequences, software, tokens, unique, price, (*inputs, *read))


def _layout(plan: Mapping[str, int | str], machine: Cluster) -> Layout:
    """One plan; ``dp`` is what remains of the chips."""
    if "dp" in plan:
        return Layout.of(**plan)
    used = int(Layout.of(**plan).chips[0])
    if machine.chips % used:
        text = f"Expected tp*pp*cp to divide the chips, got {used} of {machine.chips}, at $.plan"
        raise InfeasibleError(text, limit="whole replicas", nearest=f"{machine.chips // used * used} chips")
    return Layout.of(**plan, dp=machine.chips // used)


def _sequences(file: ReviewFile) -> int:
    if (file.sequences is None) == (file.batch is None):
        raise InputError.expected("either sequences or batch", "both" if file.batch else None, where="$.batch")
    if file.batch is None:
        assert file.sequences is not None
        return file.sequences
    if file.batch % file.seq:
        nearest = f"{max(1, round(file.batch / file.seq)) * file.seq:,} tokens"
        raise InputError.expected(f"a multiple of seq, {nearest}", file.batch, where="$.batch")
    return file.batch // file.seq


def _from_study(file: ReviewFile, folder: Path) -> tuple[float | None, float | None, tuple[InputFile, ...]]:
    """Price and unique tokens, the file's first, and the study file where one is named."""
    price = file.price.dollars_per_chip_hour if file.price else None
    unique = file.data.unique_tokens if file.data else None
    if file.study is None:
        return price, unique, ()
    study, path = read_study(folder / file.study)
    budget = study.budget
    return price or budget.dollars_per_chip_hour, unique or budget.unique_tokens, (InputFile.of(path),)


def plan_of(text: str) -> dict[str, int | str]:
    """``tp=8,pp=4,recompute=selective`` as a table. Raises `InputError` for another form."""
    found: dict[str, int | str] = {}
    for piece in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not (name and equals and value):
            raise InputError.expected("a plan such as tp=8,pp=4,dp=16", piece, where="--plan")
        if name in found:
            raise InputError.expected(f"{name} once", piece, where="--plan")
        found[name] = int(value) if value.lstrip("-").isdigit() else value
    return found
