"""How far a session was read: a mark in the file and a trailer in the trail, either of which suffices."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from banks import Bank, new_bank
from scripted_model import Scripted, keep, session, turns

from ua_memory.clients.turns import Session
from ua_memory.markdown import document as markdown
from ua_memory.markdown import printer as markdown_printer
from ua_memory.retain import ledger as through
from ua_memory.retain.flush import Flusher
from ua_memory.retain.subagent import MemoryView as View

ID = "258c7280-ae70-4798-800f-63464d01a85d"


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return new_bank(tmp_path / "bank")


def flusher(bank: Bank, model: Scripted | None = None) -> Flusher:
    view = View(lambda query: [], lambda: [])
    return Flusher(bank.store, view, lambda: lambda text: [], door="test", model=model)


@pytest.mark.parametrize(
    ("client", "name", "entry"),
    [
        ("claude-code", ID, "d3231929-5c7c-41e7-9d4d-ef12e6c9b880"),
        ("pi", "", "L12"),
        ("a/b", "x, y --> z", "100%/é <b>\n"),
        ("text", "-", "m1.2"),
        ("text", "\ud800", "💾"),
    ],
)
def test_any_ids_make_one_mark(client: str, name: str, entry: str) -> None:
    mark = through.format_mark(Session(client, name), entry)
    assert mark.count("/") == 2 and mark.isascii() and not set(mark) & set(", <>\n")
    comment = markdown_printer.through_line(mark)
    assert markdown.parse(f"## 12:00 · x\n{comment}\n".encode(), "memory/2026-11-21.md").through == (mark,)


def test_prefixes_do_not_reach_into_other_sessions() -> None:
    assert not through.format_mark(Session("a", "b/c"), "d").startswith(
        through.mark_prefix(Session("a", "b"))
    )
    assert not through.format_mark(Session("a", "bc"), "d").startswith(through.mark_prefix(Session("a", "b")))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (ID, "258c7280"),
        ("0199a3f2-1c2d-7abc-8def-0123456789ab", "0199a3f2-1c2d"),
        (f"{ID}.2", "258c7280.2"),
        ("session-1", "session-1"),
        ("L12", "L12"),
        ("", ""),
        ("with space/and slash", "with-space-and-slash"),
    ],
)
def test_ids_as_people_read_them(name: str, shown: str) -> None:
    assert through.short_id(name) == shown


def test_a_long_id_is_hashed() -> None:
    assert len(through.short_id("x" * 100)) == 8 and through.short_id("x" * 100) != through.short_id(
        "x" * 101
    )


def test_unread_is_what_follows_the_last_mark() -> None:
    said = turns("one", "two", "three", "four")
    assert through.unread_turns(said, set()) == said
    assert [t.id for t in through.unread_turns(said, {"e1", "e3"})] == ["e4"]
    assert through.unread_turns(said, {"e4", "gone"}) == []


def test_chained_ids_name_the_same_words_alone() -> None:
    one, other = turns("p: hi", "what?", "p: a"), turns("p: hi", "what?", "p: b")
    ids = [[t.id for t in through.with_chained_ids(each)] for each in (one, other)]
    assert ids[0][:2] == ids[1][:2] and ids[0][2] != ids[1][2] and len(set(ids[0])) == 3


SAID = turns("p: We leave Heroku for Fly because of the price.", "Done.", "p: Alice pays from now on.")
TWO = [keep(SAID[0].text, turn=1), keep(SAID[2].text, turn=3)]


def test_the_mark_is_in_the_file_and_in_the_trail(bank: Bank) -> None:
    run = flusher(bank, Scripted(TWO, "done"))
    run.queue_turns(session(ID), SAID, 1234)
    (done,) = run.drain()
    mark = f"claude-code/{ID}/e3"
    lines = bank.text("memory/2026-11-20.md").splitlines()
    assert lines[2:4] == ["## 14:30 · claude-code · session 258c7280", f"<!-- through: {mark} -->"]
    assert lines[4].startswith("<!-- tags: ") and lines[5] == ""
    last = bank.store.history.log(limit=1)[0]
    assert last.id == done.revision and last.trailer("Through") == mark and last.trailer("Context") == "1234"
    assert last.trailer("Session") == ID and last.trailers["Facts"] == tuple(f"^{f.id}" for f in done.facts)
    assert through.read_ids(bank.store, session(ID))[0] == {"e3"}
    assert through.size_at_last_flush(bank.store, session(ID)) == 1234
    assert through.read_ids(bank.store, session("another"))[0] == set() and bank.clean()


def test_either_suffices(bank: Bank) -> None:
    run = flusher(bank, Scripted(TWO, "done"))
    run.queue_turns(session(ID), SAID, None)
    run.drain()
    bank.edit(f"<!-- through: claude-code/{ID}/e3 -->\n", "", "memory/2026-11-20.md")
    assert through.read_ids(bank.again(), session(ID))[0] == {"e3"}
    marked = f"258c7280\n<!-- through: claude-code/{ID}/e3 -->\n"
    bank.edit("258c7280\n", marked, "memory/2026-11-20.md")
    shutil.rmtree(bank.store.bank.git_dir)
    assert through.read_ids(bank.again(), session(ID))[0] == {"e3"}


def test_a_later_flush_moves_the_mark_of_the_same_heading(bank: Bank) -> None:
    run = flusher(bank, Scripted([keep(SAID[0].text)], "done"))
    run.queue_turns(session(ID), SAID[:2], None)
    run.drain()
    run = flusher(bank, Scripted([keep(SAID[2].text)], "done"))
    run.queue_turns(session(ID), SAID[2:], None)
    run.drain()
    text = bank.text("memory/2026-11-20.md")
    assert text.count("## 14:30") == 1 and text.count("through:") == 1 and f"{ID}/e3 -->" in text


def test_several_days_have_a_mark_each(bank: Bank) -> None:
    late = turns(
        "p: We keep the invoices for ten years.", start=SAID[0].at and SAID[0].at.replace(day=21), first=9
    )
    run = flusher(bank, Scripted([*TWO, keep(late[0].text, turn=4)], "done"))
    run.queue_turns(session(ID), [*SAID, *late], None)
    (done,) = run.drain()
    assert [fact.place.path for fact in done.facts] == ["memory/2026-11-20.md"] * 2 + ["memory/2026-11-21.md"]
    assert f"{ID}/e3 -->" in bank.text("memory/2026-11-20.md")
    assert f"{ID}/e9 -->" in bank.text("memory/2026-11-21.md")
    assert len(bank.ops()) == 2


def test_an_id_that_looks_like_a_secret_stands_in_the_trailer_alone(bank: Bank) -> None:
    name = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    run = flusher(bank, Scripted(TWO, "done"))
    run.queue_turns(session(name), SAID, None)
    run.drain()
    assert name not in bank.text("memory/2026-11-20.md")
