"""Names: drawn from texts, settled in `memory/entities.md`, and what they lead to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from index_bank import a_bank, an_index, log, write

from ua_memory.index import items as links
from ua_memory.index.embedding import Embedder
from ua_memory.index.filters import Filters
from ua_memory.index.items import IndexItem as Item
from ua_memory.index.sync import Index
from ua_memory.recall import arms as entity
from ua_memory.recall import fusion
from ua_memory.recall.arms import ArmHit as Found
from ua_memory.recall.arms import Ranked, parse_query
from ua_memory.recall.search import search
from ua_memory.text.names import name_candidates

DAY = "memory/2026-11-21.md"
SETTLED = "memory/entities.md"
TWO_STEPS = (
    "Alice and her brother Tom had lunch",
    "Last week Tom began at Initech",
    "The report on Initech is due",
    *(f"Worker {n} began at Company{n}" for n in range(20)),
)


@pytest.fixture(scope="module")
def model() -> Embedder:
    return Embedder()


@pytest.mark.parametrize(
    ("text", "sure", "unsure"),
    [
        ("Yesterday Ann Lee flew to Rome.", "Ann Lee, Rome", ""),
        ("Rain fell. Rome fell, too", "", "Rain, Rome"),
        ("**Bob**: Thanks Mel! See ya", "Bob, Mel", ""),
        ("set UA_LIMIT in src/foo.py for @carol", "UA_LIMIT, src/foo.py, @carol", ""),
        ("mail bob@example.com, `the key`", "bob@example.com, the key", ""),
        ("at db-1.example.com:5432", "db-1.example.com:5432", ""),
        ("вчера Ольга уехала", "Ольга", ""),
        ("we met he/she at 12:30, and/or later", "", ""),
        ("", "", ""),
    ],
)  # fmt: skip
def test_what_a_statement_names(text: str, sure: str, unsure: str) -> None:
    found = name_candidates(text)
    assert {name for name, known in found.items() if known} == set(filter(None, sure.split(", ")))
    assert {name for name, known in found.items() if not known} == set(filter(None, unsure.split(", ")))


def _found(index: Index, query: str, limit: int = 10) -> list[Found]:
    return entity.find_by_names(index.words, parse_query(index.words, query), limit, Filters())


def _texts(found: Sequence[Found]) -> list[str]:
    return [one.item.text for one in found]


def test_names_in_the_text_are_found_and_mere_words_are_none(tmp_path: Path) -> None:
    facts = (
        "Rome fell to the Goths",
        "We drove to Rome",
        "Rain fell in Genoa",
        "see src/foo.py",
        "a day at home",
    )
    with an_index(a_bank(tmp_path, {DAY: log(*facts)})) as index:
        index.refresh()
        assert set(_texts(_found(index, "how was rome"))) == {facts[0], facts[1]}
        assert _texts(_found(index, "what is in src/foo.py?")) == [facts[3]]
        assert _found(index, "did the rain stop") == [], "it opens a sentence, and nothing says it is a name"
        assert _texts(_found(index, "who is called Rain")) == [facts[2]], "but the query may say so"
        assert parse_query(index.words, "rome").named.declared == {}, "what is drawn lifts nobody"


def test_an_alias_holds_both_ways_and_from_the_next_search_on(tmp_path: Path) -> None:
    files = {
        DAY: log("Lunch with [[Robert Smith]]", "Golf with [[Bob]]", "Tea with [[Bobby]]"),
        SETTLED: "- [[Robert Smith]]\n  - alias: Bob, Rob\n",
    }
    with an_index(a_bank(tmp_path, files)) as index:
        for query in ("what about Bob", "robert smith?", "Rob"):
            index.refresh()
            assert set(_texts(_found(index, query))) == {"Lunch with [[Robert Smith]]", "Golf with [[Bob]]"}
        write(tmp_path / SETTLED, "- [[Robert Smith]]\n  - alias: Bobby\n", age=5)
        index.refresh()
        assert _texts(_found(index, "what about Bob")) == ["Golf with [[Bob]]"]
        assert len(_found(index, "what about Bobby")) == 2
        (tmp_path / SETTLED).unlink()
        index.refresh()
        assert _texts(_found(index, "robert smith")) == ["Lunch with [[Robert Smith]]"]


def test_who_is_called_otherwise_is_as_good_as_named(tmp_path: Path, model: Embedder) -> None:
    files = {
        DAY: log("Robert Smith moved to Lisbon", "Rosa Lopez moved to Madrid", "A bob of the head"),
        SETTLED: "- [[Bob]]\n  - alias: Robert Smith\n",
    }
    with an_index(a_bank(tmp_path, files), model) as index:
        hits = search(index, "where did Bob move").hits
        assert hits[0].item.text == "Robert Smith moved to Lisbon" and hits[0].score > hits[1].score + 0.1


def test_a_first_name_finds_what_was_said_before_a_rename(tmp_path: Path) -> None:
    files = {
        DAY: log("Bob Ruiz likes tea", "a new flat in Leeds", "Ann likes [[NYC]]"),
        SETTLED: "- [[Roberto Ruiz]]\n  - alias: Bob Ruiz\n- [[New York]]\n  - alias: NYC\n",
    }
    with an_index(a_bank(tmp_path, files)) as index:
        index.refresh()
        for query in ("Roberto", "what does roberto like"):
            assert _texts(_found(index, query)) == ["Bob Ruiz likes tea"]
        assert _found(index, "anything new?") == []


def test_who_somebody_is_not_is_left_out(tmp_path: Path) -> None:
    files = {
        DAY: log("Lunch with [[Ali]]", "An order from [[Alice Cooper, Inc.]]"),
        SETTLED: "- [[Alice]]\n  - alias: Ali\n  - not: [[Alice Cooper, Inc.]]\n",
    }
    with an_index(a_bank(tmp_path, files)) as index:
        index.refresh()
        assert _texts(_found(index, "what did Alice Cooper, Inc. order")) == [
            files[DAY].split("- ")[2].strip()
        ]
        assert len(_found(index, "did Alice see Alice Cooper, Inc.")) == 2


def test_one_step_on_is_found_after_the_seeds(tmp_path: Path) -> None:
    with an_index(a_bank(tmp_path, {DAY: log(*TWO_STEPS)})) as index:
        index.refresh()
        seed, far = _found(index, "where does the brother of Alice work")
        assert (seed.item.text, far.item.text) == TWO_STEPS[:2], "and no third step"
        assert far.seeds == (seed.item.key,) and 0 < far.strength <= 1 and far.score < seed.score
        assert _texts(_found(index, "where does the brother of Alice work", 1)) == [TWO_STEPS[0]]


@pytest.mark.parametrize("late", [True, False], ids=["late interaction", "scores added up"])
def test_a_step_on_is_lifted_but_never_over_its_seed(
    tmp_path: Path, model: Embedder, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    if not late:
        monkeypatch.setattr(fusion, "_rank_by_tokens", lambda *_: None)
    with an_index(a_bank(tmp_path, {DAY: log(*TWO_STEPS)}), model) as index:
        query = "where does a brother of Alice work"  # “the brother” would be looked up as a role
        hits = {hit.item.text: hit for hit in search(index, query, limit=50).hits}
        seed, far = (hits[text] for text in TWO_STEPS[:2])
        assert far.parts["linked"] > 0 and "linked" not in seed.parts and seed.score > far.score
        others = [hit.score for text, hit in hits.items() if text not in TWO_STEPS[:2]]
        assert far.score > max(others)


def test_who_stands_everywhere_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = [
        "At last Eve met Tom",
        *(f"In town {n} we saw Tom" for n in range(9)),
        *(f"day {n}" for n in range(30)),
    ]
    with an_index(a_bank(tmp_path, {DAY: log(*facts)})) as index:
        index.refresh()
        assert len(_found(index, "Eve", 50)) == 10
        monkeypatch.setattr(entity, "COMMON_NAME_ITEMS", 9)
        assert _texts(_found(index, "Eve", 50)) == facts[:1], "a bound on how many items a name leads to"
        monkeypatch.undo()
        monkeypatch.setattr(entity, "LEAST_ASSOCIATION", 5.0)
        assert _texts(_found(index, "Eve", 50)) == facts[:1], "in every fourth item by chance"


def test_names_and_their_order_do_not_hang_on_how_the_index_came_to_be(tmp_path: Path) -> None:
    query = "where does Alice's brother work"
    with an_index(a_bank(tmp_path, {DAY: log("Alice")})) as index:
        index.refresh()
        write(tmp_path / DAY, log(*reversed(TWO_STEPS)), age=5)
        index.refresh()
        before = [(one.item.key, one.score, one.strength) for one in _found(index, query)]
        index.rebuild(vectors=False)
        assert [(one.item.key, one.score, one.strength) for one in _found(index, query)] == before
        rows = index.words.db.execute("SELECT count(*) FROM names").fetchone()[0]
        write(tmp_path / DAY, log("nothing"), age=4)
        index.refresh()
        assert rows and not index.words.db.execute("SELECT count(*) FROM names").fetchone()[0]


def test_a_name_longer_than_any_lookup_is_not_kept(tmp_path: Path) -> None:
    with an_index(
        a_bank(tmp_path, {DAY: log("see https://a.example.com/b/c/d/e/f/g/h for @carol")})
    ) as index:
        index.refresh()
        (item,) = index.words.items("1 ORDER BY path, line, key")
        assert all(name.count(" ") < links.LONGEST for name in links.names_of(item))


def test_no_seed_is_passed_and_few_are_moved() -> None:
    def hit(name: str, score: float) -> Ranked:
        return Ranked(Item(name, "fact", "world", "x.md", 1, 1, 1, None, name, "", "", ""), score, {})

    hits = [hit("s", 0.9), hit("x", 0.6), hit("t", 0.5), *(hit(f"h{n}", 0.4 - n / 100) for n in range(5))]
    items = {one.item.key: one.item for one in hits}
    found = [Found(items["s"], 1, 2.0), Found(items["t"], 2, 1.0)]
    found += [Found(items[f"h{n}"], 3 + n, 0.5, ("s",), 1.0) for n in range(5)]
    moved = entity.boost_linked(hits, found)
    assert [one.item.key for one in moved] == ["s", "x", "t", "h0", "h1", "h2", "h3", "h4"]
    assert [one.item.key for one in moved if one.parts] == ["h0", "h1", "h2"], "the best three"
    assert moved[2].score == 0.5 > moved[3].score, "t is no seed of theirs, and not passed either"
    found[1] = Found(items["x"], 2, 1.0)
    assert [one.item.key for one in entity.boost_linked(hits, found)][:4] == ["s", "x", "h0", "h1"]
    assert entity.boost_linked(hits, found[:2]) == hits


def test_a_name_is_kept_as_it_is_written_and_where_it_stands(tmp_path: Path) -> None:
    text = log(
        "We met ALICE and Alice Cooper at Fly.io", "Status: all is well with Bob", "| Carol | [[Dora]] |"
    )
    with an_index(a_bank(tmp_path, {"memory/2026-11-21.md": text})) as index:
        index.refresh(vectors=False)
        rows = index.words.db.execute("SELECT name, spelled, stands FROM names")
        kept = {name: (spelled, stands) for name, spelled, stands in rows}
    assert kept["alice cooper"] == ("Alice Cooper", 0) and kept["bob"] == ("Bob", 0)
    assert kept["alice"] == ("ALICE", links.WITHIN)
    assert kept["status"] == ("Status", links.LABEL) and kept["carol"] == ("Carol", links.LABEL)
    assert kept["dora"] == ("Dora", links.LINKED | links.LABEL)
