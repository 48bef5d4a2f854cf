"""A step table from the step model of a deployment, where no kernels of the user's own were profiled.

Tokens, samples and attention are put on nodes that double, so that the loop looks up what the model would say. The
groups of an attention that is data parallel share every step evenly. The model does not know decodes of unequal
length: they are taken at their mean context, so the table has no skew.
"""

from pathlib import Path

import numpy as np

from ridgeline.core.errors import InputError
from ridgeline.serve.deployment import Deployment
from ridgeline.serve.simulate.costs.table import Curve, Floats, Grid, StepTable
from ridgeline.serve.simulate.engine.engine import Engine
from ridgeline.serve.steps.step import StepModel, Times

_CHUNK, _PAST, _CONTEXT = 16, 512, 64  # the first nodes above zero
_PAST_STEP = 4  # attention is a line over the past of a chunk
_BY_TOKENS = ("dense", "tensor_parallel", "pipeline")


def step_table(deployment: Deployment, engine: Engine, longest: int, profile: Path | None = None) -> StepTable:
    """The table of a deployment: from the kernel profile in a folder where there is one, else from the step model."""
    if profile is not None:
        from ridgeline.serve.simulate.costs.profile import load

        return load(profile, deployment, engine)
    from ridgeline.serve.steps.step import steps

    return tabulate(steps(deployment), engine, longest)


def tabulate(model: StepModel, engine: Engine, longest: int) -> StepTable:
    """The table for steps of an engine whose requests have at most ``longest`` tokens, prompt and answer.

    Raises `InputError` for a pipeline: its stages work on different batches, which this loop does not follow.
    """
    if model.deployment.pp > 1:
        hint = "simulate it with tensor parallelism, or prefill pools with prefill_stages"
        raise InputError.expected("one pipeline stage", model.deployment.pp, where="pp", hint=hint)
    tokens = _doubling(1, engine.max_num_batched_tokens)
    sequences = _doubling(1, engine.max_num_seqs)
    by_tokens = model.decode(tokens, 1)
    by_sequences = model.decode(sequences, 1)
    host_step, host_sequence = _line(sequences, by_sequences.terms["host"])
    return StepTable(
        dense=Curve(tokens, _sum(by_tokens, _BY_TOKENS)),
        head=Curve(sequences, by_sequences.terms["head"]),
        attention=_attention(model, engine, longest),
        experts=Curve(tokens, _sum(by_tokens, ("experts", "expert_exchange"))),
        host_step_s=host_step,
        host_sequence_s=host_sequence,
    )


def _doubling(first: int, last: int, factor: int = 2) -> Floats:
    """``first`` and its doublings below ``last``, then ``last``."""
    nodes = [first]
    while nodes[-1] * factor < last:
        nodes.append(nodes[-1] * factor)
    return np.array(sorted({*nodes, max(first, last)}), dtype=np.float64)


def _sum(times: Times, names: tuple[str, ...]) -> Floats:
    return np.asarray(np.sum([times.terms[name] for name in names], axis=0), dtype=np.float64)


def _line(sequences: Floats, host: Floats) -> tuple[float, float]:
    """Host seconds of a step and of each of its sequences."""
    if len(sequences) == 1:
        return float(host[0]), 0.0
    slope = max(0.0, float((host[-1] - host[0]) / (sequences[-1] - sequences[0])))
    return max(0.0, float(host[0] - slope * sequences[0])), slope


def _attention(model: StepModel, engine: Engine, longest: int) -> Grid:
    """Seconds on (prompt chunk, its past, decodes, their mean context), with and without either part."""
    chunk = np.r_[0.0, _doubling(_CHUNK, engine.max_num_batched_tokens)]
    past = np.r_[0.0, _doubling(_PAST, longest, _PAST_STEP)]
    decodes = np.r_[0.0, _doubling(1, engine.max_num_seqs)]
    context = np.r_[0.0, _doubling(_CONTEXT, longest)]
    values = np.zeros((len(chunk), len(past), len(decodes), len(context)))
    groups = model.deployment.dp_attention
    mine = np.maximum(chunk[1:] / groups, 1.0)
    length = np.maximum(context, 1.0)
    prompt = model.prefill(mine[:, None], past, groups)
    rebuilt = _rebuilt(model, prompt, mine * groups)
    values[1:, :, 0, :] = (prompt.terms["attention"] + rebuilt)[:, :, None]
    values[0, :, 1:, :] = model.decode(decodes[1:, None], length).terms["attention"][None, :, :]
    both = model.mixed(mine[:, None, None, None], past[:, None, None], decodes[1:, None], length)
    values[1:, :, 1:, :] = both.terms["attention"] + rebuilt[:, :, None, None]
    return Grid((chunk, past, decodes, context), values)


def _rebuilt(model: StepModel, prompt: Times, tokens: Floats) -> Floats:
    """What a prompt adds to the dense layers beside its tokens: keys and values rebuilt from cached latents."""
    plain = model.decode(tokens, 1).terms["dense"]
    return np.asarray(np.maximum(prompt.terms["dense"] - plain[:, None], 0.0))
