"""Boosts break near ties and nothing more; none of them knows what time it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from index_bank import Missing, a_bank, an_index, log

from ua_memory.config import BOOSTS as NAMES
from ua_memory.index.items import IndexItem as Item
from ua_memory.recall.arms import Ranked
from ua_memory.recall.fusion import BOOSTS, MOST, boosted
from ua_memory.recall.search import search

PLAIN = Item("k", "fact", "world", "memory/a.md", 1, 1, 0, None, "text", "", "", "", origin="agent")
BETTER = {
    "recency": (replace(PLAIN, day="2020-01-01"), replace(PLAIN, day="2019-12-31")),
    "proofs": (
        replace(PLAIN, record="observation", proofs=("a", "b")),
        replace(PLAIN, record="observation", proofs=("a",)),
    ),
    "importance": (replace(PLAIN, importance=6), PLAIN),
    "kind": (replace(PLAIN, record="observation"), PLAIN),
    "trust": (replace(PLAIN, origin="person"), PLAIN),
}


def test_each_name_is_a_boost_and_tried_here() -> None:
    assert set(NAMES) == set(BOOSTS) == set(BETTER)


@pytest.mark.parametrize("name", NAMES)
def test_it_breaks_near_ties_and_nothing_more(name: str) -> None:
    better, other = (Ranked(item, 0.5, {"words": 0.5}) for item in BETTER[name])
    near = [other._replace(score=0.5005), better]
    assert [one.item for one in boosted(near, [name])] == [better.item, other.item]
    assert boosted(near, []) == near
    far = [other._replace(score=0.5 + MOST + 0.001), better]
    for names in ([name], NAMES):
        there = boosted(far, names)
        assert [one.item for one in there] == [other.item, better.item]
        for before, after in zip(far, there, strict=True):
            assert 0 <= after.score - before.score <= MOST + 1e-9
            assert after.score == pytest.approx(before.score + sum(after.parts[n] for n in names), abs=1e-3)
    assert boosted([better._replace(score=0.999)], [name])[0].score <= 1


def test_the_setting_reaches_the_order(tmp_path: Path) -> None:
    files = {"memory/2026-03-02.md": log("rye bread"), "memory/2026-11-21.md": log("oat bread")}
    store = a_bank(tmp_path, files)
    with an_index(store, Missing()) as index:
        assert [hit.item.text for hit in search(index, "bread").hits] == ["rye bread", "oat bread"]
        store.config = replace(store.config, boosts=("recency",))
        hits = search(index, "bread").hits
        assert [hit.item.text for hit in hits] == ["oat bread", "rye bread"]
        assert hits[0].parts["recency"] == 0.01
