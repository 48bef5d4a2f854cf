"""Options of an engine that make no sense are refused by name."""

from typing import Any

import pytest

from ridgeline.core.errors import InputError
from ridgeline.serve.simulate.engine.engine import Engine, Pools, Speculation


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kv_blocks": 0}, "at kv_blocks"),
        ({"kv_blocks": 1.5}, "a whole number of at least 1"),
        ({"max_num_seqs": 0}, "at max_num_seqs"),
        ({"scheduler": "vlm"}, "vllm"),
        ({"preemption": "drop"}, "recompute, swap"),
        ({"routing": "sticky"}, "round-robin"),
        ({"preemption": "swap"}, "swap_bytes_per_s"),
        ({"pools": Pools(1, 1, 1e9)}, "kv_bytes_per_token"),
        ({"pools": Pools(1, 1, 1e9), "kv_bytes_per_token": 1.0, "replicas": 2}, "pools or replicas"),
        ({"scheduler": "sglang", "max_num_batched_tokens": 100}, "a budget of 256 tokens"),
        ({"max_num_batched_tokens": 3, "speculation": Speculation(3, (0.5,) * 3)}, "at least 4"),
        ({"scheduler": "static", "speculation": Speculation(1, (0.5,))}, "scheduler static"),
    ],
)
def test_refuses(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Engine(**({"kv_blocks": 10} | options))


def test_refuses_pools_without_a_worker_and_odd_speculation() -> None:
    with pytest.raises(InputError, match="at decode"):
        Pools(1, 0, 1e9)
    with pytest.raises(InputError, match="a bandwidth above 0"):
        Pools(1, 1, 0.0)
    with pytest.raises(InputError, match="1 to 16 draft tokens"):
        Speculation(0, ())
    with pytest.raises(InputError, match="2 probabilities"):
        Speculation(2, (0.5, 1.5))
    with pytest.raises(InputError, match="1 to 4 tokens per step"):
        Speculation.of_length(3, 4.5)


@pytest.mark.parametrize(("tokens", "length"), [(1, 1.0), (3, 2.49), (3, 4.0), (5, 3.3)])
def test_acceptance_of_a_length(tokens: int, length: float) -> None:
    assert Speculation.of_length(tokens, length).length == pytest.approx(length)


def test_what_an_engine_holds() -> None:
    assert Engine(kv_blocks=10).capacity_tokens == 160
    assert Engine(kv_blocks=10, replicas=3).workers == 3
    assert Engine(kv_blocks=10, pools=Pools(2, 3, 1e9), kv_bytes_per_token=1.0).workers == 5
    assert Engine(kv_blocks=10, speculation=Speculation(2, (1.0, 1.0))).drafted == 3
