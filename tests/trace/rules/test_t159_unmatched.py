"""T159: calls without a partner."""

from tests.trace.runs import finding, number
from tests.trace.scenes import Scene, job

CALL = Scene(comm=[(9_000_000, 900_000, {})], launch=70)
OTHER = Scene(comm=[(9_000_000, 900_000, {"numel": 77})], launch=70)


def test_matched_calls_pass() -> None:
    found = finding(job(CALL, CALL), "T159")
    assert (str(found.verdict), number(found.value)) == ("pass", 0)


def test_calls_that_differ_are_unknown() -> None:
    found = finding(job(CALL, OTHER), "T159")
    assert (str(found.verdict), number(found.value)) == ("unknown", 100)


def test_one_rank_says_why() -> None:
    assert "there is one rank" in finding(job(CALL), "T159").sentence


def test_no_communication_passes() -> None:
    assert str(finding(job(None), "T159").verdict) == "pass"
