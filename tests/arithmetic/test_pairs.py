"""Visible pairs: closed forms against counting them one by one."""

import pytest
from hypothesis import given as forall
from hypothesis import strategies as st
from tests.arithmetic.models import compressed, deepseek3_attention, shaped
from tests.arithmetic.worked import number

from ridgeline.arithmetic.pairs import ALL, MASKS, Attends, Batch, Mask, indexed_by, pairs, seen_by
from ridgeline.arithmetic.params import Leaves, places
from ridgeline.arithmetic.spec import Attention, Layer, ModelSpec
from ridgeline.core.errors import InputError

LENGTHS = st.integers(1, 200)


def _layer(**reach: object) -> ModelSpec:
    spec = shaped(layers=1, d_model=8, d_ff=8, heads=1, vocab=8)
    mixer = Attention(d_model=8, heads=1, kv_heads=1, head_dim=8, v_head_dim=8, **reach)
    layer = Layer(mixers=(mixer,), ffns=spec.kinds[0].ffns, norms=spec.kinds[0].norms)
    return spec.model_copy(update={"kinds": (layer,)})


def _pairs(spec: ModelSpec, batch: Batch, mask: Mask, *, windows: bool = True) -> float:
    leaves = Leaves(spec)
    place = next(p for p in places(spec) if p.label == "layer0.mixer")
    assert isinstance(place.block, Attends)
    seen = seen_by(place.block) if windows else ALL
    return number(pairs("pairs", leaves, place, batch, mask, seen))  # type: ignore[no-any-return]


@forall(LENGTHS, st.integers(1, 4))
def test_without_a_window(seq: int, sequences: int) -> None:
    spec, batch = _layer(), Batch.of(seq, sequences)
    assert _pairs(spec, batch, "full") == sequences * seq**2
    assert _pairs(spec, batch, "half") == sequences * seq**2 / 2
    assert _pairs(spec, batch, "exact") == sequences * sum(range(1, seq + 1))


@forall(LENGTHS, st.integers(1, 250))
def test_window(seq: int, window: int) -> None:
    spec, batch = _layer(window=window), Batch.of(seq)
    exact = sum(min(query + 1, window) for query in range(seq))
    assert _pairs(spec, batch, "exact") == exact
    assert _pairs(spec, batch, "full") == seq * min(seq, window)
    assert _pairs(spec, batch, "half") == (exact if window < seq else seq**2 / 2)
    assert _pairs(spec, batch, "full", windows=False) == seq**2


@forall(LENGTHS, st.integers(1, 250))
def test_chunk(seq: int, chunk: int) -> None:
    spec, batch = _layer(chunk=chunk), Batch.of(seq)
    assert _pairs(spec, batch, "exact") == sum(query % chunk + 1 for query in range(seq))
    full = sum(min(chunk, seq - query // chunk * chunk) for query in range(seq))
    assert _pairs(spec, batch, "full") == full
    assert _pairs(spec, batch, "half") == full / 2


@forall(LENGTHS, st.integers(1, 50))
def test_sparse_top_k_reads_as_many_keys_as_a_window(seq: int, top_k: int) -> None:
    assert _pairs(_layer(sparse_top_k=top_k), Batch.of(seq), "exact") == _pairs(
        _layer(window=top_k), Batch.of(seq), "exact"
    )


@forall(LENGTHS, st.integers(1, 50), st.integers(1, 50), st.integers(1, 20))
def test_compressed_past(seq: int, window: int, span: int, top_k: int) -> None:
    batch = Batch.of(seq)
    near = sum(min(query + 1, window) for query in range(seq))
    closed = [(query + 1) // span for query in range(seq)]
    assert _pairs(compressed(window, 0), batch, "exact") == near
    assert _pairs(compressed(window, span), batch, "exact") == near + sum(closed)
    chosen = sum(min(entries, top_k) for entries in closed)
    assert _pairs(compressed(window, span, top_k), batch, "exact") == near + chosen
    full = seq * min(seq, window) + seq * min(seq // span, top_k)
    assert _pairs(compressed(window, span, top_k), batch, "full") == full


def test_what_an_indexer_scores() -> None:
    spec, batch = compressed(8, 4, 3), Batch.of(100)
    leaves = Leaves(spec)
    place = next(p for p in places(spec) if p.label == "layer0.mixer")
    assert isinstance(place.block, Attends)
    scored = indexed_by(place.block)
    assert scored is not None
    entries = number(pairs("indexed", leaves, place, batch, "exact", scored))
    assert entries == sum((query + 1) // 4 for query in range(100))
    plain = _layer().kinds[0].mixers[0]
    assert isinstance(plain, Attends)
    assert indexed_by(plain) is None


@pytest.mark.parametrize("mask", MASKS)
def test_documents_are_summed_squares(mask: Mask) -> None:
    lengths = (100, 28, 28, 300, 56)
    packed = _pairs(_layer(window=64), Batch.of(512, 1, lengths), mask)
    assert packed == sum(_pairs(_layer(window=64), Batch.of(length), mask) for length in lengths)
    assert _pairs(_layer(), Batch.of(512, 1, lengths), "full") == sum(length**2 for length in lengths)
    assert _pairs(_layer(), Batch.of(512, 1, (512,)), mask) == _pairs(_layer(), Batch.of(512), mask)


def test_an_encoder_sees_every_pair() -> None:
    for mask in MASKS:
        assert _pairs(_layer(causal=False), Batch.of(50), mask) == 2500


def test_the_whole_sequence_counts_however_many_chips_share_it() -> None:
    """Squaring a chip's share of the sequence would lose a factor of the context-parallel size."""
    spec, shards = deepseek3_attention(1), 4
    whole = _pairs(spec, Batch.of(8192), "full")
    assert whole == shards * (shards * _pairs(spec, Batch.of(8192 // shards), "full"))


@pytest.mark.parametrize("sizes", [(0,), (-5, 1), (8, 0), (8, 1, (0, 8)), (8, 1, (5, 5))])
def test_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="batch"):
        Batch.of(*sizes)  # type: ignore[arg-type]
