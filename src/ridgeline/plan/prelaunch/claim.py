"""The MFU that a team counts on: the number, where it is from, and the FLOPs it is stated in."""

import re
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator

from ridgeline.arithmetic import conventions
from ridgeline.core.errors import InputError, did_you_mean
from ridgeline.core.quantity import Quantity, given
from ridgeline.core.specs import Spec

Provenance = Literal["folklore", "roofline", "comparable", "pilot", "unknown"]
PROVENANCES: tuple[str, ...] = get_args(Provenance)
MEANING = {
    "folklore": "a number that people say, without a run behind it",
    "roofline": "a bound from the data sheet, not what a step reaches",
    "comparable": "another run, of other dimensions, plan or chips",
    "pilot": "measured on this model's own shapes at a small scale",
    "unknown": "nobody said where it is from",
}
_PERCENT = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*(%?)\s*")


def share(value: Any) -> float:
    """``50%``, ``"0.5"`` or ``0.5`` as 0.5. Raises `InputError` for what is no share above 0% and up to 100%."""
    where = "the claimed MFU"
    match = None if isinstance(value, bool) else _PERCENT.fullmatch(str(value))
    if match is None:
        raise InputError.expected("an MFU such as 50% or 0.5", value, where=where)
    found = float(match[1]) / (100 if match[2] else 1)
    if not 0 < found <= 1:
        hint = f"write {match[1]}%"
        if match[2] or not 0 < found <= 100:
            hint = "an MFU above 100% is a wrong peak, a wrong FLOP count or a sparse peak" if found > 0 else ""
        raise InputError.expected("an MFU above 0% and at most 100%", value, where=where, hint=hint)
    return found


def _known_convention(value: str) -> str:
    return conventions.find(value).name


class Claim(Spec):
    """``[claim]``: the MFU, its provenance, its FLOP convention, and what the number is based on."""

    mfu: Annotated[float, BeforeValidator(share)]
    provenance: Provenance = "unknown"
    convention: Annotated[str, BeforeValidator(_known_convention)] = "6n"
    source: str = ""


def claim_of(text: str) -> Claim:
    """``50%@folklore`` or ``50%``. Raises `InputError` for an unknown provenance or a number that is no share."""
    number, _, provenance = text.partition("@")
    if provenance and provenance not in PROVENANCES:
        hint = did_you_mean(provenance, PROVENANCES, "one of " + ", ".join(PROVENANCES))
        raise InputError.expected("a known provenance of the claim", provenance, where="--claim", hint=hint)
    return Claim.model_validate({"mfu": share(number), "provenance": provenance or "unknown"})


def claimed(claim: Claim) -> Quantity:
    """``claim.mfu`` (percent), as it was stated."""
    note = f"{claim.provenance}: {claim.source or MEANING[claim.provenance]}"
    title = f"Claimed MFU, {conventions.find(claim.convention).title}"
    return given("claim.mfu", 100 * claim.mfu, "%", "claim.mfu").titled(title, note)
