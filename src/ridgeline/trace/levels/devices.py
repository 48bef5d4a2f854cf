"""What samples of the devices say about each: its clock under load against the others', what held it back, its links.

Loaded samples are those with the SMs at least half busy. The reference clock is the highest 95th percentile that any
device of the job reaches under load. Reasons for a low clock come from the driver's own flags where they were sampled
(violations, or the bits of NVML's clock event reasons), else from power at its limit or heat above the others'.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ridgeline.trace.events import Mask
from ridgeline.trace.levels.periodic import Floats
from ridgeline.trace.logs import DeviceSamples

LOADED_PCT = 50.0
LOW_CLOCK = 0.97  # of the reference: below it a sample counts as held back
AT_LIMIT = 0.98  # of the power limit
HOTTER_C = 5.0  # than the median device, for heat to be suspected
LEAST_SAMPLES = 5
SLOW_LINK = 0.7  # of the median rate of the host's devices
# Bits of nvmlClocksEventReasons, after the NVML reference.
POWER_BITS = 0x4 | 0x80  # software power cap, power brake
THERMAL_BITS = 0x20 | 0x40  # software and hardware thermal slowdown
ERRORS = ("dbe_errors", "sbe_errors", "pcie_errors", "nvlink_flit_errors", "nvlink_data_errors",
          "nvlink_replay_errors", "nvlink_recovery_errors")  # fmt: skip
LINKS = ("nvlink_rx_mb_s", "nvlink_tx_mb_s", "pcie_rx_mb_s", "pcie_tx_mb_s")


@dataclass(frozen=True)
class DeviceState:
    """One device. Shares are of its loaded samples; None where the file does not say.

    ``clock_mhz``: mean SM clock under load; ``clock_ratio``: that over the reference; ``low_clock``: share of samples
    below `LOW_CLOCK`. ``thermal``, ``power``: share of samples that were held back by heat or by the power limit, and
    ``reported`` whether the driver said so. ``links``: mean MB/s under load; ``errors``: counted during the samples;
    ``slow_link``: the link that moves least against the median of the host, and its share of it, where that is below
    `SLOW_LINK`.
    """

    host: int
    gpu: int
    samples: int
    clock_mhz: float | None = None
    clock_ratio: float | None = None
    low_clock: float | None = None
    thermal: float | None = None
    power: float | None = None
    reported: bool = False
    temp_c: float | None = None
    power_w: float | None = None
    links: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    slow_link: tuple[str, float] | None = None


def device_states(hosts: Sequence[DeviceSamples], power_limit_w: float | None = None) -> tuple[DeviceState, ...]:
    """Every device of every host, in order. ``power_limit_w`` is used where the samples hold no limit."""
    rows = [(h, int(gpu)) for h, samples in enumerate(hosts) for gpu in np.unique(samples.gpu)]
    loaded = {key: _loaded(hosts[key[0]], hosts[key[0]].gpu == key[1]) for key in rows}
    clocks = {key: hosts[key[0]].of("sm_clock_mhz", mask) for key, mask in loaded.items()}
    temps = {key: _mean(hosts[key[0]].of("temp_c", mask)) for key, mask in loaded.items()}
    tops = [float(np.quantile(values, 0.95)) for values in clocks.values() if len(values) >= LEAST_SAMPLES]
    known = [t for t in temps.values() if t is not None]
    around = _Around(max(tops, default=0.0), float(np.median(known)) if known else None, power_limit_w)
    states = [_state(hosts[key[0]], key, loaded[key], clocks[key], around) for key in rows]
    return tuple(replace(state, slow_link=_slow_link(state, states)) for state in states)


def _slow_link(device: DeviceState, devices: Sequence[DeviceState]) -> tuple[str, float] | None:
    found = {}
    for name, rate in device.links.items():
        rates = [d.links[name] for d in devices if d.host == device.host and name in d.links]
        middle = float(np.median(rates))
        if len(rates) > 2 and rate < SLOW_LINK * middle:
            found[name] = rate / middle
    return min(found.items(), key=lambda item: item[1], default=None)


@dataclass(frozen=True)
class _Around:
    """What a device is compared with: the reference clock, the median temperature, and the power limit."""

    clock_mhz: float
    temp_c: float | None
    limit_w: float | None


def _loaded(samples: DeviceSamples, own: Mask) -> Mask:
    if "sm_pct" in samples.values:
        busy = samples.values["sm_pct"] >= LOADED_PCT
    elif "sm_active" in samples.values:
        busy = samples.values["sm_active"] >= LOADED_PCT / 100
    else:
        return own
    return own & busy if (own & busy).any() else own


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _state(samples: DeviceSamples, key: tuple[int, int], loaded: Mask, clocks: Floats, around: _Around) -> DeviceState:
    own = samples.gpu == key[1]
    ratio = low = None
    if len(clocks) >= LEAST_SAMPLES and around.clock_mhz:
        ratio = float(clocks.mean()) / around.clock_mhz
        low = float((clocks < LOW_CLOCK * around.clock_mhz).mean())
    thermal, power, reported = _reasons(samples, own, loaded)
    temp, limit = _mean(samples.of("temp_c", loaded)), _mean(samples.of("power_limit_w", loaded)) or around.limit_w
    watts = samples.of("power_w", loaded)
    if power is None and limit and len(watts) >= LEAST_SAMPLES:
        power = float((watts >= AT_LIMIT * limit).mean())
    if thermal is None and low is not None and temp is not None and around.temp_c is not None:
        held_by_heat = temp >= around.temp_c + HOTTER_C and not power
        thermal = low if held_by_heat else 0.0
    return DeviceState(
        key[0], key[1], int(loaded.sum()), _mean(clocks), ratio, low, thermal, power, reported, temp, _mean(watts),
        {name: float(v.mean()) for name in LINKS if len(v := samples.of(name, loaded))},
        {name: grown for name in ERRORS if (grown := _grown(samples.of(name, own))) > 0}
        | {f"xid {int(v)}": 1.0 for v in np.unique(samples.of("xid", own)) if v > 0},
    )  # fmt: skip


def _reasons(samples: DeviceSamples, own: Mask, loaded: Mask) -> tuple[float | None, float | None, bool]:
    """Shares of samples held back by heat and by power as the driver reports them, and whether it did."""
    bits = samples.of("clock_reasons", loaded).astype(np.int64)
    if len(bits):
        return float(((bits & THERMAL_BITS) != 0).mean()), float(((bits & POWER_BITS) != 0).mean()), True
    thermal = _share(samples.of("thermal_violation", loaded), samples.of("thermal_violation_total", own))
    power = _share(samples.of("power_violation_pct", loaded), samples.of("power_violation_total", own))
    return thermal, power, thermal is not None or power is not None


def _share(flags: Floats, total: Floats) -> float | None:
    """Share of loaded samples with a violation; from a counter, the share of samples between which it grew."""
    if len(flags):
        return float((flags > 0).mean())
    return float((np.diff(total) > 0).mean()) if len(total) >= LEAST_SAMPLES else None


def _grown(counter: Floats) -> float:
    """How much a counter grew; a single sample, or a counter that fell (a reset), counts what it shows."""
    if not len(counter):
        return 0.0
    return float(np.maximum(np.diff(counter), 0).sum()) if len(counter) > 1 else float(counter[0])
