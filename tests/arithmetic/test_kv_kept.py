"""The cache as an engine keeps it: element types with their scales, pages, and the part on one chip."""

import math
from typing import Any

import pytest
from hypothesis import given as forall
from hypothesis import strategies as st
from tests.arithmetic.models import compressed, deepseek3_attention, shaped, with_mtp
from tests.arithmetic.worked import number, q

from ridgeline.arithmetic.configs.reader import read_config
from ridgeline.arithmetic.kv import Caching, KvCache, Share, aligned_page, element_bytes, kept, kv_cache
from ridgeline.arithmetic.mixers import GatedDeltaNet
from ridgeline.arithmetic.params import Leaves
from ridgeline.arithmetic.spec import MLA, Attention, Layer, ModelSpec, Part, linear
from ridgeline.core.case import Case
from ridgeline.core.errors import InputError

LLAMA = shaped(layers=4, d_model=64, d_ff=64, heads=8, kv_heads=2, head_dim=16, vocab=64)
DELTA = GatedDeltaNet(d_model=64, k_heads=2, v_heads=4, k_dim=16, v_dim=16, conv_kernel=4).mixer()
EACH = 4 * 2 * 32  # elements of a token in the four layers


def _with(*mixers: object) -> ModelSpec:
    layer = LLAMA.kinds[0]
    kinds = tuple(Layer(mixers=(mixer,), ffns=layer.ffns, norms=layer.norms) for mixer in mixers)
    return LLAMA.model_copy(update={"kinds": kinds, "pattern": tuple(i % len(kinds) for i in range(4))})


def _attention(**other: object) -> Attention:
    sizes: dict[str, object] = {"d_model": 64, "heads": 8, "kv_heads": 2, "head_dim": 16, "v_head_dim": 16}
    return Attention.model_validate(sizes | other)


def _cache(spec: ModelSpec, tokens: int, share: Share | None = None, **how: object) -> KvCache:
    return kept(Leaves(spec), q(tokens, "token", "context"), Caching(**how), share)  # type: ignore[arg-type]


def _share(spec: ModelSpec, tp: int) -> Share:
    return Share(q(tp, "1", "tp"), {f"layer{index}": spec.uses(index) for index in range(len(spec.kinds))})


@pytest.mark.parametrize(
    ("dtype", "element"),
    [("bf16", 2), ("fp32", 4), ("fp8", 1), ("int8", 34 / 32), ("int4", 18 / 32), ("fp4", 9 / 16), ("mxfp4", 17 / 32)],
)
def test_element_types_with_their_scales(dtype: str, element: float) -> None:
    assert number(element_bytes(dtype)) == element
    assert number(_cache(LLAMA, 100, dtype=dtype).per_sequence) == pytest.approx(EACH * 100 * element)


def test_the_plain_function_is_the_same_walk() -> None:
    assert number(kv_cache(LLAMA, q(77, "token")).per_sequence) == number(_cache(LLAMA, 77).per_sequence)


def test_a_layout_for_latents() -> None:
    assert number(_cache(deepseek3_attention(), 1, dtype="fp8_ds_mla").per_token) == 61 * (512 + 16 + 128)


@pytest.mark.parametrize(
    ("dtype", "index", "each"),
    [("bf16", "plain", 2 * (512 + 64 + 128)), ("bf16", "scaled", 2 * 576 + 132), ("fp8", "scaled", 576 + 132),
     ("fp8_ds_mla", "scaled", 656 + 132), ("fp8_ds_mla", "plain", 656 + 132)],
)  # fmt: skip
def test_index_keys(dtype: str, index: str, each: int) -> None:
    block = MLA(d_model=64, heads=2, kv_rank=512, qk_nope=8, qk_rope=64, v_head_dim=8, sparse_top_k=16,
                extra=linear("indexer.k_proj", Part.ATTENTION, "d_model", "index_dim"),
                extra_dims={"index_dim": 128})  # fmt: skip
    assert number(_cache(_with(block), 1, dtype=dtype, index=index).per_token) == 4 * each


@pytest.mark.parametrize("spec", [LLAMA, compressed(128, 4, 512)])
def test_that_layout_is_refused_for_other_attention(spec: ModelSpec) -> None:
    with pytest.raises(InputError, match="a layer of latent attention"):
        _cache(spec, 10, dtype="fp8_ds_mla")
    with pytest.raises(InputError, match="an element type"):
        element_bytes("fp8_ds_mla")


def test_prediction_modules_are_served_on_request() -> None:
    spec = with_mtp(LLAMA)
    without, served = (number(_cache(spec, 100, mtp=mtp).per_sequence) for mtp in (False, True))
    assert served == without * 5 / 4


@pytest.mark.parametrize(("tp", "heads"), [(1, 2), (2, 1), (4, 1), (8, 1)])
def test_chips_divide_heads_down_to_one(tp: int, heads: int) -> None:
    found = _cache(LLAMA, 100, _share(LLAMA, tp))
    assert number(found.per_sequence) == 2 * 4 * heads * 32 * 100
    assert found.per_sequence.name == "chip.kv.per_sequence"


@pytest.mark.parametrize("tp", [1, 2, 8])
def test_latents_and_compressed_entries_are_on_every_chip(tp: int) -> None:
    for spec in (deepseek3_attention(), compressed(128, 4, 512)):
        on_chip, whole = _cache(spec, 100, _share(spec, tp)), _cache(spec, 100)
        assert number(on_chip.per_sequence) == number(whole.per_sequence)


def test_states_are_divided() -> None:
    spec = _with(DELTA)
    assert number(_cache(spec, 1, _share(spec, 2)).state) == number(_cache(spec, 1).state) / 2


def test_a_stage_keeps_its_layers() -> None:
    share = Share(q(1, "1", "tp"), {"layer0": 3})
    assert number(_cache(LLAMA, 100, share).per_sequence) == number(_cache(LLAMA, 100).per_sequence) * 3 / 4


def test_the_inputs_of_a_convolution_have_their_own_type() -> None:
    conv = (2 * 2 * 16 + 4 * 16) * 3
    found = _cache(_with(DELTA), 1, conv_dtype="bf16")
    assert number(found.state) == 4 * (4 * (DELTA.state - conv) + 2 * conv)
    assert DELTA.state - conv == 4 * 16 * 16


PAGE = q(16, "token", "page")


@forall(st.integers(1, 5000))
def test_pages_round_up(tokens: int) -> None:
    found = number(_cache(LLAMA, tokens, page=PAGE).per_sequence)
    assert found == 2 * EACH * 16 * math.ceil(tokens / 16)


@forall(st.integers(1, 5000), st.integers(1, 600))
def test_pages_of_a_window(tokens: int, window: int) -> None:
    """Never less than the window needs, never more than one page beyond it at either end."""
    each = 2 * EACH
    found = number(_cache(_with(_attention(window=window)), tokens, page=PAGE).per_sequence)
    assert each * min(tokens, window) <= found <= each * 16 * min(math.ceil(tokens / 16), 1 + math.ceil(window / 16))


def test_windows_kept_whole() -> None:
    spec = _with(_attention(window=64), _attention())
    assert number(_cache(spec, 1000, windows=False).per_sequence) == number(_cache(LLAMA, 1000).per_sequence)


def test_an_aligned_page_holds_a_state() -> None:
    spec = _with(DELTA, _attention())
    caching = Caching(conv_dtype="bf16")
    page = aligned_page(Leaves(spec), caching, PAGE)
    state = number(_cache(spec, 1, conv_dtype="bf16").state) / 2
    one_layer = 2 * 2 * 32
    assert number(page) == 16 * math.ceil(state / one_layer / 16)
    assert number(page) * one_layer >= state
    found = _cache(spec, 1, conv_dtype="bf16", page=page, aligned=True)
    assert number(found.state) == 2 * number(page) * one_layer
    assert number(found.per_sequence) == 4 * number(page) * one_layer


def _published_hybrid(heads: int) -> ModelSpec:
    """One layer in four with 4 key-value heads of 256, the others with states of 128 x 128 a value head."""
    delta = GatedDeltaNet(d_model=64, k_heads=16, v_heads=heads, k_dim=128, v_dim=128, conv_kernel=4).mixer()
    full = _attention(kv_heads=4, head_dim=256, v_head_dim=256)
    return _with(delta, delta, delta, full)


@pytest.mark.parametrize(
    ("heads", "dtype", "drafts", "logged"),
    [
        pytest.param(48, "bf16", 0, 784, id="27B: vllm 40691"),
        pytest.param(32, "bf16", 0, 528, id="4B: vllm 40696"),
        pytest.param(48, "bf16", 1, 800, id="27B with a draft token: vllm 54076"),
        pytest.param(48, "fp8", 3, 1600, id="27B in 8 bits with three"),
    ],
)
def test_pages_as_engines_logged_them(heads: int, dtype: str, drafts: int, logged: int) -> None:
    caching = Caching(dtype, conv_dtype="bf16", drafts=drafts)
    assert number(aligned_page(Leaves(_published_hybrid(heads)), caching, PAGE)) == logged


@pytest.mark.parametrize("aligned", [False, True])
def test_each_draft_token_has_a_state(aligned: bool) -> None:
    spec = _with(DELTA, _attention())
    how: dict[str, Any] = {"conv_dtype": "bf16", "page": q(4096, "token", "page")} if aligned else {}
    plain, drafted = (_cache(spec, 1, drafts=drafts, aligned=aligned, **how) for drafts in (0, 3))
    longer = 0 if aligned else 2 * 4 * 3 * (2 * 2 * 16 + 4 * 16)  # three more inputs of each channel, in fp32
    assert number(drafted.state) == 4 * (number(plain.state) + longer)


@pytest.mark.parametrize("spec", [LLAMA, _with(DELTA)])
def test_models_without_both_keep_their_page(spec: ModelSpec) -> None:
    assert aligned_page(Leaves(spec), Caching(), PAGE) is PAGE


def test_rows_add_up() -> None:
    found = _cache(_with(DELTA, _attention(window=64), _attention(), _attention()), 500)
    assert sum(number(row.whole) for row in found.rows) == number(found.per_sequence)
    assert [(row.what, row.window) for row in found.rows] == [("state", 0), ("window", 64), ("full", 0), ("full", 0)]


def test_whole_chip_and_pages_go_into_one_case() -> None:
    spec = _with(DELTA, _attention(window=64))
    case, leaves, tokens = Case("test", "kv"), Leaves(spec), q(500, "token", "context")
    for share in (None, _share(spec, 2)):
        for how in (Caching(), Caching(page=PAGE, aligned=True)):
            case.add(*kept(leaves, tokens, how, share).all)
    names = {"kv.per_sequence", "kv.paged.per_sequence", "chip.kv.per_sequence", "chip.kv.paged.per_sequence"}
    assert names <= set(case.quantities)


CONFIG = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100,
}  # fmt: skip


@pytest.mark.parametrize(
    "field",
    [{"kv_lora_rank": 512}, {"kv_sharing_period": 2}, {"attention_window_pattern": [1, 0]}, {"num_global_kv_heads": 1},
     {"cross_layer_kv_share": True}, {"kv_cache_compression": 4}],
)  # fmt: skip
def test_a_field_that_may_change_the_cache_is_refused(field: dict[str, object]) -> None:
    """A reader that ignored one of these would print a cache of the wrong size."""
    assert number(kv_cache(read_config(CONFIG, name="plain"), q(1, "token")).per_token) == 2 * 2 * 2 * 2 * 16
    with pytest.raises(InputError, match=next(iter(field))):
        read_config(CONFIG | field, name="odd")
