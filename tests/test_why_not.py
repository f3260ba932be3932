"""Why something is not in an answer: each cause planted on purpose, and named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from index_bank import Counting, Missing, a_bank, an_index, log, write
from terminal import new_shell
from test_cli_json import agrees
from test_dedupe import BELIEF, DAY, FACTS, OBSERVED

from ua_memory.errors import NotFound, Usage
from ua_memory.index.embedding import Embeds
from ua_memory.index.filters import Filters
from ua_memory.memory import Memory
from ua_memory.recall.search import SearchTrace

NOTES = {
    "memory/2026-03-02.md": log(
        "Alice moved the API to Fly.io because Heroku's price doubled. #infra ^aaaaaaaaaa",
        "Alice moved the API to Fly.io because Heroku's price doubled! ^bbbbbbbbbb",
        "The staging database runs out of connections ^cccccccccc",
        "The API speaks JSON ^dddddddddd",
        "The API key rotates each month ^eeeeeeeeee",
        "The API ran on Heroku once ^ffffffffff\n  - retired: 2026-03-01",
    ),
    "memory/2026-11-19.md": log(
        "Nobody reads this ^gggggggggg",
        "The quiet hours begin at 22:00 ^hhhhhhhhhh",
        "The nightly job of the ledger starts at 02:00 ^iiiiiiiiii",
    ),
    "memory/2026-11-20.md": log("The nightly job of the ledger starts now at 04:00 ^jjjjjjjjjj"),
}


@contextmanager
def opened(root: Path, files: dict[str, str], embeds: Embeds | None = None) -> Iterator[Memory]:
    """A bank that is searched by words alone, which is quick, unless there is an embedder."""
    store = a_bank(root, files)
    with an_index(store, embeds or Missing()) as index, Memory(store) as memory:
        memory.lend_index(index)
        yield memory


def cause(memory: Memory, query: str, target: str, **how: object) -> SearchTrace:
    return memory.searching.why_not(query, target, **how)  # type: ignore[arg-type]


def test_why_what_is_newer_does_not_replace_it(tmp_path: Path) -> None:
    files = {"memory/2026-11-18.md": log("We use MySQL ^kkkkkkkkkk")}
    files["memory/2026-11-21.md"] = log("We moved to Postgres ^llllllllll", "Tea is green ^mmmmmmmmmm")
    with opened(tmp_path, NOTES | files) as memory:
        ((newer, why),) = cause(memory, "do we use MySQL or Postgres or green tea", "^kkkkkkkkkk").newer
        assert newer.id == "llllllllll" and why == (
            "it states no other value, and neither the contrary nor another name"
        )
        # It is replaced.
        assert not cause(memory, "when does the nightly job of the ledger start", "^iiiiiiiiii").newer


def test_it_was_found(tmp_path: Path) -> None:
    with opened(tmp_path, NOTES) as memory:
        found = cause(memory, "which API speaks JSON", "^dddddddddd")
        answer = memory.search("which API speaks JSON")
        assert (found.cause, found.rank, found.score) == ("shown", 1, answer.hits[0].score)
        assert found.arms == answer.hits[0].arms and found.parts == answer.hits[0].parts
        assert [hit.item.key for hit in found.answer.hits] == [hit.item.key for hit in answer.hits]
        assert cause(memory, "which API speaks JSON", "memory/2026-03-02.md:6") == found


def test_beyond_the_limit(tmp_path: Path) -> None:
    with opened(tmp_path, NOTES) as memory:
        query = "API Heroku price"
        order = [hit.item.id for hit in memory.search(query, limit=10).hits]
        assert len(order) > 2
        for rank, block in enumerate(order[1:], 2):
            found = cause(memory, query, f"^{block}", limit=1)
            assert (found.cause, found.rank, found.limit) == ("limit", rank, 1)


def test_below_the_least_score(tmp_path: Path) -> None:
    with opened(tmp_path, NOTES) as memory:
        query = "API Heroku price"
        last = memory.search(query, limit=10).hits[-1]
        found = cause(memory, query, f"^{last.item.id}", min_score=last.score + 0.01)
        assert (found.cause, found.score) == ("min_score", last.score)
        assert cause(memory, query, f"^{last.item.id}", min_score=last.score - 0.01).cause == "shown"


def test_folded_under_what_says_the_same(tmp_path: Path) -> None:
    with opened(tmp_path, NOTES) as memory:
        first = memory.search("Heroku price doubled").hits[0]
        assert {first.item.id, first.folded[0].id} == {"aaaaaaaaaa", "bbbbbbbbbb"}
        found = cause(memory, "Heroku price doubled", f"^{first.folded[0].id}")
        assert found.cause == "folded" and found.by and found.by.id == first.item.id


def test_folded_under_what_was_made_of_it(tmp_path: Path) -> None:
    with opened(tmp_path, {DAY: FACTS, BELIEF: OBSERVED}, Counting()) as memory:
        found = cause(memory, "why did Alice leave, was it the price", "^aaaaaaaaaa")
        assert found.cause == "folded" and found.by and found.by.id == "p2w7c5n3rd"


def test_the_filters_are_named(tmp_path: Path) -> None:
    with opened(tmp_path, NOTES) as memory:
        where = Filters(since="2026-11-01", kinds=("world",), tags=("infra",))
        found = cause(memory, "API JSON", "^dddddddddd", filters=where)
        assert (found.cause, found.filters) == ("filter", ("since", "tags"))
        assert cause(memory, "API", "^ffffffffff", filters=Filters(retired=False)).filters == ("retired",)


def test_quoted_words_that_it_lacks(tmp_path: Path) -> None:
    with opened(tmp_path, NOTES) as memory:
        assert cause(memory, '"speaks json" api', "^eeeeeeeeee").cause == "phrase"


def test_what_is_retired(tmp_path: Path) -> None:
    with opened(tmp_path, NOTES) as memory:
        found = cause(memory, "API on Heroku", "^ffffffffff")
        assert found.cause == "retired" and found.score
        assert cause(memory, "API on Heroku", "^ffffffffff", filters=Filters(retired=True)).cause == "shown"


def test_no_arm_has_it(tmp_path: Path) -> None:
    many = log(*(f"The kettle number {n} is blue" for n in range(70)), "The kettle is old ^kkkkkkkkkk")
    with opened(tmp_path, {**NOTES, "memory/2026-01-01.md": many}) as memory:
        found = cause(memory, "which database", "^gggggggggg")
        assert (found.cause, found.arms, found.score) == ("no_arm", {}, None)
        late = cause(memory, "blue kettle", "^kkkkkkkkkk")
        assert late.cause == "no_arm" and late.arms["keyword"][0] > late.depth


def test_something_newer_stands_before_it(tmp_path: Path) -> None:
    with opened(tmp_path, NOTES) as memory:
        query = "when does the nightly job of the ledger start"
        assert [hit.item.id for hit in memory.search(query).hits[:2]] == ["jjjjjjjjjj", "iiiiiiiiii"]
        found = cause(memory, query, "^iiiiiiiiii", limit=1)
        assert found.cause == "older" and found.by and found.by.id == "jjjjjjjjjj"


def test_what_is_not_indexed_or_nowhere(tmp_path: Path) -> None:
    with opened(tmp_path, NOTES) as memory:
        assert cause(memory, "API", "memory/2026-03-02.md:1").cause == "not_indexed"  # the title
        with pytest.raises(NotFound):
            cause(memory, "API", "^zzzzzzzzzz")
        with pytest.raises(Usage, match="whole file"):
            cause(memory, "API", "memory/2026-03-02.md")
        with pytest.raises(Usage):
            cause(memory, " ", "^dddddddddd")
        # what was written a moment ago is looked for, too
        write(memory.store.bank.root / "memory/2026-11-21.md", log("The new API ^llllllllll"), age=0)
        assert cause(memory, "new API", "^llllllllll").cause == "shown"


def test_its_text_names_it(tmp_path: Path) -> None:
    with opened(tmp_path, NOTES) as memory:
        found = cause(memory, "which API speaks JSON", "the nightly job starts at 04:00")
        assert found.item is not None and found.item.id == "jjjjjjjjjj"
        assert found.cause == cause(memory, "which API speaks JSON", "^jjjjjjjjjj").cause != "shown"
        write(memory.store.bank.root / "memory/2026-11-21.md", log("Sails are red today"), age=0)
        assert cause(memory, "sails", "sails are red").cause == "shown"
        for target in ("zebra quagga okapi", "^zzzzzzzzzz some words", "nightly/ledger-job.md:4"):
            with pytest.raises((NotFound, Usage)):
                cause(memory, "which API speaks JSON", target)


def test_in_a_shell(tmp_path: Path) -> None:
    shell = new_shell(tmp_path)
    for text in ("Alice moved the API to Fly.io", "The API speaks JSON", "Boards are oak"):
        shell.ok("insert", text)
    printed = shell.ok("search", "JSON API", "--why-not", "memory/2026-11-21.md:5", "-n", "1", "--json").json
    agrees("search --why-not", {**printed, "by": printed["target"]})
    assert printed["cause"] == "limit" and printed["rank"] == 2
    assert printed["target"]["text"] == "Alice moved the API to Fly.io"
    said = shell.ok("search", "JSON API", "--why-not", "memory/2026-11-21.md:5", "-n", "1").out
    assert "At rank 2, beyond the limit of 1 hit." in said and "semantic" in said
    assert "Found: hit 1." in shell.ok("search", "JSON API", "--why-not", "memory/2026-11-21.md:6").out
