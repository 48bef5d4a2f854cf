"""What every format of a plan needs: its description, the refusal, and keys that know whether they were read."""

import importlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ridgeline.arithmetic.shape import Shape
from ridgeline.arithmetic.spec import ModelSpec
from ridgeline.core import plugins
from ridgeline.core.errors import InfeasibleError, InputError, MissingExtraError, did_you_mean
from ridgeline.plan.described import shape_of
from ridgeline.plan.job import Job

_DEEPEST = 8  # levels of tables
_MOST = 2**40  # no size of a plan is larger


@dataclass(frozen=True)
class Known:
    """What the user says beside a file: chips (0: nothing), the model, and the cluster's device and scale-up domain."""

    chips: int = 0
    model: ModelSpec | None = None
    device: str = ""
    node_size: int = 0

    def fill(self, job: Job) -> Job:
        """The job with these facts where the file had none. Raises `InputError` where the chips differ."""
        if self.chips and self.chips != job.plan.chips:
            raise InputError.expected(f"a plan for {self.chips} chips", job.plan.chips, where="the file's plan")
        facts: dict[str, Any] = {"model": self.model, "device": self.device, "node_size": self.node_size}
        return replace(job, **{name: value for name, value in facts.items() if value and not getattr(job, name)})


@dataclass(frozen=True)
class Written:
    """A job in the target's words. ``unsaid``: field of the job -> why the file does not hold it."""

    text: str
    unsaid: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """A job from the target's words. ``lost`` bears on the plan and has no place in a job; ``ignored`` does not."""

    job: Job
    lost: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """A target. ``checked``: the version whose names are written.

    ``program`` gives, for a written file, what a shell runs first and what a launcher starts; ``starter`` is how
    processes begin: ``torchrun`` once a node, or ``python`` once a chip.

    ``write`` raises `InfeasibleError` for a plan that the target cannot run, `InputError` for a job that lacks what
    it needs; ``read`` raises `InputError` for a file that says too little, `InfeasibleError` for a plan that a job
    cannot hold.
    """

    name: str
    title: str
    suffix: str
    checked: str
    sniff: Callable[[str], bool]
    write: Callable[[Job], Written]
    read: Callable[[str, Known], Reading]
    program: Callable[[str], tuple[str, str]]
    starter: str = "torchrun"


def formats() -> dict[str, Format]:
    """Every known format by name."""
    return {item.name: item for item in plugins.load("ridgeline.plan.formats", Format, kind="plan_format")}


def find_format(name: str, *, where: str) -> Format:
    """The format of that name, or an `InputError` with the close matches."""
    known = formats()
    if name not in known:
        hint = did_you_mean(name, known, "one of " + ", ".join(known))
        raise InputError.expected("a known format", name, where=where, hint=hint)
    return known[name]


def sniff_format(text: str, *, where: str) -> Format:
    """The format whose words a text has, or an `InputError`."""
    known = formats()
    found = next((item for item in known.values() if item.sniff(text)), None)
    if found is None:
        hint = "name the format with --from: " + ", ".join(known)
        raise InputError.expected("a plan of a known format", text.strip()[:40], where=where, hint=hint)
    return found


def first_refusal(target: str, rules: Iterable[tuple[bool, str, object, str]]) -> None:
    """Raise for the first rule that is broken: (broken, field, its value, nearest)."""
    for broken, name, got, nearest in rules:
        if broken:
            raise refuse(name, got, target, nearest)


def refuse(name: str, got: object, target: str, nearest: str) -> InfeasibleError:
    """The refusal: the job's field, its value, whose limit it is, and the nearest that can be said."""
    text = f"Expected a plan that {target} can express, got {name} {got}, at $.{name}"
    return InfeasibleError(text, limit=f"{target} has no {name} of {got}", nearest=nearest)


def needed(name: str, target: str, *, hint: str = "") -> InputError:
    """The refusal of a job that does not say what the target needs."""
    return InputError(f"Expected {name}, which {target} needs, got none,", where=f"$.{name}", hint=hint)


def unsaid_cluster(job: Job, *, keeps_domain: bool = False) -> dict[str, str]:
    """The facts of the cluster that no training configuration holds."""
    found = {"device": "the launcher chooses the machine"} if job.device else {}
    if job.node_size and not keeps_domain:
        found["node_size"] = "the launcher chooses the machine"
    return found


def shape_or_reason(job: Job) -> tuple[Shape | None, dict[str, str]]:
    """The keys of the job's model, or why they are not written."""
    if job.model is None:
        return None, {}
    shape = shape_of(job.model)
    if shape is None:
        return None, {"model": "not a plain decoder of the shape file's keys: give its dimensions yourself"}
    return shape, {}


def replicas(known: Known, used: int, *, target: str) -> int:
    """Data-parallel replicas of a file that leaves them to the number of chips."""
    if not known.chips:
        hint = "say how many with --cluster, such as --cluster 512xH100"
        raise InputError(f"Expected the number of chips, which {target} leaves out, got none,", where="FILE", hint=hint)
    if known.chips % used:
        text = f"Expected the model-parallel ranks to divide the chips, got {used} of {known.chips}, at FILE"
        raise InfeasibleError(text, limit="whole replicas", nearest=f"{known.chips // used * used} chips")
    return known.chips // used


class Keys:
    """The keys of a file, flat, with dots between levels; what nobody asked for is left over."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)
        self._asked: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def peek(self, name: str) -> Any:
        """The value of a key, which stays left over."""
        return self._values.get(name)

    def take(self, name: str, default: Any = None) -> Any:
        """The value of a key as the file has it; an explicit null counts as absent."""
        self._asked.add(name)
        value = self._values.get(name)
        return default if value is None else value

    def whole(self, name: str, default: int) -> int:
        """A whole number. Raises `InputError` for anything else."""
        value = self.take(name, default)
        try:
            found = float(value)
            good = not isinstance(value, bool) and found == int(found) and abs(found) < _MOST
        except (TypeError, ValueError, OverflowError):
            good = False
        if not good:
            raise InputError.expected("a whole number", value, where=name)
        return int(found)

    def size(self, name: str, default: int = 1) -> int:
        """A whole number of at least 1: what a group may have."""
        found = self.whole(name, default)
        if found < 1:
            raise InputError.expected("at least 1", found, where=name)
        return found

    def number(self, name: str, default: float) -> float:
        """A finite number above zero."""
        value = self.take(name, default)
        try:
            found = float(value)
        except (TypeError, ValueError):
            found = 0.0
        if isinstance(value, bool) or not 0 < found < float("inf"):
            raise InputError.expected("a number above zero", value, where=name)
        return found

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A truth value."""
        value = self.take(name, default)
        if not isinstance(value, bool):
            raise InputError.expected("true or false", value, where=name)
        return value

    def word(self, name: str, table: Mapping[str, str], default: str) -> str:
        """A word of the target in ours. Raises `InfeasibleError` for one that a job cannot hold."""
        value = self.take(name, default)
        if not isinstance(value, str) or value not in table:
            text = f"Expected {name} that a job can hold, got {value!r}, at {name}"
            raise InfeasibleError(text, limit=f"a job's words for {name}", nearest=", ".join(table))
        return table[value]

    def left(self, bears: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What is left over: keys that match the pattern, unless they are off, and the others."""
        rest = {name: value for name, value in self._values.items() if name not in self._asked}
        lost = [name for name, value in rest.items() if re.search(bears, name) and not _is_off(value)]
        said = tuple(f"{name} = {rest[name]}" for name in lost)
        return said, tuple(name for name in rest if name not in lost)


def _is_off(value: Any) -> bool:
    if isinstance(value, bool):
        return not value
    return str(value) in ("", "0", "1", "-1", "none", "None", "null", "[]", "{}")


def flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, with dots: ``{"a": {"b": 1}}`` is ``{"a.b": 1}``."""
    if prefix.count(".") > _DEEPEST:
        raise InputError.expected(f"at most {_DEEPEST} levels of tables", "more", where="FILE")
    found: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def to_yaml(tables: Mapping[str, Any], indent: str = "") -> str:
    """Plain tables, texts and numbers as YAML; JSON's scalars and lists are YAML's too."""
    lines = []
    for name, value in tables.items():
        if isinstance(value, Mapping):
            lines.append(f"{indent}{name}:\n{to_yaml(value, indent + '  ')}")
        else:
            lines.append(f"{indent}{name}: {json.dumps(value, ensure_ascii=False)}\n")
    return "".join(lines)


def from_yaml(text: str) -> dict[str, Any]:
    """A YAML mapping. Raises `InputError` for anything else, `MissingExtraError` without PyYAML."""
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise MissingExtraError("PyYAML", "readers") from None
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        message = " ".join(str(error).split())
        raise InputError.expected("a YAML file", message[:200], where="FILE") from None
    if not isinstance(data, dict) or not all(isinstance(name, str) for name in data):
        raise InputError.expected("a YAML mapping", type(data).__name__, where="FILE")
    return data


def comments(lines: Iterable[str]) -> str:
    """Lines of a comment, for the formats that have one."""
    return "".join(f"# {line}\n" for line in lines)


def header(title: str, checked: str) -> str:
    """Where a file comes from and whose names it uses."""
    return comments((f"{title}, written by ridgeline plan export; names as of {checked}.",))
