"""What is said of an answer: loss, freedoms, other laws, heads, edges, and none at all."""

from pathlib import Path

import numpy as np
import pytest
from tests.plan.studies import WORKED_H100
from tests.serve.codesign.asked import LIMITS, limits, need, none, turn

from ridgeline.serve.codesign.facts import codesign


def test_the_cost_in_loss() -> None:
    facts = turn()
    assert facts.optimum.loss is not None
    assert facts.excess.value == pytest.approx(float(facts.loss.value) - float(facts.optimum.loss.value))
    assert facts.gained.value == pytest.approx(-float(facts.excess.value))
    assert facts.against.endswith("above" if float(facts.excess.value) > 0 else "below")
    power = (0.3478 + 0.3658) / (0.3478 * 0.3658)
    share = ((float(facts.optimum.loss.value) - 1.8172) / (float(facts.loss.value) - 1.8172)) ** power
    assert facts.worth.value == pytest.approx(100 * share, rel=1e-9)


def test_each_freedom_is_at_least_as_good_as_none() -> None:
    facts = limits()
    found = {item.name: item.walk.winner for item in facts.bought}
    assert list(found) == ["plain", "8-bit weights", "8-bit cache", "MLA", "MoE", "all"]
    plain = found["plain"]
    assert plain is not None
    assert (plain.types, plain.group.frame.attention, plain.group.frame.mixture) == ("bf16/bf16", "gqa", False)
    least = float(plain.group.loss[plain.index])
    for one in found.values():
        assert one is not None
        assert float(one.group.loss[one.index]) <= least + 0.002  # two ties
    assert found["all"] == facts.winner
    assert found["8-bit weights"] is not None
    assert found["8-bit weights"].group.kv == "bf16"


def test_the_front_keeps_the_limits_and_has_the_choice() -> None:
    facts = limits()
    assert facts.winner in [one for one, _ in facts.front]
    rows = [(float(one.group.loss[one.index]), float(seen.latency.tpot.base)) for one, seen in facts.front if seen]
    assert rows == sorted(rows)
    assert all(seen is not None and seen.meets for _, seen in facts.front)


def test_none_does() -> None:
    facts = none()
    assert facts.winner is None
    assert max(facts.nearest.values()) > 1
    smallest = min(float(np.min(group.worst)) for group in facts.space.groups)
    assert max(facts.nearest_one.stress.values()) == pytest.approx(smallest)


def test_a_near_miss_is_a_measured_one() -> None:
    facts = codesign(need({"widest": 3072, "aspects": [128], "mixtures": [], "attention": ["gqa"]}, tpot="1.4ms"))
    assert facts.space.feasible > 0
    assert facts.winner is None
    assert facts.walk.miss is not None
    assert facts.nearest == facts.walk.miss.stress
    assert facts.nearest["tpot"] > 1


def test_other_laws_are_asked() -> None:
    found = turn().by_law
    assert list(found) == ["besiroglu-2024", "hoffmann-2022", "busbridge-2025", "ludziejewski-2025"]
    assert found["besiroglu-2024"] == turn().winner


def test_more_heads_are_the_same_model_otherwise() -> None:
    facts = codesign(need({"kv_heads": [1, 2, 4, 8, 16]}, **LIMITS, ceiling=1.0))
    more = facts.more_heads
    assert facts.winner is not None
    assert more is not None
    assert more.configuration.sides == facts.winner.sides | {"kv_heads": more.configuration.sides["kv_heads"]}
    assert more.configuration.sides["kv_heads"] > facts.winner.sides["kv_heads"]


def test_edges() -> None:
    facts = codesign(need({"widest": 3072, "attention": ["gqa"]}, turn="5s"))
    assert facts.winner is not None
    assert any("width" in edge for edge in facts.edges)


def test_a_device_without_a_link_leaves_the_roofline(tmp_path: Path) -> None:
    (tmp_path / "bare.toml").write_text(WORKED_H100)
    facts = codesign(need(device=str(tmp_path / "bare.toml"), price=2.0))
    assert facts.blind
    assert facts.winner is not None
    assert facts.walk.measured is None
    assert [seen for _, seen in facts.front] == [None] * len(facts.front)
