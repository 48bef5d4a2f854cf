"""Record ``examples/jax_cpu8``: one training step on 8 virtual CPU devices, compiled three ways.

``PYTHONPATH=src python scripts/record_jax.py --out examples/jax_cpu8``, with JAX installed. It writes, per variant,
the compiled HLO and an XSpace profile of a few steps:

- ``plain``: data and tensor parallel on a 4 x 2 mesh, as it should be;
- ``remat``: the same with `jax.checkpoint` around each layer;
- ``resharded``: the down projection is stored split along its output, so that the activation before it, split along
  what that matmul contracts, is gathered in every layer and step.

Source paths and the machine's name are left out of everything.
"""

import argparse
import gzip
import os
import tempfile
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from ridgeline.trace import wire

Variant = Literal["plain", "remat", "resharded"]

DEVICES = {"data": 4, "model": 2}
LAYERS, BATCH, SEQUENCE, WIDTH, HEADS, HIDDEN, VOCABULARY = 2, 16, 64, 128, 4, 512, 512
LEARNING_RATE = 0.01
WARM_UP, STEPS = 2, 3
VIEWED: Variant = "plain"  # the variant whose trace viewer file is kept
PLANE = 1  # the field of an XSpace that holds a plane; the others name the machine, or are warnings


def main() -> None:
    """Write the folders of all variants under ``--out``."""
    parser = argparse.ArgumentParser(description="Record one training step on 8 virtual CPU devices.")
    parser.add_argument("--out", type=Path, required=True, help="folder to write, such as examples/jax_cpu8")
    out: Path = parser.parse_args().out
    jax = start()
    for variant in ("plain", "remat", "resharded"):
        folder = out / variant
        folder.mkdir(parents=True, exist_ok=True)
        step, state = compiled(jax, variant)
        write(folder / "step.hlo.txt.gz", step.as_text().encode())
        profile(jax, step, state, folder / "step.xplane.pb.gz", out / "viewer" if variant == VIEWED else None)
    for path in sorted(path for path in out.rglob("*") if path.is_file()):
        print(f"{path.stat().st_size:>8} {path.relative_to(out)}")
    print(f"jax {jax.__version__}, jaxlib {jax.lib.__version__}")


def start() -> Any:
    """JAX with 8 devices and without the paths of source files in what it compiles."""
    count = 1
    for size in DEVICES.values():
        count *= size
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={count}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    jax: Any = import_module("jax")
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    jax.config.update("jax_traceback_in_locations_limit", 1)
    return jax


def compiled(jax: Any, variant: Variant) -> tuple[Any, tuple[Any, Any]]:
    """The compiled training step of a variant, and its weights and tokens on the mesh."""
    sharding = jax.sharding
    mesh = jax.make_mesh(tuple(DEVICES.values()), tuple(DEVICES), axis_types=(sharding.AxisType.Auto,) * len(DEVICES))

    def placed(array: Any, *axes: str | None) -> Any:
        return jax.device_put(array, sharding.NamedSharding(mesh, sharding.PartitionSpec(*axes)))

    def weight(key: int, shape: tuple[int, int], *axes: str | None) -> Any:
        return placed(jax.random.normal(jax.random.key(key), shape) * shape[0] ** -0.5, *axes)

    split_output, split_input = (None, "model"), ("model", None)
    layers = [
        {
            "qkv": weight(4 * layer + 1, (WIDTH, 3 * WIDTH), *split_output),
            "out": weight(4 * layer + 2, (WIDTH, WIDTH), *split_input),
            "up": weight(4 * layer + 3, (WIDTH, HIDDEN), *split_output),
            "down": weight(4 * layer + 4, (HIDDEN, WIDTH), *(split_output if variant == "resharded" else split_input)),
        }
        for layer in range(LAYERS)
    ]
    weights = {"embedding": weight(0, (VOCABULARY, WIDTH)), "layers": layers}
    tokens = placed(jax.random.randint(jax.random.key(99), (BATCH, SEQUENCE + 1), 0, VOCABULARY), "data", None)
    step = train_step(jax, remat=variant == "remat")
    kept = jax.tree.map(lambda array: array.sharding, weights)
    program = jax.jit(step, donate_argnums=0, out_shardings=(kept, None))
    return program.lower(weights, tokens).compile(), (weights, tokens)


def train_step(jax: Any, *, remat: bool) -> Callable[[Any, Any], tuple[Any, Any]]:
    """One step of gradient descent of a decoder: (weights, tokens) -> (weights, loss)."""
    jnp: Any = import_module("jax.numpy")

    def normalized(x: Any) -> Any:
        return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)

    def layer(x: Any, weights: Any) -> Any:
        with jax.named_scope("attention"):
            parts = jnp.split((normalized(x) @ weights["qkv"]).reshape(*x.shape[:2], HEADS, -1), 3, axis=-1)
            seen = jax.nn.dot_product_attention(*parts, is_causal=True)
            x = x + seen.reshape(x.shape) @ weights["out"]
        with jax.named_scope("mlp"):
            return x + jax.nn.silu(normalized(x) @ weights["up"]) @ weights["down"]

    def loss(weights: Any, tokens: Any) -> Any:
        x = weights["embedding"][tokens[:, :-1]]
        for each in weights["layers"]:
            x = (jax.checkpoint(layer) if remat else layer)(x, each)
        scores = jax.nn.log_softmax(normalized(x) @ weights["embedding"].T)
        return -jnp.mean(jnp.take_along_axis(scores, tokens[:, 1:, None], axis=-1))

    def step(weights: Any, tokens: Any) -> tuple[Any, Any]:
        value, slopes = jax.value_and_grad(loss)(weights, tokens)
        return jax.tree.map(lambda w, slope: w - LEARNING_RATE * slope, weights, slopes), value

    return step


def profile(jax: Any, step: Any, state: tuple[Any, Any], path: Path, viewer: Path | None) -> None:
    """Run the step, profile some of its calls, and keep the profile without what names the machine."""
    weights, tokens = state
    for _ in range(WARM_UP):
        weights, loss = step(weights, tokens)
    loss.block_until_ready()
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.enable_hlo_proto = False
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            for number in range(STEPS):
                with jax.profiler.StepTraceAnnotation("train", step_num=number):
                    weights, loss = step(weights, tokens)
                    loss.block_until_ready()
        (found,) = Path(folder).rglob("*.xplane.pb")
        write(path, b"".join(planes(found.read_bytes())))
        if viewer is not None:
            viewer.mkdir(exist_ok=True)
            (drawn,) = Path(folder).rglob("*.trace.json.gz")
            write(viewer / f"{path.parent.name}.trace.json.gz", gzip.decompress(drawn.read_bytes()))


def write(path: Path, content: bytes) -> None:
    """Gzip without a file name or time, so that equal content is an equal file."""
    path.write_bytes(gzip.compress(content, 9, mtime=0))


def planes(space: bytes) -> Iterable[bytes]:
    """The planes of an XSpace as they stand, without its other fields."""
    at = 0
    for item in wire.fields(space, 0, len(space)):
        if item.number == PLANE:
            yield space[at : item.end]
        at = item.end


if __name__ == "__main__":
    main()
