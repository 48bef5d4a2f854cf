"""A pre-registration as a file: the plan, what the data were, the n it needs, when; each part and the whole hashed.

The hash signs the record in the sense that whoever has it (in a commit, a ticket, a mail) can tell whether the record
is the one that was written. It does not say who wrote it, and a record that is rewritten whole has another hash.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from ridgeline.core.errors import InputError, located
from ridgeline.core.format import count
from ridgeline.core.specs import build, read_json
from ridgeline.gate.registration.plan import Plan

SCHEMA = 1
SUFFIX = ".registration.json"


@dataclass(frozen=True)
class Data:
    """Data that a record names: a whole file, or the ids of its ``rows`` examples alone."""

    path: str
    kind: Literal["file", "ids"]
    sha256: str
    rows: int | None = None


@dataclass(frozen=True)
class Required:
    """The pairs that one check needs: ``variance`` of a pair's difference, and whether a pilot or the plan said it.

    ``there`` is how many pairs the registered data hold, None where only the hash of a file is known.
    """

    check: str
    margin: float
    variance: float
    source: Literal["assumed", "pilot"]
    n: int
    there: int | None = None


@dataclass(frozen=True)
class Record:
    """What was registered. ``registered`` is a UTC time; ``sha256`` the hash of everything else in the file."""

    plan: Plan
    registered: datetime
    version: str
    data: tuple[Data, ...] = ()
    required: tuple[Required, ...] = ()
    sha256: str = ""


def place_of(spec: Path) -> Path:
    """Where the record of a spec stands: ``gate.toml`` -> ``gate.registration.json``, beside it."""
    return spec.with_name(spec.name.removesuffix(spec.suffix) + SUFFIX)


def hash_of(value: Any) -> str:
    """SHA-256 of a JSON value, keys sorted, without spaces."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def hash_of_ids(keys: Iterable[object]) -> str:
    """SHA-256 of the examples' keys, whatever their order."""
    return hash_of(sorted(map(str, keys)))


def dumps(record: Record) -> str:
    """The text of the file."""
    body = _body(record)
    parts = {name: hash_of(value) for name, value in _parts(body)}
    return json.dumps(
        {**body, "parts": parts, "sha256": hash_of({**body, "parts": parts})}, indent=1, ensure_ascii=False
    ) + "\n"  # fmt: skip


def signed(record: Record) -> str:
    """The hash that signs the record."""
    return str(json.loads(dumps(record))["sha256"])


def _body(record: Record) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "tool": "ridgeline gate register",
        "version": record.version,
        "registered": record.registered.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "plan": record.plan.model_dump(mode="json"),
        "data": [asdict(item) for item in record.data],
        "required": [asdict(item) for item in record.required],
    }


def _parts(body: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Every part with a name that a reader of the file can find: ``plan.margin``, ``data[0]``."""
    found: list[tuple[str, Any]] = []
    for name, value in body.items():
        if isinstance(value, dict):
            found += [(f"{name}.{key}", item) for key, item in value.items()]
        elif isinstance(value, list):
            found += [(f"{name}[{index}]", item) for index, item in enumerate(value)]
        else:
            found.append((name, value))
    return found


def read_record(file: Path) -> Record:
    """The record of a file. Raises `InputError` where any part is not as it was written, naming the parts."""
    document = read_json(file, what="registration")
    if not isinstance(document, dict) or not isinstance(document.get("plan"), dict) or "sha256" not in document:
        raise InputError.expected("a registration", "another document", where=str(file),
                                  hint="`ridgeline gate register SPEC.toml` writes one")  # fmt: skip
    if document.get("schema") != SCHEMA:
        raise InputError.expected(f"a registration of schema {SCHEMA}", document.get("schema"), where=str(file))
    _refuse_changes(file, document)
    with located(str(file)):
        plan = build(Plan, document["plan"], where="$.plan")
        try:
            when = datetime.strptime(document["registered"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
            data = tuple(Data(**item) for item in document["data"])
            required = tuple(Required(**item) for item in document["required"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError.expected("a whole registration", str(error), where=str(file)) from None
    return Record(plan, when, str(document.get("version")), data, required, str(document["sha256"]))


def _refuse_changes(file: Path, document: Mapping[str, Any]) -> None:
    body = {name: value for name, value in document.items() if name != "sha256"}
    if hash_of(body) == document["sha256"]:
        return
    parts = body.pop("parts", None)
    known: Mapping[str, str] = parts if isinstance(parts, dict) else {}
    now = {name: hash_of(value) for name, value in _parts(body)}
    changed = [name for name in dict.fromkeys([*known, *now]) if known.get(name) != now.get(name)]
    got = f"changes in {', '.join(changed)}" if changed else "other hashes than its own"
    hint = "a registration is never edited: register again under another name, and say why in `note`"
    raise InputError.expected("a registration as it was written", got, where=str(file), hint=hint)


@dataclass(frozen=True)
class Change:
    """A key of the plan that is not what was registered."""

    key: str
    registered: str
    used: str


_FREE = frozenset({"note", "columns"})  # columns are compared one by one
_READING = frozenset({"id", "prompt", "output"})  # roles that say how files are read, not how is decided


def changes(record: Record, used: Plan) -> tuple[Change, ...]:
    """What the plan that decides has otherwise than the record."""
    before, now = record.plan.model_dump(), used.model_dump()
    found = [
        Change(key, str(before[key]), str(now[key])) for key in now if key not in _FREE and before[key] != now[key]
    ]
    roles = dict.fromkeys((*before["columns"], *now["columns"]))
    for role in (role for role in roles if role not in _READING):
        names = [str(plan["columns"].get(role, role)) for plan in (before, now)]
        found += [Change(f"columns.{role}", *names)] if names[0] != names[1] else []
    return tuple(found)


@dataclass(frozen=True)
class Seen:
    """Data that a decision read: files by path, SHA-256 and time of writing (None: not known), ids of runs."""

    files: tuple[tuple[str, str, datetime | None], ...]
    ids: tuple[str, ...] = ()


def other_data(record: Record, seen: Seen) -> list[str]:
    """In what the data of a decision differ from those registered, in words; nothing where they agree."""
    hashes, found = {sha256 for _, sha256, _ in seen.files}, []
    registered_ids = {item.sha256 for item in record.data if item.kind == "ids"}
    for item in record.data:
        if item.kind == "file" and item.sha256 not in hashes:
            now = [path for path, _, _ in seen.files if Path(path).name == Path(item.path).name]
            found.append(f"{item.path} has changed since" if now else f"{item.path} was not read")
    astray = [ids for ids in seen.ids if ids not in registered_ids]
    if registered_ids and not seen.ids:
        found.append("the ids of the runs are not known")
    elif registered_ids and astray:
        found.append(f"{count(len(astray), 'run')} of {len(seen.ids)} with other examples than those registered")
    return found


def seen_before(record: Record, seen: Seen) -> str:
    """Why the results may have been known when the margins were chosen; empty where at least one file is newer."""
    registered = {item.sha256 for item in record.data if item.kind == "file"}
    fresh = [item for item in seen.files if item[1] not in registered]
    if seen.files and not fresh:
        return "every file of results was registered with the plan, so they were there before it"
    older = [path for path, _, written in fresh if written is not None and written < record.registered]
    if fresh and len(older) == len(fresh):
        return f"every file of results was written before the plan was registered, such as {older[0]}"
    return ""
