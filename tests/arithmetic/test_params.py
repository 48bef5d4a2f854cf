"""Parameter counts: published totals, consistency of the walk, sweeps."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given as forall
from hypothesis import strategies as st
from tests.arithmetic.models import PUBLISHED, deepseek2_16b, gpt, shaped, with_mtp
from tests.arithmetic.worked import number, q

from ridgeline.arithmetic.params import Leaves, counts, matmuls, params, places, weigh
from ridgeline.arithmetic.spec import Block, Layer, Part, Weight
from ridgeline.core.case import Case


# Totals in the models' weight indexes.
@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("llama2-7b", 6_738_415_616),
        ("llama2-13b", 13_015_864_320),
        ("llama2-70b", 68_976_648_192),
        ("llama3-8b", 8_030_261_248),
        ("llama3-70b", 70_553_706_496),
        ("mistral-7b", 7_241_732_096),
        ("mixtral-8x7b", 46_702_792_704),
        ("deepseek2-16b", 15_706_484_224),
    ],
)
def test_published_totals(name: str, total: int) -> None:
    assert number(params(PUBLISHED[name]()).total) == total


def test_mixtral_uses_two_experts_of_eight() -> None:
    assert number(params(PUBLISHED["mixtral-8x7b"]()).active) == 12_879_925_248


@pytest.mark.parametrize("name", PUBLISHED)
def test_parts_add_up_and_agree_with_plain_counting(name: str) -> None:
    spec = PUBLISHED[name]()
    found, plain = params(spec), counts(spec)
    assert number(found.total) == sum(number(item) for item in found.parts.values())
    assert {part: number(item) for part, item in found.parts.items()} == {
        part: stored for part, (stored, _) in plain.items() if stored
    }
    assert number(found.active) == sum(active for part, (_, active) in plain.items() if part is not Part.MTP)
    tables = sum(number(found.parts[part]) for part in (Part.EMBEDDING, Part.HEAD) if part in found.parts)
    assert number(found.non_embedding) == number(found.total) - tables


def test_multi_token_prediction_is_counted_apart() -> None:
    plain = PUBLISHED["llama3-8b"]()
    found, without = params(with_mtp(plain)), params(plain)
    assert number(found.total) == number(without.total)
    layer = (number(without.non_embedding) - 4096) / 32
    assert number(found.mtp) == layer + 2 * 4096**2


def test_tied_table_is_counted_once_and_is_the_head() -> None:
    spec = PUBLISHED["gemma-2b"]()
    assert Part.HEAD not in params(spec).parts
    last = [item for item in matmuls(spec) if item.name == "embed_tokens"]
    assert [(item.k, item.n) for item in last] == [(2048, 256128)]


def test_untied_table_is_no_matmul() -> None:
    names = [item.name for item in matmuls(PUBLISHED["llama3-8b"]())]
    assert "embed_tokens" not in names
    assert names.count("lm_head") == 1


def test_matmuls_of_experts_are_those_chosen() -> None:
    found = {item.name: item for item in matmuls(deepseek2_16b()) if item.place == "layer1.ffn"}
    assert (found["gate_proj"].copies, found["gate_proj"].uses) == (6, 26)
    assert (found["router"].k, found["router"].n) == (2048, 64)


def test_a_shared_layer_is_stored_once_and_used_often() -> None:
    spec = shaped(layers=6, d_model=64, d_ff=128, heads=4, vocab=1000)
    shared = spec.model_copy(update={"kinds": (spec.kinds[0].model_copy(update={"stored": 1}),)})
    leaves = Leaves(shared)
    once = weigh(leaves, "test.once", lambda p, w: w.part is Part.MLP)
    each = weigh(leaves, "test.each", lambda p, w: w.part is Part.MLP, used=True)
    assert number(each) == 6 * number(once) == 6 * 3 * 64 * 128
    assert number(params(shared).total) < number(params(spec).total)


@forall(st.integers(1, 40), st.integers(1, 8), st.sampled_from([1, 2, 4]), st.integers(1, 4096), st.integers(1, 50_000))
def test_a_dense_decoder_in_closed_form(layers: int, half: int, group: int, d_ff: int, vocab: int) -> None:
    heads, d = 4 * half, 64 * half
    spec = shaped(layers=layers, d_model=d, d_ff=d_ff, heads=heads, kv_heads=heads // group, head_dim=16, vocab=vocab)
    attention = 2 * d * heads * 16 + 2 * d * (heads // group) * 16
    expected = layers * (attention + 3 * d * d_ff + 2 * d) + 2 * vocab * d + d
    assert number(params(spec).total) == expected


@forall(st.integers(1, 64), st.data())
def test_active_parameters_grow_with_top_k(experts: int, data: st.DataObject) -> None:
    top_k = data.draw(st.integers(1, experts))
    spec = shaped(layers=2, d_model=64, heads=2, vocab=64, experts=experts, top_k=top_k, expert_ff=32)
    found = params(spec)
    assert number(found.total) - number(found.active) == 2 * (experts - top_k) * 3 * 64 * 32


def test_a_sweep_equals_its_candidates() -> None:
    spec = shaped(layers=2, d_model=256, d_ff=512, heads=4, kv_heads=2, head_dim=64, vocab=1000)
    widths, layers = np.array([256, 512, 1024]), np.array([2, 40, 80])
    vary = {
        "model.d_model": q(widths, "1", "model.d_model"),
        "model.layer0.copies": q(layers, "1", "model.layer0.copies"),
    }
    swept = params(spec, vary)
    for index, (width, count) in enumerate(zip(widths, layers, strict=True)):
        one = shaped(layers=int(count), d_model=int(width), d_ff=512, heads=4, kv_heads=2, head_dim=64, vocab=1000)
        assert number(swept.total)[index] == number(params(one).total)
        assert number(swept.total.at(index)) == number(params(one).total)
    assert all(a < b for a, b in pairwise(number(swept.active)))


def test_counts_are_exact_integers() -> None:
    spec = shaped(layers=1000, d_model=2**20, d_ff=2**22, heads=2**13, vocab=2**20)
    total = number(params(spec).total)
    assert isinstance(total, int)
    assert total == 1000 * (4 * 2**40 + 3 * 2**42 + 2 * 2**20) + 2 * 2**40 + 2**20


def test_every_number_opens_down_to_the_dimensions() -> None:
    walked = {item.name: item for item in params(gpt(1024, 24, 16)).total.walk()}
    assert walked["model.d_model"].value == 1024
    assert walked["model.layer0.copies"].value == 24
    assert walked["params.layer0.mixer.attention"].formula.startswith("d_model*heads*head_dim")
    assert all(item.kind == "derived" or item.source is not None for item in walked.values())


def test_a_block_of_plain_integers() -> None:
    extra = (Weight(name="scales", part=Part.OTHER, shape=("7", "3"), matmul=False),)
    spec = shaped(layers=2, d_model=8, d_ff=8, heads=1, vocab=8)
    layer = Layer(norms=Block(d_model=8, extra=extra))
    other = spec.model_copy(update={"kinds": (layer,)})
    assert number(params(other).parts[Part.OTHER]) == 42


def test_unused_kinds_have_no_place() -> None:
    spec = shaped(layers=2, d_model=8, d_ff=8, heads=1, vocab=8)
    padded = spec.model_copy(update={"kinds": (*spec.kinds, spec.kinds[0])})
    assert {place.label.partition(".")[0] for place in places(padded)} == {"outside", "layer0"}


def test_everything_goes_into_one_case() -> None:
    case = Case("test", "params")
    case.add(*params(with_mtp(deepseek2_16b())).all)
    assert {"params.total", "params.active", "params.embedding", "params.non_embedding"} <= set(case.quantities)
