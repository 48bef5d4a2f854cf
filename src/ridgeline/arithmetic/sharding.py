"""How a training job is spread over chips, and in which precisions it keeps its state."""

from dataclasses import dataclass, fields
from typing import Literal

from ridgeline.core.catalog import constant, constants
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.quantity import Quantity, derive, given

Optimizer = Literal["adam", "adam-8bit", "sgd-momentum", "adafactor", "muon"]


@dataclass(frozen=True)
class Sharding:
    """Sizes of the parallel groups, plain counts or arrays of candidates; ``plan.*`` in a Case.

    ``zero`` is the ZeRO stage (FSDP with full sharding is 3). ``dp`` counts data-parallel replicas, ``ep`` divides
    ``dp*cp``. ``sequence_parallel`` is 1 where the norms and dropouts are split over ``tp`` too. ``chunks`` is the
    number of model chunks per pipeline stage (interleaved schedule), ``micro_batches`` how many one step has.
    """

    zero: Quantity
    dp: Quantity
    tp: Quantity
    pp: Quantity
    ep: Quantity
    cp: Quantity
    sequence_parallel: Quantity
    chunks: Quantity
    micro_batches: Quantity

    @classmethod
    def of(cls, **sizes: int) -> "Sharding":
        """From plain integers; what is not named is 1 (``zero`` and ``sequence_parallel``: 0).

        ``micro_batches`` defaults to ``pp``, a full pipeline. Raises `InputError` for a size below one, an unknown
        name, a ZeRO stage above 3, or ``ep`` that does not divide ``dp*cp``.
        """
        names = [field.name for field in fields(cls)]
        for name in sizes:
            if name not in names:
                raise InputError.expected("a parallel size", name, where="plan", hint=did_you_mean(name, names))
        lowest = {"zero": 0, "sequence_parallel": 0}
        values = {name: sizes.get(name, lowest.get(name, 1)) for name in names}
        values["micro_batches"] = sizes.get("micro_batches", values["pp"])
        for name, value in values.items():
            if value < lowest.get(name, 1):
                raise InputError.expected(f"at least {lowest.get(name, 1)}", value, where=f"plan.{name}")
        if values["zero"] > 3:
            raise InputError.expected("a ZeRO stage from 0 to 3", values["zero"], where="plan.zero")
        if values["dp"] * values["cp"] % values["ep"]:
            text = f"a divisor of dp*cp ({values['dp'] * values['cp']})"
            raise InputError.expected(text, values["ep"], where="plan.ep")
        return cls(**{name: given(f"plan.{name}", value, "1") for name, value in values.items()})

    def seq_split(self) -> Quantity:
        """By how much activations of residual width are split over the tensor-parallel group."""
        inputs = {"sp": self.sequence_parallel, "tp": self.tp}
        return derive("plan.sequence_split", "where(sp > 0, tp, 1)", "1", **inputs)


@dataclass(frozen=True)
class Precision:
    """Element types of the training state. ``master`` empty: the optimizer updates the weights themselves."""

    weights: str = "bf16"
    gradients: str = "bf16"
    master: str = "fp32"
    states: str = "fp32"


MIXED = Precision()  # 16 B per parameter with Adam
MIXED_FP32_GRADS = Precision(gradients="fp32")  # 18 B, as Megatron-LM accumulates
FP32 = Precision("fp32", "fp32", "", "fp32")
PURE_BF16 = Precision("bf16", "bf16", "", "bf16")
FP8_STATES = Precision(states="fp8")
INT8_STATES = Precision(states="int8")


def dtype_bytes(dtype: str) -> Quantity:
    """Bytes of one element. Raises `InputError` for an unknown type."""
    known = [name.removeprefix("dtypes.") for name in constants("dtypes") if name.count(".") == 1]
    if dtype not in known:
        raise InputError.expected("a known element type", dtype, where="dtype", hint=did_you_mean(dtype, known))
    return constant(f"dtypes.{dtype}")


def state_bytes(dtype: str) -> Quantity:
    """Bytes of one element of an optimizer state: its type, and the scales of its blocks where it has them."""
    scale = constant(f"dtypes.scale.{dtype}", missing_ok=True)
    if scale is None:
        return dtype_bytes(dtype)
    return derive(f"dtypes.{dtype}_state", "element + scale", "B", element=dtype_bytes(dtype), scale=scale)


def states_dtype(optimizer: str, precision: Precision) -> str:
    """The element type of the optimizer's states: 8-bit Adam brings its own."""
    return "int8" if optimizer == "adam-8bit" else precision.states


def state_elements(optimizer: str) -> dict[str, Quantity]:
    """State elements per parameter by kind of parameter (matrix, table, vector), or per row and column (factored)."""
    known = sorted({name.split(".")[1] for name in constants("optimizers")})
    if optimizer not in known:
        hint = did_you_mean(optimizer, known, "known: " + ", ".join(known))
        raise InputError.expected("a known optimizer", optimizer, where="optimizer", hint=hint)
    prefix = f"optimizers.{optimizer}."
    return {name.removeprefix(prefix): q for name, (q, _) in constants("optimizers").items() if name.startswith(prefix)}
