"""The tables of a kernel profile: what is read, what is filled, and what is refused with its place."""

from pathlib import Path

import numpy as np
import pytest
from tests.serve.simulate.profiles import CHUNKS, CONTEXTS, DECODES, PASTS, attention_rows, attention_us, write

from ridgeline.core.errors import InputError
from ridgeline.serve.simulate.costs.kernels import Choice, attention_grid, expert_seconds, read

HEADER = "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n"


def test_the_grid_is_exact_at_every_measured_node(tmp_path: Path) -> None:
    grid = attention_grid(read(write(tmp_path), Choice())["attention"])
    assert [axis.tolist() for axis in grid.axes] == [list(CHUNKS), list(PASTS), list(DECODES), [0, *CONTEXTS]]
    for row in attention_rows():
        *node, us = map(float, row.split(","))
        assert grid(*node) == pytest.approx(us * 1e-6, rel=1e-12)


def test_between_nodes_it_is_linear_in_each_axis(tmp_path: Path) -> None:
    grid = attention_grid(read(write(tmp_path), Choice())["attention"])
    ends = grid(64, 0, 2, 64), grid(256, 0, 2, 64)
    assert grid(160, 0, 2, 64) == pytest.approx(sum(ends) / 2, rel=1e-12)
    assert grid(160, 64, 5, 288) == pytest.approx(attention_us(160, 64, 5, 288) * 1e-6, rel=1e-9)


def test_an_axis_without_effect_is_flat(tmp_path: Path) -> None:
    grid = attention_grid(read(write(tmp_path), Choice())["attention"])
    assert grid(0, 128, 2, 64) == grid(0, 0, 2, 64)
    assert grid(64, 0, 0, 512) == grid(64, 0, 0, 0)


def test_two_grids_in_one_table_are_joined_in_straight_lines(tmp_path: Path) -> None:
    finer = [f"128,{past},{n},{kv},{attention_us(128, past, n, kv)}"
             for past in PASTS for n in DECODES[1:] for kv in CONTEXTS[1:]]  # fmt: skip
    finer += [f"128,{past},0,0,{attention_us(128, past, 0, 0)}" for past in PASTS]
    rows = HEADER + "\n".join(attention_rows() + finer)
    grid = attention_grid(read(write(tmp_path, attention=rows), Choice())["attention"])
    assert grid(128, 128, 2, 64) == pytest.approx((2 * grid(64, 128, 2, 64) + grid(256, 128, 2, 64)) / 3)
    assert grid(128, 128, 2, 512) == pytest.approx(attention_us(128, 128, 2, 512) * 1e-6)


def test_more_decodes_than_were_measured_beside_a_chunk_cost_what_they_cost_alone(tmp_path: Path) -> None:
    rows = [row for row in attention_rows() if row.startswith("0,") or row.split(",")[2] != "8"]
    grid = attention_grid(read(write(tmp_path, attention=HEADER + "\n".join(rows)), Choice())["attention"])
    alone = grid(0, 0, 8, 512) - grid(0, 0, 2, 512)
    assert grid(64, 0, 8, 512) == pytest.approx(grid(64, 0, 2, 512) + alone)


def test_a_hole_is_refused_with_its_place(tmp_path: Path) -> None:
    rows = [row for row in attention_rows() if not row.startswith("64,128,8,512")]
    with pytest.raises(InputError, match="prefill_chunk 64, kv_prefill 128, n_decode 8, kv_decode 512"):
        attention_grid(read(write(tmp_path, attention=HEADER + "\n".join(rows)), Choice())["attention"])


def test_a_corner_that_nothing_surrounds_is_refused_with_its_place(tmp_path: Path) -> None:
    rows = [row for row in attention_rows() if not row.startswith("256,128,")]
    with pytest.raises(InputError, match="prefill_chunk 256, kv_prefill 128"):
        attention_grid(read(write(tmp_path, attention=HEADER + "\n".join(rows)), Choice())["attention"])


def test_a_table_without_contexts_is_refused(tmp_path: Path) -> None:
    rows = HEADER + "0,0,1,0,5\n0,0,2,0,6\n16,0,0,0,7\n"
    with pytest.raises(InputError, match="kv_decode above 0"):
        attention_grid(read(write(tmp_path, attention=rows), Choice())["attention"])


def test_a_grid_that_does_not_begin_without_prompts_is_refused(tmp_path: Path) -> None:
    rows = [row for row in attention_rows() if not row.startswith("0,")]
    with pytest.raises(InputError, match="prefill_chunk 0"):
        attention_grid(read(write(tmp_path, attention=HEADER + "\n".join(rows)), Choice())["attention"])


@pytest.mark.parametrize(
    ("table", "text", "said"),
    [
        ("dense", None, "a table dense"),
        ("per_sequence", None, "a table per_sequence"),
        ("dense", "layer,tokens,time_us\n", "Expected rows, got 'none', at .*dense.csv"),
        ("dense", "", "a whole table"),
        ("dense", "layer,tokens,time\nqkv_proj,1,2\n", "the column time_us"),
        ("dense", "layer,tokens,time_us\nqkv_proj,1,2\no_proj,2,-1\n", "row 2: time_us"),
        ("dense", "layer,tokens,time_us\nqkv_proj,1.5,2\n", "row 1: tokens"),
        ("dense", "layer,tokens,time_us\nqkv_proj,1,\n", "row 1: time_us"),
        ("attention", HEADER + "0,0,1,16,1\n0,0,1,16,2\n", "n_decode 1, kv_decode 16"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, table: str, text: str | None, said: str) -> None:
    folder = write(tmp_path, **{table: text})
    with pytest.raises(InputError, match=said):
        read(folder, Choice())["attention"].grid()


def test_a_node_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    text = "layer,sequences,time_us\nlm_head,1,1\nlm_head,1,2\nsampler,1,1\n"
    with pytest.raises(InputError, match="lm_head, sequences 1"):
        read(write(tmp_path, per_sequence=text), Choice())["per_sequence"].curves()


def test_not_a_folder_and_two_profiles_in_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder"):
        read(tmp_path / "none", Choice())
    for prefix in ("a_", "b_"):
        (tmp_path / f"{prefix}dense.csv").write_text("layer,tokens,time_us\nqkv_proj,1,2\n")
    with pytest.raises(InputError, match="one profile"):
        read(tmp_path, Choice())


def test_columns_choose_among_profiles(tmp_path: Path) -> None:
    text = "hw,tp,layer,sequences,time_us\n" + "".join(
        f"{hw},{tp},{layer},1,{us}\n"
        for hw, tp, us in (("a", 1, 5), ("a", 2, 6), ("b", 1, 7))
        for layer in ("lm_head",)
    )
    folder = write(tmp_path, per_sequence=text)
    found = read(folder, Choice("a", tp=2))["per_sequence"]
    assert found.seconds["time_us"].tolist() == pytest.approx([6e-6])
    with pytest.raises(InputError, match="the hw to choose"):
        read(folder, Choice())
    with pytest.raises(InputError, match="rows with that tp"):
        read(folder, Choice("b", tp=2))
    with pytest.raises(InputError, match="rows with that hw"):
        read(folder, Choice("c"))


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path, dense=None)
    (folder / "dense.parquet").write_bytes(b"PAR1nothing")
    with pytest.raises(InputError, match="a whole table"):
        read(folder, Choice())


def test_experts_are_linear_in_what_is_activated_and_in_tokens(tmp_path: Path) -> None:
    text = "tokens,activated_experts,time_us\n1,8,10\n2,8,20\n2,16,40\n4,8,30\n4,16,60\n"
    rows = read(write(tmp_path, moe=text), Choice())["moe"]
    found = expert_seconds(rows, np.array([0.5, 1.0, 2.0, 3.0, 8.0]), np.array([4.0, 12.0, 12.0, 16.0, 8.0]))
    assert found * 1e6 == pytest.approx([10, 10, 30, 50, 50])
