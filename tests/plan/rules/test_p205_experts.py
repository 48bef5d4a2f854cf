"""P205: tokens per expert."""

import pytest
from tests.plan.reviews import MOE, facts, finding, findings, number, verdict

from ridgeline.plan.prelaunch.review_facts import ReviewFacts


def mixture(plan: dict[str, int], **rest: object) -> ReviewFacts:
    base = {"sequences": 256, "seq": 4096, "tokens": "1T", "cluster": {"chips": "64xH100"},
            "model": {key: value for key, value in MOE.items() if value}}  # fmt: skip
    return facts({"tp": 1, "sequence_parallel": 0, **plan}, base={**base, **rest})


def test_a_dense_model_has_nothing_to_say() -> None:
    assert findings(facts(), "P205") == []


@pytest.mark.parametrize(("ep", "tokens"), [(1, 512), (8, 4096), (64, 32768)])
def test_tokens_grow_with_the_group(ep: int, tokens: int) -> None:
    found = finding(mixture({"ep": ep}), "P205")
    assert number(found.value) == tokens
    assert str(found.verdict) == "pass"


def test_too_few_tokens_are_priced_by_a_larger_micro_batch() -> None:
    of = mixture({"ep": 1}, seq=1024)
    found = finding(of, "P205")
    assert (number(found.value), str(found.verdict)) == (128, "warn")
    assert number(found.cost.mfu_points) > 0


def test_the_threshold_moves_the_verdict() -> None:
    assert verdict(mixture({"ep": 1}), "P205", 513) == "warn"
