"""A tiny log of every format, written by the tests: ``n`` examples, of which some are right."""

import gzip
import json
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Right = Sequence[float]
TIME = "2026-01-02T03-04-05.678901"


def lines(path: Path, rows: Sequence[Any]) -> Path:
    """JSON lines, without a final newline."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def lm_eval_row(number: int, right: float, *, filter_: str = "none", **more: Any) -> dict[str, Any]:
    """A generated answer of a document."""
    return {
        "doc_id": number, "doc": {"question": f"q{number}", "subject": "ab"[number % 2]}, "target": str(number),
        "arguments": {"gen_args_0": {"arg_0": f"Question: q{number}", "arg_1": {"until": ["\n"]}}},
        "resps": [[f"answer {number} {right}"]], "filtered_resps": [f"{number}"], "filter": filter_,
        "metrics": ["exact_match"], "doc_hash": f"d{number}", "prompt_hash": f"p{number}", "target_hash": f"t{number}",
        "exact_match": right, **more,
    }  # fmt: skip


def choice_row(number: int, odds: Sequence[Any], target: str = "0", **more: Any) -> dict[str, Any]:
    """A multiple choice of answers ``a``, ``bb``, ``ccc`` ..."""
    texts = [chr(97 + n) * (n + 1) for n in range(len(odds))]
    return lm_eval_row(number, 1.0) | {
        "target": target, "resps": [[[o, False]] for o in odds], "filtered_resps": [[o, False] for o in odds],
        "arguments": {f"gen_args_{n}": {"arg_0": "q", "arg_1": f" {t}"} for n, t in enumerate(texts)},
        "metrics": ["acc"], "acc": 1.0, **more,
    }  # fmt: skip


def lm_eval(folder: Path, right: Right) -> Path:
    """A folder of samples and results of one task."""
    lines(folder / f"samples_task_{TIME}.jsonl", [lm_eval_row(n, value) for n, value in enumerate(right)])
    results(folder / f"results_{TIME}.json", len(right))
    return folder


def results(path: Path, effective: int, **more: Any) -> Path:
    """A results file; ``more`` goes to its top."""
    value = {
        "config": {"model": "hf", "model_args": "pretrained=m,dtype=bfloat16", "limit": None, "random_seed": 0},
        "n-shot": {"task": 5}, "versions": {"task": 1.0}, "chat_template_sha": "c0ffee", "max_length": 4096,
        "n-samples": {"task": {"original": 100, "effective": effective}}, "git_hash": "abc", **more,
    }  # fmt: skip
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def inspect_sample(number: int, value: Any, *, epoch: int = 1, **more: Any) -> dict[str, Any]:
    """A sample of an inspect log."""
    return {
        "id": number, "epoch": epoch, "input": f"q{number}", "target": f"t{number}",
        "messages": [{"id": f"x{epoch}", "role": "user", "content": f"q{number}"}, {"role": "assistant"}],
        "output": {"choices": [{"message": {"content": f"said {value} {epoch}"}}]},
        "scores": {"match": {"value": value, "answer": "x"}}, "metadata": {"subject": "ab"[number % 2]}, **more,
    }  # fmt: skip


def inspect_header(samples: int, **more: Any) -> dict[str, Any]:
    """The header of an inspect log."""
    data = {"name": "d", "samples": samples, "sample_ids": list(range(samples))}
    eval_ = {
        "task": "task",
        "model": "m",
        "dataset": data,
        "config": {"limit": None},
        "packages": {"inspect_ai": "0.3"},
    }
    return {"version": 2, "status": "success", "eval": eval_, **more}


def inspect_zip(path: Path, samples: Sequence[dict[str, Any]], header: dict[str, Any] | None = None) -> Path:
    """A deflated archive; without a header that of an unfinished run."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        start = {k: v for k, v in inspect_header(len(samples)).items() if k in ("version", "eval")}
        archive.writestr("_journal/start.json", json.dumps(start))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        if header is not None:
            archive.writestr("header.json", json.dumps(header))
    return path


def inspect_(folder: Path, right: Right) -> Path:
    """An archive of samples that are C or I."""
    samples = [inspect_sample(n, "C" if value else "I") for n, value in enumerate(right)]
    return inspect_zip(folder / "log.eval", samples, inspect_header(len(right)))


def dojo_run(number: int, utility: bool, *, injection: str | None = "injection_0", **more: Any) -> dict[str, Any]:
    """A run of an agent."""
    call = {"function": "send_email", "args": {"to": f"a{number}@b.c", "cc": []}, "id": None}
    return {
        "suite_name": "mail", "pipeline_name": "m", "user_task_id": f"user_task_{number}", "attack_type": "direct",
        "injection_task_id": injection, "injections": {}, "error": None, "utility": utility, "security": not utility,
        "messages": [{"role": "user", "content": f"do {number}"}, {"role": "assistant", "tool_calls": [call]}], **more,
    }  # fmt: skip


def agentdojo(folder: Path, right: Right) -> Path:
    """Runs as JSON lines."""
    return lines(folder / "runs.jsonl", [dojo_run(n, bool(value)) for n, value in enumerate(right)])


def tau_run(task: int, trial: int, reward: float, **more: Any) -> dict[str, Any]:
    """A trajectory."""
    call = {"type": "function", "function": {"name": "send_email", "arguments": json.dumps({"to": f"a{task}@b.c"})}}
    trace = [{"role": "system", "content": "policy"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    info = {"task": {"instruction": f"do {task}"}}
    return {"task_id": task, "reward": reward, "info": info, "traj": trace, "trial": trial} | more


def taubench(folder: Path, right: Right) -> Path:
    """A list of trajectories, two trials a task."""
    path = folder / "runs.json"
    path.write_text(json.dumps([tau_run(n // 2, n % 2, value) for n, value in enumerate(right)]), encoding="utf-8")
    return path


def ruler(folder: Path, right: Right) -> Path:
    """Contexts of two needles."""
    rows = [{"index": n, "input": f"hay {n} 11{n} hay 22{n}", "outputs": [f"11{n}", f"22{n}"], "length": 4096,
             "pred": f"11{n} and 22{n}" if value else f"11{n}"} for n, value in enumerate(right)]  # fmt: skip
    return lines(folder / "niah.jsonl", rows)


def openai_evals(folder: Path, right: Right) -> Path:
    """A spec, two events a sample, a final report."""
    base = {"run_id": "r", "event_id": 0}
    rows: list[dict[str, Any]] = [{"spec": {"completion_fns": ["m"], "eval_name": "e", "run_config": {"seed": 1}}}]
    for n, value in enumerate(right):
        rows.append(
            base | {"sample_id": f"e.{n}", "type": "sampling", "data": {"prompt": f"q{n}", "sampled": [str(n)]}}
        )
        rows.append(base | {"sample_id": f"e.{n}", "type": "match", "data": {"correct": bool(value), "expected": "x"}})
    return lines(folder / "events.jsonl", [*rows, {"final_report": {"accuracy": 0.5}}])


def promptfoo_row(number: int, value: float, **more: Any) -> dict[str, Any]:
    """A result of a test."""
    return {
        "testIdx": number, "promptIdx": 0, "vars": {"q": number}, "prompt": {"raw": f"q{number}"}, "score": value,
        "success": bool(value), "response": {"output": f"said {number}"}, "provider": {"id": "m"}, **more,
    }  # fmt: skip


def promptfoo(folder: Path, right: Right) -> Path:
    """Results of tests."""
    return lines(folder / "results.jsonl", [promptfoo_row(n, value) for n, value in enumerate(right)])


def routerarena(folder: Path, right: Right) -> Path:
    """Answers whose result is a Python value as text."""
    rows = [{"global_index": f"AIME_{n}", "generated_answer": str(n), "success": True,
             "evaluation_result": str({"score": value, "metric": "m"})} for n, value in enumerate(right)]  # fmt: skip
    return lines(folder / "cached.jsonl", rows)


def table(folder: Path, right: Right) -> Path:
    """A CSV table."""
    path = folder / "results.csv"
    path.write_text("id,slice,score\n" + "".join(f"e{n},s{n % 2},{v}\n" for n, v in enumerate(right)), encoding="utf-8")
    return path


def llamacpp(folder: Path, right: Right) -> Path:
    """The block of means; it has no examples."""
    path = folder / "out.txt"
    path.write_text(
        "main: build = 1\n====== Perplexity statistics ======\n"
        f"Mean PPL(Q)                   :   5.{len(right)} ±   0.03\n"
        "Mean ln(PPL(Q)/PPL(base))     :   0.004000 ±   0.000500\n"
        "====== KL divergence statistics ======\nMean    KLD:   0.005500 ±   0.000100\nMaximum KLD:   1.500000\n"
        "99.9%   KLD:   0.200000\nMedian  KLD:   0.002000\n====== Token probability statistics ======\n"
        "Same top p: 96.500 ± 0.100 %\n", encoding="utf-8",
    )  # fmt: skip
    return path


@dataclass(frozen=True)
class Example:
    """``make`` writes a log of the given scores; ``metric`` is their name in it."""

    make: Callable[[Path, Right], Path]
    metric: str


EXAMPLES = {
    "agentdojo": Example(agentdojo, "utility"),
    "inspect": Example(inspect_, "match"),
    "lm_eval": Example(lm_eval, "exact_match"),
    "openai_evals": Example(openai_evals, "correct"),
    "promptfoo": Example(promptfoo, "score"),
    "routerarena": Example(routerarena, "score"),
    "ruler": Example(ruler, "found"),
    "table": Example(table, "score"),
    "taubench": Example(taubench, "reward"),
}


def file_of(path: Path) -> Path:
    """The file that holds the rows, of a path that may be a folder."""
    return path if path.is_file() else next(path.glob("samples_*"))


def zipped(path: Path) -> Path:
    """The same file as gzip."""
    found = path.with_name(path.name + ".gz")
    found.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    return found
