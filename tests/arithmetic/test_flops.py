"""FLOPs by part: the walk agrees with 6ND, with itself and with the list of matmuls."""

import numpy as np
import pytest
from hypothesis import given as forall
from hypothesis import strategies as st
from tests.arithmetic.models import PUBLISHED, deepseek2_16b, gpt, shaped, with_mtp
from tests.arithmetic.worked import number, q

from ridgeline.arithmetic.flops import Recompute, Term, flops
from ridgeline.arithmetic.mixers import Mamba1
from ridgeline.arithmetic.napkin import flops_per_token
from ridgeline.arithmetic.pairs import MASKS, Batch, Mask
from ridgeline.arithmetic.params import matmuls, params
from ridgeline.arithmetic.spec import MLA, Layer, Part, linear
from ridgeline.core.case import Case


@pytest.mark.parametrize("name", PUBLISHED)
def test_weights_cost_what_the_list_of_matmuls_says(name: str) -> None:
    spec, batch = PUBLISHED[name](), Batch.of(64, 2)
    parts = flops(spec, batch, mask="full").parts
    walked = sum(number(q) for term, q in parts.items() if term not in (Term.SCORES, Term.VALUES))
    assert walked == 128 * sum(item.flops_per_token for item in matmuls(spec))


@pytest.mark.parametrize("mask", MASKS)
def test_backward_is_twice_forward_and_the_parts_add_up(mask: Mask) -> None:
    found = flops(PUBLISHED["qwen3-30b"](), Batch.of(4096, 3), mask=mask)
    assert number(found.backward) == 2 * number(found.forward)
    assert number(found.train_step) == sum(number(part) for part in found.step_parts.values())
    assert number(found.per_token) == number(found.train_step) / (3 * 4096)


def test_6nd_plus_attention() -> None:
    """6N per token of everything but the input table and norms, and 12LdT: the napkin, term by term."""
    spec = gpt(1024, 24, 16)
    found = flops(spec, Batch.of(2048), mask="full")
    norms = number(params(spec).parts[Part.NORM])
    n = number(params(spec).total) - norms
    assert number(found.per_token) == number(flops_per_token(q(n, "param"), q(0, "1"))) + 12 * 24 * 1024 * 2048


@pytest.mark.parametrize(
    ("mode", "again"),
    [
        ("none", set()),
        ("selective", {Term.SCORES, Term.VALUES}),
        ("full", {Term.SCORES, Term.VALUES, Term.PROJECTIONS, Term.MLP}),
    ],
)
def test_recompute(mode: Recompute, again: set[Term]) -> None:
    found = flops(PUBLISHED["llama3-8b"](), Batch.of(8192), mask="half", recompute=mode)
    assert number(found.recompute) == sum(number(found.parts[term]) for term in again)
    assert number(found.hardware_step) == number(found.train_step) + number(found.recompute)
    if mode == "full":  # a third more, but for the head
        assert 1.25 < number(found.hardware_step) / number(found.train_step) < 4 / 3


def test_latent_attention_has_two_widths() -> None:
    found = flops(deepseek2_16b(), Batch.of(256), mask="full")
    assert number(found.parts[Term.SCORES]) / number(found.parts[Term.VALUES]) == 192 / 128


def test_indexer_scores_every_key() -> None:
    block = MLA(d_model=64, heads=2, kv_rank=8, qk_nope=8, qk_rope=4, v_head_dim=8, sparse_top_k=16,
                extra=linear("indexer.k_proj", Part.ATTENTION, "d_model", "index_dim"),
                extra_dims={"index_heads": 3, "index_dim": 5})  # fmt: skip
    spec = shaped(layers=2, d_model=64, d_ff=64, heads=1, vocab=64)
    layer = Layer(mixers=(block,), ffns=spec.kinds[0].ffns, norms=spec.kinds[0].norms)
    found = flops(spec.model_copy(update={"kinds": (layer,)}), Batch.of(128), mask="full")
    assert number(found.parts[Term.INDEXER]) == 2 * 2 * 3 * 5 * 128**2
    assert number(found.parts[Term.VALUES]) == 2 * 2 * 2 * 8 * 128 * 16


def test_multi_token_prediction_applies_the_head_again() -> None:
    plain = PUBLISHED["llama3-8b"]()
    spec, batch = with_mtp(plain), Batch.of(512)
    found, without = flops(spec, batch, mask="full"), flops(plain, batch, mask="full")
    layer = (number(without.forward) - number(without.parts[Term.HEAD])) / plain.layers
    projection = 2 * 512 * 4096 * 8192
    assert number(found.parts[Term.MTP]) == layer + number(without.parts[Term.HEAD]) + projection
    assert number(found.forward) == number(without.forward) + number(found.parts[Term.MTP])


def test_a_recurrent_mixer_has_no_pairs() -> None:
    mixer = Mamba1(d_model=64, d_inner=128, d_state=16, dt_rank=4, conv_kernel=4).mixer()
    spec = shaped(layers=3, d_model=64, d_ff=64, heads=1, vocab=64)
    layer = Layer(mixers=(mixer,), norms=spec.kinds[0].norms)
    hybrid = spec.model_copy(update={"kinds": (layer,)})
    short, long = (flops(hybrid, Batch.of(seq), mask="exact") for seq in (64, 128))
    assert Term.SCORES not in short.parts
    assert number(short.parts[Term.MIXER_CORE]) == 3 * 64 * mixer.core_flops
    assert number(long.train_step) == 2 * number(short.train_step)


@forall(st.integers(1, 64), st.integers(1, 8), st.integers(1, 3))
def test_cost_grows_with_everything(layers: int, heads: int, sequences: int) -> None:
    small = shaped(layers=layers, d_model=64, d_ff=128, heads=heads, head_dim=8, vocab=64)
    large = shaped(layers=layers + 1, d_model=64, d_ff=128, heads=heads, head_dim=8, vocab=64)
    for mask in MASKS:
        one, more = (flops(spec, Batch.of(32, sequences), mask=mask).train_step for spec in (small, large))
        assert number(one) < number(more)
        assert number(flops(small, Batch.of(64, sequences), mask=mask).train_step) > 2 * number(one)


def test_a_sweep_goes_through_the_same_formulas() -> None:
    widths, layers = np.array([256.0, 512.0, 1024.0]), np.array([2.0, 4.0, 8.0])
    spec = shaped(layers=2, d_model=256, d_ff=512, heads=4, vocab=1000)
    vary = {
        "model.d_model": q(widths, "1", "model.d_model"),
        "model.layer0.ffn.d_ff": q(2 * widths, "1", "model.layer0.ffn.d_ff"),
        "model.layer0.mixer.head_dim": q(widths / 4, "1", "model.layer0.mixer.head_dim"),
        "model.layer0.mixer.v_head_dim": q(widths / 4, "1", "model.layer0.mixer.v_head_dim"),
        "model.layer0.copies": q(layers, "1", "model.layer0.copies"),
    }
    swept = flops(spec, Batch.of(128, 2), mask="half", vary=vary).train_step
    for index, (width, count) in enumerate(zip(widths, layers, strict=True)):
        one = shaped(layers=int(count), d_model=int(width), d_ff=int(2 * width), heads=4, vocab=1000)
        expected = number(flops(one, Batch.of(128, 2), mask="half").train_step)
        assert number(swept)[index] == expected
        assert number(swept.at(index)) == expected


def test_everything_goes_into_one_case() -> None:
    spec = with_mtp(deepseek2_16b())
    case = Case("test", "flops")
    found = flops(spec, Batch.of(4096, 2), mask="exact", recompute="full")
    case.add(*found.all, *params(spec).all)
    names = {"flops.train_step", "flops.train_step.experts", "flops.forward", "flops.per_token", "params.total"}
    assert names <= set(case.quantities)
    assert case.dumps()
