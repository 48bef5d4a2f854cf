"""What the team knows of the run beside its traces: ``run.toml``, the expectation and the prices included.

name = "July run"
traces = ["profiles"]                    # files or folders, relative to this file
log = "steps.csv"                        # step-time log
[model]
path = "model.toml"                      # config.json, its folder, or a TOML; or plain: params = "70B"
[machine]
chips = "256xTPU v6e"
dtype = "bf16"
dollars_per_chip_hour = 2.70
days_per_month = 30
[batch]
sequences = 256                          # all chips together
sequence = "8k"
[parallel]
dp = 32
tp = 8
[training]
recompute = "none"                       # none, selective, full
mask = "full"                            # how expected FLOPs count the causal mask: full, half, exact
[mfu]
expected = 0.50                          # or expectation = "expectation.json", as `ridgeline review` writes it
reported = 0.25
convention = "6n"                        # a name of `ridgeline.arithmetic.conventions`
peak = 918e12                            # FLOP/s/chip of the reported number's denominator
with_stalls = true                       # reported over wall clock, stalls included
[observed]
step = "15s"                             # unprofiled
profiled = "15.3s"
[comparable]
tokens_per_second_per_chip = 1100
[counters]
tensor_active = 0.31
hbm_active = 0.24
[geometry]
head_tile = 128                          # where tiles are not the device's
vocab_shards = 256                       # chips that share the vocabulary; default: tp
embedding_matmul = true                  # the input table is read by a one-hot matmul
[buckets]                                # seconds per step, when there is no trace
compute = 9.0
[[cause]]                                # what was found, when there is no trace
name = "late all-gather"
seconds = { exposed_comm = 0.85 }

Everything is optional. What is missing makes the findings that need it `unknown`; nothing is guessed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from ridgeline.arithmetic import conventions
from ridgeline.arithmetic.flops import Recompute
from ridgeline.arithmetic.mfu import ideal_time, step_flops
from ridgeline.arithmetic.mfu import mfu as mfu_of
from ridgeline.arithmetic.pairs import Batch, Mask
from ridgeline.arithmetic.read_model import read_model
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core import catalog, parse
from ridgeline.core.case import InputFile, load
from ridgeline.core.device import Device
from ridgeline.core.errors import InputError, located
from ridgeline.core.quantity import Quantity, derive, given
from ridgeline.core.specs import Spec, build, read_toml, typed

FILE = "run.toml"
Lever = Literal["flag", "compiler", "model", "kernel", "hardware"]
Share = Annotated[float, Field(gt=0, le=1, strict=True)]
Rate = Annotated[float, Field(gt=0, lt=parse.ABSURD, strict=True)]
Size = Annotated[int, Field(gt=0, le=2**24, strict=True)]
_COUNTED = "convention "  # what the note of an expectation begins with


class ModelTable(Spec):
    """``[model]``: a file, or a plain number of parameters that a token uses."""

    path: str | None = None
    params: Annotated[float | None, typed(parse.count, "$.model.params", what="parameters")] = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "ModelTable":
        if (self.path is None) == (self.params is None):
            raise InputError.expected("either a path or params", "both" if self.path else None, where="$.model")
        return self


class Machine(Spec):
    """``[machine]``: the chips, what they cost, and how many days a month this run has them (held in seconds)."""

    chips: Annotated[tuple[int, str], typed(parse.chips, "$.machine.chips")]
    dtype: str = "bf16"
    dollars_per_chip_hour: Annotated[float | None, Field(gt=0, le=1e4, strict=True)] = None
    days_per_month: Annotated[float | None, typed(parse.duration, "$.machine.days_per_month", bare="day")] = None


class BatchTable(Spec):
    """``[batch]``: what one step reads, all chips together."""

    sequences: Size
    sequence: Annotated[int, typed(parse.context, "$.batch.sequence")]


class Parallel(Spec):
    """``[parallel]``: sizes of the mesh axes."""

    dp: Size = 1
    tp: Size = 1
    pp: Size = 1
    cp: Size = 1
    ep: Size = 1


class Training(Spec):
    """``[training]``: recomputation, and how the expectation counts the causal mask."""

    recompute: Recompute = "none"
    mask: Mask = "full"


class MfuTable(Spec):
    """``[mfu]``: what was expected and what was reported, and how the reported number was made."""

    expected: Share | None = None
    expectation: str | None = None  # expectation.json of a review, instead of a number
    reported: Annotated[float | None, Field(gt=0, le=10, strict=True)] = None  # above 1 is a finding, not a typo
    convention: str = ""
    peak: Rate | None = None
    with_stalls: bool | None = None


class Observed(Spec):
    """``[observed]``: step times, unprofiled and profiled, in seconds."""

    step: Annotated[float | None, typed(parse.duration, "$.observed.step")] = None
    profiled: Annotated[float | None, typed(parse.duration, "$.observed.profiled")] = None


class Comparable(Spec):
    """``[comparable]``: a run that is known to be good, on the same chips."""

    tokens_per_second_per_chip: Rate
    name: str = "the comparable run"
    params: Annotated[float | None, typed(parse.count, "$.comparable.params", what="parameters")] = None


class Counters(Spec):
    """``[counters]``: shares of the time that the matrix units and the HBM interface were active."""

    tensor_active: Share | None = None
    hbm_active: Share | None = None


class Geometry(Spec):
    """``[geometry]``: tiles where they are not the device's, and over how many chips the vocabulary is cut."""

    tile: Size | None = None
    head_tile: Size | None = None
    vocab_tile: Size | None = None
    vocab_shards: Size | None = None
    embedding_matmul: bool = False  # the input table is read by a one-hot matmul, as some TPU code does


class CauseTable(Spec):
    """One ``[[cause]]``: seconds per step, by bucket, that its fix would give back."""

    name: str
    seconds: Mapping[str, Annotated[float, Field(gt=0, le=1e6, strict=True)]]
    code: str = ""
    lever: Lever = "flag"
    confirm: Annotated[float, typed(parse.duration, "$.cause.confirm")] = 3600.0
    fix: str = ""
    effort_dollars: Annotated[float | None, Field(ge=0, le=parse.ABSURD, strict=True)] = None
    risks: tuple[str, ...] = ()  # names of causes whose size this fix may change


class RunFile(Spec):
    """The whole file."""

    name: str = ""
    traces: tuple[str, ...] = ()
    log: str | None = None
    model: ModelTable | None = None
    machine: Machine | None = None
    batch: BatchTable | None = None
    parallel: Parallel = Parallel()
    training: Training = Training()
    mfu: MfuTable = MfuTable()
    observed: Observed = Observed()
    comparable: Comparable | None = None
    counters: Counters = Counters()
    geometry: Geometry = Geometry()
    buckets: Mapping[str, Annotated[float, Field(ge=0, le=1e6, strict=True)]] = Field(default_factory=dict)
    cause: tuple[CauseTable, ...] = ()


@dataclass(frozen=True, eq=False)
class RunContext:
    """The file with the model and the device looked up. Every property is None where the file does not say."""

    file: RunFile = field(default_factory=RunFile)
    path: Path | None = None
    spec: ModelSpec | None = None
    device: Device | None = None
    inputs: tuple[InputFile, ...] = ()

    def resolve(self, name: str) -> Path:
        """A path that the file names, relative to the file."""
        return Path(name) if self.path is None else self.path.parent / name

    @property
    def log(self) -> Path | None:
        """The step log that the file names. Raises `InputError` where there is no such file."""
        if self.file.log is None:
            return None
        path = self.resolve(self.file.log)
        if not path.is_file():
            raise InputError.expected("a log file", str(path), where=f"{self.path or 'the run'}: $.log")
        return path

    @cached_property
    def chips(self) -> Quantity | None:
        """``run.chips``."""
        machine = self.file.machine
        return given("run.chips", machine.chips[0], "chip", "machine.chips").titled("Chips") if machine else None

    @cached_property
    def peak(self) -> Quantity | None:
        """The device's dense peak in the run's data type, FLOP/s/chip."""
        if self.device is None or self.file.machine is None:
            return None
        found = self.device.peak(self.file.machine.dtype)
        return found.titled(f"Dense peak, {self.file.machine.dtype}") if found else None

    @cached_property
    def batch(self) -> Batch | None:
        """What one step reads."""
        table = self.file.batch
        return Batch.of(table.sequence, table.sequences) if table else None

    @cached_property
    def tokens(self) -> Quantity | None:
        """``batch.tokens`` of one step."""
        return self.batch.tokens.titled("Tokens per step") if self.batch else None

    @cached_property
    def params(self) -> Quantity | None:
        """``run.params`` as the file gives it; None where a model file does."""
        model = self.file.model
        if model is None or model.params is None:
            return None
        return given("run.params", model.params, "param", "model.params").titled("Parameters")

    @cached_property
    def convention(self) -> str:
        """The FLOP convention that observed MFUs are stated in: the named one, else 6N."""
        return self.file.mfu.convention or "6n"

    @cached_property
    def flops(self) -> Quantity | None:
        """Model FLOPs of a step under `convention`.

        A plain number of parameters allows 6N only: with another convention named, None.
        """
        if self.batch is None:
            return None
        if self.spec is not None:
            return conventions.evaluate(conventions.find(self.convention), self.spec, self.batch).sequence
        if self.params is None or self.convention != "6n":
            return None
        return step_flops(self.params, self.batch.tokens)

    @cached_property
    def ideal(self) -> Quantity | None:
        """``step.ideal`` (s): the FLOPs at the dense peak of all chips."""
        if self.flops is None or self.chips is None or self.peak is None:
            return None
        return ideal_time(self.flops, self.chips, self.peak)

    @cached_property
    def step(self) -> Quantity | None:
        """``run.step`` (s): the observed step time without a profiler."""
        value = self.file.observed.step
        return None if value is None else given("run.step", value, "s", "observed.step").titled("Step time")

    @cached_property
    def profiled(self) -> Quantity | None:
        """``run.step_profiled`` (s)."""
        value = self.file.observed.profiled
        if value is None:
            return None
        return given("run.step_profiled", value, "s", "observed.profiled").titled("Step time under the profiler")

    @cached_property
    def mfu(self) -> Quantity | None:
        """``mfu`` (percent) at the observed step time."""
        if self.ideal is None or self.step is None or self.flops is None:
            return None
        assert self.chips is not None
        assert self.peak is not None
        found = mfu_of(self.flops, self.chips, self.peak, self.step)
        return found.titled(f"MFU, {conventions.find(self.convention).title}")

    @cached_property
    def expected(self) -> Quantity | None:
        """``run.expected_mfu`` (percent)."""
        if self.file.mfu.expectation is not None:
            return self._reviewed(self.file.mfu.expectation)
        value = self.file.mfu.expected
        if value is None:
            return None
        return given("run.expected_mfu", value * 100, "%", "mfu.expected").titled("Expected MFU")

    def _reviewed(self, name: str) -> Quantity:
        """The expected MFU of a review, as this run counts FLOPs. Raises `InputError` for another kind of file."""
        file = self.resolve(name)
        entry = load(file)["quantities"].get("expected.mfu")
        if entry is None or not str(entry.get("note", "")).startswith(_COUNTED):
            raise InputError.expected("an expectation that a review wrote", "a case without one", where=str(file))
        counted = str(entry["note"]).removeprefix(_COUNTED)
        found = given("run.reviewed_mfu", float(entry["value"]), "%", f"{file}: expected.mfu")
        if counted != self.convention:
            if self.spec is None or self.batch is None:
                raise InputError.expected(f"the {self.convention} convention, or a model", counted, where=str(file))
            found = conventions.convert(found, counted, self.convention, self.spec, self.batch)
        return found.named("run.expected_mfu").titled("Expected MFU, as reviewed before the launch")

    @cached_property
    def reported(self) -> Quantity | None:
        """``run.reported_mfu`` (percent)."""
        value = self.file.mfu.reported
        if value is None:
            return None
        return given("run.reported_mfu", value * 100, "%", "mfu.reported").titled("Reported MFU")

    @cached_property
    def price(self) -> Quantity | None:
        """``run.price`` (USD per chip-hour), the file's or the catalog's."""
        machine = self.file.machine
        if machine is not None and machine.dollars_per_chip_hour is not None:
            where = "machine.dollars_per_chip_hour"
            return given("run.price", machine.dollars_per_chip_hour, "USD/(chip*h)", where).titled("Chip-hour price")
        if self.device is None:
            return None
        found = catalog.constant(f"prices.chip_hour.{self.device.slug}", missing_ok=True)
        return found.titled("Chip-hour price") if found else None

    @cached_property
    def month(self) -> Quantity | None:
        """``run.month`` (day): how long the run has the chips in a month."""
        machine = self.file.machine
        if machine is None or machine.days_per_month is None:
            return None
        days = machine.days_per_month / 86400
        return given("run.month", days, "day", "machine.days_per_month").titled("Days of running in a month")

    @cached_property
    def tokens_rate(self) -> Quantity | None:
        """``run.tokens_rate`` (token/s/chip) at the observed step time."""
        if self.tokens is None or self.chips is None or self.step is None:
            return None
        inputs = {"tokens": self.tokens, "step": self.step, "chips": self.chips}
        found = derive("run.tokens_rate", "tokens/step/chips", "token/s/chip", **inputs)
        return found.titled("Tokens per second and chip")


def read_context(path: str | Path) -> RunContext:
    """The run of a ``run.toml``, or of the folder that holds one.

    Raises `InputError` with the file and the place for what cannot be read, an unknown field, device or convention.
    """
    given_path = Path(path)
    file = given_path / FILE if given_path.is_dir() else given_path
    with located(str(file)):
        table = build(RunFile, read_toml(file, what="run file"))
    return context_of(table, file)


def context_of(table: RunFile, path: Path | None = None) -> RunContext:
    """A run file that has been read, with its model and device looked up; paths are relative to ``path``."""
    context = RunContext(table, path)
    inputs = [] if path is None else [InputFile.of(path)]
    spec = device = None
    where = str(path) if path else "the run"
    with located(where):
        if table.mfu.convention:
            conventions.find(table.mfu.convention)
        if table.machine is not None:
            with located("$.machine.chips"):
                device = catalog.device(table.machine.chips[1])
            with located("$.machine.dtype"):
                device.peak(table.machine.dtype)
    if table.model is not None and table.model.path is not None:
        spec, file = read_model(context.resolve(table.model.path))
        inputs.append(file)
    return RunContext(table, path, spec, device, tuple(inputs))
