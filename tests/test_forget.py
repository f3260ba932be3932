"""Forgetting: what goes, what is revised, what of a person's stays, and that nothing is left anywhere."""

from __future__ import annotations

import json
import random
import unicodedata
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from banks import DAY, NOON, Bank, new_bank
from terminal import EVERY, Shell, new_shell

from ua_memory.clients.turns import Session, Turn
from ua_memory.errors import Busy, ChangedOnDisk, Held, NotFound, TooLarge, Usage
from ua_memory.knowledge import observations, opinions, statements
from ua_memory.knowledge.observations import ProofText as Ground
from ua_memory.markdown import document as markdown
from ua_memory.markdown import fields as markdown_fields
from ua_memory.memory import Memory
from ua_memory.records import Fact, Observation
from ua_memory.retain.queue import TurnQueue as Queue
from ua_memory.store import pending, swap
from ua_memory.upkeep import traces as searching
from ua_memory.upkeep.forget import Forgetting
from ua_memory.upkeep.traces import MARK, Needle, make_needles
from ua_memory.upkeep.undo import BankHistory

TODAY = date(2026, 11, 21)
SAID = "Alice moved the API to Fly.io because Heroku's price doubled."
CARD = "Alice pays for Fly.io with the company card."
PAGE = "memory/pages/infra.md"
HEADER = "---\nid: infra\nname: Infra\nsource_query: where do we run\n---\n\n"
BELIEFS = "memory/observations/Alice.md"


@pytest.fixture
def there(tmp_path: Path) -> Bank:
    return new_bank(tmp_path / "bank")


def believe(bank: Bank, text: str, *grounds: tuple[Fact, str]) -> Observation:
    with bank.store.revision("consolidate", door="test") as draft:
        return observations.add(draft, text, [Ground(*each) for each in grounds], today=TODAY)


def opine(bank: Bank, text: str, *facts: Fact) -> str:
    with bank.store.revision("opinions", door="test") as draft:
        made = opinions.form(draft, text, [(f, "") for f in facts], confidence=0.5, day="2026-11-21")
    return str(made.id)


def by_machine(bank: Bank, text: str, path: str = PAGE) -> None:
    with bank.store.revision("test", door="test") as draft:
        draft.write(
            path, (bank.bytes(path) if bank.path(path).exists() else b"") + text.encode(), restored=True
        )


def link(fact: Fact) -> str:
    return markdown_fields.link_to(Path(fact.place.path).stem, str(fact.id))


def forget(bank: Bank, *targets: str, **more: object) -> object:
    return Memory(bank.store).forget(*targets, **more)  # type: ignore[arg-type]


def everywhere_but_git(bank: Bank) -> bytes:
    return b"\n".join(
        file.read_bytes() for _, file in searching.all_files(bank.store) if "/objects/" not in str(file)
    )


def test_a_file_that_is_gone_since_it_was_listed_is_no_remainder(tmp_path: Path) -> None:
    """SQLite deletes its journal with each commit, also of another process while everything is searched."""
    store = new_bank(tmp_path).store
    journal = store.bank.index / "1/chroma/chroma.sqlite3-journal"
    assert list(searching.search_file(store, journal, [])) == []


# -- what is meant by words ---------------------------------------------------------------------------------


def meant(bank: Bank, query: str, **more: object) -> set[str]:
    done = forget(bank, query=query, dry_run=True, **more)
    assert not {p.place for p in done.plan.gone} & {p.place for p in done.near}
    return {piece.text for piece in done.plan.gone}


def test_a_query_means_what_contains_its_words_and_nothing_that_is_only_near(there: Bank) -> None:
    Memory.init(there.root, now=there.clock)
    for text in ("Bob is allergic to walnuts.", "Bob likes hazelnuts.", "Pecans are on sale.", "Nuts: none."):
        there.insert(text)
    done = forget(there, query="Walnuts", dry_run=True)
    assert [piece.text for piece in done.plan.gone] == ["Bob is allergic to walnuts."]
    assert {piece.text for piece in done.near} > {"Bob likes hazelnuts."}
    forget(there, query="walnuts", take=True)
    assert "walnuts" not in there.text() and "Pecans" in there.text() and "hazelnuts" in there.text()
    with pytest.raises(NotFound, match="no statement contains all"):
        forget(there, query="project aurora")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("the CAFÉ code", "The code of the café is 4711."),
        ('"door code"', "The door code is 12."),
        ("src/foo.py", "The bug is in `src/foo.py`, line 3."),
        ("过敏", "鲍勃对核桃过敏。"),
        ("naïve Müller's", "Muller said: naive."),
        ("infra", "Where it runs. #infra"),
    ],
)
def test_words_are_compared_without_case_accents_and_marks(there: Bank, query: str, text: str) -> None:
    there.write(
        f"# 2026-11-21\n\n- {text}\n- The code is at the door of foo, in src: py.\n- 敏过\n- Infrared.\n"
    )
    assert meant(there, query) == {text.removesuffix(" #infra")}


@pytest.mark.parametrize(
    ("query", "other"),
    [("news", "Alice has a new car."), ("university", "The universe is big.")],
)
def test_another_word_of_the_same_stem_is_near_and_stays(there: Bank, query: str, other: str) -> None:
    there.write(f"# 2026-11-21\n\n- Of {query} only.\n- {other}\n")
    done = forget(there, query=query, dry_run=True)
    assert [piece.text for piece in done.plan.gone] == [f"Of {query} only."]
    assert other in {piece.text for piece in done.near}


def test_all_that_contains_the_words_is_meant_however_much_a_search_shows(there: Bank) -> None:
    there.write("# 2026-11-21\n\n" + "".join(f"- Walnuts, note {n}.\n" for n in range(30)))
    assert len(meant(there, "walnuts")) == 30
    assert len(meant(there, "walnuts", limit=4)) == 4


def test_more_than_can_be_looked_through_is_refused(there: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    """I70"""
    monkeypatch.setattr("ua_memory.upkeep.forget.MOST_FOUND", 4)
    there.write("# 2026-11-21\n\n" + "".join(f"- Walnuts, note {n}.\n" for n in range(5)))
    with pytest.raises(TooLarge, match="more than 4 statements contain this"):
        meant(there, "walnuts")


def test_of_prose_only_the_items_and_paragraphs_with_the_words_are_meant(there: Bank) -> None:
    there.write("# Notes\n\n## Walnuts\n\nOf walnuts.\n\nOf pears.\n\n## Other\n\n- Pears.\n", "MEMORY.md")
    there.write("# 2026-11-21\n\n## Walnuts\n\n- Said below it.\n")
    assert meant(there, "walnuts") == {"Of walnuts."}


# -- what goes ---------------------------------------------------------------------------------------------


def test_a_fact_and_its_lines(there: Bank) -> None:
    first = there.insert("The office closes at six.")
    gone = there.insert(SAID, entities=("Alice", "Heroku"), session="8f2c")
    before = there.bytes()
    done = forget(there, f"^{gone.fact.id}")
    assert there.bytes() == before[: before.index(b"\n## 12:00 \xc2\xb7 test \xc2\xb7 session 8f2c")]
    assert there.find(first.fact.id) == first.fact
    assert done.proof.is_clean and done.proof.searched["files"] and there.clean()
    newest = there.store.history.log(limit=1)[0]
    assert (newest.subject, newest.trailers["Facts"]) == ("forget: 1 fact", (f"^{gone.fact.id}",))
    assert b"Heroku" not in everywhere_but_git(there)
    stone = markdown.parse(there.bytes("memory/forgotten.md"), "memory/forgotten.md").records[0]
    assert (stone.id, stone.on) == (gone.fact.id, "2026-11-21")
    assert Memory(there.store).health.verify() == []


def test_what_rests_on_it_alone_goes_and_the_rest_is_revised(there: Bank) -> None:
    said, card = there.insert(SAID, entities=("Alice", "Heroku")).fact, there.insert(CARD).fact
    alone = believe(there, "Alice left Heroku.", (said, SAID))
    both = believe(there, "Alice uses Fly.io.", (said, "Alice moved the API to Fly.io"), (card, CARD))
    names = believe(there, "Alice uses Fly.io, not Heroku.", (said, SAID), (card, CARD))
    risk, safe = opine(there, "Moving again would be dear.", said), opine(there, "It is paid.", said, card)
    by_machine(
        there,
        f"{HEADER}## Hosting\n\nThe API moved. {link(said)} It is paid by card. {link(card)}\n\n"
        f"Alice uses Fly.io. {link(said)}, {link(card)}\n\n## Why\n\n- Dear. {link(said)}\n\n"
        f"Alice left. {markdown_fields.link_to('Alice', str(alone.id))}\n\n## Rest\n\nNothing else.\n",
    )
    done = forget(there, f"^{said.id}")
    assert {(piece.id, piece.why) for piece in done.plan.gone if piece.id} == {
        (said.id, "requested"), (alone.id, "based on nothing else"), (risk, "based on nothing else"),
        (names.id, "an entity that only this fact names"),
    }  # fmt: skip
    kept = markdown.parse(there.bytes(BELIEFS), BELIEFS).of(Observation)
    assert [(o.id, [p.id for p in o.proofs], o.entities) for o in kept] == [(both.id, [card.id], ("Alice",))]
    assert "proofs: 1\n" in there.text(BELIEFS)
    assert [str(safe)] == [one.id for one in opinions.all_opinions(there.store)]
    assert there.text(PAGE) == (
        f"{HEADER}## Hosting\n\nIt is paid by card. {link(card)}\n\nAlice uses Fly.io. {link(card)}\n\n"
        "## Rest\n\nNothing else.\n"
    )
    assert done.proof.is_clean and Memory(there.store).health.verify() == []


def test_an_undo_goes_through_what_was_derived_and_a_redo_brings_it_back(there: Bank) -> None:
    said = there.insert(SAID)
    fact, card = there.find(said.fact.id), there.find(there.insert(CARD).fact.id)
    alone = believe(there, "Heroku was left.", (fact, "Heroku's price doubled"))
    partly = believe(
        there, "Alice uses Fly.io.", (fact, "moved the API to Fly.io"), (card, "pays for Fly.io")
    )
    files = dict(statements.texts(there.store))
    there.edit("# ", "# My ", "MEMORY.md")
    BankHistory(there.store, "test").undo(said.result.revision)
    left = statements.find(there.store, str(partly.id))
    assert isinstance(left, Observation) and [proof.id for proof in left.proofs] == [card.id]
    with pytest.raises(NotFound):
        statements.find(there.store, str(alone.id))
    assert Memory(there.store).health.verify() == [] and there.store.survey().changed, (
        "the edit waits for its quiet"
    )
    BankHistory(there.store, "test").redo()
    assert {**dict(statements.texts(there.store)), "MEMORY.md": b""} == {**files, "MEMORY.md": b""}


def test_first_and_last_follow_the_proofs_that_stay(there: Bank) -> None:
    old = there.insert("Bob swam in the lake.", when="2026-05-01").fact
    new = there.insert("Bob swims in the sea.", when="2026-11-02").fact
    believe(there, "Bob swims.", (old, "Bob swam"), (new, "Bob swims"))
    forget(there, f"^{old.id}")
    (kept,) = markdown.parse(there.bytes("memory/observations/Bob.md"), BELIEFS).of(Observation)
    assert (kept.since, kept.last, kept.trend, len(kept.proofs)) == ("2026-11-02", "2026-11-02", "new", 1)


def test_a_cause_that_has_its_words_goes_from_the_fact_that_stays(there: Bank) -> None:
    cause = there.insert("The price doubled in one night.").fact
    effect = there.insert("Alice left.", cause=f"The price doubled in one night. {link(cause)}").fact
    forget(there, f"^{cause.id}")
    assert there.find(effect.id) == replace(effect, cause=None)


def test_core_memory_that_a_machine_wrote(there: Bank) -> None:
    fact = there.insert(SAID).fact
    core = there.text("MEMORY.md")
    by_machine(there, f"\n## Notes\n\n- Hosted on Fly.io {link(fact)}\n- Be brief.\n", "MEMORY.md")
    forget(there, f"^{fact.id}")
    assert there.text("MEMORY.md") == f"{core}\n## Notes\n\n- Be brief.\n"


def test_lines_that_are_no_record(there: Bank) -> None:
    there.write("# Notes\n\nThe door code is 4711 by the way.\nSecond line.\n", "memory/notes.md")
    forget(there, "memory/notes.md:3")
    assert there.text("memory/notes.md") == "# Notes\n\nSecond line.\n"


def test_the_line_that_a_hook_gave_to_a_session_goes_with_it(there: Bank) -> None:
    fact = there.insert(SAID).fact
    given = there.store.bank.local / "recalled-8f2c"
    given.parent.mkdir(parents=True, exist_ok=True)
    given.write_text(f"- 2026-11-22: {SAID} [memory/2026-11-22.md#L5]\n- 2026-11-22: Tea is green")
    assert forget(there, f"^{fact.id}").proof.is_clean
    assert given.read_text() == "- 2026-11-22: Tea is green"


# -- a person's own ------------------------------------------------------------------------------------------


def test_a_persons_line_that_quotes_it_is_left_and_told(there: Bank) -> None:
    fact = there.insert(SAID).fact
    mine = f"Dear diary: alice moved the API\nto Fly.io because Heroku's price doubled. Sigh. {link(fact)}\n"
    there.write(f"- {SAID}\n\n{mine}", "memory/mine.md")
    done = forget(there, f"^{fact.id}")
    assert [(p.place.line, p.why, p.by_person) for p in done.plan.left] == [
        (1, "quotes it", True),
        (3, "quotes it", True),
    ]
    assert there.text("memory/mine.md") == f"- {SAID}\n\n{mine}"
    assert {each.where for each in done.proof.found} == {"memory/mine.md:1", "memory/mine.md:3"}


def test_and_goes_if_they_say_so(there: Bank) -> None:
    fact = there.insert(SAID).fact
    there.write(f"- {SAID}\n\nDear diary: {SAID} Sigh.\n\nThe rest.\n", "memory/mine.md")
    done = forget(there, f"^{fact.id}", take=True)
    assert there.text("memory/mine.md") == "Sigh.\n\nThe rest.\n"
    assert done.proof.is_clean


def quoted(tmp_path: Path) -> tuple[Shell, str]:
    """A bank with a fact, and the same words in a person's own line; what names the fact."""
    shell = new_shell(tmp_path)
    shell.write("memory/mine.md", f"- {SAID}\n")
    shell.ok("status")
    return shell, f"^{shell.ok('insert', SAID, '--json').json['id']}"


@pytest.mark.parametrize("more", [[], ["--json"], ["--purge"]])
def test_who_cannot_be_asked_takes_no_line_of_a_persons_that_is_not_named(
    tmp_path: Path, more: list[str]
) -> None:
    shell, name = quoted(tmp_path)
    done = shell("forget", name, "--yes", *more)
    assert done.code == 20 and "memory/mine.md:1" in done.out + done.err
    assert (shell.cwd / "memory/mine.md").read_text() == f"- {SAID}\n"
    assert shell("get", name).code == 4
    shell.ok("forget", "memory/mine.md:1", "--yes")
    assert not (shell.cwd / "memory/mine.md").exists()


@pytest.mark.parametrize("terminal", [True, False])
def test_own_lines_go_with_what_they_quote_if_that_is_asked_for(tmp_path: Path, terminal: bool) -> None:
    shell, name = quoted(tmp_path)
    shell.terminals = EVERY if terminal else frozenset()
    shown = shell.ok("forget", name, "--own-lines", "--dry-run").out
    assert "memory/mine.md:1" in shown and "stays as it is" not in shown
    assert "None of it is left" in shell.ok("forget", name, "--own-lines").out
    assert not (shell.cwd / "memory/mine.md").exists()


def test_a_person_at_a_terminal_is_asked_about_own_lines(tmp_path: Path) -> None:
    shell, name = quoted(tmp_path)
    shell.terminals = EVERY
    asked = shell("forget", name, stdin="n\n")
    assert asked.code == 20 and "Also remove the line of yours that quotes it?" in asked.out + asked.err
    assert (shell.cwd / "memory/mine.md").exists()


def test_a_refusal_is_confirmed(tmp_path: Path) -> None:
    shell = new_shell(tmp_path)
    shell.ok("insert", "The door is red.")
    shell.ok("insert", "The door is heavy.")
    assert shell("forget", "--query", "door").code == 2
    shell.terminals = EVERY
    refused = shell.ok("forget", "--query", "door", stdin="n\n")
    assert refused.err.endswith("[y/N] Nothing was changed.\n")
    assert len(shell.ok("list", "--json").json["results"]) == 2


def test_a_persons_belief_keeps_its_words_and_loses_the_proof(there: Bank) -> None:
    fact = there.insert(SAID).fact
    belief = believe(there, "Alice moves.", (fact, SAID))
    there.edit("Alice moves.", "Alice is gone.", BELIEFS)
    there.write(there.text(BELIEFS) + "  - origin: person\n", BELIEFS)
    forget(there, f"^{fact.id}")
    (kept,) = markdown.parse(there.bytes(BELIEFS), BELIEFS).of(Observation)
    assert (kept.id, kept.text, kept.proofs) == (belief.id, "Alice is gone.", ())


# -- what is meant -------------------------------------------------------------------------------------------


def test_a_session_and_what_waits_of_it(there: Bank) -> None:
    there.insert("One of the session.", session="8f2c")
    there.insert("Two of the session.", session="8f2c")
    there.insert("Of another.", session="77aa")
    queue = Queue(there.store.bank.pending, str)
    turns = [Turn("t1", "person", "Not yet flushed.", NOON)]
    queue.put(Session("test", "8f2c"), turns, at=NOON)
    queue.put(
        Session("test", "77aa"), [Turn("t9", "person", "But one of the session. Really.", NOON)], at=NOON
    )
    done = forget(there, session="8f2c")
    assert [piece.text for piece in done.plan.requested] == ["One of the session.", "Two of the session."]
    assert [fact.text for fact in markdown.parse(there.bytes(), DAY).of(Fact)] == ["Of another."]
    (left,) = queue.all()
    assert [turn.text for turn in left.turns] == ["But [forgotten] Really."]
    assert there.store.history.log(limit=1)[0].trailers["Through"] == ("test/8f2c/t1",)
    assert done.proof.is_clean


def test_a_session_by_any_beginning_that_means_one(there: Bank) -> None:
    """Its whole id, a part of that, or the first letters of what headings show; what waits counts, too."""
    for text, session in (("One.", "8f2c51d0"), ("Two.", "8f2cabcd"), ("Three.", "77aa")):
        there.insert(text, session=session)
    turns = [Turn("t1", "person", "Not yet flushed.", NOON)]
    whole = "8f2c51d0-1111-4222-8333-444455556666"
    Queue(there.store.bank.pending, str).put(Session("test", whole), turns, at=NOON)
    for named in (whole, whole[:13], "8f2c5", "8F2C51D0"):
        found = forget(there, session=named, dry_run=True)
        assert [piece.text for piece in found.plan.requested] == ["One."] and len(found.waiting) == 1
    assert [piece.text for piece in forget(there, session="7", dry_run=True).plan.requested] == ["Three."]
    with pytest.raises(Usage, match="2 sessions begin with this") as told:
        forget(there, session="8f2c")
    assert "8f2c51d0 (" in str(told.value.hint) and "8f2cabcd (" in str(told.value.hint)
    with pytest.raises(NotFound, match="no session begins with this") as lost:
        forget(there, session="99c2d07a-1111-4222-8333-444455556666")
    assert "77aa (" in str(lost.value.hint)


def test_what_is_no_target(there: Bank) -> None:
    fact = there.insert(SAID).fact
    for targets, more in (((), {}), ((f"^{fact.id}",), {"session": "x"}), (("memory/x.md",), {})):
        with pytest.raises(Usage):
            forget(there, *targets, **more)
    forget(there, f"^{fact.id}")
    with pytest.raises(NotFound, match="it was forgotten on 2026-11-21"):
        forget(there, f"^{fact.id}")
    with pytest.raises(NotFound):
        forget(there, session="8f2c")


def test_a_dry_run_changes_nothing(there: Bank) -> None:
    fact = there.insert(SAID).fact
    head, before = there.store.history.head(), there.bytes()
    plan = forget(there, f"^{fact.id}", dry_run=True).plan
    assert [piece.text for piece in plan.gone] == [SAID] and plan.files[DAY][0] == before
    assert (there.store.history.head(), there.bytes()) == (head, before)
    assert not there.path("memory/forgotten.md").exists()


def test_nothing_is_forgotten_while_facts_are_held_or_a_file_is_saved(
    there: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = [there.insert(f"Fact number {n} of ten.").fact for n in range(10)]
    plan = Forgetting._make_plan

    def saved_meanwhile(self: Forgetting, *words: object) -> object:
        found = plan(self, *words)  # type: ignore[arg-type]
        there.write(there.text() + "- typed just now\n")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Forgetting, "_make_plan", saved_meanwhile)
        with pytest.raises(ChangedOnDisk):
            forget(there, f"^{facts[0].id}")
    there.store.adopt()
    there.write("# nothing\n")
    with pytest.raises(Held):
        forget(there, f"^{facts[0].id}")


# -- beside the files ----------------------------------------------------------------------------------------


def test_index_and_caches_have_nothing_of_it(there: Bank) -> None:
    fact, other = there.insert(SAID).fact, there.insert("The office closes at six.").fact
    with Memory(there.store) as memory:
        assert memory.search("Heroku").hits
        (item,) = (
            i for i in memory.index.words.db.execute("SELECT vhash FROM items WHERE id = ?", (fact.id,))
        )
        model = memory.index.embeds.model
        vector = memory.index.cache.get(model, [item[0]])[item[0]].astype("<f2").tobytes()
        cache = there.store.bank.cache
        assert vector in b"".join(file.read_bytes() for file in cache.glob("embeddings*"))
        done = memory.forget(f"^{fact.id}")
        assert done.proof.is_clean and done.cleared.embeddings == 1 and not done.cleared.stale
        kept = b"".join(
            f.read_bytes() for root in (cache, there.store.bank.index) for f in root.rglob("*") if f.is_file()
        )
        assert vector not in kept and b"Heroku" not in kept and b"heroku" not in kept
        assert item[0].encode() not in kept
        assert [hit.item.id for hit in memory.search("office").hits] == [other.id]
        assert not [hit for hit in memory.search("Heroku").hits if "Heroku" in hit.item.text]


def test_a_killed_forget_is_brought_to_its_end(there: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    fact = there.insert(SAID).fact
    queue = Queue(there.store.bank.pending, str)
    queue.put(Session("test", "1"), [Turn("t", "person", SAID, NOON)], at=NOON)

    for step in ("clean_up", "_write"):
        with monkeypatch.context() as patch:
            patch.setattr(Forgetting, step, killed)
            with pytest.raises(KeyboardInterrupt):
                forget(there, f"^{fact.id}")
        if step == "clean_up":
            (proof,) = Memory(there.store).forgetting.finish()
            assert proof.is_clean and not list(there.store.bank.pending.glob("forget-*"))
            assert SAID.encode() not in everywhere_but_git(there)
            fact = there.insert(CARD).fact
    assert Memory(there.store).forgetting.finish() == []
    assert there.find(fact.id) == fact and not list(there.store.bank.pending.glob("forget-*"))


def test_a_revision_at_the_same_time_leaves_the_record_of_a_forget(
    there: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = there.insert(SAID).fact
    left = there.store.bank.pending / "forget-0123.tmp"
    left.parent.mkdir(exist_ok=True)
    left.write_text(SAID)
    write = swap.write_new

    def interrupted(file: Path, *args: Any, **kwargs: Any) -> None:
        write(file, *args, **kwargs)
        if file.name.startswith("forget-"):
            pending.set_aside_unreadable(file.parent)

    monkeypatch.setattr(swap, "write_new", interrupted)
    assert forget(there, f"^{fact.id}").proof.is_clean
    assert not list(there.store.bank.pending.glob("forget-*"))


def test_a_session_whose_forgetting_is_killed_takes_its_turns_along(
    there: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.insert("One of the session.", session="8f2c")
    queue = Queue(there.store.bank.pending, str)
    queue.put(Session("test", "8f2c"), [Turn("t1", "person", "Not yet flushed.", NOON)], at=NOON)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Forgetting, "clean_up", killed)
        forget(there, session="8f2c")
    assert queue.all() and "interrupted" in " ".join(Memory(there.store).status().pending)
    Memory(there.store).health.doctor(mend=True)
    assert not queue.all() and not Memory(there.store).status().pending


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_consolidation_at_work_is_waited_for(there: Bank) -> None:
    from ua_memory.reflect.consolidate import CLAIM
    from ua_memory.reflect.decide import Answers
    from ua_memory.reflect.decide import BatchOutcome as Answer
    from ua_memory.store.lock import locked

    fact = there.insert(SAID).fact
    answers = Answers(there.store.bank.pending)
    answers.add(Answer((f"^{fact.id}",)))
    answers.add(Answer(("^zzzzzzzzzz",), refused=("fine",)))
    there.again(lock_seconds=0)
    with locked(there.store.bank.state / CLAIM, 0), pytest.raises(Busy):
        forget(there, f"^{fact.id}")
    assert Memory(there.store).forgetting.finish()[0].is_clean
    assert [one.refused for one in answers.all()] == [("fine",)]


# -- words ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    [
        "{}", "so: {} and on", json.dumps({"text": "x\n{}"}), "> {}", "- {}", "({})", '"{}"',
    ],
)  # fmt: skip
def test_a_text_is_known_however_it_stands(place: str) -> None:
    text = 'He said "no", naïve café & C:\\tmp #1'
    for form in (
        text,
        text.upper(),
        unicodedata.normalize("NFD", text),
        text.replace(" ", "\n  "),
        json.dumps(text)[1:-1],
    ):
        assert Needle(text).is_in(place.replace("{}", form)), form
    assert not Needle(text).is_in(place.replace("{}", text.replace("café", "cafe")))
    assert not Needle("Alice prefers green tea").is_in("Alice prefers green teapots")
    said = Needle("Alice prefers green tea.")
    assert (
        said.is_in("as in: alice prefers green tea, or not") and said.mask(f"{said.text} So") == f"{MARK} So"
    )


def test_a_short_text_is_no_part_of_another() -> None:
    assert Needle("Tea").is_in("- Tea ^k7m2q9x4tb") and Needle("Tea").is_in(json.dumps(["Tea"]))
    assert not Needle("Tea").is_in("Tea is fine") and not Needle("Tea").is_in("I like Tea ")


def test_a_secret_is_sought_by_itself() -> None:
    token = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    (text, secret) = make_needles([f"The deploy token is {token}"], {})
    assert secret.secret and secret.is_in(f"x={token}&y") and not text.is_in(f"x={token}")


# -- a property ----------------------------------------------------------------------------------------------


WORDS = """
apple river stone window garden paper bridge cloud winter summer kitchen table letter morning forest mountain
ocean candle mirror carpet ladder basket button pocket blanket shadow corner village harbour island meadow
orchard pebble ribbon saddle teacup valley whistle yellow purple silver golden wooden narrow gentle quiet
"""


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(10))
def test_nothing_of_it_is_left_and_all_else_is_to_the_byte(there: Bank, seed: int) -> None:
    """A bank of chance, one fact of it forgotten."""
    dice = random.Random(seed)

    def some(number: int) -> str:
        return " ".join(dice.sample(WORDS.split(), number))

    facts = []
    for _ in range(dice.randint(2, 6)):
        text = f"{some(5)}{dice.choice(['', '.', ' - and #5', ': so it is'])}\n- {some(3)}"
        said = {"session": dice.choice([None, "8f2c", "77aa"]), "when": dice.choice([None, "2026-05-01"])}
        facts.append(there.insert(text if dice.random() < 0.3 else text.partition("\n")[0], **said).fact)
    beliefs = []
    for _ in range(dice.randint(0, 4)):
        chosen = dice.sample(facts, dice.randint(1, len(facts)))
        beliefs.append(believe(there, some(4), *((fact, fact.text.split()[0]) for fact in chosen)))
    lines = []
    for _ in range(dice.randint(0, 5)):
        links = " ".join(link(each) for each in dice.sample([*facts, *beliefs], dice.randint(1, 2)))
        lines.append((some(6), links))
    by_machine(
        there, "# Page\n\n" + "\n\n".join(map(" ".join, lines)) + "\n\nThe end.\n", "memory/pages/p.md"
    )
    gone, log = dice.choice(facts), there.bytes()
    assert forget(there, f"^{gone.id}").proof.is_clean

    left, lost = everywhere_but_git(there), {gone.id}
    lost |= {each.id for each in beliefs if all(proof.id == gone.id for proof in each.proofs)}
    for each in (gone, *beliefs):
        assert (each.text.split("\n")[0].encode() in left) == (each.id not in lost), each
    for text, links in lines:
        rests = [each for each in (*facts, *beliefs) if f"^{each.id}]" in links and each.id not in lost]
        assert (text.encode() in left) == bool(rests), (text, links)
    # All else, to the byte; a heading may go with the last of what stood below it.
    rows = log.split(b"\n")
    rows = rows[: gone.place.line - 1] + rows[gone.place.end :]
    assert _solid(there.bytes().split(b"\n") if there.path().exists() else []) == _solid(rows)
    assert all(there.find(fact.id) == fact for fact in facts if fact.id != gone.id)
    kept = {}
    for path, data in statements.texts(there.store):
        kept |= {each.id: each for each in markdown.parse(data, path).of(Observation)}
    assert kept.keys() == {each.id for each in beliefs} - lost
    for each in beliefs:
        if each.id in kept:
            same = {"since": None, "last": None, "trend": None, "tags": (), "entities": ()}
            stay = tuple(proof for proof in each.proofs if proof.id not in lost)
            assert replace(kept[str(each.id)], **same) == replace(each, proofs=stay, **same)
    said = [problem.message for problem in Memory(there.store).health.verify()]
    assert not [message for message in said if "forgotten" in message or "nowhere" in message]


def _solid(rows: list[bytes]) -> list[bytes]:
    return [row for row in rows if row.strip() and not row.startswith(b"#")]


def test_an_old_copy_that_an_editor_saved_is_merged_before_something_is_forgotten(there: Bank) -> None:
    gone = there.insert(SAID).fact
    old = there.bytes()
    there.insert(CARD)
    there.path(DAY).write_bytes(old)
    done = Memory(there.store).forget(f"^{gone.id}")
    assert done.proof.is_clean and CARD in there.text() and SAID not in there.text()
    assert done.result and any("restored" in note for note in done.result.notes)
