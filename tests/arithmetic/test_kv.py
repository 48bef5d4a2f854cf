"""The cache by architecture."""

import pytest
from hypothesis import given as forall
from hypothesis import strategies as st
from tests.arithmetic.models import PUBLISHED, compressed, deepseek3_attention, shaped, with_mtp
from tests.arithmetic.worked import number, q

from ridgeline.arithmetic.kv import concurrent_requests, kv_cache
from ridgeline.arithmetic.mixers import Mamba1
from ridgeline.arithmetic.spec import MLA, Attention, Layer, ModelSpec, Part, linear
from ridgeline.core.case import Case
from ridgeline.core.errors import InputError

CONTEXT = q(8192, "token", "context")


def _with(spec: ModelSpec, mixer: object) -> ModelSpec:
    layer = spec.kinds[0]
    return spec.model_copy(update={"kinds": (Layer(mixers=(mixer,), ffns=layer.ffns, norms=layer.norms),)})


BASE = shaped(layers=4, d_model=64, d_ff=64, heads=8, kv_heads=2, head_dim=16, vocab=64)


def _attention(**other: object) -> ModelSpec:
    sizes: dict[str, object] = {"d_model": 64, "heads": 8, "kv_heads": 2, "head_dim": 16, "v_head_dim": 16}
    return _with(BASE, Attention.model_validate(sizes | other))


@pytest.mark.parametrize(
    ("spec", "per_token", "per_sequence"),
    [
        pytest.param(_attention(kv_heads=8), 4 * 512, 4 * 512 * 8192, id="multi-head"),
        pytest.param(_attention(), 4 * 128, 4 * 128 * 8192, id="grouped-query"),
        pytest.param(_attention(kv_heads=1), 4 * 64, 4 * 64 * 8192, id="multi-query"),
        pytest.param(_attention(v_head_dim=48), 4 * 256, 4 * 256 * 8192, id="wider values"),
        pytest.param(_attention(window=1024), 4 * 128, 4 * 128 * 1024, id="window"),
        pytest.param(_attention(window=16384), 4 * 128, 4 * 128 * 8192, id="window longer than the context"),
        pytest.param(_attention(chunk=2048), 4 * 128, 4 * 128 * 2048, id="chunks"),
        pytest.param(_attention(sparse_top_k=64), 4 * 128, 4 * 128 * 8192, id="sparse reading keeps all"),
        pytest.param(_attention(kv_shared=True), 0, 0, id="keys and values of an earlier layer"),
        pytest.param(_attention(k_equals_v=True), 4 * 128, 4 * 128 * 8192, id="one projection, two caches"),
    ],
)
def test_by_architecture(spec: ModelSpec, per_token: int, per_sequence: int) -> None:
    found = kv_cache(spec, CONTEXT)
    assert number(found.per_token) == per_token
    assert number(found.per_sequence) == per_sequence
    assert number(found.state) == 0


def test_latent_attention_does_not_depend_on_heads() -> None:
    found = kv_cache(deepseek3_attention(), CONTEXT)
    assert number(found.per_token) == 2 * 61 * (512 + 64) == 70_272


def test_an_indexer_caches_its_key() -> None:
    block = MLA(d_model=64, heads=2, kv_rank=8, qk_nope=8, qk_rope=4, v_head_dim=8, sparse_top_k=16,
                extra=linear("indexer.k_proj", Part.ATTENTION, "d_model", "index_dim"),
                extra_dims={"index_heads": 3, "index_dim": 5})  # fmt: skip
    assert number(kv_cache(_with(BASE, block), CONTEXT).per_token) == 2 * 4 * (8 + 4 + 5)


@pytest.mark.parametrize(
    ("spec", "per_sequence"),
    [
        pytest.param(compressed(128, 0), 2 * 4 * 128, id="window only"),
        pytest.param(compressed(128, 16), 2 * 4 * (128 + 8192 / 16), id="one entry per span"),
        pytest.param(compressed(128, 4, 512), 2 * (4 * 128 + (4 + 4) * 8192 / 4), id="with the indexer's entries"),
    ],
)
def test_a_compressed_past(spec: ModelSpec, per_sequence: float) -> None:
    assert number(kv_cache(spec, CONTEXT).per_sequence) == per_sequence


def test_a_recurrent_state_is_constant() -> None:
    mixer = Mamba1(d_model=64, d_inner=128, d_state=16, dt_rank=4, conv_kernel=4).mixer()
    found = [kv_cache(_with(BASE, mixer), q(context, "token")) for context in (1, 100_000)]
    assert [number(item.per_sequence) for item in found] == [4 * 4 * mixer.state] * 2
    assert number(found[0].per_token) == 0


def test_alternating_windows() -> None:
    spec = shaped(layers=8, d_model=64, d_ff=64, heads=4, vocab=64, window=1024, full_every=4)
    found = kv_cache(spec, CONTEXT)
    assert number(found.per_sequence) == 2 * 2 * 64 * (2 * 8192 + 6 * 1024)


def test_narrower_elements() -> None:
    spec = PUBLISHED["llama3-8b"]()
    wide, narrow = (number(kv_cache(spec, CONTEXT, dtype=dtype).per_sequence) for dtype in ("bf16", "fp8"))
    assert wide == 2 * narrow


def test_multi_token_prediction_is_not_served() -> None:
    plain = PUBLISHED["llama3-8b"]()
    assert number(kv_cache(with_mtp(plain), CONTEXT).per_token) == number(kv_cache(plain, CONTEXT).per_token)


@forall(st.integers(1, 100_000), st.integers(1, 4096))
def test_a_window_bounds_the_cache(context: int, window: int) -> None:
    each = 4 * 128
    found = number(kv_cache(_attention(window=window), q(context, "token")).per_sequence)
    assert found == each * min(context, window)


def test_no_request_fits() -> None:
    found = concurrent_requests(q(80e9, "B"), q(140e9, "B"), q(10e9, "B"), q(1e9, "B"))
    assert number(found) == 0


def test_refused() -> None:
    with pytest.raises(InputError, match="above zero"):
        kv_cache(BASE, q(0, "token", "context"))
    with pytest.raises(InputError, match="element type"):
        kv_cache(BASE, CONTEXT, dtype="bf15")


def test_everything_goes_into_one_case() -> None:
    case = Case("test", "kv")
    case.add(*kv_cache(shaped(layers=8, d_model=64, d_ff=64, heads=4, vocab=64, window=64, full_every=4), CONTEXT).all)
    assert {"kv.per_token", "kv.per_sequence", "kv.state"} <= set(case.quantities)
    assert case.dumps()
