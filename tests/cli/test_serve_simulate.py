"""``ridgeline serve simulate``: the card, the document, the report, exit codes, what is refused."""

import csv
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from tests.serve.simulate.formats import FORMATS, write

MODEL = ("llama-3-8b", "--device", "H100")
SMALL = ("--input", "1k", "--answer", "64", "-o", "case.json")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No ``ridgeline.toml`` of this repository, or of whoever runs the tests, has a say."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ridgeline.toml").write_text("")


def run(ridgeline: Any, *words: str) -> Any:
    return ridgeline("serve", "simulate", *MODEL, *words)


def test_the_card_has_the_verdict_the_latencies_and_eighty_columns(ridgeline: Any) -> None:
    done = run(ridgeline, "--rate", "4", "--input", "1k", "--answer", "64", "--slo", "ttft=1s,tpot=50ms")
    assert done.code == 0
    assert "100% of the requests meet ttft 1.00 s, tpot 50.0 ms" in done.out
    assert "The SLO is met up to" in done.out
    assert max(len(line) for line in done.out.splitlines() if not line.startswith("why ")) <= 80
    assert {path.name for path in Path("serve-report").iterdir()} == {"simulate.html", "simulate.json"}
    page = Path("serve-report/simulate.html").read_text()
    assert len(page) < 2_000_000
    assert "Key-value blocks" in page


def test_the_document_is_the_same_each_time(ridgeline: Any) -> None:
    first, again = (run(ridgeline, "--rate", "4", *SMALL, "--json") for _ in range(2))
    assert first.out == again.out
    document = json.loads(first.out)
    assert document["tool"] == "serve simulate"
    assert document["quantities"]["simulate.ttft.p50"]["value"] > 0
    assert document == json.loads(Path("case.json").read_text())
    assert document["command"] == "ridgeline serve simulate llama-3-8b --device H100 --rate 4.0 --input 1k --answer 64"


def test_an_overloaded_deployment_fails(ridgeline: Any) -> None:
    done = run(ridgeline, "--rate", "500", *SMALL, "--slo", "ttft=1s")
    assert done.code == 1
    assert "FAIL    S201" in done.out
    assert "FAIL    S209" in done.out


def test_a_trace_with_faults_is_read_and_listed(ridgeline: Any, tmp_path: Path) -> None:
    write(tmp_path / "t.csv", FORMATS["CSV"] + b"5,0,10\n6,nan,10\n7,100,8.5\n")
    done = run(ridgeline, "--trace", "t.csv", "--rate", "2", "-o", "case.json", "--json")
    assert done.code == 0
    lost = json.loads(done.out)["lost"]
    assert [item.partition("t.csv: ")[2] for item in lost] == [
        "1 lines without a number of input tokens left out",
        "1 lines with zero input tokens left out",
        "1 lines whose output tokens are not whole left out",
    ]
    assert [item["path"] for item in json.loads(done.out)["inputs"]] == ["models/llama-3-8b.toml", "t.csv"]


def test_a_trace_of_the_command_line_is_not_sought_beside_the_spec(ridgeline: Any, tmp_path: Path) -> None:
    write(tmp_path / "t.csv", FORMATS["CSV"])
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "serve.toml").write_text('[traffic]\ntrace = "other.csv"\n')
    done = run(ridgeline, "--spec", "specs/serve.toml", "--trace", "t.csv", "-o", "case.json")
    assert done.code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--rate", "4"), "a trace, or lengths of prompts and answers"),
        (("--input", "1k", "--answer", "64"), "requests per second, or clients"),
        (("--rate", "4", "--input", "1k", "--answer", "few"), "got 'few', at the lengths of $.traffic"),
        (("--rate", "nan", "--input", "1k", "--answer", "64"), "$.traffic.rate"),
        (("--rate", "1e30", "--input", "1k", "--answer", "64"), "$.traffic.rate"),
        (("--rate", "4", "--input", "1k"), "got 'no length of answers', at the traffic"),
        (("--rate", "4", "--input", "1k", "--answer", "64", "--slo", "ttft=1s,ttft=2s"), "Expected ttft once"),
        (("--rate", "4", "--input", "1k", "--answer", "64", "--slo", "p99=3s"), "ttft, tpot or at with a value"),
        (("--trace", "absent.csv"), "a readable file"),
        (("--rate", "4", "--input", "1k", "--answer", "64", "--engine", "orca"), "one of vllm, sglang, trtllm"),
    ],
)
def test_what_cannot_be_simulated_is_refused(ridgeline: Any, words: tuple[str, ...], message: str) -> None:
    done = run(ridgeline, *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_an_slo_below_the_floor_names_the_floor(ridgeline: Any) -> None:
    done = run(ridgeline, "--rate", "4", *SMALL, "--slo", "ttft=1ms")
    assert done.code == 1
    assert "binding limit: the latency of a request alone: ttft" in done.err


def test_without_a_model_or_a_device(ridgeline: Any) -> None:
    assert "Expected a model, got 'none', at MODEL" in ridgeline("serve", "simulate", "--rate", "1").err
    assert "Expected an accelerator" in ridgeline("serve", "simulate", "llama-3-8b", "--rate", "1").err


def test_a_profile_that_is_not_there_is_refused(ridgeline: Any, tmp_path: Path) -> None:
    (tmp_path / "serve.toml").write_text('[deployment]\nprofile = "absent"\n')
    done = run(ridgeline, "--spec", "serve.toml", "--rate", "4", "--input", "1k", "--answer", "64")
    assert done.code == 2
    assert "absent" in done.err


def test_the_example_runs_and_is_what_its_script_writes(ridgeline: Any, repo: Path) -> None:
    done = ridgeline("serve", "simulate", "--spec", repo / "examples" / "flagship" / "serve.toml", "-o", "case.json")
    assert done.code == 0
    assert "flagship-30b on 2 x 2 x H100-SXM-80GB" in done.out
    script = importlib.util.spec_from_file_location("example_traffic", repo / "scripts" / "example_traffic.py")
    assert script is not None
    assert script.loader is not None
    module = importlib.util.module_from_spec(script)
    script.loader.exec_module(module)
    with (repo / "examples" / "flagship" / "traffic.csv").open(encoding="utf-8") as file:
        kept = [(time, int(given), int(made)) for time, given, made in list(csv.reader(file))[1:]]
    assert kept == module.rows()
