"""Every format of a plan: what it writes it reads, what it cannot say it refuses by name, damage is bad input."""

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.plan.formats.jobs import GPT3, LLAMA70, MIXED, MIXTRAL, beside, job, same

from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.plan.formats._common import Format, Known, formats, sniff_format
from ridgeline.plan.job import Job, Plan

FORMATS = list(formats().values())
each = pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
# A plan that the target can run, by format.
PLANS = {
    "torchtitan": job(tp=8, pp=4, dp=16, zero=2, sequence_parallel=1, recompute="selective", steps=1000),
    "megatron": job(tp=8, pp=4, dp=16, zero=1, sequence_parallel=1, chunks=5, recompute="selective", steps=1000),
    "nemo": job(tp=8, pp=4, dp=16, zero=1, sequence_parallel=1, chunks=5, recompute="full", steps=1000),
    "maxtext": job(
        tp=4, pp=4, dp=32, zero=3, shard=8, recompute="full", schedule="gpipe", chunks=2, sequence_parallel=1
    ),
    "deepspeed": job(tp=4, dp=128, zero=3, recompute="full"),
}
SWEEP: list[dict[str, Any]] = [
    dict(zip(("tp", "pp", "cp", "ep", "zero", "chunks", "recompute", "schedule", "hybrid"), values, strict=True))
    for values in product(
        (1, 4), (1, 2), (1, 2), (1, 4), (0, 1, 2, 3), (1, 2), ("none", "selective"), ("own", "gpipe"), (0, 1)
    )
]


def swept(columns: dict[str, Any]) -> Job:
    """A small job of those sizes on 64 chips."""
    plan: dict[str, Any] = dict(columns)
    group = 64 // (int(plan["tp"]) * int(plan["pp"]) * int(plan["cp"]))
    if plan.pop("hybrid"):
        plan["shard"] = group * int(plan["cp"]) // 2
    if plan["schedule"] == "own":
        del plan["schedule"]
    return job(MIXTRAL, sequences=256, seq=4096, dp=group, sequence_parallel=int(plan["tp"] != 1), **plan)


def back(form: Format, made: Job) -> tuple[Job, Job]:
    """The job that comes back, and the one that could: what the file does not hold is taken from it."""
    written = form.write(made)
    beside_it = Known(chips=made.plan.chips, model=made.model if "model" in written.unsaid else None)
    found = form.read(written.text, beside_it)
    assert found.lost == ()
    return found.job, made.without(name for name in written.unsaid if name != "model")


def tried(form: Format, made: Job) -> tuple[Job, Job, InfeasibleError | None]:
    """As `back`, or the refusal."""
    try:
        return (*back(form, made), None)
    except InfeasibleError as error:
        return made, made, error


def test_every_format_has_a_plan() -> None:
    assert {form.name for form in FORMATS} == set(PLANS)


@each
def test_what_is_written_is_read(form: Format) -> None:
    made = PLANS[form.name]
    written = form.write(made)
    found = form.read(written.text, beside(made))
    assert found.lost == ()
    silent = {name for name in written.unsaid if name not in ("model", "device", "node_size")}
    assert same(found.job, made.without(silent))


@each
def test_content_alone_decides(form: Format) -> None:
    assert sniff_format(form.write(PLANS[form.name]).text, where="FILE") is form


@each
def test_what_is_not_said_is_named(form: Format) -> None:
    written = form.write(PLANS[form.name])
    assert all(name.partition(".")[0] in Job.__dataclass_fields__ and why for name, why in written.unsaid.items())
    assert "device" in written.unsaid


@each
def test_every_plan_comes_back_or_is_refused_by_name(form: Format) -> None:
    kept, fields = 0, {f"plan.{name}" for name in Plan.of().columns} | {"node_size"}
    for columns in SWEEP:
        found, wanted, refusal = tried(form, swept(columns))
        if refusal is None:
            assert same(found, wanted), columns
            kept += 1
        else:
            assert str(refusal).splitlines()[0].rpartition(" at $.")[2] in fields
            assert refusal.nearest
    assert kept >= 8


@each
def test_models_come_back_or_are_named(form: Format) -> None:
    plan = PLANS[form.name].plan.columns
    for model in (LLAMA70, MIXTRAL, MIXED, GPT3):
        made = job(model, sequences=512, seq=2048, **(plan | {"pp": 1, "chunks": 1, "dp": plan["dp"] * plan["pp"]}))
        found, wanted = back(form, made)
        assert same(found, wanted), model.name


@each
@pytest.mark.parametrize(
    ("name", "value"), [("optimizer", "adafactor"), ("optimizer", "adam-8bit"), ("plan", "dualpipe")]
)
def test_what_no_target_has_is_refused(form: Format, name: str, value: str) -> None:
    columns: dict[str, Any] = {"dp": 64, "zero": 3, "recompute": "full"}
    columns |= {"optimizer": value} if name == "optimizer" else {"schedule": value, "pp": 2, "dp": 32}
    with pytest.raises(InfeasibleError, match=rf"^Expected .* got {name}") as caught:
        form.write(job(**columns))
    assert caught.value.nearest


@each
def test_a_file_cut_anywhere_is_read_or_refused(form: Format) -> None:
    text = form.write(PLANS[form.name]).text
    random = np.random.default_rng(3)
    for cut in random.integers(0, len(text), 40):
        refused_or_read(form, text[:cut])


@each
def test_damage_never_raises_anything_else(form: Format) -> None:
    text = form.write(PLANS[form.name]).text.encode()
    random = np.random.default_rng(5)
    for _ in range(60):
        damaged = bytearray(text)
        for at in random.integers(0, len(text), 6):
            damaged[at] = int(random.integers(32, 127))
        refused_or_read(form, damaged.decode("latin-1"))


ODD = ("[1, 'x']", '"x"', "true", "-1", "0", "1e400", "{}", "nan", "4.5", "999999999999", "null", "")


@each
def test_odd_values_never_raise_anything_else(form: Format) -> None:
    lines = form.write(PLANS[form.name]).text.splitlines()
    random = np.random.default_rng(9)
    for at, odd in product(range(len(lines)), ODD):
        if random.random() < 0.5:
            name = re.match(r"\s*[\w\"-]+(?: = |: | )", lines[at])
            changed = (name[0] if name else "") + odd + ("," if lines[at].endswith(",") else "")
            refused_or_read(form, "\n".join([*lines[:at], changed, *lines[at + 1 :]]))


def refused_or_read(form: Format, text: str) -> None:
    """Nothing but the house's errors leaves a reader."""
    said = "Expected"
    try:
        chips = form.read(text, beside(PLANS[form.name])).job.plan.chips
    except (InputError, InfeasibleError) as error:
        chips, said = 1, str(error)
    assert chips >= 1
    assert said.startswith("Expected")


def test_other_text_is_no_plan() -> None:
    with pytest.raises(InputError, match="Expected a plan of a known format") as caught:
        sniff_format("hello\n", where="FILE")
    assert "megatron" in caught.value.hint
