"""Every public configuration that is read has a price: no block is left out by any cost model."""

from pathlib import Path

import pytest
from tests.arithmetic.worked import number, q

from ridgeline.arithmetic.activations import Keeping, activations
from ridgeline.arithmetic.conventions import compare
from ridgeline.arithmetic.flops import Term, flops
from ridgeline.arithmetic.kv import kv_cache
from ridgeline.arithmetic.memory import training_state
from ridgeline.arithmetic.pairs import Attends, Batch
from ridgeline.arithmetic.params import matmuls, params
from ridgeline.arithmetic.read_model import read_model
from ridgeline.arithmetic.sharding import Sharding
from ridgeline.arithmetic.spec import Mixer, ModelSpec
from ridgeline.core.case import Case
from ridgeline.core.errors import InputError

CORE = {Term.SCORES, Term.VALUES, Term.INDEXER, Term.MIXER_CORE, Term.MTP}


def _readable(folder: Path) -> list[tuple[str, ModelSpec]]:
    found = []
    for path in sorted(folder.glob("*/*.json")):
        try:
            found.append((path.name, read_model(path)[0]))
        except InputError:
            continue  # refused, which other tests count
    return found


def _check(spec: ModelSpec) -> None:
    batch, context = Batch.of(4096, 2), q(4096, "token", "context")
    cost = flops(spec, batch, mask="half")
    linear = sum(number(part) for term, part in cost.parts.items() if term not in CORE)
    assert linear == 8192 * sum(item.flops_per_token for item in matmuls(spec))
    blocks = [block for kind in spec.kinds for block in kind.blocks]
    assert any(isinstance(block, Attends) for block in blocks) == (Term.SCORES in cost.parts)
    state = training_state(spec, Sharding.of())
    assert number(state.weights) == 2 * (number(params(spec).total) + number(params(spec).mtp))
    cache = kv_cache(spec, context)
    assert number(cache.per_sequence) > 0
    assert any(isinstance(block, Mixer) and block.state for block in blocks) == (number(cache.state) > 0)
    kept = activations(spec, batch, Sharding.of(), Keeping())
    assert number(kept.kept) > 2 * 8192 * spec.d_model * spec.layers
    case = Case("test", spec.name)
    case.add(*cost.all, *state.all, *cache.all, *kept.all, *params(spec).all)
    assert case.dumps()


@pytest.mark.data
def test_every_readable_config(data_dir: Path) -> None:
    specs = _readable(data_dir / "plan" / "hf_configs")
    assert len(specs) > 150
    for name, spec in specs:
        try:
            _check(spec)
        except Exception as error:
            error.add_note(name)
            raise


@pytest.mark.data
def test_counters_disagree_but_not_wildly(data_dir: Path) -> None:
    """At 4k tokens no two counters of active work differ by more than a factor of two on a large dense model."""
    spec = read_model(data_dir / "plan" / "hf_configs" / "maxtext" / "llama31_70b.json")[0]
    totals = {item.convention.name: number(item.per_token) for item in compare(spec, Batch.of(4096))}
    hardware = {"narayanan-2021", "llm-foundry-hfu"}
    model = [value for name, value in totals.items() if name not in hardware]
    assert 1.0 < max(model) / min(model) < 1.15
    assert all(1.2 < totals[name] / totals["dgxc"] < 1.4 for name in hardware)
