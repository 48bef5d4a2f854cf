"""Active design on ScaleBench's pools at 1, 5 and 10% of their cost: the page is beside this file.

Run: python benchmarks/design.py [TASK] with the public data sets in $RIDGELINE_DATA or ../shared/data;
python benchmarks/design.py inner compares forms on the pool of mixture of experts alone, a size seen from all smaller.
"""

import itertools
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ridgeline.forecast.buying.basins import Options, find, predict
from ridgeline.forecast.buying.design import Candidates, Plan, sequential
from ridgeline.forecast.fitting.held import hold
from ridgeline.forecast.form import Array, Columns, Form
from ridgeline.forecast.laws import chinchilla, coupled, data_constrained, farseer, joint_moe, routed

DATA = Path(os.environ.get("RIDGELINE_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
BUDGETS, SEEDS = (0.01, 0.05, 0.10), tuple(range(8))


# One number of tokens in the whole pool: the data term is a constant that the floor takes up. Nor do so few runs tell a
# floor from an exponent that moves with the experts (gamma): hold-outs of the pool forecast better without the second.
ONE_D = {"b": 1e-6, "beta": 0.0, "omega": 0.0, "zeta": 0.0}
JOINT_AT_ONE_D = hold(joint_moe.FORM, {**ONE_D, "gamma": 0.0})
TRIED: dict[str, tuple[Form, ...]] = {
    "routed": (routed.FORM,), "routed, joint": (routed.FORM, hold(joint_moe.FORM, ONE_D)),
    "joint": (hold(joint_moe.FORM, ONE_D),), "joint, gamma held": (JOINT_AT_ONE_D,),
}  # fmt: skip


@dataclass(frozen=True)
class Task:
    """A task: its file, columns as the forms name them, the forms, and whether cost is N*D or N."""

    file: str
    names: Mapping[str, str]
    forms: tuple[Form, ...]
    peers: str


TASKS = {
    "moe": Task(
        "moe", {"dense_parameter_count": "N", "num_experts": "experts", "loss_validation": "loss"},
        (JOINT_AT_ONE_D,), ".59/.34/.67 | .65/.55/.80 | .83/.74/.80 | .81",
    ),
    "data_constrained": Task(
        "data_constrained", {"params": "N", "tokens": "D", "unique_tokens": "U", "loss": "loss"},
        (data_constrained.FORM,), ".73/.71/.58 | .85/.80/.83 | .86/.77/.85 | .79",
    ),
    "farseer": Task(
        "farseer", {"N": "N", "D": "D", "loss": "loss"},
        (chinchilla.FORM, coupled.FORM, farseer.FORM), ".60/-.11/.67 | .88/.49/.87 | .93/.87/.92 | .91",
    ),
}  # fmt: skip


def load(task: Task, part: str) -> tuple[Columns, Array, Array]:
    """Columns, losses and costs (FLOP over 6, in any unit where tokens are not given) of a part of a task."""
    frame = pl.read_csv(DATA / "scaling" / "scalebench" / f"{task.file}_scaling_law_{part}.csv")
    table = {new: frame[old].to_numpy().astype(float) for old, new in task.names.items()}
    losses = table.pop("loss")
    cost = table["N"] * table.get("D", np.ones(len(losses)))
    if "D" not in table:
        table["D"] = np.ones(len(losses))
    return table, losses, cost


def r2(seen: Array, said: Array) -> float:
    """The share of variance explained, clipped to [-1, 1] as the peers print it."""
    return float(np.clip(1 - np.sum((seen - said) ** 2) / np.sum((seen - np.mean(seen)) ** 2), -1, 1))


def inner() -> None:
    """Forms of mixture of experts: each of the two largest sizes of the pool forecast from a tenth of all smaller."""
    columns, losses, cost = load(TASKS["moe"], "train")
    sizes = np.unique(columns["N"])
    for target, (name, forms) in itertools.product(sizes[:-3:-1], TRIED.items()):
        low, own = columns["N"] < target, columns["N"] == target
        experts = np.unique(columns["experts"][own])  # the median run of each: a few cells hold most of the runs
        seen = np.array([np.median(losses[own & (columns["experts"] == count)]) for count in experts])
        goal = {"N": np.full(len(experts), target), "experts": experts, "D": np.ones(len(experts))}
        candidates = Candidates({key: values[low] for key, values in columns.items()}, cost[low])
        rows = []
        for seed in SEEDS:
            plan = Plan(forms, basins=Options(seed=seed))
            bought = sequential(candidates, losses[low].__getitem__, goal, 0.1 * float(np.sum(cost[low])), plan)
            said, error = bought.predict(goal)
            off = np.log(said / seen)
            rows.append((np.mean(off**2), np.mean(off), np.mean(error), r2(seen, said)))
        square, bias, error, share = np.mean(np.array(rows), axis=0)
        print(
            f"{target:.3g} {name}: error {square**0.5:.2%}  bias {bias:+.2%}  SE {error:.2%}  R2 {share:.3f}",
            flush=True,
        )


def main() -> None:
    """One row per task and budget: R2 and relative error over seeds, runs bought, standard error, seconds."""
    for name in sys.argv[1:] or TASKS:
        task = TASKS[name]
        (columns, losses, cost), (goal, seen, _) = load(task, "train"), load(task, "test")
        print(f"{name}: peers (Ours/D-opt/V-opt at 1 | 5 | 10% | all) {task.peers}", flush=True)
        mean, within, between = predict(find(columns, losses, task.forms, goal, Options()), goal)
        said, error = np.exp(mean), np.sqrt(within + between)
        print(f"  all  R2 {r2(seen, said):.3f}  error {np.mean(np.abs(said / seen - 1)):.2%}  SE {np.mean(error):.2%}")
        for share in reversed(BUDGETS):
            rows = []
            for seed in SEEDS:
                start = time.process_time()
                plan = Plan(task.forms, basins=Options(seed=seed))
                bought = sequential(
                    Candidates(columns, cost), losses.__getitem__, goal, share * float(np.sum(cost)), plan
                )
                said, error = bought.predict(goal)
                off = said / seen - 1
                rows.append((r2(seen, said), np.mean(np.abs(off)), np.mean(off), np.mean(error), len(bought.picks),
                             time.process_time() - start))  # fmt: skip
            every = np.array(rows)
            print(
                f"  {share:.0%}  R2 {np.mean(every[:, 0]):.3f} +- {np.std(every[:, 0]):.3f} {np.round(every[:, 0], 3)}"
                f"  error {np.mean(every[:, 1]):.2%}  bias {np.mean(every[:, 2]):+.2%}  SE {np.mean(every[:, 3]):.2%}"
                f"  runs {np.mean(every[:, 4]):.0f}  {np.mean(every[:, 5]):.0f} CPU-s",
                flush=True,
            )


if __name__ == "__main__":
    inner() if sys.argv[1:] == ["inner"] else main()
