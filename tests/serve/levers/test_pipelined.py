"""Expert parallelism against layer pipelining: worked numbers, trade-offs, crossovers."""

from dataclasses import replace

import numpy as np
import pytest

from ridgeline.arithmetic.named import find_model
from ridgeline.core.errors import InputError
from ridgeline.core.quantity import given
from ridgeline.serve.levers.pipelined import (
    DecodeSplit,
    Floats,
    Link,
    Prefill,
    best_pipeline,
    by_chunk,
    chunk_sizes,
    crossover_bytes_s,
    crossover_tokens,
    decode_split,
    expert_parallel,
    layer_pipeline,
    napkin,
    pipeline_wins,
)

PORT = Link(12.5e9, 5e-6)  # 100 Gbit/s


def flat(tokens: Floats, past: Floats) -> Floats:
    """A millisecond a hundred tokens, whatever is past."""
    return tokens * 1e-5


def published(top_k: int = 1) -> Prefill:
    return Prefill(8192, 8192, 60, top_k, 2, flat)


def mixtral(tokens: int) -> Prefill:
    spec = find_model("mixtral-8x7b")[0]
    return Prefill.of(spec, tokens, napkin(spec, 600e12, 3e12))


@pytest.mark.parametrize(("top_k", "sent", "transfer"), [(1, 16.1e9, 1.288), (2, 32.2e9, 2.58)])
def test_published_exchange(top_k: int, sent: float, transfer: float) -> None:
    found = expert_parallel(published(top_k), 1, PORT).exchange
    assert float(found.sent.base) == pytest.approx(sent, rel=2e-3)
    assert float(found.transfer.base) == pytest.approx(transfer, rel=2e-3)
    assert float(found.latency.base) == pytest.approx(0.6e-3)


def test_one_chip_exchanges_nothing() -> None:
    found = expert_parallel(published(), 1, PORT)
    assert found.seconds == pytest.approx(0.08192)


def test_four_chips_by_hand() -> None:
    found = expert_parallel(published(), 4, PORT)
    share = 2 * 60 * 2048 * 8192 * 2 / 12.5e9
    assert found.seconds == pytest.approx(0.08192 / 4 + 0.75 * share + 0.6e-3)


def test_a_pipeline_by_hand() -> None:
    found = layer_pipeline(published(), 4, 1024, Link(1e12))
    assert found.seconds == pytest.approx(11 * 1024 * 1e-5 / 4)
    assert found.sent_bytes == 8192 * 8192 * 2


def test_the_last_chunk_is_what_is_left() -> None:
    found = layer_pipeline(replace(published(), tokens=2500), 2, 1024, Link(1e12))
    spans = found.schedule.compute_end_s - found.schedule.compute_start_s
    assert spans[0] * 2 / 1e-5 == pytest.approx([1024, 1024, 452])


def test_chunk_sizes_end_with_the_whole_prompt() -> None:
    assert chunk_sizes(1000) == [128, 256, 512, 1000]
    assert chunk_sizes(100) == [100]


def test_the_best_chunk_lies_between() -> None:
    """Small chunks read the weights again and again, one large one leaves the pipeline empty."""
    found = by_chunk(mixtral(8192), 8, PORT)
    best = best_pipeline(mixtral(8192), 8, PORT)
    assert found[0].seconds > best.seconds < found[-1].seconds
    assert 128 < best.chunk < 8192


def test_later_chunks_attend_to_more() -> None:
    found = layer_pipeline(mixtral(16384), 4, 4096, PORT).schedule
    spans = (found.compute_end_s - found.compute_start_s)[0]
    assert np.all(np.diff(spans) > 0)


def test_a_chunk_is_never_cheaper_than_its_weights() -> None:
    spec = find_model("mixtral-8x7b")[0]
    one = napkin(spec, 600e12, 3e12)(np.array([1.0, 1e4]), np.zeros(2))
    assert 12e9 < one[0] * 3e12 / 2 < 14e9  # two of eight experts: the active parameters
    assert one[1] > 2 * 12e9 * 1e4 / 600e12


def test_crossover_in_bandwidth() -> None:
    job = mixtral(8192)
    found = crossover_bytes_s(job, 8, 1e9, 1e12)
    assert found is not None
    assert pipeline_wins(job, 8, Link(0.9 * found))
    assert not pipeline_wins(job, 8, Link(1.1 * found))
    assert crossover_bytes_s(mixtral(256), 8, 1e11, 1e12) is None


def test_crossover_in_prompt_length() -> None:
    sizes = (512, 2048, 8192, 32768)
    assert crossover_tokens(mixtral(512), 8, PORT, sizes) == 8192
    assert crossover_tokens(mixtral(512), 8, Link(450e9), sizes) is None


def test_longer_prompts_cross_at_faster_links() -> None:
    found = [crossover_bytes_s(mixtral(tokens), 8, 1e8, 1e12) for tokens in (2048, 8192, 32768)]
    assert found == sorted(value for value in found if value is not None)


def split(work_s: float, chips: int, exchange_s: float, transfer_s: float) -> DecodeSplit:
    return decode_split(
        given("work", work_s, "s"), given("chips", chips, "chip"), given("exchange", exchange_s, "s"),
        given("transfer", transfer_s, "s"),
    )  # fmt: skip


def test_decode_has_no_chunks() -> None:
    """40 chip-ms over 8 chips and 1 ms of exchange, against all 40 ms one stage after the other and 7 hops."""
    found = split(0.040, 8, 0.001, 0.0001)
    assert float(found.spread.base) == pytest.approx(0.006)
    assert float(found.piped.base) == pytest.approx(0.0407)
    assert float(found.busy.base) == pytest.approx(0.005 / 0.0407)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Link(0.0),
        lambda: Link(float("nan")),
        lambda: Link(1e9, -1.0),
        lambda: replace(published(), tokens=0),
        lambda: layer_pipeline(published(), 0, 128, PORT),
        lambda: layer_pipeline(published(), 2, 0, PORT),
        lambda: expert_parallel(published(), 0, PORT),
        lambda: crossover_bytes_s(published(), 4, 2e9, 1e9),
        lambda: split(-1.0, 2, 0.0, 0.0),
        lambda: Prefill.of(find_model("llama-3-8b")[0], 100, flat),
    ],
)
def test_refusals(call: object) -> None:
    assert callable(call)
    with pytest.raises(InputError):
        call()
