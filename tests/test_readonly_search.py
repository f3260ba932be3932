"""A look at the words: it says what the bank would say, or nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from banks import NOON, Bank, git, new_bank

from ua_memory.clients.turns import Session, Turn
from ua_memory.memory import Memory
from ua_memory.recall.readonly import ReadOnlySearch, core_block, open_index
from ua_memory.recall.search import for_prompt
from ua_memory.text.noise import LONGEST_BLOCK, RECALL_CLOSE
from ua_memory.text.wording import CORE_INTRO

CORE = (
    "# Memory\n\nWhat it is.\n\n## Me\n\nShort answers.\n\n- a list\n### deeper\nmore\n\n\n## Todo\nnothing\n"
)


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    bank = new_bank(tmp_path / "a #bank?")
    bank.insert("Alice moved the API to Fly.io because Heroku doubled its price", when="2026-11-19")
    bank.insert("The garden gate squeaks in the wind", retired="2026-11-20, oiled")
    bank.write("- Heroku by hand, twice: Heroku\n", "memory/notes.md")
    bank.write(CORE, "MEMORY.md")
    indexed(bank)
    return bank


def indexed(bank: Bank) -> None:
    """The index as a search leaves it, once time has shown that the files rest."""
    time.sleep(0.06)
    with Memory(bank.again()) as memory:
        memory.search_many(["x"], by_words=True)


def seen(bank: Bank) -> ReadOnlySearch | None:
    return open_index(bank.store.bank, bank.store.config.few, bank.store.config.redact)


def is_proven(bank: Bank) -> bool:
    if found := seen(bank):
        found.close()
    return found is not None


def test_it_finds_what_has_the_words(bank: Bank) -> None:
    found = seen(bank)
    assert found
    rows = found.recall("why did we leave heroku, and its price?", 6).splitlines()
    assert "by keywords only" in rows[1] and len(rows) == 5
    assert rows[2].startswith("- 2026-11-19: Alice moved") and "[memory/2026-11-21.md#L" in rows[2]
    assert (
        found.recall("squeaking gates", 6)
        .splitlines()[2]
        .endswith(", retired: 2026-11-20, oiled; an agent's words]")
    )
    assert len(found.recall("heroku", 1).splitlines()) == 4
    assert found.recall('"by hand"', 6).count("\n- ") == 1
    assert "squeaks" in found.recall("sqeaks", 6) and not found.for_prompt("sqeaks", 6, "", "", 0)
    for nothing in ("", "?!", "otters", '"hand by"'):
        assert found.recall(nothing, 6) == "", nothing
    found.close()


def test_a_prompt_is_only_told_what_has_enough_of_its_words(bank: Bank) -> None:
    found = seen(bank)
    assert found
    assert "Alice" in found.for_prompt("is heroku cheaper?", 6, "", "", 0)
    unrelated = "please refactor the parser module, wind up its loops and tests"
    assert not found.for_prompt(unrelated, 6, "", "", 0)
    assert found.recall("x " * 5000 + " ".join(f"w{n}" for n in range(5000)), 6) == ""
    found.close()


def test_a_prompt_is_given_passages_of_its_project_behind_the_facts(bank: Bank) -> None:
    with Memory(bank.again()) as memory:
        for project in ("shop", "other"):
            turn = Turn("1", "person", f"Heroku is slow, says {project}", NOON)
            memory.sessions.add(Session("codex", f"s-{project}", f"/home/dev/{project}"), [turn], now=NOON)
    indexed(bank)
    found = seen(bank)
    assert found
    prompt = "heroku, slow"
    rows = found.for_prompt(prompt, 1, "shop", "", 2).splitlines()[2:-1]
    assert len(rows) == 2 and "/sessions/" not in rows[0] and "says shop" in rows[1]
    assert "says" not in found.for_prompt(prompt, 6, "shop", "s-shop", 2)
    assert "says" not in found.for_prompt(prompt, 6, "shop", "", 0)
    assert "says other" in found.for_prompt(prompt, 6, "", "s-shop", 2)
    found.close()


def test_a_prompt_is_not_given_a_passage_that_adds_nothing_to_its_fact(bank: Bank) -> None:
    """A fact of 60 characters came with the 700 of the session that it is from."""
    with Memory(bank.again()) as memory:
        memory.insert("The kiln is set to 1200 degrees", client="codex", session="5f00ba12-1")
        turns = [
            Turn("1", "person", "The kiln is set to 1200 degrees, and lunch is at noon.", NOON),
            Turn("2", "person", "The glaze of the kiln needs cobalt.", NOON),
        ]
        memory.sessions.add(Session("codex", "5f00ba12-1", "/home/dev/shop"), turns, now=NOON)
    indexed(bank)
    found = seen(bank)
    assert found
    assert "lunch" not in found.for_prompt("which degrees for the kiln?", 6, "shop", "", 2)
    assert "lunch" in found.for_prompt("cobalt for the kiln", 6, "shop", "", 2)
    found.close()


FACTS = (
    "Davide likes tea", "Dinner with Marta and Davide, who did that", "My passport expires in August 2028",
    "Star Bakery paid invoice 0021 one day late", "Das mach ich, ja", "The printer shows error E1010",
    "Mia runs the tests of the shop each night",
)  # fmt: skip


ASKED = {
    "What is the number of Davide's passport?": False, "When does my passport expire?": True,
    "renew my passport": True, "ja mach das": False, "do that": False,
    "does Davide like tea?": True, "what does Star Bakery owe me?": False,
    "run the tests": False, "who runs the tests?": True,
    "error E1019 of the printer": False, "error E1010 of the printer": True,
}  # fmt: skip


def test_a_question_is_told_nothing_without_an_answer(tmp_path: Path) -> None:
    bank = new_bank(tmp_path)
    for fact in FACTS:
        bank.insert(fact)
    indexed(bank)
    for prompt, found in ASKED.items():
        index = seen(bank)
        assert index and bool(index.for_prompt(prompt, 6, "", "", 2)) == found, prompt
        index.close()
        with Memory(bank.again()) as memory:
            answer = memory.search_many([prompt])[0]
            found = found or "owe" in prompt  # to the model paying is near enough
            assert bool(for_prompt(answer, prompt, "", memory.config).hits) == found, (
                prompt,
                answer.hits[:2],
            )


def test_core_memory_is_as_the_parser_reads_it(bank: Bank) -> None:
    found = seen(bank)
    assert found
    with Memory(bank.store) as memory:
        assert found.core() == core_block([(b.name, b.value) for b in memory.core.list()]) != ""
    found.close()
    for odd in ("## [ME]\nx\n", "## Me\n```\n## No\n```\n", "## Me\n\\# x\n", "- ## Me\n", "## Me ##\nx\n"):
        bank.write(odd, "MEMORY.md")
        indexed(bank)
        found = seen(bank)
        assert found and found.core() is None, odd
        found.close()
    shapes = (
        "# Me\n\nTea.\n",
        f"# Memory\n\n{CORE_INTRO}\n\n## Me\nx\n",
        f"# Memory\n\n{CORE_INTRO}\n\nTea.\n## Me\nx\n",
        f"# Memory\n\n{CORE_INTRO} Mine.\n",
        f"# Memory\n{CORE_INTRO}",
        "\n# Me\n- Tea\n\n\n## You\nx\n",
        "# \n\n## Me\nx\n",
    )
    for shape in shapes:
        bank.write(shape, "MEMORY.md")
        indexed(bank)
        found = seen(bank)
        with Memory(bank.store) as memory:
            assert found and found.core() == core_block([(b.name, b.value) for b in memory.core.list()]), (
                shape
            )
        found.close()
    for other in (
        "Tea.\n",
        "Tea.\n# Me\nx\n",
        "# Me\nx\n# You\ny\n",
        "# Me\nx\n## me\ny\n",
        "## Me\nx\n# You\ny\n",
    ):
        bank.write(other, "MEMORY.md")
        indexed(bank)
        found = seen(bank)
        assert found and found.core() is None, other
        found.close()
    bank.write("## Me\npassword = hunter2-Xq9!vv-0w\n", "MEMORY.md")
    indexed(bank)
    found = seen(bank)
    assert found and found.core() is None
    found.close()
    bank.path("MEMORY.md").unlink()
    indexed(bank)
    found = seen(bank)
    assert found and found.core() == ""
    found.close()


def test_what_finds_no_room_in_core_is_counted() -> None:
    text = core_block([("A", "a" * 6000), ("B", "b" * 6000), ("C", "c"), ("D", "")])
    assert (
        len(text) <= LONGEST_BLOCK
        and "## C\nc" in text
        and "## B" not in text
        and "1 more did not fit" in text
    )
    assert core_block([("A", "a")]).endswith(RECALL_CLOSE)


@pytest.mark.parametrize("piece", ["a", "words of a line\n", "漢字", "<b>&`\n"])
def test_the_only_block_is_begun_where_it_has_no_room(piece: str) -> None:
    text = core_block([("A", piece * 10000)])
    assert (
        LONGEST_BLOCK * 0.8 < len(text) <= LONGEST_BLOCK
        and "This is only its beginning" in text
        and "core get NAME" in text
    )
    assert "1 more did not fit" in core_block([("A", piece * 10000)], 100)


def test_it_says_nothing_where_the_index_is_not_proven(bank: Bank) -> None:
    assert is_proven(bank)

    def changes(what: object) -> None:
        assert not is_proven(bank), what
        indexed(bank)
        assert is_proven(bank), what

    bank.insert("one more")
    changes("a fact")
    bank.write("- another line\n", "memory/notes.md")
    changes("an edit")
    bank.write("- a line\n", "memory/deep/new.md")
    changes("a new file")
    bank.path("memory/deep/new.md").unlink()
    changes("a file gone")
    git(bank.root, "commit", "--quiet", "--allow-empty", "-m", "somebody's")
    changes("a commit")
    pending = bank.store.bank.pending
    pending.mkdir(exist_ok=True)
    (pending / "revision-1.json").write_text("{}")
    assert not is_proven(bank)
    (pending / "revision-1.json").unlink()
    assert is_proven(bank)
    (bank.store.bank.index / "current").write_text("99")
    assert not is_proven(bank)


def test_a_held_disappearance_is_for_the_bank_to_judge(bank: Bank) -> None:
    for n in range(8):
        bank.insert(f"fact number {n}")
    bank.path().unlink()
    indexed(bank)
    assert bank.store.survey().held and seen(bank) is None


def test_a_hit_is_looked_up_in_its_file(bank: Bank) -> None:
    found = seen(bank)
    assert found
    bank.edit("Heroku", "Hetzner")
    assert "Alice" not in found.recall("heroku price", 6)
    bank.path().unlink()
    assert "Alice" not in found.recall("heroku price", 6)
    found.close()


def test_no_bank_no_index_no_survey(tmp_path: Path) -> None:
    bank = new_bank(tmp_path / "bank")
    assert seen(bank) is None
    indexed(bank)
    (bank.store.bank.cache / "survey-2").write_bytes(os.urandom(40))
    assert seen(bank) is None
