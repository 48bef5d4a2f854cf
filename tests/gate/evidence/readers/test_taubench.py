"""tau-bench trajectories."""

from pathlib import Path

import pytest
from tests.gate.evidence.logs import lines, tau_run, taubench

from ridgeline.gate.evidence.reader import Wanted, read


def test_trials_of_a_task_are_a_cluster(tmp_path: Path) -> None:
    found = read(taubench(tmp_path, [1.0, 0.0, 1.0, 1.0]))
    assert found.labels["cluster"].tolist() == ["0", "0", "1", "1"]
    assert found.scores["reward"].tolist() == [1.0, 0.0, 1.0, 1.0]


def test_a_trial_that_crashed_has_no_reward(tmp_path: Path) -> None:
    found = read(lines(tmp_path / "runs.jsonl", [tau_run(0, 0, 1.0), tau_run(1, 0, 0.0, info={"error": "rate limit"})]))
    assert found.errors.tolist() == [False, True]


@pytest.mark.data
def test_public_trajectories_and_rewards_agree(data_dir: Path) -> None:
    traces = read(data_dir / "gates" / "taubench_gpt4o_airline_20traj.json.gz")
    rewards = read(
        data_dir / "gates" / "taubench_gpt4o_airline_rewards.csv.gz",
        Wanted({"id": "task_id+trial", "cluster": "task_id"}, ("reward",)),
    )
    assert (len(traces), len(rewards)) == (20, 200)
    assert rewards.scores["reward"].mean() == pytest.approx(0.42)
    assert len(set(rewards.labels["cluster"].tolist())) == 50
    by_key = dict(zip(rewards.keys.tolist(), rewards.scores["reward"].tolist(), strict=True))
    for key, reward in zip(traces.keys.tolist(), traces.scores["reward"].tolist(), strict=True):
        assert by_key[key.rpartition("|")[0]] == reward
