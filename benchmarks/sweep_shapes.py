"""How long a sweep of 100,000 candidate shapes takes, and a cold `ridgeline plan`: the page is beside this file.

Run: python benchmarks/sweep_shapes.py
"""

import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from ridgeline.arithmetic.activations import Keeping, activations
from ridgeline.arithmetic.flops import flops
from ridgeline.arithmetic.kv import kv_cache
from ridgeline.arithmetic.memory import training_state
from ridgeline.arithmetic.pairs import Batch
from ridgeline.arithmetic.params import params
from ridgeline.arithmetic.shape import Shape, model
from ridgeline.arithmetic.sharding import Sharding
from ridgeline.core.quantity import Quantity, Source, given, leaf

CANDIDATES = 100_000
ROUNDS = 7


def candidates() -> dict[str, Quantity]:
    """Random aligned shapes, with a fixed seed."""
    draw = np.random.default_rng(0)
    heads = draw.integers(1, 17, CANDIDATES) * 8
    values = {
        "model.layer0.copies": draw.integers(8, 129, CANDIDATES),
        "model.d_model": heads * 128,
        "model.layer0.mixer.heads": heads,
        "model.layer0.mixer.kv_heads": np.full(CANDIDATES, 8),
        "model.layer0.ffn.d_ff": draw.integers(8, 257, CANDIDATES) * 128,
    }
    source = Source("benchmark", "random shapes")
    return {name: leaf(name, value, "1", "specified", source) for name, value in values.items()}


def median_s(work: Callable[[], object]) -> float:
    """Median wall time in seconds, after one warm-up."""
    work()
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def main() -> None:
    """Print one row a measurement."""
    vary = candidates()
    spec = model(Shape(layers=32, d_model=4096, d_ff=14336, heads=32, kv_heads=8, head_dim=128, vocab=128_000))
    batch, sharding = Batch.of(8192), Sharding.of(zero=3, dp=128, tp=8, sequence_parallel=1)
    context = given("context", 8192, "token")
    rows: dict[str, Callable[[], object]] = {
        "parameters by part": lambda: params(spec, vary),
        "FLOPs of a step by part": lambda: flops(spec, batch, mask="half", vary=vary),
        "training state per chip": lambda: training_state(spec, sharding, vary=vary),
        "activations per chip": lambda: activations(spec, batch, sharding, Keeping("selective"), vary=vary),
        "KV cache": lambda: kv_cache(spec, context, vary=vary),
    }
    print(f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}")
    total = 0.0
    for name, work in rows.items():
        taken = median_s(work)
        total += taken
        print(f"{name:32s} {taken * 1e3:8.1f} ms for {CANDIDATES:,} shapes")
    print(f"{'all five':32s} {total * 1e3:8.1f} ms")
    for command in (["--help"], ["plan", "--chips", "1000xH100", "--days", "30"]):
        whole = [sys.executable, "-m", "ridgeline.cli.main", *command]
        taken = median_s(lambda whole=whole: subprocess.run(whole, check=True, capture_output=True))  # type: ignore[misc]
        print(f"{'ridgeline ' + command[0] + ', cold':32s} {taken * 1e3:8.1f} ms")


if __name__ == "__main__":
    main()
