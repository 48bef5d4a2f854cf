"""Embedding tables sharded in two dimensions, beside a dense trunk: what a chip holds, reads and exchanges.

Tables are sharded table-wise over ``groups`` of chips, row-wise over the ``rows`` chips of a group (best inside a
scale-up domain, across domains where a table is too large for one); ``replicas`` copies of everything train on their
own samples and exchange the gradients of the rows that they touched.

Per step a chip sends the ids of its samples to the owners of their tables; the owners of a table add up their partial
sums (reduce-scatter inside the group); pooled vectors travel to the samples (all-to-all), and their gradients back.
Sources: Naumov et al. 2019 (arXiv:1906.00091) for tables beside a dense network; Mudigere et al. 2021
(arXiv:2104.05158) for table-wise and row-wise sharding and their exchanges; Zhang et al. 2025 (arXiv:2508.03854) for
two-dimensional sharding with replicas. Every group is taken as perfectly balanced but for its largest table, rows are
read at the memory's full bandwidth, and no row of a replica's samples is read twice: bounds on both sides.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ridgeline.arithmetic.collectives import Collective, Switch, collective
from ridgeline.arithmetic.inputs import known
from ridgeline.arithmetic.shape import Shape
from ridgeline.arithmetic.sharding import dtype_bytes
from ridgeline.core import parse
from ridgeline.core.case import InputFile
from ridgeline.core.catalog import constant
from ridgeline.core.errors import InputError, located
from ridgeline.core.quantity import Quantity, derive, given
from ridgeline.core.specs import Spec, build, read_toml
from ridgeline.plan.layouts.space import divisors
from ridgeline.plan.steps import cluster as clusters
from ridgeline.plan.steps import fits
from ridgeline.plan.steps.cluster import Cluster

Positive = Annotated[int, Field(gt=0)]


class Tables(Spec):
    """``rows`` over all ``tables``, such as 1.2T; ``largest_rows`` of the largest one. A row has ``dim`` elements.

    ``state_bytes`` of optimizer state a row (row-wise Adagrad: one fp32). A sample reads ``lookups`` rows of each
    table, pooled into one vector.
    """

    rows: str
    tables: Positive
    largest_rows: str
    dim: Positive
    dtype: str = "fp16"
    state_bytes: float = Field(4.0, ge=0)
    id_bytes: float = Field(8.0, gt=0)
    lookups: float = Field(gt=0)


class Study(Spec):
    """One job: ``chips`` such as 2048xB200, ``samples`` of a step over all chips, ``history`` tokens of a sample."""

    name: str = "recommender"
    chips: str
    network: str = ""
    samples: Positive
    history: Positive
    tables: Tables
    trunk: Shape

    @cached_property
    def cluster(self) -> Cluster:
        """The machine. Raises as `cluster.cluster` does."""
        count, name = parse.chips(self.chips, where="$.chips")
        return clusters.cluster(count, name, network=self.network)


@dataclass(frozen=True)
class Split:
    """How tables lie on ``chips``: ``groups`` table-wise, each of ``rows`` chips row-wise, ``replicas`` times."""

    chips: int
    groups: int
    rows: int
    replicas: int

    def __str__(self) -> str:
        copies = f" x {self.replicas} replicas" if self.replicas > 1 else ""
        return f"{self.groups} groups table-wise x {self.rows} chips row-wise{copies}"


@dataclass(frozen=True)
class Sparse:
    """The tables under one split. ``held`` (B) a chip, ``lookup`` (s) its memory's time, the exchanges (s), bytes sent.

    ``ids`` travel to the owners, ``partial`` sums inside a group both ways, ``pooled`` vectors both ways, ``touched``
    rows' gradients between replicas.
    """

    split: Split
    held: Quantity
    lookup: Quantity
    ids: Quantity
    partial: Quantity
    pooled: Quantity
    touched: Quantity
    exchange: Quantity
    sent: Quantity


def read_study(path: str | Path) -> tuple[Study, InputFile]:
    """A study from a TOML file, or its folder. Raises `InputError` with the place of the first fault."""
    file = Path(path) / "study.toml" if Path(path).is_dir() else Path(path)
    data = read_toml(file, what="study file")
    with located(str(file)):
        return build(Study, data), InputFile.of(file)


def tables_on(study: Study, split: Split, prefix: str = "") -> Sparse:
    """The tables of a study under one split, for worked pages and tests."""
    return sparse_of(Facts.of(study), split, prefix or "recommender")


@dataclass(frozen=True)
class Facts:
    """A study as quantities: sizes (1), bytes of an element, a row, an id; links (B/s/chip)."""

    study: Study
    sizes: dict[str, Quantity]
    row: Quantity
    total: Quantity
    largest: Quantity
    hbm: Quantity
    port: Quantity
    link: Quantity
    far: Quantity
    near: Quantity

    @classmethod
    def of(cls, study: Study) -> "Facts":
        """Raises `InputError` for numbers that cannot be read, or a largest table that does not fit among the rest."""
        tables, machine = study.tables, study.cluster
        rows = parse.count(tables.rows, where="$.tables.rows", what="rows")
        largest = parse.count(tables.largest_rows, where="$.tables.largest_rows", what="rows")
        if largest > rows or largest * tables.tables < rows:
            text = f"between {rows / tables.tables:.3g} and {rows:.3g} rows in the largest of {tables.tables} tables"
            raise InputError.expected(text, tables.largest_rows, where="$.tables.largest_rows")
        numbers = {"rows": rows, "largest": largest, "tables": tables.tables, "dim": tables.dim,
                   "lookups": tables.lookups, "samples": study.samples}  # fmt: skip
        sizes = {name: given(f"recommender.{name}", float(value), "1") for name, value in numbers.items()}
        sizes["element"], sizes["id"] = dtype_bytes(tables.dtype), given("recommender.id", tables.id_bytes, "B")
        sizes["act"] = dtype_bytes("bf16")
        sizes["state"] = given("recommender.state", tables.state_bytes, "B")
        row_inputs = {name: sizes[name] for name in ("dim", "element", "state")}
        row = derive("recommender.row", "dim*element + state", "B", **row_inputs)
        total = derive("recommender.tables_total", "rows*row", "B", rows=sizes["rows"], row=row)
        big = derive("recommender.largest_table", "largest*row", "B", largest=sizes["largest"], row=row)
        share = constant("kernels.network.efficiency")
        near = machine.device.scale_up.bandwidth if machine.device.scale_up else constant(f"links.{machine.network}")
        wire = constant(f"links.{machine.network}")
        return cls(
            study,
            sizes,
            row,
            total.titled("All tables with their optimizer state"),
            big.titled("The largest table"),
            known(machine.device.hbm_bandwidth, f"the memory bandwidth of {machine.device.name}"),
            derive("recommender.port", "wire*share", "B/s/chip", wire=wire, share=share),
            derive("recommender.link", "wire*share", "B/s/chip", wire=near, share=share),
            constant("links.latency.scale_out"),
            constant("links.latency.scale_up"),
        )

    @property
    def memory_bytes(self) -> float:
        """Of one chip."""
        return fits.capacity_bytes(self.study.cluster)

    def pick(self, *names: str) -> dict[str, Quantity]:
        """Some sizes by name."""
        return {name: self.sizes[name] for name in names}


def sparse_of(facts: Facts, split: Split, prefix: str) -> Sparse:
    """The tables under one split; names begin with ``prefix``."""
    sides = {name: given(f"{prefix}.split.{name}", float(getattr(split, name)), "1")
             for name in ("groups", "rows", "replicas", "chips")}  # fmt: skip
    held = derive(
        f"{prefix}.held", "max(total/groups, largest)/row_chips", "B",
        total=facts.total, groups=sides["groups"], largest=facts.largest, row_chips=sides["rows"],
    )  # fmt: skip
    reads = derive(
        f"{prefix}.reads", "samples*tables*lookups/chips", "1",
        **facts.pick("samples", "tables", "lookups"), chips=sides["chips"],
    )  # fmt: skip
    moved = derive(f"{prefix}.moved", "reads*(3*dim*element + 2*state)", "B/chip", reads=reads,
                   **facts.pick("dim", "element", "state"))  # fmt: skip
    lookup = derive(f"{prefix}.lookup", "moved/hbm", "s", moved=moved, hbm=facts.hbm)
    sizes = {
        "ids": derive(f"{prefix}.ids.size", "reads*id", "B", reads=reads, id=facts.sizes["id"]),
        "partial": derive(f"{prefix}.partial.size", "samples*tables*dim*act/(replicas*groups)", "B",
                          **facts.pick("samples", "tables", "dim", "act"), **_two(sides, "replicas", "groups")),
        "pooled": derive(f"{prefix}.pooled.size", "samples*tables*dim*act/chips", "B",
                         **facts.pick("samples", "tables", "dim", "act"), chips=sides["chips"]),
        "touched": derive(f"{prefix}.touched.size", "replicas*reads*(dim*element + id)", "B", reads=reads,
                          replicas=sides["replicas"], **facts.pick("dim", "element", "id")),
    }  # fmt: skip
    wires = {name: _wire(facts, f"{prefix}.{name}", name, size, split) for name, size in sizes.items()}
    times = {name: wire[0] for name, wire in wires.items()}
    exchange = derive(f"{prefix}.exchange", "ids + 2*partial + 2*pooled + touched", "s", **times)
    bytes_ = {name: wire[1] for name, wire in wires.items()}
    sent = derive(f"{prefix}.sent", "ids + 2*partial + 2*pooled + touched", "B/chip", **bytes_)
    return Sparse(
        split,
        held.titled("Tables on a chip"),
        lookup.titled("Random reads and updates of rows"),
        **times,
        exchange=exchange.titled("Exchanges of the tables"),
        sent=sent.titled("Bytes that a chip sends for the tables"),
    )


def _two(sides: dict[str, Quantity], *names: str) -> dict[str, Quantity]:
    return {name: sides[name] for name in names}


def _wire(facts: Facts, name: str, what: str, size: Quantity, split: Split) -> tuple[Quantity, Quantity]:
    """Seconds and bytes sent of one exchange, on the network where its members span scale-up domains."""
    members = {"ids": split.groups * split.rows, "partial": split.rows, "pooled": split.groups,
               "touched": split.replicas}[what]  # fmt: skip
    span = split.rows if what == "partial" else split.groups * split.rows * (split.replicas if what == "touched" else 1)
    inside = span <= facts.study.cluster.node_size
    kind: Collective = {"partial": "reduce_scatter", "touched": "all_gather"}.get(what, "all_to_all")  # type: ignore[assignment]
    fabric = Switch(
        given(f"{name}.members", members, "chip"),
        facts.link if inside else facts.port,
        facts.near if inside else facts.far,
    )
    found = collective(kind, size, fabric, name)
    if kind == "all_to_all":  # pairwise messages leave together: one latency, not one for every member
        waits = fabric.latency if members > 1 else given(f"{name}.alone", 0.0, "s")
        return derive(f"{name}.time", "transfer + latency", "s", transfer=found.transfer, latency=waits), found.sent
    return found.total, found.sent


def splits(facts: Facts, chips: int) -> Iterator[Split]:
    """Every split of that many chips; row-wise groups fill scale-up domains or parts of one evenly."""
    node = facts.study.cluster.node_size
    for rows in divisors(chips):
        for replicas in divisors(chips // rows) if rows % node == 0 or node % rows == 0 else ():
            groups = chips // rows // replicas
            if groups <= facts.study.tables.tables:
                yield Split(chips, groups, rows, replicas)
