"""A policy: which tools, arguments and destinations an agent may use. Judged on actions alone.

``egress`` lists, for each role ``tool.argument``, the destinations that are allowed (``*@ours.example``); a role
without a list allows none. Tools are names or patterns; with ``allowed`` everything else is forbidden.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator

from ridgeline.core.case import InputFile
from ridgeline.core.errors import InputError, located
from ridgeline.core.specs import Spec, build, read_toml
from ridgeline.gate.traces.actions import Action, Actions, actions, egress_roles, wrapper_names
from ridgeline.gate.traces.egress import decoded
from ridgeline.gate.traces.names import inside, own, plain, role_of, visible
from ridgeline.gate.traces.trace import Trace

ANY = "*"


class Tools(Spec):
    """Names or patterns of tools (``delete_*``)."""

    allowed: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()


class ArgumentRule(Spec):
    """What one argument of a tool may hold: one of some values, a text that matches or does not, a number in bounds."""

    tool: str
    argument: str
    one_of: tuple[Any, ...] = ()
    matches: str = ""
    forbids: str = ""
    at_least: float | None = None
    at_most: float | None = None

    @field_validator("matches", "forbids")
    @classmethod
    def _compiles(cls, text: str) -> str:
        try:
            re.compile(text)
        except re.error as error:
            raise InputError.expected("a regular expression", text, where="$.arguments", hint=str(error)) from error
        return text

    @model_validator(mode="after")
    def _says_something(self) -> "ArgumentRule":
        if not (self.one_of or self.matches or self.forbids) and self.at_least is None and self.at_most is None:
            hint = "one_of, matches, forbids, at_least or at_most"
            raise InputError.expected("a rule", "none", where=f"$.arguments, {self.tool}.{self.argument}", hint=hint)
        return self

    def faults(self, value: Any) -> Iterator[str]:
        """What is wrong with a value. A number that is no number is outside every bound."""
        text = value if isinstance(value, str) else str(value)
        if self.one_of and value not in self.one_of:
            yield "not one of the allowed values"
        if self.matches and not re.search(self.matches, text):
            yield f"does not match {self.matches}"
        if self.forbids and any(re.search(self.forbids, read) for read in (text, visible(text), decoded(text))):
            yield f"matches {self.forbids}"
        if self.at_least is not None or self.at_most is not None:
            yield from self._bounds(value)

    def _bounds(self, value: Any) -> Iterator[str]:
        try:
            number = float(value)
        except (TypeError, ValueError):
            yield "no number"
            return
        if self.at_most is not None and not number <= self.at_most:
            yield f"above {self.at_most:g}"
        if self.at_least is not None and not number >= self.at_least:
            yield f"below {self.at_least:g}"


class Limits(Spec):
    """Most calls of a trace, all together and by tool."""

    calls: int | None = Field(None, ge=0)
    tools: Mapping[str, int] = Field(default_factory=dict)


@dataclass(frozen=True)
class Violation:
    """One breach: its ``kind`` (tool, argument, egress, limit, unreadable), the call, and what was found."""

    kind: str
    tool: str
    what: str


class Policy(Spec):
    """The keys of a policy file. ``sets`` names arguments whose lists have no order, beside the egress roles.

    ``wrappers`` replaces the names under which a logger may hide the tool.
    """

    name: str = ""
    tools: Tools = Field(default_factory=Tools)
    egress: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    arguments: tuple[ArgumentRule, ...] = ()
    limits: Limits = Field(default_factory=Limits)
    sets: tuple[str, ...] = ()
    wrappers: tuple[str, ...] = Field(default_factory=wrapper_names)

    @field_validator("egress", "sets")
    @classmethod
    def _roles(cls, value: Any) -> Any:
        for role in value:
            tool, dot, argument = role.rpartition(".")
            if not (tool and dot and argument):
                hint = 'such as "send_email.recipients"'
                raise InputError.expected("a role tool.argument", role, where="$.egress", hint=hint)
        return value

    @cached_property
    def roles(self) -> frozenset[str]:
        """Every argument that sends something out, in one spelling: the known ones and the policy's own."""
        return frozenset(map(role_of, (*egress_roles(), *self.egress)))

    def actions(self, trace: Trace) -> Actions:
        """What a trace did, with this policy's roles and sets."""
        return actions(trace.messages, self.roles, self.sets)

    def violations(self, done: Actions) -> tuple[Violation, ...]:
        """Every breach. Takes actions and nothing else: equal action hashes have equal violations."""
        single = [breach for item in done.items for breach in self._of(item)]
        return (*single, *self._limits(done))

    def score(self, done: Actions) -> float:
        """1 where the actions breach the policy, else 0: a function of the action hash only."""
        return float(bool(self.violations(done)))

    def binds(self, done: Actions) -> bool:
        """Whether any call could breach: a policy that allows whatever was called judges nothing."""
        limited = self.limits.calls is not None or bool(self.limits.tools)
        closed = bool(self.tools.allowed) and ANY not in self.tools.allowed
        return bool(done.items) and (
            limited or closed or bool(self.tools.forbidden) or any(map(self._judges, done.items))
        )

    def _judges(self, item: Action) -> bool:
        roles = {role for role in self.roles if role.startswith(f"{own(item.tool)}.")}
        ruled = any(_either(item.tool, rule.tool) for rule in self.arguments)
        return ruled or any(ANY not in self._allows(item, role) for role in roles)

    def hidden(self, done: Actions) -> tuple[str, ...]:
        """Names of calls that hide their tool, unless the policy allows them by name."""
        known = frozenset(map(plain, self.wrappers)) - frozenset(map(plain, self.tools.allowed))
        return tuple(item.tool for item in done.items if plain(item.tool) in known or not plain(item.tool))

    def _of(self, item: Action) -> Iterator[Violation]:
        if not self._may(item.tool):
            yield Violation("tool", item.tool, "a tool that is not allowed")
        rules = [rule for rule in self.arguments if _either(item.tool, rule.tool)]
        if not item.readable and (rules or any(role.startswith(f"{own(item.tool)}.") for role in self.roles)):
            yield Violation("unreadable", item.tool, "arguments that are no object")
        for rule in rules:
            for _, value in inside(item.arguments, (plain(rule.argument),)):
                for fault in rule.faults(value):
                    yield Violation("argument", item.tool, f"{rule.argument}: {fault}")
        for sent in item.egress:
            if not any(fnmatchcase(sent.destination, pattern.lower()) for pattern in self._allows(item, sent.role)):
                yield Violation("egress", item.tool, f"{sent.role.rpartition('.')[2]}: {sent.destination}")

    def _allows(self, item: Action, role: str) -> tuple[str, ...]:
        """Destinations of a role; a list for the tool's whole name goes before one for its own."""
        lists = {name: allowed for name, allowed in self.egress.items() if role_of(name) == role}
        whole = [name for name in lists if plain(name.rpartition(".")[0]) == plain(item.tool)]
        bare = [name for name in lists if plain(name.rpartition(".")[0]) == own(item.tool)]
        return tuple(pattern for name in whole or bare for pattern in lists[name])

    def _may(self, tool: str) -> bool:
        """What is forbidden is so in every namespace; what is allowed is allowed by its whole name."""
        if any(_either(tool, pattern) for pattern in self.tools.forbidden):
            return False
        return not self.tools.allowed or any(fnmatchcase(plain(tool), _pattern(name)) for name in self.tools.allowed)

    def _limits(self, done: Actions) -> Iterator[Violation]:
        if self.limits.calls is not None and len(done) > self.limits.calls:
            yield Violation("limit", "", f"{len(done)} calls, {self.limits.calls} allowed")
        for tool, most in self.limits.tools.items():
            count = sum(_either(item.tool, tool) for item in done.items)
            if count > most:
                yield Violation("limit", tool, f"{count} calls, {most} allowed")


def _pattern(text: str) -> str:
    """A pattern as names are spelled; an underscore at its end stays, for it parts ``get_*`` from ``getaway``."""
    return "*".join(f"{'_' * piece.startswith('_')}{plain(piece)}{'_' * (len(piece) > 1 and piece.endswith('_'))}"
                    for piece in text.split("*"))  # fmt: skip


def _either(tool: str, pattern: str) -> bool:
    """Whether a tool's whole name, or its own without the namespace, matches."""
    return any(fnmatchcase(name, _pattern(pattern)) for name in (plain(tool), own(tool)))


def read_policy(file: str | Path) -> tuple[Policy, InputFile]:
    """The policy of a TOML file. Raises `InputError` with the place of the first fault."""
    with located(str(file)):
        data = read_toml(file, what="policy file")
        return build(Policy, data), InputFile.of(file)
