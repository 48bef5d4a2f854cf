"""``examples/jax_cpu8``: profiles and compiler dumps that ``scripts/record_jax.py`` recorded, read as a user would.

Counts and FLOPs are derived here from the shapes of the recorded model, times only compared with each other.
"""

import gzip
import re
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ridgeline.arithmetic.hlo import HloModule
from ridgeline.arithmetic.hlo_collectives import collectives
from ridgeline.arithmetic.hlo_cost import totals
from ridgeline.core.finding import Finding, Verdict
from ridgeline.core.plugins import find_rule
from ridgeline.trace import hlo, wire
from ridgeline.trace.analyse import analyse
from ridgeline.trace.events import Category, Kind
from ridgeline.trace.facts import TraceFacts
from ridgeline.trace.hlo_diff import difference
from ridgeline.trace.hlo_resharding import reshardings
from ridgeline.trace.levels import l0
from ridgeline.trace.levels.l0 import BUCKETS
from ridgeline.trace.read import read_run

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "jax_cpu8"
VARIANTS = ("plain", "remat", "resharded")
RECORDED = sorted(path.relative_to(EXAMPLE).as_posix() for path in EXAMPLE.rglob("*.gz"))
DEVICES, STEPS = 8, 3
DATA, TENSOR = 4, 2  # the mesh
LAYERS, SEQUENCE, WIDTH, HIDDEN, VOCABULARY = 2, 64, 128, 512, 512
TOKENS = 16 * SEQUENCE // DATA  # of one chip
QKV, OUT = 2 * TOKENS * WIDTH * 3 * WIDTH // TENSOR, 2 * TOKENS * WIDTH * WIDTH // TENSOR
UP = DOWN = 2 * TOKENS * WIDTH * HIDDEN // TENSOR
ATTENTION = 2 * 2 * TOKENS * SEQUENCE * WIDTH // TENSOR  # scores, and their product with the values
HEAD = 2 * TOKENS * WIDTH * VOCABULARY


@cache
def facts(variant: str) -> TraceFacts:
    return analyse(EXAMPLE / variant)


def module(variant: str) -> HloModule:
    level = facts(variant).l2
    assert level is not None
    (found,) = level.hlo
    return found


def finding(code: str, variant: str) -> Finding:
    rule = find_rule(code)
    (found,) = rule.check(facts(variant), rule)
    return found


def test_the_set_is_complete() -> None:
    mine = [f"{variant}/step.{kind}.gz" for variant in VARIANTS for kind in ("hlo.txt", "xplane.pb")]
    assert sorted([*mine, "viewer/plain.trace.json.gz"]) == RECORDED


@pytest.mark.parametrize("name", RECORDED)
def test_nothing_names_a_machine(name: str) -> None:
    content = gzip.decompress((EXAMPLE / name).read_bytes())
    assert re.search(rb"(?<![\w.)\]])/(home|root|tmp|usr|opt|work|var|Users|mnt)/|[A-Z]:\\", content) is None
    assert set(re.findall(rb"[\w./\\-]*\.py\b", content)) <= {b"record_jax.py"}
    assert (EXAMPLE / name).read_bytes()[3:8] == bytes(5)  # gzip without a file name or time
    if name.endswith(".pb.gz"):  # planes only: the field beside them holds host names
        assert {field.number for field in wire.fields(content, 0, len(content))} == {1}


@pytest.mark.parametrize("variant", VARIANTS)
def test_steps_and_device_work(variant: str) -> None:
    ranks = facts(variant).l0
    assert [rank.label for rank in ranks] == [f"rank{i}" for i in range(DEVICES)]
    for rank in ranks:
        assert (rank.steps.source, rank.steps.status) == ("markers", ("steady",) * STEPS)
        assert rank.steps.number.tolist() == list(range(STEPS))
        assert (rank.compute > 0).all()
        assert (rank.comm > 0).all()
        assert (np.sum([rank.column(name) for name in BUCKETS], axis=0) == rank.span).all()
        assert (rank.unclassified == 0).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_step_has_the_collectives_of_the_compiled_module(variant: str) -> None:
    run = facts(variant).run
    assert run is not None
    expected = Counter({c.instruction.name: c.runs * STEPS for c in collectives(module(variant))})
    for events in run:
        mine = events.on_device & (events.kind == Kind.COMM)
        assert Counter(events.name_of(row) for row in np.flatnonzero(mine).tolist()) == expected
        assert (events.category[mine] == Category.KERNEL).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_calls_are_matched_within_their_groups(variant: str) -> None:
    level = facts(variant).l1
    assert level is not None
    assert level.matched
    assert level.unmatched.sum() == 0
    for at, row in enumerate(level.rows):
        calls = level.instances.match[level.instances.row == at]
        assert set(np.unique(calls, return_counts=True)[1].tolist()) == {row.key.group_size}
        tensor = {(i, i + 1) for i in range(0, DEVICES, TENSOR)}
        data = {tuple(range(i, DEVICES, TENSOR)) for i in range(TENSOR)}
        assert set(row.groups) == (tensor if row.key.group_size == TENSOR else data)


@pytest.mark.parametrize("variant", VARIANTS)
def test_devices_of_one_file_share_its_clock(variant: str) -> None:
    run = facts(variant).run
    assert run is not None
    assert run.offset_ns == (0,) * DEVICES
    assert run.spread_ns == 0


def test_the_trace_viewers_file_tells_the_same() -> None:
    viewed = l0.run_buckets(read_run(EXAMPLE / "viewer"))
    for rank, other in zip(facts("plain").l0, viewed, strict=True):
        for name in ("span", "compute", "exposed_comm", "idle"):
            assert rank.column(name).tolist() == other.column(name).tolist()


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_dump_is_whole(variant: str) -> None:
    found = module(variant)
    assert (found.name, found.scheduled, found.partitions, found.lost) == ("jit_step", True, DEVICES, ())
    lines = gzip.decompress((EXAMPLE / variant / "step.hlo.txt.gz").read_bytes()).decode().splitlines()
    assert sum(1 for _ in found) == sum(line.startswith("  ") and " = " in line for line in lines)
    assert {c.group for c in collectives(found)} <= {TENSOR, DATA}


def test_a_dump_that_was_cut_off_is_read_up_to_the_cut(tmp_path: Path) -> None:
    cut = tmp_path / "step.hlo.txt.gz"
    content = (EXAMPLE / "plain" / "step.hlo.txt.gz").read_bytes()
    cut.write_bytes(content[: len(content) // 2])
    found = hlo.read(cut)
    assert 0 < sum(1 for _ in found) < sum(1 for _ in module("plain"))
    assert any("cut off" in loss.what for loss in found.lost)


def test_flops_of_the_forward_pass() -> None:
    forward = LAYERS * (QKV + OUT + UP + DOWN + ATTENTION) + HEAD
    for variant in ("plain", "remat"):
        assert totals(module(variant)).forward_flops == forward
    assert totals(module("plain")).flops == 3 * forward


def test_remat_is_found_where_it_is() -> None:
    again = LAYERS * (QKV + OUT + UP + ATTENTION)  # the last matmul of a layer is not needed again
    assert totals(module("remat")).recomputed_flops == again
    found = finding("T212", "remat")
    assert found.verdict is Verdict.WARN
    assert found.value is not None
    assert float(found.value.value) == pytest.approx(100 * again / totals(module("remat")).forward_flops)
    for variant in ("plain", "resharded"):
        assert finding("T212", variant).verdict is Verdict.PASS
        assert not any(item.rematted for item in module(variant))


def test_the_difference_names_what_is_rematerialized() -> None:
    found = difference(module("plain"), module("remat"))
    assert found.recomputed_flops == (0, totals(module("remat")).recomputed_flops)
    dots = Counter({change.op_name.split("checkpoint/")[1]: change.after for change in found.rematted
                    if change.opcode == "dot"})  # fmt: skip
    scores, values = (f"attention/vmap({how})/dot_general" for how in ("BTNH,BSNH->BNTS", "BNTS,BSNH->BTNH"))
    once_a_layer = {scores: LAYERS, values: LAYERS, "mlp/dot_general": LAYERS}
    assert dots == once_a_layer | {"attention/dot_general": 2 * LAYERS}
    assert found.kept == ()
    assert difference(module("plain"), module("plain")).rematted == ()


def test_the_resharding_is_found_where_it_is() -> None:
    for variant in ("plain", "remat"):
        assert not any(c.kind == "all_gather" for c in collectives(module(variant)))
        assert finding("T210", variant).verdict is Verdict.PASS
    assert finding("T210", "resharded").verdict is Verdict.WARN
    found = reshardings(module("resharded"))
    hidden = [item.collective for item in found if item.collective.instruction.shapes[0].dims[-1] == HIDDEN]
    assert len(hidden) == LAYERS  # the activation before the down projection
    for item in hidden:
        assert (item.kind, item.group, item.size_bytes) == ("all_gather", TENSOR, TOKENS * HIDDEN * 4)
        assert item.instruction.op_name == "jit(step)/jvp(mlp)/dot_general"
    assert {item.reason for item in found} == {
        "an activation gathered along the dimension that the next matmul contracts"
    }


def test_only_in_the_trace_of_the_mis_sharded_step_something_is_gathered() -> None:
    for variant in VARIANTS:
        level = facts(variant).l1
        assert level is not None
        assert all(row.key.size is not None and row.key.dtype == "fp32" for row in level.rows)
        kinds = {row.key.kind for row in level.rows}
        assert kinds == ({"all_reduce", "all_gather"} if variant == "resharded" else {"all_reduce"})
