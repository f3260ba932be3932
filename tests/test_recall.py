"""Search as its callers see it: both arms, filters, one calibrated score, snippets, and no stale hit."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from threading import Event, current_thread, main_thread
from typing import Any

import pytest
from index_bank import Counting, Missing, a_bank, log, write
from index_bank import chroma_index as an_index

from ua_memory.index import sync as kept
from ua_memory.index.embedding import Embedder, EmbeddingUnavailable
from ua_memory.index.filters import Filters
from ua_memory.index.items import IndexItem as Item
from ua_memory.index.sync import Index, Refresh
from ua_memory.index.vectors import VectorLock
from ua_memory.recall import search as searching
from ua_memory.recall.fusion import Signals, fuse
from ua_memory.recall.search import (
    SNIPPET_LENGTH,
    SearchResult,
    search,
    search_many,
    snippet,
    without_weak_hits,
)

DAY = "memory/2026-11-21.md"
NOTES = {
    "memory/2026-03-02.md": log(
        "Alice moved the API to Fly.io because Heroku's price doubled. #infra ^aaaaaaaaaa",
        "Bob adopted a puppy called Biscuit",
        "The staging database runs out of connections under load",
    ),
    DAY: log(
        "We set UA_TRUNCATION_THRESHOLD to 150000 #infra/limits",
        "Carol's sister is getting married in Lisbon in June",
        "What did the dentist say?",
        "Two cavities, come back on Tuesday",
    ),
    "MEMORY.md": "# Memory\n\n## User\n\nPrefers short answers in British English.\n",
}


@pytest.fixture(scope="module")
def model() -> Embedder:
    return Embedder()


@pytest.fixture
def index(tmp_path: Path, model: Embedder) -> Iterator[Index]:
    with an_index(a_bank(tmp_path, NOTES), model) as opened:
        yield opened


def shown(answer: SearchResult) -> list[str]:
    return [hit.item.text for hit in answer.hits]


@pytest.mark.parametrize(
    ("query", "begins"),
    [
        ("why did we leave Heroku", "Alice moved"),  # both arms
        ("UA_TRUNCATION_THRESHOLD", "We set"),  # words
        ("does anybody have a young dog", "Bob adopted"),  # meaning
        ("is someone getting wed abroad", "Carol's sister"),  # meaning
        ("db pool exhausted when busy", "The staging"),  # meaning
        ("how should I write to the user", "Prefers short"),  # core memory
    ],
)
def test_good_hits_come_first_and_score_well(index: Index, query: str, begins: str) -> None:
    answer = search(index, query)
    assert answer.mode == "hybrid" and answer.notes == ()
    assert shown(answer)[0].startswith(begins)
    assert 1 >= answer.hits[0].score >= 0.35


@pytest.mark.parametrize(
    "query", ["quantum chromodynamics on the lattice", "Kubernetes ingress timeouts", "🎉🎉"]
)
def test_junk_scores_low(index: Index, query: str) -> None:
    assert all(hit.score < 0.35 for hit in search(index, query, limit=50).hits)
    assert search(index, query, min_score=0.35).hits == ()


def test_naming_somebody_known_is_no_answer(tmp_path: Path, model: Embedder) -> None:
    facts = (
        "Pelle is the name of the boat",
        "Pelle's handicap is 104",
        "Pelle got a new winter cover",
        "Pelle lies at the old pier",
        "Ulf repaired the mast of Pelle",
        "Ulf lives in Kiel",
        "Ulf works at the shipyard",
    )
    with an_index(a_bank(tmp_path, {"memory/2026-03-02.md": log(*facts)}), model) as index:
        for query in ("handicap of Pelle", "who repaired the mast", "where does Ulf live"):
            assert search(index, query).answered, query
        for query in (
            "blood type of Ulf",
            "Pelle's insurance number",
            "which school does Ulf's daughter visit",
        ):
            answer = search(index, query)
            assert not answer.answered and answer.hits and answer.hits[0].score < 0.5, query
            assert without_weak_hits(answer, query).hits == (), query


def test_a_prompt_is_given_nothing_far_below_the_first_hit(index: Index) -> None:
    one = search(index, "why did we leave Heroku")
    scores = [hit.score for hit in one.hits]
    assert one.answered and scores[-1] < scores[0] / 2
    assert all(hit.score >= scores[0] / 2 for hit in without_weak_hits(one, "why did we leave Heroku").hits)
    assert without_weak_hits(one, "list all that we know of Heroku").hits == one.hits


def test_a_hit_says_where_and_why(index: Index) -> None:
    hit = search(index, "Heroku price").hits[0]
    assert (hit.item.path, hit.item.line, hit.item.end) == ("memory/2026-03-02.md", 3, 3)
    assert (hit.item.id, hit.item.tags, hit.item.date) == ("aaaaaaaaaa", ("infra",), "2026-03-02")
    assert hit.arms["keyword"][0] == hit.arms["semantic"][0] == 1
    late = {"words", "beside", "named", "when", "meaning", "alike", "every", "names", "rest", "kind"}
    assert set(hit.parts) == late


def test_a_reply_is_found_by_what_it_answers(index: Index) -> None:
    assert "Two cavities, come back on Tuesday" in shown(search(index, "what did the dentist say", limit=2))


def test_scores_descend_and_limit_cuts(index: Index) -> None:
    everything = search(index, "Alice Bob Carol", limit=50).hits
    assert [hit.score for hit in everything] == sorted((hit.score for hit in everything), reverse=True)
    assert search(index, "Alice Bob Carol", limit=2).hits == everything[:2]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(since="2026-06-01"), {DAY}),
        (Filters(until="2026-06-01"), {"memory/2026-03-02.md"}),
        (Filters(tags=("infra",)), {DAY, "memory/2026-03-02.md"}),
        (Filters(kinds=("core",)), {"MEMORY.md"}),
        (Filters(path="memory/2026-03"), {"memory/2026-03-02.md"}),
        (Filters(sources=("web",)), set()),
    ],
)
def test_filters_hold_for_both_arms(index: Index, filters: Filters, expected: set[str]) -> None:
    answer = search(index, "Alice price answers threshold", filters=filters, limit=50)
    assert {hit.item.path for hit in answer.hits} == expected


def test_an_identifier_comes_whole_first_and_misspelt_too(tmp_path: Path, model: Embedder) -> None:
    whole = ("src/foo.py", "foo.bar()", "--max-tokens", "v1.2.3", "noor@host.example", "UA_DEPTH_LIMIT")
    parts = ("py foo, src", "bar foo", "tokens max", "3, 2, v1", "example host noor", "ua limit depth")
    lines = [f"the second of them is {each} as it was" for each in whole]
    with an_index(a_bank(tmp_path, {DAY: log(*parts, *lines)}), model) as index:
        for query, line in zip(whole, lines, strict=True):
            assert shown(search(index, query, limit=1)) == [line], query
        answer = search(index, "UA_DEPHT_LIMIT", limit=1)
        assert shown(answer) == [lines[-1]]
        assert answer.notes == ("no match for “ua_depht_limit”: searched for “ua_depth_limit”",)


def test_a_phrase_is_required_of_both_arms(index: Index) -> None:
    assert shown(search(index, 'who has a dog "puppy called"')) == ["Bob adopted a puppy called Biscuit"]
    assert search(index, '"called puppy"').hits == ()


def test_many_queries_are_embedded_at_once(tmp_path: Path) -> None:
    embeds = Counting()
    with an_index(a_bank(tmp_path, NOTES), embeds) as index:
        index.refresh()
        embeds.seen = 0
        queries = ["Heroku", "", "puppy", "x\0y", "Heroku"]
        answers = search_many(index, queries)
        assert embeds.seen == len(queries) and len(answers) == len(queries)
        assert answers[0] == answers[4] == search(index, "Heroku")
        assert answers[1].hits == ()
        assert search_many(index, []) == []


@pytest.mark.parametrize("query", ["", " \n", "\0", '"', "a AND (", "😀", "word " * 2000, "\ud800", "'; --"])
def test_no_query_raises(index: Index, query: str) -> None:
    search(index, query)


def test_what_was_just_written_is_found(index: Index) -> None:
    search(index, "zebra")
    write(index.store.bank.root / DAY, log("The zebra escaped"))
    assert shown(search(index, "zebra"))[0] == "The zebra escaped"


def test_equal_texts_are_one_hit_that_names_every_place(tmp_path: Path) -> None:
    files = {DAY: log("buy oat milk", "x", "buy oat milk"), "memory/2026-11-20.md": log("buy oat milk")}
    with an_index(a_bank(tmp_path, files)) as index:
        (hit,) = [hit for hit in search(index, "oat milk").hits if "oat" in hit.snippet]
        places = [(item.path[-5:], item.line) for item in (hit.item, *hit.folded)]
        assert sorted(places) == [("20.md", 3), ("21.md", 3), ("21.md", 5)]


def test_an_index_made_again_answers_the_same(index: Index) -> None:
    queries = ["Alice", "who has a dog", "threshold", "married", "Tuesday dentist"]
    write(index.store.bank.root / "memory/2026-11-22.md", log("one more", "Alice again"))
    before = search_many(index, queries, limit=50)
    index.close()
    import shutil

    shutil.rmtree(index.store.bank.index)
    assert search_many(index, queries, limit=50) == before
    shutil.rmtree(index.store.bank.cache)
    index.close()
    assert search_many(index, queries, limit=50) == before


# -- stale, and without ------------------------------------------------------------------------------------


def stale(index: Index, query: str) -> SearchResult:
    """What a search says that believes the index to be up to date."""
    return search(index, query, refresh=lambda: Refresh())


def test_a_stale_hit_is_moved_or_dropped(index: Index) -> None:
    index.refresh()
    file = index.store.bank.root / DAY
    write(file, "A new line above.\r\n\r\n" + NOTES[DAY].replace("\n", "\r\n"))
    hit = stale(index, "UA_TRUNCATION_THRESHOLD").hits[0]
    assert file.read_text().splitlines()[hit.item.line - 1].startswith("- We set")
    write(file, NOTES[DAY].replace("150000", "200000"))
    answer = stale(index, "UA_TRUNCATION_THRESHOLD")
    assert not any("150000" in hit.snippet for hit in answer.hits)
    assert any("changed" in note for note in answer.notes)
    file.unlink()
    assert not any(hit.item.path == DAY for hit in stale(index, "UA_TRUNCATION_THRESHOLD").hits)


def test_without_the_model_words_answer_and_say_so(tmp_path: Path) -> None:
    with an_index(a_bank(tmp_path, NOTES), Missing()) as index:
        answer = search(index, "why did we leave Heroku")
        assert answer.mode == "words" and "sha256" in answer.notes[0]
        assert answer.hits[0].snippet.startswith("Alice moved") and answer.hits[0].score >= 0.35


def test_the_second_of_two_answers_the_same_by_what_is_kept(index: Index, model: Embedder) -> None:
    first = search(index, "why was the hoster left?")
    with an_index(index.store, model) as second:
        answer = search(second, "why was the hoster left?")
        assert answer.mode == "hybrid" and not answer.notes
        assert [(hit.item.key, hit.score) for hit in answer.hits] == [
            (hit.item.key, hit.score) for hit in first.hits
        ]
        index.close()
        assert search(second, "Heroku").mode == "hybrid"


def test_what_the_first_of_two_has_not_embedded_is_said_to_be_missing(index: Index, model: Embedder) -> None:
    index.refresh()
    (index.store.bank.root / DAY).write_text("- Dave breeds otters\n")
    with an_index(index.store, model) as second:
        answer = search(second, "otters")
        assert answer.stale == {"texts": 1}
        assert answer.hits[0].item.text == "Dave breeds otters" and answer.hits[0].score >= 0.35
        search(index, "otters")
        assert not search(second, "otters").stale


def test_beside_many_texts_words_answer_and_say_so(
    index: Index, model: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.refresh()
    monkeypatch.setattr(kept, "COMPARE_BATCH", 3)
    with an_index(index.store, model) as second:
        answer = search(second, "Heroku")
        assert answer.mode == "words" and "another process" in answer.notes[0] and answer.hits


def test_vectors_lost_under_way(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    index.refresh()
    monkeypatch.setattr(index.vectors, "_collection", None)
    answer = stale(index, "Heroku")
    assert answer.mode == "words" and answer.hits and answer.notes


def test_a_lock_without_an_owner_is_no_lock(index: Index) -> None:
    index.store.bank.index.mkdir(parents=True)
    VectorLock(index.store.bank.index / "owner.lock").acquire()  # dropped, as by a process that ended
    import gc

    gc.collect()
    assert search(index, "Heroku").hits


# -- the parts --------------------------------------------------------------------------


def item(seq: int, text: str = "text", **more: Any) -> Item:
    base = Item("k", "fact", "world", DAY, 1, 1, 0, None, text, "", "", "")
    return dataclasses.replace(base, key=f"k{seq}", seq=seq, line=seq + 1, **more)


def test_either_arm_alone_can_carry_a_hit() -> None:
    (by_meaning,) = fuse([Signals(item(0), 0.46, 0.0, 0.0)], 5.0)
    (by_words,) = fuse([Signals(item(0), None, 0.45, 2.0)], 5.0)
    (junk,) = fuse([Signals(item(0), 0.18, 0.1, 0.3)], 5.0)
    (perfect,) = fuse([Signals(item(0), 1.0, 1.0, 9.0)], 5.0)
    assert by_meaning.score >= 0.35 <= by_words.score and junk.score < 0.25 and perfect.score == 1


def test_neighbours_help_only_under_one_heading() -> None:
    strong, weak = Signals(item(0), 0.9, 1.0, 5.0), Signals(item(1), 0.2, 0.0, 0.0)
    alone = fuse([weak], 5.0)[0].score
    beside = next(one.score for one in fuse([strong, weak], 5.0) if one.item.seq == 1)
    apart = Signals(dataclasses.replace(weak.item, heading="other"), 0.2, 0.0, 0.0)
    elsewhere = next(one.score for one in fuse([strong, apart], 5.0) if one.item.seq == 1)
    assert beside > alone == elsewhere


def test_equal_scores_come_by_place() -> None:
    same = [Signals(item(n), 0.5, 0.5, 1.0) for n in (7, 3, 5)]
    assert [one.item.seq for one in fuse(same, 3.0)] == [3, 5, 7]


def test_snippets_are_cut_around_the_match(index: Index) -> None:
    index.refresh()
    long = "filler words here " * 100 + "the zebra met a lion " + "more filler follows " * 100
    idf = index.words.vocabulary.stems(["zebra", "lion"])
    cut = snippet(index.words, long, dict.fromkeys(idf.values(), 1.0))
    assert "the zebra met a lion" in cut and len(cut) <= SNIPPET_LENGTH
    assert cut[0] == cut[-1] == "…"
    assert snippet(index.words, "short", {}) == "short"
    assert len(snippet(index.words, "東京" * 1000, {"東京": 1.0})) <= SNIPPET_LENGTH
    assert snippet(index.words, long, {}).startswith("filler")


def test_a_snippet_shows_what_is_said_of_the_match(index: Index) -> None:
    index.refresh()
    stems = index.words.vocabulary.stems(["zebra", "lion"])
    idf = {stems["zebra"]: 2.0, stems["lion"]: 1.0}
    turns = (
        "Person: a lion ate.",
        f"Agent: {'So it did. ' * 30}",
        "Person: whose zebra is that?",
        "Agent: Marta's.",
    )
    assert "Marta's." in snippet(index.words, "\n".join(turns), idf, 300)
    end = f"{'a lion ate and slept. ' * 12}The zebra belongs to nobody but Marta, who bought it in May."
    assert "bought it in May" in snippet(index.words, f"{end}\n{'More of that. ' * 20}", idf, 300)


def test_of_equal_matches_a_snippet_shows_the_first(index: Index) -> None:
    """The same words in another order weighed more in some processes, by the last digit of a sum."""
    index.refresh()
    for n in range(40):
        words = [f"{letter}ord{n}" for letter in "bcdfg"]
        idf = {
            word: 1 / (place + 3) for place, word in enumerate(index.words.vocabulary.stems(words).values())
        }
        text = f"first {' '.join(words)}. {'More of that. ' * 40}Again {' '.join(reversed(words))}."
        assert snippet(index.words, text, idf, 300).startswith("first")


# -- what the model has no words for -----------------------------------------------------------------------


def test_what_the_model_does_not_know_is_found_by_words_alone(tmp_path: Path, model: Embedder) -> None:
    facts = ("🎉🎉🎉", "鼊鼋", "x" * 60_000, "we ate at the Greek place 🎉", "鼊 is a kind of turtle")
    with an_index(a_bank(tmp_path, {DAY: log(*facts)}), model) as index:
        assert index.refresh().semantic == "ready"
        assert index.vectors.count() == 2, "only what has known words has a vector"
        for query in ("🐈", "猫猫 🎉", "y" * 60_000, "!?", ""):
            answer = search(index, query)
            assert not [hit for hit in answer.hits if "semantic" in hit.arms], query
        answer = search(index, "鼊鼋")
        assert answer.mode == "words" and shown(answer)[0] == "鼊鼋"
        assert answer.answered and not answer.notes
        assert "knows too few" in search(index, "猫猫").notes[0] and not search(index, "!?").notes
        answer = search(index, "a restaurant")
        assert answer.mode == "hybrid" and shown(answer)[0].startswith("we ate")
        modes = [one.mode for one in search_many(index, ["🐈", "turtle", "🐈"])]
        assert modes == ["words", "hybrid", "words"]
        assert index.refresh().embedded == 0 and index.rebuild().embedded == 0
        assert index.vectors.count() == 2


class Beside(Embedder):
    """Reads no query before the files were looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.looked, self.why = Event(), ""

    def _run(self, encoded: Any, batch: Any) -> Any:
        if current_thread() is not main_thread() and not self.looked.wait(10):
            raise AssertionError("the refresh waits for the query")
        if self.why:
            raise EmbeddingUnavailable(self.why)
        return super()._run(encoded, batch)


def test_the_model_reads_a_query_beside_the_refresh(tmp_path: Path) -> None:
    embeds = Beside()
    with an_index(a_bank(tmp_path, NOTES), embeds) as index:
        embeds.looked.set()
        before = search(index, "does anybody have a young dog")
        embeds.looked.clear()

        def refresh() -> Refresh:
            done = index.refresh()
            embeds.looked.set()
            return done

        again = search(index, "does anybody have a young dog", refresh=refresh)
        assert again == before and again.mode == "hybrid"
        embeds.why = "the model fell over"  # after it was asked: told where its answer is needed
        failed = search(index, "a young dog, or Biscuit")
        assert failed.mode == "words" and shown(failed)[0].startswith("Bob adopted")
        assert failed.notes == ("keyword search only: the model fell over",)


def test_a_batch_is_answered_portion_by_portion_as_each_query_alone(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = ["why did we leave Heroku", "", "a young dog", "zzz", "UA_TRUNCATION_THRESHOLD"]
    alone = [search(index, query) for query in queries]
    monkeypatch.setattr(searching, "QUERY_BATCH", 2)
    assert search_many(index, queries) == alone
