"""`log` as a diary: each kind of revision as the sentence that a person reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ua_memory.git.repository import Revision
from ua_memory.records import Fact, Heading
from ua_memory.views import history as diary

GOLDEN = Path(__file__).parent / "golden" / "diary.txt"
START = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
LONG = "Alice moved the API to Fly.io because the price of Heroku doubled, and nobody wished to pay that."
SAID = Heading(time="14:32", client="claude-code", session="8f2c")
SHELL = Heading(time="14:40", client="cli", session="9c10")
Row = tuple[str, str, str, dict[str, tuple[str, ...]], tuple[Fact, ...]]
ROWS: list[Row] = [
    ("ua-memory", "init", "init: make this folder a bank", {"Door": ("cli",)}, ()),
    ("Ann", "insert", "insert: 1 fact into memory/2026-11-21.md", {"Door": ("cli",)}, (Fact(LONG, id="a"),)),
    ("ua-memory", "insert", "insert: 1 fact", {"Door": ("mcp",)}, (Fact("Bob moved.", heading=SAID),)),
    ("ua-memory", "insert", "insert: 1 fact", {"Door": ("mcp",)}, (Fact("Carol left.", heading=SAID),)),
    ("ua-memory", "insert", "insert: 1 fact", {"Door": ("mcp",)}, (Fact("Dave sails.", heading=SAID),)),
    ("ua-memory", "insert", "insert: 1 fact", {"Door": ("mcp",)}, (Fact("Erin paints.", heading=SAID),)),
    ("ua-memory", "insert", "insert: seen again in memory/x.md", {"Door": ("mcp",)}, (Fact("Bob moved."),)),
    ("ua-memory", "insert", "insert: 1 fact into memory/2026-11-21.md", {"Door": ("cli",)}, ()),
    ("Ann", "edit", "edit: memory/notes.md", {"Door": ("editor",)}, (Fact("by hand"),)),
    ("Ann", "edit", "edit: memory/notes.md", {"Door": ("editor",)}, (Fact("by hand, twice"),)),
    ("Ann", "edit", "edit: 2 files", {"Door": ("editor",)}, ()),
    ("ua-memory", "flush", "flush: 12 facts from claude-code", {"Session": ("8f2c1111-aaaa",)},
     tuple(Fact(f"Fact {n}.", heading=SAID) for n in range(12))),
    ("ua-memory", "consolidate", "consolidate: 2 new, 1 revised, of 5 facts", {"Door": ("cli",)}, ()),
    ("ua-memory", "core replace", "core: add User", {"Door": ("cli",)}, ()),
    ("ua-memory", "core replace", "core: replace User", {"Door": ("mcp",)}, ()),
    ("ua-memory", "undo", "undo: core: replace User", {"Undoes": ("f" * 40,)}, ()),
    ("ua-memory", "redo", "redo: undo: core: replace User", {"Undoes": ("e" * 40,)}, ()),
    ("ua-memory", "undo", "undo: insert: 1 fact into x.md", {"Undoes": (f"{1:040x}",)}, (Fact("Left."),)),
    ("ua-memory", "redo", "redo: undo: insert: 1 fact", {"Undoes": (f"{17:040x}",)}, (Fact(LONG, id="a"),)),
    ("ua-memory", "forget", "forget: 1 fact; 2 revised", {"Facts": ("^k7m2q9x4tb",)}, ()),
    ("ua-memory", "purge", "purge: 1 forgotten statement from the history", {"Door": ("cli",)}, ()),
    ("ua-memory", "sync", "sync: bring in origin", {"Joins": ("d" * 40,)}, ()),
    ("ua-memory", "merge", "merge: put back 2 facts a stale buffer had dropped", {"Door": ("store",)}, ()),
    ("ua-memory", "entities", "entities: merge Al into Alice", {"Door": ("cli",)}, ()),
    ("Ann", "", "tidy up by hand", {}, ()),
    ("ua-memory", "insert", "insert: 1 fact", {"Door": ("cli",)}, (Fact("Finn runs.", heading=SHELL),)),
    ("Ann", "models", "mental model: create infra", {"Door": ("cli",)}, ()),
    ("ua-memory", "config", "config: set search.limit", {"Door": ("cli",)}, ()),
    ("Ann", "edit", "edit: remove 1 fact from memory/notes.md", {"Door": ("editor",)}, ()),
    ("Ann", "edit", "edit: delete 2 files", {"Door": ("editor",)}, ()),
]  # fmt: skip


def test_each_kind_of_revision_reads_as_a_sentence(request: pytest.FixtureRequest) -> None:
    done, brought = [], {}
    for n, (author, op, subject, more, facts) in enumerate(ROWS):
        trailers = {**({"Memory-Op": (op,)} if op else {}), **more}
        paths = ("memory/notes.md",) if subject == "edit: memory/notes.md" else ("memory/a.md", "memory/b.md")
        one = Revision(f"{n:040x}", START + timedelta(minutes=n), author, subject, trailers, paths)
        done.append(one)
        brought[one.id] = facts
    rows = diary.diary_entries(done[::-1], brought, {done[14].id}, UTC)
    text = "".join(f"{row.when:%H:%M} {row.sentence}{' (undone)' * row.undone}\n" for row in rows)
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
    assert len(diary.diary_entries(done, brought, set(), UTC, separate=True)) == len(ROWS)
