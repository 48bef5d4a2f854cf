"""Questions for the tests of the co-design, on grids small enough to try every candidate."""

from functools import lru_cache
from typing import Any

from ridgeline.serve.codesign.facts import Designed, codesign
from ridgeline.serve.codesign.need import Need, asked_of, need_of

SMALL: dict[str, Any] = {
    "widest": 6144, "narrowest": 3072, "aspects": [96, 128], "kv_heads": [2, 8], "mixtures": [[8, 2]],
}  # fmt: skip
TURN = {"turn": "1s", "prompt": "8k", "output": 128}
LIMITS: dict[str, Any] = {"ttft": "500ms", "tpot": "15ms"}


def need(axes: dict[str, Any] | None = None, **keys: Any) -> Need:
    """A turn of one second on four H100 unless keys say otherwise."""
    limits = {} if {"turn", "ttft", "tpot", "ceiling"} & set(keys) else TURN
    base = {"compute": 1e24, "device": "H100", "chips": 4, "axes": SMALL | (axes or {})}
    return need_of(asked_of(base | limits | keys, "the test"), where="the test")


@lru_cache
def turn() -> Designed:
    """The answer to the plain question."""
    return codesign(need())


@lru_cache
def limits() -> Designed:
    """TTFT, TPOT and a ceiling on the price."""
    return codesign(need(**LIMITS, ceiling=3.0))


@lru_cache
def none() -> Designed:
    """Limits that nothing keeps."""
    return codesign(need(tpot="0.1ms"))
