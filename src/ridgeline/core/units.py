"""Units of the field, over pint, with our own small registry.

Physical dimensions: second, byte, joule, dollar. Counting dimensions: FLOP, token, chip, request.
``param`` is one FLOP per token: a weight multiplies once per token, which is what makes ``6*N*D`` a FLOP count.

The check that `derive` makes, in one place (`same`):
physical dimensions must agree; counting dimensions must agree too, except that a formula whose result
carries none may *name* what it counted (``layers*d_model`` declared ``param``).
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ridgeline.core.errors import InputError

if TYPE_CHECKING:
    from pint import UnitRegistry

Dims = Mapping[str, float]
COUNTING = frozenset({"[compute]", "[tokens]", "[chips]", "[requests]"})

_DEFINITIONS = """
k- = 1e3
M- = 1e6
G- = 1e9
T- = 1e12
P- = 1e15
E- = 1e18
m- = 1e-3
u- = 1e-6
n- = 1e-9
p- = 1e-12
Ki- = 1024
Mi- = 1048576
Gi- = 1073741824
Ti- = 1099511627776
second = [time] = s
minute = 60 s = min
hour = 3600 s = h
day = 86400 s
year = 365.25 day
byte = [data] = B
bit = 0.125 byte
joule = [energy] = J
watt = joule / second = W
watt_hour = 3600 joule = Wh
dollar = [money] = USD
FLOP = [compute]
token = [tokens]
chip = [chips]
request = [requests]
param = FLOP / token
nat = []
percent = 0.01
point = 0.01
""".strip().splitlines()


@lru_cache(maxsize=1)
def _registry() -> "UnitRegistry[Any]":
    from pint import UnitRegistry  # 0.1 s: loaded on the first unit, not with the package

    registry: UnitRegistry[Any] = UnitRegistry(None)
    registry.load_definitions(_DEFINITIONS)
    return registry


@lru_cache(maxsize=1024)
def parse(unit: str) -> tuple[float, dict[str, float]]:
    """A unit text as (factor to base units, dimensions). ``"1"`` is a plain number, ``"%"`` a percent,
    ``"point"`` a percentage point: what two percents differ by.
    """
    text = unit.replace("%", "percent")
    if text in ("", "1"):
        return 1, {}
    try:
        quantity = _registry().parse_expression(text).to_base_units()
    except Exception as error:  # pint raises several unrelated kinds for a malformed unit
        raise InputError.expected("a unit such as FLOP/s, GB or token", unit, where="unit") from error
    factor = float(quantity.magnitude)
    return (int(factor) if factor.is_integer() else factor), {
        str(dim): float(power)  # type: ignore[arg-type]  # pint types a power as any number; ours are real
        for dim, power in quantity.dimensionality.items()
    }


def same(result: Dims, declared: Dims) -> bool:
    """Whether a formula of dimensions ``result`` may be declared as ``declared``."""
    if result == declared:
        return True
    if any(dim in COUNTING for dim in result):
        return False
    return dict(result) == {dim: power for dim, power in declared.items() if dim not in COUNTING}


def spell(dims: Dims) -> str:
    """Dimensions in words for an error message."""
    return " ".join(f"{dim}^{power:g}" if power != 1 else dim for dim, power in sorted(dims.items())) or "a number"
