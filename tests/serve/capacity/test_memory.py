"""What one chip has left."""

import pytest
from tests.serve.capacity.asked import llama, small

from ridgeline.core.catalog import device
from ridgeline.core.errors import InputError
from ridgeline.core.specs import build
from ridgeline.serve.capacity.memory import captured
from ridgeline.serve.capacity.settings import Settings


def test_the_terms_add_up() -> None:
    room = llama().room
    taken = sum(float(term.base) for term in room.terms)
    assert float(room.free.base) + taken == pytest.approx(float(room.usable.base))
    assert float(room.usable.base) == pytest.approx(0.9 * 80e9)


def test_terms_of_a_log_replace_ours() -> None:
    told = Settings(memory="100GB", model="20GB", activations="3GB", graphs="1GB", outside="1GB", utilisation=0.5)
    assert llama(settings=told).free_bytes == pytest.approx(25e9)


def test_a_larger_chunk_takes_more() -> None:
    one, two = (llama(settings=Settings(chunk=chunk)).room.activations.value for chunk in (8192, 16_384))
    assert float(two) == 2 * float(one)


def test_logits_are_the_peak_of_a_small_chunk() -> None:
    found = small(settings=Settings(chunk=1, sequences=64))
    assert found.room.activations.value == 64 * 32_000 * 4


@pytest.mark.parametrize(
    "wrong",
    [{"memory": "0GB"}, {"memory": "-1GB"}, {"memory": float("nan")}, {"utilisation": 0}, {"utilisation": 1.2},
     {"utilisation": float("nan")}, {"chunk": 0}, {"page": -1}, {"pages": 16}, {"memory": True}],
)  # fmt: skip
def test_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        build(Settings, wrong)


@pytest.mark.parametrize(
    ("name", "there"), [("H100", True), ("MI300X", True), ("TPU v5p", False), ("Trainium2", False)]
)
def test_only_chips_that_capture_launches_hold_graphs(name: str, there: bool) -> None:
    found = captured(device(name))
    assert (found.value > 0) == there
    assert found.kind == "assumed"
    assert there or "compiled ahead" in found.note
