"""``Fields``: a config dict that remembers what was read from it.

Every read checks type and range, notes where the value came from (config, derived, default), and ``finish`` refuses
whatever nobody read and nobody declared harmless: a field that might change the count is never ignored in silence.
Harmless names shared by all families are in ``harmless.toml``; a family adds its own with ``skip``.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Final

from ridgeline.core.errors import InputError

LARGEST_DIM: Final = 2**40  # the bound of spec.Dim
MOST_LAYERS: Final = 10_000  # a pattern holds one entry per layer
_TRAINED_ACTIVATIONS: Final = ("prelu", "xielu")  # the activation functions with weights of their own
_ON_BY_NATURE: Final = ("gated", "glu", "rms", "affine")  # a field so named that is off may stand for other weights
_REQUIRED: Final = object()


@cache
def harmless_patterns() -> tuple[frozenset[str], tuple[str, ...]]:
    """Names and glob patterns of fields that never change a parameter count, whatever the family."""
    table = tomllib.loads(files("ridgeline.arithmetic.configs").joinpath("harmless.toml").read_text("utf-8"))
    names = [item for group in table.values() for item in group["fields"]]
    return (
        frozenset(n for n in names if "*" not in n),
        tuple(n for n in names if "*" in n),
    )


def is_harmless(name: str) -> bool:
    """Whether the shared list knows that this field does not change a parameter count."""
    exact, globs = harmless_patterns()
    return name in exact or any(fnmatchcase(name, g) for g in globs)


class Fields:
    """A config dict read field by field.

    ``where`` is the path for messages (``$`` or ``$.text_config``). Nested configs (``sub``) share provenance and
    notes with their parent, and are finished with it.
    """

    def __init__(self, config: Mapping[str, Any], where: str = "$", parent: "Fields | None" = None) -> None:
        self.config = config
        self.where = where
        self.provenance: dict[str, str] = parent.provenance if parent else {}
        self.notes: list[str] = parent.notes if parent else []
        self._assumed: dict[str, Any] = {}
        self._read: set[str] = set()
        self._skipped: list[str] = []
        self._children: list[Fields] = []

    # --- reading -------------------------------------------------------------------------------------------------

    def dim(self, name: str, *aliases: str, default: int | object = _REQUIRED, null: int | None = None) -> int:
        """A size: a positive integer. ``default`` when the field is absent; ``null`` when it is JSON null."""
        return self._number(name, aliases, default, null, lowest=1)

    def count(self, name: str, *aliases: str, default: int | object = _REQUIRED, null: int | None = None) -> int:
        """A non-negative integer."""
        return self._number(name, aliases, default, null, lowest=0)

    def optional(self, name: str, *aliases: str, lowest: int = 0, default: int | None = None) -> int | None:
        """A non-negative integer, or None when the field is JSON null (``default`` when it is absent)."""
        found, value = self._find(name, aliases)
        if found is None:
            self._note(name, "default")
            return default
        return None if value is None else self._check(found, value, lowest)

    def layers(self, name: str = "num_hidden_layers", *aliases: str, default: int | object = _REQUIRED) -> int:
        """A number of layers: bounded, because the spec lists them one by one."""
        value = self.dim(name, *aliases, default=default)
        if value > MOST_LAYERS:
            raise self.error(name, f"at most {MOST_LAYERS} layers", value)
        return value

    def flag(self, name: str, *aliases: str, default: bool | object = _REQUIRED) -> bool:
        """A boolean. JSON null counts as false, as it does in the model classes."""
        found, value = self._find(name, aliases)
        if found is None:
            return bool(self._fallback(name, default))
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.error(found, "true or false", value)
        return value

    def text(self, name: str, *aliases: str, default: str | object = _REQUIRED, among: Iterable[str] = ()) -> str:
        """A string, one of ``among`` when given. Absent and null take the default, where None means ''."""
        found, value = self._find(name, aliases)
        if found is None or value is None:
            return str(self._fallback(name, default) or "")
        known = tuple(among)
        if not isinstance(value, str) or (known and value not in known):
            raise self.error(found, f"one of {', '.join(known)}" if known else "a string", value)
        return value

    def items(self, name: str, *aliases: str, length: int | None = None) -> list[Any] | None:
        """A list, or None when absent or null. ``length`` checks one entry per layer."""
        found, value = self._find(name, aliases)
        if found is None or value is None:
            return None
        if not isinstance(value, list):
            raise self.error(found, "a list", value)
        if length is not None and len(value) != length:
            raise self.error(found, f"a list with one entry per layer ({length})", f"{len(value)} entries")
        return value

    def integers(self, name: str, *aliases: str, length: int | None = None, lowest: int = 0) -> list[int] | None:
        """A list of integers, or None when absent or null."""
        value = self.items(name, *aliases, length=length)
        return None if value is None else [self._check(f"{name}[{i}]", v, lowest) for i, v in enumerate(value)]

    def names(self, name: str, *aliases: str, among: Iterable[str], length: int | None = None) -> list[str] | None:
        """A list of strings out of ``among`` (layer types), or None when absent or null."""
        value, known = self.items(name, *aliases, length=length), tuple(among)
        for i, item in enumerate(value or ()):
            if item not in known:
                raise self.error(f"{name}[{i}]", f"one of {', '.join(known)}", item)
        return value

    def number(self, name: str, *aliases: str, default: float | object = _REQUIRED) -> float:
        """A positive finite number (an expansion ratio, a multiplier)."""
        found, value = self._find(name, aliases)
        if found is None or value is None:
            return float(self._fallback(name, default))  # type: ignore[arg-type]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LARGEST_DIM:
            raise self.error(found, "a positive number", value)
        return float(value)

    def sub(self, name: str, *aliases: str, required: bool = True) -> "Fields":
        """A nested config. Empty when it is absent and not required."""
        found, value = self._find(name, aliases)
        if not isinstance(value, Mapping):
            if required or value is not None:
                hint = "the sizes of this family are read from there alone" if value is None else ""
                raise self.error(found or name, "a nested config", value, hint=hint)
            value = {}
        child = Fields(value, f"{self.where}.{found or name}", self)
        self._children.append(child)
        return child

    def entry(self, name: str, index: int) -> "Fields":
        """The nested config at an index of a list."""
        value = (self.items(name) or [])[index]
        if not isinstance(value, Mapping):
            raise self.error(f"{name}[{index}]", "a nested config", value)
        child = Fields(value, f"{self.where}.{name}[{index}]", self)
        self._children.append(child)
        return child

    # --- bookkeeping ---------------------------------------------------------------------------------------------

    def assume(self, **defaults: Any) -> "Fields":
        """What absent fields mean in this family (the defaults of its config class); a JSON null stays null."""
        self._assumed.update(defaults)
        return self

    def has(self, name: str) -> bool:
        """Whether the config, or the family's defaults, give the field a value other than null."""
        return self.config.get(name, self._assumed.get(name)) is not None

    @property
    def model_type(self) -> str:
        """The family name the config gives itself, or ''."""
        value = self.config.get("model_type")
        return value if isinstance(value, str) else ""

    def derived(self, name: str, value: int) -> int:
        """Record that ``name`` was computed from other fields."""
        self.provenance[self._path(name)] = "derived"
        return value

    def skip(self, *names: str) -> None:
        """Declare fields (or glob patterns) that do not change any count in this family."""
        self._skipped.extend(names)

    def require(self, name: str, *allowed: object, default: object = None) -> None:
        """Refuse a field whose value is not one of ``allowed``: a variant whose weights are not known here."""
        found, value = self._find(name, ())
        if found is not None and value not in allowed and value != default:
            wanted = " or ".join(repr(a) for a in (*allowed, default))
            raise self.error(name, f"{wanted}: other values change the weights in a way that is not known", value)

    def error(self, name: str, expected: str, got: object = _REQUIRED, *, hint: str = "") -> InputError:
        """The refusal at ``<where>.<name>``."""
        value = self.config.get(name) if got is _REQUIRED else got
        return InputError.expected(expected, value, where=f"{self.where}.{name}", hint=hint)

    def note(self, text: str) -> None:
        """Add a remark that is shown with the spec."""
        self.notes.append(text)

    def finish(self, allow: Sequence[str] = ()) -> None:
        """Refuse every field that was neither read nor known to be harmless; ``allow`` lists accepted names."""
        for child in self._children:
            child.finish(allow)
        for name, value in self.config.items():
            if name in self._read:
                continue
            if value in _TRAINED_ACTIVATIONS:
                raise self.error(name, "an activation function without weights", value)
            if self._is_skipped(name, allow) or self._repeats(name, value):
                continue
            off = value is False and not any(word in name for word in _ON_BY_NATURE)
            if off or value is None or value in ("", [], {}):
                self._note(name, "ignored: empty")
                continue
            raise self.error(
                name,
                "only fields whose effect on the parameter count is known",
                {name: value},
                hint=f"if it changes no weight shape, accept it with --allow-field {name}",
            )

    def _repeats(self, name: str, value: object) -> bool:
        """Whether the field is a copy of one that was read in ``text_config``, as some saved configs have them."""
        texts = [child for child in self._children if child.where == f"{self.where}.text_config"]
        return any(name in text._read and text.config[name] == value for text in texts)

    def _is_skipped(self, name: str, allow: Sequence[str]) -> bool:
        if name in allow:
            self._note(name, "user")
            return True
        return any(fnmatchcase(name, s) for s in self._skipped) or is_harmless(name)

    def _find(self, name: str, aliases: Sequence[str]) -> tuple[str | None, Any]:
        present = [key for key in (name, *aliases) if key in self.config]
        self._read.update(present)
        if not present:
            assumed = next((n for n in (name, *aliases) if n in self._assumed), None)
            if assumed is None:
                return None, None
            self._note(assumed, "default")
            return assumed, self._assumed[assumed]
        key = next((k for k in present if self.config[k] is not None), present[0])
        for other in present:
            if self.config[other] is not None and self.config[other] != self.config[key]:
                raise self.error(other, f"the value of {key} ({self.config[key]})")
        self._note(key, "config")
        return key, self.config[key]

    def _fallback(self, name: str, default: object) -> object:
        if default is _REQUIRED:
            hint = "a config.json of a language model has it" if self.where == "$" else ""
            raise InputError(f"Expected the field {name}, got a config without it,", where=self.where, hint=hint)
        self._note(name, "default")
        return default

    def _number(self, name: str, aliases: Sequence[str], default: object, null: int | None, *, lowest: int) -> int:
        found, value = self._find(name, aliases)
        if found is None or value is None:
            fallback = null if found is not None and null is not None else default
            if found is not None and (fallback is _REQUIRED or fallback is None):
                raise self.error(found, "an integer", None)
            value, found = self._fallback(name, fallback), name
        return self._check(found, value, lowest)

    def _check(self, name: str, value: object, lowest: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(name, "an integer", value)
        if not lowest <= value <= LARGEST_DIM:
            raise self.error(name, f"an integer from {lowest} to 2**40", value)
        return value

    def _note(self, name: str, origin: str) -> None:
        self.provenance.setdefault(self._path(name), origin)

    def _path(self, name: str) -> str:
        return f"{self.where}.{name}".removeprefix("$.")
