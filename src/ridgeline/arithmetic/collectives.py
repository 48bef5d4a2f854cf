"""Volumes and alpha-beta times of collectives on a ring, a torus or a switch.

A time is *steps times latency* (alpha) plus *bytes over the busiest link over its bandwidth* (beta). Times are for
bandwidth-optimal algorithms with the links to themselves: lower bounds. Sizes:

all-gather      the gathered array            all-reduce      the array, as large before as after
reduce-scatter  the array before scattering   all-to-all      what one chip holds before (and after)
point-to-point  the message

Sources: Chan et al., "Collective communication: theory, practice, and experience", 2007; Thakur et al., 2005; the
bisection argument for all-to-all on a torus.
"""

from dataclasses import dataclass
from typing import Literal

from ridgeline.arithmetic.inputs import require_at_least, require_not_negative, require_positive, under
from ridgeline.core import formula as formulas
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import Quantity, derive

Collective = Literal["all_gather", "reduce_scatter", "all_reduce", "all_to_all", "point_to_point"]

# Bytes that each chip sends in all.
_SENT: dict[str, str] = {
    "all_gather": "size*(count(chips) - 1)/count(chips)",
    "reduce_scatter": "size*(count(chips) - 1)/count(chips)",
    "all_reduce": "2*size*(count(chips) - 1)/count(chips)",
    "all_to_all": "size*(count(chips) - 1)/count(chips)",
    "point_to_point": "size",
}
_SWITCH_STEPS = {
    "all_gather": "count(chips) - 1",
    "reduce_scatter": "count(chips) - 1",
    "all_reduce": "2*(count(chips) - 1)",
    "all_to_all": "count(chips) - 1",
    "point_to_point": "1",
}
_TORUS_STEPS = {
    "all_gather": "axes*ceil((side - 1)/directions)",
    "reduce_scatter": "axes*ceil((side - 1)/directions)",
    "all_reduce": "2*axes*ceil((side - 1)/directions)",
    "all_to_all": "axes*ceil((side - 1)/directions)",
    "point_to_point": "1",
}
# Mean hops along one axis, over the directions: what an all-to-all puts on each link per byte that a chip holds.
_AXIS_LOAD = "size*where(directions == 1, (side - 1)/2, floor(side*side/4)/(2*side))"


@dataclass(frozen=True)
class Switch:
    """``chips`` (chip) behind a non-blocking switch: ``bandwidth`` out of a chip (B/s/chip), ``latency`` a message (s).

    An all-gather, reduce-scatter or all-reduce runs as a ring over the switch, an all-to-all as pairwise exchanges.
    """

    chips: Quantity
    bandwidth: Quantity
    latency: Quantity


@dataclass(frozen=True)
class Torus:
    """``side ** axes`` chips with wrap-around links; one axis is a ring. ``side`` and ``axes`` are plain counts.

    ``bandwidth`` of one link in one direction (B/s/chip), ``latency`` of a hop (s), ``directions`` 1 or 2: how many
    ways a chip sends along an axis at once. The catalog's ``link.bandwidth`` is the sum over a chip's links: use
    ``per_link``, or divide by their number.
    """

    side: Quantity
    axes: Quantity
    directions: Quantity
    bandwidth: Quantity
    latency: Quantity


@dataclass(frozen=True)
class Communication:
    """``sent`` (B/chip), ``transfer`` and ``latency`` parts of the time, and their ``total`` (s)."""

    sent: Quantity
    transfer: Quantity
    latency: Quantity
    total: Quantity


def sent(kind: Collective, size: Quantity, chips: Quantity, prefix: str = "") -> Quantity:
    """``comm.<kind>.sent`` (B/chip): the bytes each chip sends. One chip sends nothing (but in point-to-point)."""
    require_not_negative(size)
    require_at_least(chips, 1)
    inputs = {"size": size} if kind == "point_to_point" else {"size": size, "chips": chips}
    return derive(under(prefix, f"comm.{kind}.sent"), _formula(kind), "B/chip", **inputs)


def _formula(kind: str) -> str:
    if kind not in _SENT:
        raise InputError.expected(f"one of {', '.join(_SENT)}", kind, where="the collective")
    return _SENT[kind]


def collective(kind: Collective, size: Quantity, fabric: Switch | Torus, prefix: str = "") -> Communication:
    """``comm.<kind>.sent``, ``.transfer``, ``.latency`` and ``.total`` of one collective on that fabric.

    ``size`` in B as the module says. Raises `InputError` for a bandwidth that is not positive or an unknown kind.
    """
    _formula(kind)
    require_positive(fabric.bandwidth)
    require_not_negative(fabric.latency, size)
    if isinstance(fabric, Switch):
        moved, transfer, steps = _on_switch(kind, size, fabric, prefix)
    else:
        moved, transfer, steps = _on_torus(kind, size, fabric, prefix)
    latency = derive(under(prefix, f"comm.{kind}.latency"), "steps*latency", "s", steps=steps, latency=fabric.latency)
    total = derive(under(prefix, f"comm.{kind}.total"), "transfer + latency", "s", transfer=transfer, latency=latency)
    label = kind.replace("_", "-").capitalize()
    return Communication(
        moved.titled(f"{label}: bytes sent per chip"),
        transfer.titled(f"{label}: transfer"),
        latency.titled(f"{label}: latency"),
        total.titled(f"{label}: time"),
    )


def _on_switch(kind: Collective, size: Quantity, fabric: Switch, prefix: str) -> tuple[Quantity, Quantity, Quantity]:
    moved = sent(kind, size, fabric.chips, prefix)
    name = under(prefix, f"comm.{kind}")
    transfer = derive(f"{name}.transfer", "sent/bandwidth", "s", sent=moved, bandwidth=fabric.bandwidth)
    steps = _steps(f"{name}.steps", _SWITCH_STEPS[kind], {"chips": fabric.chips})
    return moved, transfer, steps


def _on_torus(kind: Collective, size: Quantity, fabric: Torus, prefix: str) -> tuple[Quantity, Quantity, Quantity]:
    require_at_least(fabric.side, 1)
    require_at_least(fabric.axes, 1)
    require_at_least(fabric.directions, 1)
    name = under(prefix, f"comm.{kind}")
    chips = derive(under(prefix, "comm.chips"), "side**axes", "chip", side=fabric.side, axes=fabric.axes)
    moved = sent(kind, size, chips, prefix)
    transfer = _torus_transfer(name, kind, size, moved, fabric)
    grid = {"axes": fabric.axes, "side": fabric.side, "directions": fabric.directions}
    return moved, transfer, _steps(f"{name}.steps", _TORUS_STEPS[kind], grid)


def _torus_transfer(name: str, kind: Collective, size: Quantity, moved: Quantity, fabric: Torus) -> Quantity:
    if kind == "point_to_point":
        return derive(f"{name}.transfer", "sent/bandwidth", "s", sent=moved, bandwidth=fabric.bandwidth)
    if kind == "all_to_all":
        grid = {"side": fabric.side, "directions": fabric.directions}
        load = derive(f"{name}.link", _AXIS_LOAD, "B/chip", size=size, **grid)
        return derive(f"{name}.transfer", "link/bandwidth", "s", link=load, bandwidth=fabric.bandwidth)
    return derive(
        f"{name}.transfer",
        "sent/(axes*directions*bandwidth)",
        "s",
        sent=moved,
        axes=fabric.axes,
        directions=fabric.directions,
        bandwidth=fabric.bandwidth,
    )


def _steps(name: str, formula: str, inputs: dict[str, Quantity]) -> Quantity:
    used = {symbol: inputs[symbol] for symbol in formulas.parse(formula).names}
    return derive(name, formula, "1", **used)


@dataclass(frozen=True)
class Dispatch:
    """A forward pass of expert layers over the network.

    ``tokens`` (token) of width ``d_model`` (plain count), ``layers`` expert layers, ``top_k`` experts a token, and
    ``element``, the B of one activation. ``messages`` a layer makes: 2, to the experts and back.
    """

    tokens: Quantity
    d_model: Quantity
    layers: Quantity
    top_k: Quantity
    element: Quantity


def expert_dispatch(work: Dispatch, bandwidth: Quantity, latency: Quantity, prefix: str = "") -> Communication:
    """``comm.experts.sent`` (B), ``.transfer``, ``.latency``, ``.total`` (s) of sending tokens to experts and back.

    Every token travels to each of its ``top_k`` experts and back in every expert layer: an upper bound on volume,
    since nothing is assumed to stay local. All of it passes one link of ``bandwidth`` (B/s), so it is the time of the
    chip (or host) that holds those tokens. ``latency`` (s) is paid twice a layer.
    """
    require_positive(work.tokens, work.d_model, work.layers, work.top_k, work.element, bandwidth)
    require_not_negative(latency)
    name = under(prefix, "comm.experts")
    moved = derive(
        f"{name}.sent",
        "2*layers*count(tokens)*top_k*d_model*element",
        "B",
        layers=work.layers,
        tokens=work.tokens,
        top_k=work.top_k,
        d_model=work.d_model,
        element=work.element,
    )
    transfer = derive(f"{name}.transfer", "sent/bandwidth", "s", sent=moved, bandwidth=bandwidth)
    waiting = derive(f"{name}.latency", "2*layers*latency", "s", layers=work.layers, latency=latency)
    total = derive(f"{name}.total", "transfer + latency", "s", transfer=transfer, latency=waiting)
    return Communication(
        moved.titled("Bytes to the experts and back"),
        transfer.titled("All-to-all transfer"),
        waiting.titled("All-to-all latency"),
        total.titled("All-to-all time"),
    )
