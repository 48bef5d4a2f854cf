"""What a team claims."""

import pytest

from ridgeline.core.errors import InputError
from ridgeline.plan.prelaunch.claim import Claim, claim_of, claimed, share


@pytest.mark.parametrize(("text", "value"), [("50%", 0.5), ("0.5", 0.5), (0.5, 0.5), (" 43.5 % ", 0.435), (1, 1.0)])
def test_share(text: object, value: float) -> None:
    assert share(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["150%", "1.5", 2, "0", "-10%", "fifty", True, "", "50%%"])
def test_no_share(text: object) -> None:
    with pytest.raises(InputError, match="Expected an MFU"):
        share(text)


def test_above_a_hundred_percent_says_why() -> None:
    with pytest.raises(InputError) as caught:
        share("110%")
    assert "peak" in caught.value.hint


def test_claim_of() -> None:
    found = claim_of("50%@folklore")
    assert (found.mfu, found.provenance, found.convention) == (0.5, "folklore", "6n")
    assert claim_of("43%").provenance == "unknown"


def test_unknown_provenance() -> None:
    with pytest.raises(InputError, match="folk"):
        claim_of("50%@folk")


def test_unknown_convention() -> None:
    with pytest.raises(InputError, match="convention"):
        Claim.model_validate({"mfu": "50%", "convention": "seven-n"})


def test_claimed_keeps_the_number_and_says_where_it_is_from() -> None:
    found = claimed(claim_of("50%@roofline"))
    assert (found.value, found.unit) == (50.0, "%")
    assert "roofline" in found.note
