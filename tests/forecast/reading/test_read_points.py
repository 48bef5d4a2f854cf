"""Ladders from files and from memory: formats, names, conventions, and everything that is refused or dropped."""

import csv
import json
import math
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ridgeline.core.errors import InputError, MissingExtraError, RidgelineError
from ridgeline.forecast.reading import raw_tables
from ridgeline.forecast.reading.read_points import ReadOptions, from_columns, read_points

ROWS = "1e8,2e9,3.1\n2e8,4e9,2.9\n4e8,8e9,2.7\n"
SCALING: dict[str, tuple[int, dict[str, Any]]] = {
    "chinchilla_epoch/points.csv": (240, {}),
    "chinchilla_epoch/epochai_chinchilla__massivetext__chinchilla.csv": (123, {"keep_excluded": True}),
    "chinchilla_kyotakano/df.csv": (234, {}),
    "llama3_isoflop/llama_3__raw_loss.csv": (133, {"keep_excluded": True}),
    "llama3_isoflop/llama_3__exp_loss.csv": (115, {}),
    "gemstones/hot.csv": (220, {}),
    "gemstones/hot_100b+.csv": (770, {}),
    "gemstones/hot_100b+_512x.csv": (175, {}),
    "gemstones/hot_120b+_only.csv": (528, {}),
    "gemstones/hot_sampled_like_chinchilla.csv": (24, {}),
    "gemstones/cool_begin.csv": (199, {}),
    "gemstones/cool_end.csv": (199, {}),
    "gemstones/lr_ablation_hot.csv": (200, {}),
    "gemstones/lr_ablation_hot_sampled_like_chinchilla.csv": (23, {}),
    "gemstones/slim_chinchilla.csv": (28, {}),
    "gemstones/lr_ablation_slim_chinchilla.csv": (27, {}),
    "olmo_ladder/ladder_final.csv": (30, {}),
    "loss_to_loss/runs.csv": (535, {}),
    "datablations/points182.csv": (182, {}),
    "porian/isoflop_points.csv": (324, {"where": {"param_count": "kaplan"}, "keep_excluded": True}),
    "scalebench/farseer_scaling_law_train.csv": (400, {}),
    "scalebench/farseer_scaling_law_test.csv": (7, {}),
    "scalebench/data_constrained_scaling_law_train.csv": (161, {}),
    "scalebench/data_constrained_scaling_law_test.csv": (21, {}),
    "scalebench/lr_bsz_scaling_law_train.csv": (2702, {}),
    "scalebench/lr_bsz_scaling_law_test.csv": (117, {}),
    "step_law/dense_lr_bs_loss.csv": (1911, {"params": "non-embedding", "scale": {"batch": 2048}}),
    "step_law/moe_lr_bs_loss.csv": (708, {"params": "total", "scale": {"batch": 2048}}),
}  # fmt: skip


def write(folder: Path, text: str | bytes, name: str = "ladder.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read_or_refused(path: Path) -> int | str:
    """The number of runs, or the text of the refusal."""
    try:
        return len(read_points(path))
    except RidgelineError as error:
        return str(error)


# formats


def test_csv(tmp_path: Path) -> None:
    points = read_points(write(tmp_path, "N,D,loss\n" + ROWS))
    assert points["N"].tolist() == [1e8, 2e8, 4e8]
    assert points["C"].tolist() == [6 * 1e8 * 2e9, 6 * 2e8 * 4e9, 6 * 4e8 * 8e9]
    assert points.assumed == ("C = 6*N*D",)
    assert points.rows.tolist() == [2, 3, 4]
    assert points.source is not None
    assert points.source.size == (tmp_path / "ladder.csv").stat().st_size


@pytest.mark.parametrize(
    "content",
    [
        ("N,D,loss\n" + ROWS).encode("utf-8-sig"),
        ("N,D,loss\n" + ROWS).encode("utf-16"),
        ("N,D,loss\n" + ROWS).encode("utf-16-le"),
        ("N,D,loss\n" + ROWS).encode("utf-16-be"),
        ("N,D,loss\r\n" + ROWS.replace("\n", "\r\n")).encode(),
        ("N\tD\tloss\n" + ROWS.replace(",", "\t")).encode(),
        ("N|D|loss\n" + ROWS.replace(",", "|")).encode(),
        ("N D loss\n" + ROWS.replace(",", "  ")).encode(),
        ("# our ladder\n\nN,D,loss\n" + ROWS.replace("\n", "\n\n")).encode(),
        ('"N","D","loss"\n' + "\n".join(",".join(f'"{c}"' for c in r.split(",")) for r in ROWS.split())).encode(),
        b"N;D;loss\n100.000.000;2.000.000.000;3,1\n200.000.000;4.000.000.000;2,9\n400.000.000;8.000.000.000;2,7\n",
        b'N,D,loss\n"100,000,000","2,000,000,000",3.1\n"200,000,000","4,000,000,000",2.9\n400000000,8e9,2.7\n',
        "N;D;loss\n1E8;2E9;3,10\n2E8;4E9;2,90\n4E8;8E9;2,70\n".encode("cp1252"),
        b"N,D,loss\n100M,2B,3.1\n200M,4B,2.9\n0.4B,8G,2.7\n",
        b"N (M),tokens [B],loss,\n100,2,3.1,\n200,4,2.9,\n400,8,2.7,\n",
        "N,D,loss,note\n1e8,2e9,3.1,\xe9t\xe9\n2e8,4e9,2.9,\n4e8,8e9,2.7,\n".encode("latin-1"),
    ],
)  # fmt: skip
def test_the_same_ladder_however_it_is_written(content: bytes, tmp_path: Path) -> None:
    points = read_points(write(tmp_path, content))
    assert np.allclose(points["N"], [1e8, 2e8, 4e8], rtol=1e-12)
    assert np.allclose(points["D"], [2e9, 4e9, 8e9], rtol=1e-12)
    assert points["loss"].tolist() == [3.1, 2.9, 2.7]
    assert points.lost == ()


@pytest.mark.parametrize(
    "text",
    [
        '[{"N": 1e8, "D": 2e9, "loss": 3.1}, {"N": 2e8, "D": 4e9, "loss": 2.9}]',
        '{"N": [1e8, 2e8], "D": [2e9, 4e9], "loss": [3.1, 2.9], "name": "ours"}',
        '{"about": "ours", "runs": [{"N": 1e8, "D": 2e9, "loss": 3.1}, {"N": 2e8, "D": 4e9, "loss": 2.9}]}',
        '{"N": 1e8, "D": 2e9, "loss": 3.1}\n{"N": 2e8, "D": 4e9, "loss": 2.9}\n',
        '\ufeff[{"N": "1e8", "D": 2e9, "loss": 3.1}, {"N": 2e8, "D": 4e9, "loss": "2.9"}, {"N": 1, "loss": NaN}]',
    ],
)
def test_json(text: str, tmp_path: Path) -> None:
    points = read_points(write(tmp_path, text, "ladder.json"))
    assert points["loss"].tolist() == [3.1, 2.9]
    assert points.rows.tolist() == [1, 2]


def test_parquet(tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    path = tmp_path / "ladder.parquet"
    flops = [6 * 10**19, 12 * 10**19]
    pl.DataFrame({"params": [10**9, 2 * 10**9], "C": [str(f) for f in flops], "loss": [3.1, None]}).write_parquet(path)
    points = read_points(path)
    assert points["D"].tolist() == [1e10]
    assert points.lost == ("row 2: the loss is nan",)


def test_parquet_needs_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtraError, match=r"ridgeline\[tables\]"):
        read_points(write(tmp_path, b"PAR1 and so on"))


def test_a_damaged_parquet_file(tmp_path: Path) -> None:
    pytest.importorskip("polars")
    with pytest.raises(InputError, match="Parquet"):
        read_points(write(tmp_path, b"PAR1 and so on"))


# names, units and conventions


@pytest.mark.parametrize(
    ("header", "params"),
    [
        ("params", "unstated"), ("n_params", "unstated"), ("total_params", "total"),
        ("non_embedding_params", "non-embedding"), ("Non-Embedding Params", "non-embedding"),
        ("active_params", "active"), ("N", "unstated"),
    ],
)  # fmt: skip
def test_what_n_counts_by_its_header(header: str, params: str, tmp_path: Path) -> None:
    points = read_points(write(tmp_path, f"{header},tokens,val_loss\n" + ROWS))
    assert points.params == params
    assert points["N"][0] == 1e8


def test_declared_conventions(tmp_path: Path) -> None:
    path = write(tmp_path, "total_params,non_embedding_params,tokens,loss\n2e8,1e8,2e9,3.1\n3e8,2e8,4e9,2.9\n")
    with pytest.raises(InputError, match="params=total or params=non-embedding"):
        read_points(path)
    chosen = read_points(path, ReadOptions(params="non-embedding"))
    assert (chosen["N"][0], chosen["N_total"][0], chosen.params) == (1e8, 2e8, "non-embedding")
    assert read_points(path, ReadOptions(params="total"))["N_non_embedding"][0] == 1e8
    with pytest.raises(InputError, match="active parameters"):
        read_points(path, ReadOptions(params="active"))
    with pytest.raises(InputError, match="one of total"):
        read_points(path, ReadOptions(params="totl"))
    with pytest.raises(InputError, match="a column of total parameters"):
        read_points(path, ReadOptions(params="total", columns={"N": "non_embedding_params"}))


def test_mixed_conventions_are_refused_by_row(tmp_path: Path) -> None:
    path = write(tmp_path, "N,D,loss,param_count\n1e8,2e9,3.1,kaplan\n2e8,4e9,2.9,kaplan\n4e8,8e9,2.7,standard\n")
    with pytest.raises(InputError, match=r"kaplan in line 2.*'standard'.*line 4"):
        read_points(path)
    assert read_points(path, ReadOptions(where={"param_count": "kaplan"})).params == "non-embedding"
    two = write(tmp_path, "N,non_embedding_params,D,loss\n1e8,,2e9,3.1\n,2e8,4e9,2.9\n", "two.csv")
    with pytest.raises(InputError, match=r"only non_embedding_params.*line 3"):
        read_points(two)


def test_an_explicit_mapping(tmp_path: Path) -> None:
    path = write(tmp_path, "Size,Read,Nats,experts\n1e8,2e9,3.1,8\n2e8,4e9,2.9,16\n")
    options = ReadOptions(columns={"N": "Size", "D": "Read", "loss": "Nats", "E": "experts"}, params="total")
    points = read_points(path, options)
    assert points["E"].tolist() == [8, 16]
    assert points.params == "total"
    with pytest.raises(InputError, match="did you mean Read"):
        read_points(path, ReadOptions(columns={"D": "Reed"}))


def test_a_header_that_does_not_match(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean parms") as error:
        read_points(write(tmp_path, "parms,tokens,loss\n" + ROWS))
    assert 'columns={"N": "parms"}' in str(error.value)
    with pytest.raises(InputError, match="a column of the loss"):
        read_points(write(tmp_path, "N,D,quality\n" + ROWS))
    with pytest.raises(InputError, match="one column of each name"):
        read_points(write(tmp_path, "N,N,loss\n" + ROWS))


@pytest.mark.parametrize(
    ("header", "said"), [("N,D,loss", "C = 6*N*D"), ("N,C,loss", "D = C/(6*N)"), ("D,C,loss", "N = C/(6*D)")]
)
def test_two_of_three(header: str, said: str, tmp_path: Path) -> None:
    points = read_points(write(tmp_path, f"{header}\n1e8,1.2e18,3.1\n2e8,4.8e18,2.9\n"))
    assert points.assumed == (said,)
    assert np.allclose(points["C"], 6 * points["N"] * points["D"])


def test_single_cells_are_filled(tmp_path: Path) -> None:
    points = read_points(write(tmp_path, "N,D,C,loss\n1e8,2e9,1e18,3.1\n2e8,,4.8e18,2.9\n"))
    assert points["D"].tolist() == pytest.approx([2e9, 4e9])
    assert points.assumed == ("D = C/(6*N) in 1 rows without it",)


def test_a_form_may_need_less(tmp_path: Path) -> None:
    path = write(tmp_path, "params,num_experts,loss\n1e8,8,3.1\n1e8,16,2.9\n1e8,,2.8\n")
    with pytest.raises(InputError, match="two of N, D and C"):
        read_points(path)
    options = ReadOptions(need=("N", "E", "loss"), columns={"E": "num_experts"})
    points = read_points(path, options)
    assert points["E"].tolist() == [8, 16]
    assert points.lost == ("line 4: E is absent or infinite",)
    assert "C" not in points


def test_units(tmp_path: Path) -> None:
    path = write(tmp_path, "N,D,loss,bs\n1,2,3.0,16\n2,4,2.0,32\n")
    options = ReadOptions(loss_unit="bits", scale={"N": 1e6, "D": 1e9, "batch": 2048})
    points = read_points(path, options)
    assert points["loss"].tolist() == pytest.approx([3 * math.log(2), 2 * math.log(2)])
    assert points["N"].tolist() == [1e6, 2e6]
    assert points["batch"].tolist() == [16 * 2048, 32 * 2048]
    assert "losses in bits per token, times ln 2" in points.assumed
    unscaled = write(tmp_path, "N,D,loss,bs\n1e6,2e9,3.0,16\n", "unscaled.csv")
    assert "bs is taken as a batch in tokens" in read_points(unscaled).assumed


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"loss_unit": "bytes"}, "nats or bits"), ({"decimal": ";"}, "a point or a comma"),
        ({"scale": {"N": 0.0}}, "scale of N"), ({"scale": {"N": math.nan}}, "scale of N"),
        ({"where": {"recipe": "x"}}, "a column of the file"), ({"where": {"loss": 9.0}}, "rows where loss"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit(options: dict[str, Any], match: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=match):
        read_points(write(tmp_path, "N,D,loss\n" + ROWS), ReadOptions(**options))


def test_where_takes_one_value_or_several(tmp_path: Path) -> None:
    path = write(tmp_path, "N,D,loss,data\n1e8,2e9,3.1,a\n2e8,4e9,2.9,b\n4e8,8e9,2.7,c\n")
    assert read_points(path, ReadOptions(where={"data": "b"})).rows.tolist() == [3]
    assert read_points(path, ReadOptions(where={"data": ["a", "c"]})).rows.tolist() == [2, 4]
    assert read_points(path, ReadOptions(where={"N": 100000000.0, "data": "a"})).rows.tolist() == [2]
    assert read_points(path, ReadOptions(where={"N": "200000000"})).rows.tolist() == [3]


def test_labels_and_further_columns(tmp_path: Path) -> None:
    text = "run_name,dataset,hparams,seed,decay,isoflop,N,D,loss,unique_tokens,lr,quality\n"
    text += "r1,rw,base,1,cosine,1e18,1e8,2e9,3.1,1e9,3e-4,0.5\nr2,rw,tuned,2,const,1e18,2e8,4e9,2.9,1e9,1e-3,0.6\n"
    points = read_points(write(tmp_path, text))
    assert points.labels["run"].tolist() == ["r1", "r2"]
    assert points.labels["recipe"].tolist() == ["base", "tuned"]
    assert points.labels["schedule"].tolist() == ["cosine", "const"]
    assert points.labels["budget"].tolist() == ["1e18", "1e18"]
    assert points["U"].tolist() == [1e9, 1e9]
    assert points["quality"].tolist() == [0.5, 0.6]


def test_the_horizon_from_steps(tmp_path: Path) -> None:
    points = read_points(write(tmp_path, "N,D,loss,step,total_steps\n1e8,2e9,3.1,500,1000\n2e8,4e9,2.9,1000,1000\n"))
    assert points["horizon"].tolist() == [4e9, 4e9]


def test_exact_flops_of_shapes(tmp_path: Path) -> None:
    text = "N,D,loss,d_model,layers,vocab,seq\n85e6,2e9,3.1,768,12,50257,1024\n7.1e6,2e9,3.6,256,4,50257,1024\n"
    points = read_points(write(tmp_path, text))
    ratio = points["C_exact"] / points["C"]
    assert ratio[1] > ratio[0] > 1.3  # the output layer, which these N leave out, weighs most in the small model
    # 24 L d^2 forward for the layers, 4 T d L for half of the pairs, 2 V d for the head; three passes
    d, layers, vocab, seq = 768, 12, 50257, 1024
    expected = 3 * (24 * layers * d * d + 2 * (seq + 1) * d * layers + 2 * vocab * d) * 2e9
    assert points["C_exact"][0] == pytest.approx(expected, rel=1e-12)
    assert any("walks the matmuls" in said for said in points.assumed)


@pytest.mark.parametrize(
    "shapes", ["768.5,12,50257,1024", "768,,50257,1024", "-768,12,50257,1024", "768,0,50257,1024", "768,1e12,1,1"]
)
def test_shapes_that_do_not_fit_leave_the_check_out(shapes: str, tmp_path: Path) -> None:
    points = read_points(write(tmp_path, f"N,D,loss,d_model,layers,vocab,seq\n85e6,2e9,3.1,{shapes}\n"))
    assert "C_exact" not in points
    assert any("6ND only" in said for said in points.assumed)


# what is refused, and what is dropped


@pytest.mark.parametrize(
    ("row", "match"),
    [
        ("1e8,2e41,3.1", "tokens.*up to 1e.40.*line 3"), ("1e60,2e9,3.1", "parameters.*up to 1e.40.*line 3"),
        ("0,2e9,3.1", "parameters.*above zero.*line 3"), ("-1e8,2e9,3.1", "above zero.*line 3"),
        ("1e8,-2e9,3.1", "tokens.*above zero.*line 3"), ("1e8,2e9,-3.1", "the loss.*above zero.*line 3"),
        ("1e8,2e9,0", "the loss.*above zero.*line 3"), ("big,2e9,3.1", "a number for N.*'big'.*line 3, column N"),
        ("1e8,2e9,bad", "a number for loss.*line 3"), ("0.1,2e9,3.1", "N in parameters.*line 3"),
        ("'1,5',2e9,3.1", "."),
    ],
)  # fmt: skip
def test_a_wrong_cell_is_refused_with_its_row(row: str, match: str, tmp_path: Path) -> None:
    rows = ROWS.splitlines()
    if match == ".":
        points = read_points(write(tmp_path, f"N,D,loss\n{rows[0]}\n{row}\n{rows[1]}\n"))
        assert points.lost == ("line 3: 4 cells, where the header has 3",)
        return
    with pytest.raises(InputError, match=match):
        read_points(write(tmp_path, f"N,D,loss\n{rows[0]}\n{row}\n{rows[1]}\n"))


def test_overflown_compute_is_recognised(tmp_path: Path) -> None:
    n, d = np.array([3_000_000_000]), np.array([1_000_000_000_000])
    wrapped = int((n * d * 6)[0])
    assert wrapped < 0
    with pytest.raises(InputError, match="wraps above"):
        from_columns({"N": n, "D": d, "C": [wrapped], "loss": [2.5]})
    assert from_columns({"N": n, "D": d, "loss": [2.5]})["C"].tolist() == [1.8e22]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("1e8,3e9,nan", "line 5: the loss is nan"), ("1e8,3e9,", "line 5: the loss is nan"),
        ("1e8,3e9,inf", "line 5: the loss is inf"), ("1e8,0,3.1", "line 5: no tokens yet"),
        (",3e9,3.1", "line 5: N is absent or infinite"), ("1e8,inf,3.1", "line 5: D is absent or infinite"),
        ("1e8,2e9,3.1", "line 5: the same run as line 2"), ("1e8,2e9", "line 5: 2 cells, where the header has 3"),
    ],
)  # fmt: skip
def test_a_lost_row_is_listed(row: str, why: str, tmp_path: Path) -> None:
    points = read_points(write(tmp_path, f"N,D,loss\n{ROWS}{row}\n"))
    assert points.lost == (why,)
    assert len(points) == 3


def test_replicates_stay(tmp_path: Path) -> None:
    points = read_points(write(tmp_path, f"N,D,loss\n{ROWS}1e8,2e9,3.11\n"))
    assert len(points) == 4
    seeds = read_points(write(tmp_path, "N,D,loss,seed\n1e8,2e9,3.1,1\n1e8,2e9,3.1,2\n"))
    assert len(seeds) == 2


def test_excluded_rows(tmp_path: Path) -> None:
    path = write(
        tmp_path, "N,D,loss,excluded_in_paper,outlier\n1e8,2e9,3.1,True,no\n2e8,4e9,2.9,False,yes\n4e8,8e9,2.7,,\n"
    )
    points = read_points(path)
    assert points.lost == ("line 2: excluded_in_paper", "line 3: outlier")
    assert len(read_points(path, ReadOptions(keep_excluded=True))) == 3


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "an empty file"), (b"  \n\n", "an empty file"), (b"N,D,loss\n", "runs below the header"),
        (b"N,D,loss\n1,2\n", "rows of 3 cells"), (b"\x89PNG\x00\x00\x00\x01\x02\x00" * 9, "."),
        (b'{"N": [1, 2], "D": [1], "loss": [1, 2]}', "columns of 2 values"), (b"[1, 2]", "an object per run"),
        (b"[]", "a list of runs"), (b'{"a": 1}', "a list of runs"), (b'{"N": [1', "JSON"), (b"[" * 100_000, "JSON"),
        (b"N,D,loss\n1e8,2e9,nan\n1e8,4e9,inf\n", "at least one usable run"),
        (b'N;D;loss\n"1,234,567";2e9;3,14\n', "one way to write numbers"), (b"# nothing\n", "a header"),
        (b",,\n1,2,3\n", "runs below the header"),
        (b'N,D,loss\n1e8,2e9,"' + b"x" * 200_000 + b'"\n', "CSV"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_ladder(content: bytes, match: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=match):
        read_points(write(tmp_path, content))


def test_a_file_that_is_not_there_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="a readable file"):
        read_points(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="a readable file"):
        read_points(tmp_path)
    monkeypatch.setattr(raw_tables, "MOST_BYTES", 10)
    with pytest.raises(InputError, match="one row per run"):
        read_points(write(tmp_path, "N,D,loss\n" + ROWS))


@pytest.mark.parametrize(
    ("text", "decimal", "expected", "said"),
    [
        ("N;D;loss\n1e8;2e9;2,345\n2e8;4e9;2,251\n", "", 2.345, "decimal comma"),
        ('N,D,loss\n"1,000",2e9,2.345\n2e8,4e9,2.251\n', "", 2.345, "thousands separator"),
        ('N,D,loss\n1e8,2e9,"2,345"\n2e8,4e9,"2,251"\n', ",", 2.345, ""),
        ("N;D;loss\n1e8;2e9;2,3451\n2e8;4e9;2,251\n", "", 2.3451, ""),
    ],
)
def test_commas(text: str, decimal: str, expected: float, said: str, tmp_path: Path) -> None:
    points = read_points(write(tmp_path, text), ReadOptions(decimal=decimal))
    assert points["loss"][0] == expected
    assert [s for s in points.assumed if "is read with" in s] == [s for s in points.assumed if said and said in s]
    assert bool(said) == any("is read with" in s for s in points.assumed)


# columns in memory


def test_columns_of_any_type() -> None:
    frozen = np.array([1e8, 2e8])
    frozen.setflags(write=False)
    large = np.array([2**65, 2**66], dtype=object)
    points = from_columns({"N": frozen, "C": large, "loss": (Decimal("3.1"), np.float32(2.5))})
    assert points["C"].tolist() == [2.0**65, 2.0**66]
    assert points["loss"].tolist() == [3.1, 2.5]
    assert points["N"].flags.writeable
    assert all(values.dtype == np.float64 for values in points.columns.values())
    assert from_columns({"N": [1e8], "D": [2**70], "loss": [3.0]})["D"][0] == 2.0**70


@pytest.mark.parametrize(
    ("columns", "match"),
    [
        ({}, "columns of one length"), ({"N": [1], "D": [], "loss": [1]}, "columns of one length"),
        ({"N": 5, "D": [1], "loss": [1]}, "a column of values"), ({"N": np.float64(5)}, "a column of values"),
        ({"N": [1e8, {}], "D": [1e9, 1e9], "loss": [3, 3]}, "."), ({"N": [1e8], "D": [10**400], "loss": [3]}, "usable"),
        ({"N": [[1, 2]], "D": [1e9], "loss": [3]}, "."), ({"N": [1 + 2j], "D": [1e9], "loss": [3]}, "."),
    ],
)  # fmt: skip
def test_columns_that_are_none(columns: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        from_columns(columns)


CELL = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
    st.sampled_from(["1e8", "1,5", "1.000,5", "1,000", "3B", "nan", "-inf", "1e999", "²", "٣", "1_0", "0x10", "\x00"]),
)  # fmt: skip
HEADER = st.one_of(
    st.sampled_from(["N", "D", "C", "loss", "U", "run", "seed", "outlier", "d_model", "layers", "vocab", "seq",
                     "total_params", "param_count", "horizon", "step", "total_steps", "N (B)", "budget"]),
    st.text(max_size=5),
)  # fmt: skip


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(HEADER, st.lists(CELL, min_size=3, max_size=3), max_size=8))
def test_columns_never_break_the_reader(columns: dict[str, list[Any]]) -> None:
    try:
        points = from_columns(columns)
    except RidgelineError:
        return
    assert np.isfinite(points["loss"]).all()
    assert (points["N"] > 0).all()
    assert np.isfinite(points["C"]).all()


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    header=st.lists(HEADER, max_size=5),
    rows=st.lists(st.lists(CELL, max_size=6), max_size=4),
    separator=st.sampled_from(",;\t| "),
    encoding=st.sampled_from(["utf-8", "utf-16", "utf-8-sig"]),
)
def test_files_never_break_the_reader(
    header: list[str], rows: list[list[Any]], separator: str, encoding: str, tmp_path: Path
) -> None:
    text = "\n".join(separator.join(str(cell) for cell in row) for row in [header, *rows])
    (tmp_path / "any.csv").write_bytes(text.encode(encoding, "surrogatepass"))
    (tmp_path / "any.json").write_text(json.dumps([dict(zip(header, row, strict=False)) for row in rows]))
    for name in ("any.csv", "any.json"):
        assert read_or_refused(tmp_path / name)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200))
def test_bytes_never_break_the_reader(content: bytes, tmp_path: Path) -> None:
    assert read_or_refused(write(tmp_path, content))


# the public ladders


@pytest.mark.data
@pytest.mark.parametrize("name", SCALING)
def test_public_ladders(name: str, data_dir: Path) -> None:
    count, options = SCALING[name]
    path = data_dir / "scaling" / name
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    points = read_points(path, ReadOptions(**options))
    wanted: Sequence[dict[str, str]] = rows
    for column, value in dict(options.get("where", {})).items():
        wanted = [row for row in rows if row[column] == value]
    assert len(points) == count
    assert len(points) + len(points.lost) == len(wanted)
    loss = next(k for k in ("loss", "lm_loss") if k in rows[0])
    assert points["loss"].tolist() == [float(rows[i - 2][loss]) for i in points.rows]
    assert (points["N"] > 0).all()
    assert (points["D"] > 0).all()
    assert np.isfinite(points["C"]).all()


@pytest.mark.data
def test_other_public_tables_are_refused(data_dir: Path) -> None:
    outcomes = {str(path): read_or_refused(path) for path in sorted((data_dir / "scaling").rglob("*.csv"))}
    refused = {path: text for path, text in outcomes.items() if isinstance(text, str)}
    assert len(outcomes) - len(refused) == len(SCALING) - 1  # Porian's holds several counts of N
    assert [path for path, text in refused.items() if path not in text] == []


@pytest.mark.data
def test_mixed_counts_of_porian(data_dir: Path) -> None:
    with pytest.raises(InputError, match=r"kaplan in line 2.*standard.*line 109"):
        read_points(data_dir / "scaling" / "porian" / "isoflop_points.csv")
