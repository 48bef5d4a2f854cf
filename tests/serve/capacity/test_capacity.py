"""How many fit: the stage that binds, what is copied, what is refused."""

from dataclasses import replace

import pytest
from tests.arithmetic.models import with_mtp
from tests.serve.capacity.asked import SPECS, attention, llama, mixed, small

from ridgeline.arithmetic.named import find_model
from ridgeline.core.case import Case
from ridgeline.core.catalog import device
from ridgeline.core.errors import InfeasibleError, InputError
from ridgeline.serve.capacity.capacity import capacity
from ridgeline.serve.capacity.settings import Settings
from ridgeline.serve.deployment import Deployment


def test_llama_on_eight_chips() -> None:
    found = llama()
    assert found.whole.per_token.value == 327_680
    assert float(found.paged.per_sequence.value) == 327_680 * 8192 / 8
    assert found.sequences.value == found.free_bytes // (327_680 * 1024)


def test_more_chips_than_heads_copy_the_cache() -> None:
    four, eight = (small(tp=tp) for tp in (4, 8))
    assert four.paged.per_sequence.value == eight.paged.per_sequence.value


def test_latents_take_the_same_on_every_chip() -> None:
    one, eight = (small("latents", tp=tp) for tp in (1, 8))
    assert one.paged.per_sequence.value == eight.paged.per_sequence.value == one.dense.per_sequence.value


def test_states_are_divided_with_their_heads() -> None:
    plain = Settings(aligned=False)
    one, two = (small("states", settings=plain, tp=tp) for tp in (1, 2))
    assert one.dense.state.value == 2 * two.dense.state.value


def test_data_parallel_attention_multiplies_the_requests() -> None:
    one, four = small("latents"), small("latents", dp_attention=4, settings=Settings(outside=1e9))
    each = four.free_bytes // float(four.paged.per_sequence.value)
    assert four.sequences.value == 4 * each
    assert float(four.sequences.value) > 3.9 * float(one.sequences.value)


def test_the_tightest_stage_binds() -> None:
    made = Deployment(find_model("llama-3-70b")[0], device("H100"), tp=4, pp=3)
    found = capacity(made, 8192)
    others = [capacity(replace(made, pp=1, tp=8), 8192).sequences.value]
    assert found.stage in (0, 1, 2)
    assert float(found.dense.per_sequence.value) == 327_680 * 8192 / 4 * 27 / 80
    assert others[0] != found.sequences.value


def test_a_stage_that_keeps_nothing_does_not_bind() -> None:
    bare = mixed(attention(kv_shared=True), attention())
    found = capacity(Deployment(bare, device("H100"), pp=8), 4096)
    assert found.stage % 2 == 1
    with pytest.raises(InputError, match="a model with a layer that caches"):
        capacity(Deployment(mixed(attention(kv_shared=True)), device("H100")), 4096)


def test_a_page_grows_until_it_holds_the_state() -> None:
    found = small("states")
    state = (8 * 64 * 64 * 4 + (2 * 4 * 64 + 8 * 64) * 3 * 2) / (2 * 4 * 64 * 2)
    assert found.page_tokens == -(-state // 16) * 16
    assert float(found.paged.per_sequence.value) >= float(found.dense.per_sequence.value)


def test_a_prediction_module_caches_too() -> None:
    spec = with_mtp(SPECS["full"])
    plain, served = (
        capacity(Deployment(spec, device("H100")), 4096, Settings(mtp=mtp)).whole.per_token.value
        for mtp in (False, True)
    )
    assert served == plain * 9 / 8


def test_the_model_limits_the_context() -> None:
    found = llama()
    assert found.max_context is not None
    assert found.max_context.value == 8192
    assert found.max_context.inputs["memory"].value > 8192


def test_weights_that_do_not_fit_name_the_term_and_the_nearest_count() -> None:
    with pytest.raises(InfeasibleError) as caught:
        llama(tp=1)
    assert caught.value.limit == "chip.weights on one chip"
    assert caught.value.nearest.startswith("4 chips (tp=4")


def test_memory_taken_by_another_term_is_named() -> None:
    with pytest.raises(InfeasibleError) as caught:
        llama(settings=Settings(activations=90e9))
    assert caught.value.limit == "chip.activations on one chip"
    assert caught.value.nearest == "none up to 64 times the chips"


@pytest.mark.parametrize(
    ("context", "tp", "said"),
    [(0, 8, "at least 1 token"), (8192, 3, "divisor of 64 attention heads")],
)
def test_refused(context: int, tp: int, said: str) -> None:
    with pytest.raises(InputError, match=said):
        llama(context, tp=tp)


def test_chips_that_neither_divide_nor_multiply_the_heads() -> None:
    spec = mixed(attention(heads=12, kv_heads=4))
    with pytest.raises(InputError, match="4 key-value heads, or a multiple"):
        capacity(Deployment(spec, device("H100"), tp=6), 4096)


def test_every_number_opens() -> None:
    found = small("states", tp=2, kv="int4")
    case = Case("test", "capacity")
    case.add(found.sequences, found.whole.per_sequence, found.dense.per_sequence)
    assert case.find("capacity.sequences").inputs
    assert {"chip.weights", "chip.activations", "kv.element.int4.scaled", "admission.utilisation"} <= set(
        case.quantities
    )
