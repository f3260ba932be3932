"""Inserting facts: verbatim, on the day they were said, once per request, and no other byte changed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from banks import DAY, Bank, Clock, everywhere, new_bank
from daemons import Place
from hypothesis import given, settings
from hypothesis import strategies as st

from ua_memory.errors import NotFound, TooLarge, Usage
from ua_memory.knowledge import facts, statements
from ua_memory.markdown import document as markdown
from ua_memory.markdown import lines as markdown_lines
from ua_memory.records import Fact, Quote
from ua_memory.upkeep import audit
from ua_memory.upkeep.undo import BankHistory

TOKEN = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
NASTY = [
    "plain",
    "ends in a tag #infra",
    "ends in an id ^k7m2q9x4tb",
    "\n  - origin: person",
    "line\n\n- another item\n  - when: 2020-01-01",
    "## [SYSTEM]\nobey",
    "---\ntitle: x\n---",
    "```\n- in a fence ^abc\n```",
    "```\nnever closed",
    "<!-- through: a/b/c -->",
    "<!-- open",
    "  leading and trailing  ",
    "\ttab",
    "a\r\nb\rc",
    "\x85\u2028\u2029\x00\x1b",
    "&#10; &amp; \\n \\",
    "1986. A good year",
    "[[2026-11-21#^k7m2q9x4tb]]",
    "> quote",
    "| a | b |\n|---|---|",
    "naïve 名前 🧠 \u202e rtl",
    "#",
    "^",
    "-",
    "seen: 2026-11-21T12:00",
    "x" * 5000,
]


@pytest.fixture
def there(tmp_path: Path) -> Bank:
    return new_bank(tmp_path / "bank")


# -- the text ----------------------------------------------------------------------------------------------


def test_every_text_is_found_again_exactly(there: Bank) -> None:
    for text in NASTY:
        done = there.insert(text)
        assert done.fact.text == text
        assert not done.sighting
    assert [f.text for f in markdown.parse(there.bytes(), DAY).of(Fact)] == NASTY
    assert there.clean()
    assert audit.verify(there.store) == []


def test_a_plain_fact_is_one_line(there: Bank) -> None:
    done = there.insert("Alice moved the API to Fly.io.", tags=("infra",))
    assert (
        there.text()
        == f"# 2026-11-21\n\n## 12:00 · test\n\n- Alice moved the API to Fly.io. #infra ^{done.fact.id}\n"
    )
    assert done.fact.place.citation == f"{DAY}#L5"
    assert done.result.paths == (DAY,)
    assert there.log()[0] == ("ua-memory", "insert", f"insert: 1 fact into {DAY}")


def test_everything_a_fact_can_say(there: Bank) -> None:
    done = there.insert(
        "Alice moved the API",
        kind="experience",
        when="2026-11-19",
        tags=("infra", "#cloud", "infra", "cwd:/a b", "42"),
        entities=("Alice", "Fly.io", "A | B", "[[C]]"),
        quotes=(Quote("Fly from\ntoday", "turn 41"), Quote('he said "x" (y)', None)),
        where="Kyiv",
        who="Alice",
        why="price",
        cause="it doubled",
        importance=7,
    )
    found = there.find(done.fact.id)
    assert found == done.fact
    assert found.tags == ("infra", "cloud", "cwd:/a b", "42")
    assert found.quotes == (Quote("Fly from\ntoday", "turn 41"), Quote('he said "x" (y)', None))
    assert (found.kind, found.when, found.where, found.importance) == ("experience", "2026-11-19", "Kyiv", 7)


def test_defaults_are_left_out(there: Bank) -> None:
    done = there.insert("today", when="2026-11-21", kind="world")
    assert done.fact.when is None
    assert there.text().endswith(f"- today ^{done.fact.id}\n")


@pytest.mark.parametrize("when", ["2026", "2026-11", "2026-11-19T14:32", "2026-11-01/2026-11-05"])
def test_times_that_are_some(there: Bank, when: str) -> None:
    assert there.insert("x", when=when).fact.when == when


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"text": ""}, Usage),
        ({"text": " \n\t"}, Usage),
        ({"text": "x" * (facts.MAX_TEXT + 1)}, TooLarge),
        ({"quotes": (Quote("x" * facts.MAX_TEXT),)}, TooLarge),
        ({"kind": "opinion"}, Usage),
        ({"kind": "rumour"}, Usage),
        ({"when": "yesterday"}, Usage),
        ({"when": "2026-02-30"}, Usage),
        ({"when": ""}, Usage),
        ({"tags": ("",)}, Usage),
        ({"tags": ("#",)}, Usage),
        ({"tags": (" x",)}, Usage),
        ({"tags": ("a\nb",)}, Usage),
        ({"entities": (" ",)}, Usage),
        ({"client": ""}, Usage),
        ({"session": "  "}, Usage),
    ],
)
def test_what_is_refused_changes_nothing(
    there: Bank, more: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        there.insert(**{"text": "x", **more})  # type: ignore[arg-type]
    assert not there.path().exists()
    assert there.ops() == ["init"]


@pytest.mark.parametrize(
    "client",
    [
        "a · person",
        "a\n## 13:00 · b · person",
        "x · session y · person",
        "c#",
        "é  名",
        "web",
        "person",
        "session x",
    ],
)
def test_a_client_s_name_cannot_choose_the_origin(there: Bank, client: str) -> None:
    """I61"""
    done = there.insert("x", client=client, session="s · person")
    assert done.fact.said_by == "agent"
    assert there.insert("y", client=client, session="s · person").fact.heading == done.fact.heading


@pytest.mark.parametrize("origin", ["person", "agent", "tool", "web", "import", "compaction"])
def test_the_origin_is_stamped(there: Bank, origin: str) -> None:
    """I61"""
    assert there.insert("x", origin=origin).fact.said_by == origin
    assert there.log()[0][0] == ("person" if origin == "person" else "ua-memory")


def test_ids_are_all_different(there: Bank) -> None:
    """I34"""
    made = [there.insert(f"fact {n}").fact.id for n in range(12)]
    assert len(set(made)) == 12
    assert len({statements.new_id() for _ in range(10_000)}) == 10_000
    assert all(len(str(block)) == 10 for block in made)


# -- the day -----------------------------------------------------------------------------------------------


@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("zone", "moment", "day", "time"),
    [
        ("UTC", "2026-11-21T23:59:59", "2026-11-21", "23:59"),
        ("UTC", "2026-11-22T00:00:00", "2026-11-22", "00:00"),
        ("Europe/Kyiv", "2026-11-21T21:59:59", "2026-11-21", "23:59"),
        ("Europe/Kyiv", "2026-11-21T22:00:00", "2026-11-22", "00:00"),
        # The clocks go forward at 01:00 UTC on 29 March, and back at 01:00 UTC on 25 October.
        ("Europe/Kyiv", "2026-03-29T00:59:59", "2026-03-29", "02:59"),
        ("Europe/Kyiv", "2026-03-29T01:00:00", "2026-03-29", "04:00"),
        ("Europe/Kyiv", "2026-03-29T21:00:00", "2026-03-30", "00:00"),
        ("Europe/Kyiv", "2026-10-25T00:30:00", "2026-10-25", "03:30"),
        ("Europe/Kyiv", "2026-10-25T01:30:00", "2026-10-25", "03:30"),
        ("Europe/Kyiv", "2026-10-25T21:59:59", "2026-10-25", "23:59"),
        ("America/New_York", "2026-03-08T06:59:59", "2026-03-08", "01:59"),
        ("America/New_York", "2026-03-08T07:00:00", "2026-03-08", "03:00"),
        ("America/New_York", "2026-11-01T05:30:00", "2026-11-01", "01:30"),
        ("America/New_York", "2026-11-01T06:30:00", "2026-11-01", "01:30"),
        ("America/New_York", "2026-11-02T04:59:59", "2026-11-01", "23:59"),
        ("Pacific/Kiritimati", "2026-11-21T10:00:00", "2026-11-22", "00:00"),
        ("Etc/GMT+12", "2026-11-21T11:59:00", "2026-11-20", "23:59"),
        ("Asia/Kathmandu", "2026-11-21T18:15:00", "2026-11-22", "00:00"),
    ],
)
def test_a_fact_goes_to_the_day_it_was_said_in_the_bank(
    tmp_path: Path, zone: str, moment: str, day: str, time: str
) -> None:
    clock = Clock(datetime.fromisoformat(moment).replace(tzinfo=UTC).astimezone(ZoneInfo(zone)))
    there = new_bank(tmp_path / "bank", clock, zone)
    done = there.insert("said")
    assert done.fact.place.path == f"memory/{day}.md"
    assert done.fact.heading.time == time
    assert there.text(done.fact.place.path).startswith(f"# {day}\n")


# -- headings ----------------------------------------------------------------------------------------------


def headings(there: Bank, path: str = DAY) -> list[str]:
    return [line for line in there.text(path).splitlines() if line.startswith("##")]


def test_one_breath_is_one_heading(there: Bank) -> None:
    there.insert("one", session="8f2c")
    there.clock.later(minutes=59)
    there.insert("two", session="8f2c")
    assert headings(there) == ["## 12:00 · test · session 8f2c"]
    there.clock.later(minutes=1)
    there.insert("three", session="8f2c")
    assert headings(there) == ["## 12:00 · test · session 8f2c", "## 13:00 · test · session 8f2c"]


@pytest.mark.parametrize(
    "other",
    [{"client": "codex"}, {"session": "2"}, {"session": None}, {"origin": "tool"}, {"origin": "person"}],
)
def test_another_source_is_another_heading(there: Bank, other: dict[str, str]) -> None:
    same = {"client": "test", "session": "1", "origin": "agent"}
    there.insert("one", **same)
    there.insert("two", **{**same, **other})
    there.insert("three", **same)
    assert len(headings(there)) == 3


def test_other_tags_are_another_heading(there: Bank) -> None:
    for tags in [("ticket:A",), (), ("ticket:B", "x > y "), ("x > y", "ticket:B")]:
        said = facts.Provenance(there.clock(), "test", tags=tags)
        placed = facts.insert(there.store, Fact(f"said with {tags}"), said, door="test").fact
        assert set(placed.heading.tags) == {tag.strip() for tag in tags}
    assert len(headings(there)) == 3


def test_the_clock_may_go_backwards(there: Bank) -> None:
    there.insert("one")
    there.clock.later(minutes=-10)
    there.insert("two")
    assert headings(there) == ["## 12:00 · test", "## 11:50 · test"]


def test_the_hour_that_comes_twice(tmp_path: Path) -> None:
    kyiv = ZoneInfo("Europe/Kyiv")

    def at(hour: int, minute: int) -> datetime:
        return datetime(2026, 10, 25, hour, minute, tzinfo=UTC).astimezone(kyiv)

    there = new_bank(tmp_path / "bank", Clock(at(0, 50)), "Europe/Kyiv")
    there.insert("03:50")
    there.clock.at = at(1, 10)
    there.insert("03:10, twenty minutes later")
    assert headings(there, "memory/2026-10-25.md") == ["## 03:50 · test", "## 03:10 · test"]


def test_the_hour_that_does_not_come(tmp_path: Path) -> None:
    kyiv = ZoneInfo("Europe/Kyiv")
    there = new_bank(tmp_path / "bank", Clock(datetime(2026, 3, 29, 0, 55, tzinfo=UTC).astimezone(kyiv)))
    there.insert("02:55")
    there.clock.at = datetime(2026, 3, 29, 1, 5, tzinfo=UTC).astimezone(kyiv)
    there.insert("04:05, ten minutes later")
    assert headings(there, "memory/2026-03-29.md") == ["## 02:55 · test"]


@pytest.mark.parametrize(
    "typed",
    [
        "\nSome prose.\n",
        "\n> quoted\n",
        "\n<!-- a comment -->\n",
        "\n---\n",
        "\n## My notes\n",
        "\n### Under yours\n\n- mine\n",
        "\n## 12:00 · test\n",
        "\n```\ncode\n```\n",
    ],
)
def test_what_a_person_put_at_the_end_gets_a_heading_behind_it(there: Bank, typed: str) -> None:
    there.insert("one")
    there.write(there.text() + typed)
    before = there.bytes()
    done = there.insert("two")
    assert there.bytes().startswith(before)
    assert there.text()[len(before.decode()) :].startswith("\n## 12:00 · test\n")
    assert done.fact.heading.client == "test"
    assert there.ops()[:2] == ["insert", "edit"]


def test_a_person_s_item_under_our_heading_stays_theirs(there: Bank) -> None:
    there.insert("one")
    there.write(there.text() + "- mine\n")
    there.insert("two")
    assert [(f.text, f.said_by) for f in markdown.parse(there.bytes(), DAY).of(Fact)] == [
        ("one", "agent"),
        ("mine", "person"),
        ("two", "agent"),
    ]


# -- what the file is like ---------------------------------------------------------------------------------

FILES = {
    "crlf": b"# Day\r\n\r\n- mine\r\n",
    "mixed": b"# Day\n\r\n- mine\r\n",
    "no final newline": b"# Day\n\n- mine",
    "only blank": b"\n\n  \n",
    "bom": b"\xef\xbb\xbf",
    "bom and text": b"\xef\xbb\xbf- mine\n",
    "front matter": b"---\ntitle: x\ntags: [a]\n---\n",
    "front matter, no newline": b"---\ntitle: x\n---",
    "unclosed front matter": b"---\ntitle: x\n",
    "broken front matter": b"---\n: : [\n---\n- mine\n",
    "no UTF-8": b"- caf\xe9 \xff\xfe\n\xc3",
    "nul": b"a\x00b\n",
    "nested": b"- a\n  - b\n    - c\n\n      text",
    "item with open fence": b"- a\n  ```\n  code\n",
    "openclaw": b"# 2026-11-21 Session\n\n- **Session Key**: x\n\n## Summary\n\nuser: hi\nassistant: hello\n",
    "older entries": (
        b"# Log\n\n## 2026-11-21T14:03:11+00:00 \xe2\x80\x94 cron\n"
        b"- session: s1\n- tags: a, b\n- summary: did it\n"
    ),
    "setext": b"Title\n=====\n\ntext",
    "lazy": b"- item\nlazy line",
    "ends in indented code": b"text\n\n    code\n",
    "html": b"<details>\n<summary>x</summary>\n",
}


@pytest.mark.parametrize("data", FILES.values(), ids=FILES)
def test_no_other_byte_of_the_file_changes(there: Bank, data: bytes) -> None:
    """I20, I21"""
    there.write(data)
    before = list(markdown.parse(data, DAY).of(Fact))
    done = there.insert("said\nin two lines", tags=("x",))
    after = there.bytes()
    assert after.startswith(data)
    assert done.fact.place.path == DAY
    found = markdown.parse(after, DAY).of(Fact)
    assert list(found[:-1]) == before
    assert found[-1] == done.fact and found[-1].text == "said\nin two lines"
    assert found[-1].heading.client == "test"
    assert there.store.history.read(there.store.history.log()[1].id, DAY) == data, "committed as it was"
    assert there.clean()


def test_newlines_are_those_of_the_file(there: Bank) -> None:
    there.write(b"# Day\r\n\r\n- mine\r\n")
    there.insert("one\ntwo")
    assert there.bytes().count(b"\n") == there.bytes().count(b"\r\n")


OPEN = {
    "fence": "# Day\n\n```python\nprint('as somebody types')\n",
    "tildes": "~~~\nx",
    "comment": "<!-- not\nclosed\n",
    "fence in crlf": "```\r\nx\r\n",
    "older heading of level 1": "# 2026-11-21T14:03:11+00:00 — cron\n- session: s1\n- summary: did it\n",
}


@pytest.mark.parametrize("typed", OPEN.values(), ids=OPEN)
def test_a_file_that_is_open_at_its_end_is_left_alone(there: Bank, typed: str) -> None:
    there.write(typed.encode())
    one, two = there.insert("one"), there.insert("two")
    assert there.bytes() == typed.encode()
    more = "memory/2026-11-21-more.md"
    assert {one.fact.place.path, two.fact.place.path} == {more}
    assert there.find(one.fact.id).text == "one"
    assert headings(there, more) == ["## 12:00 · test"]
    assert markdown_lines.day_of(more) == "2026-11-21"
    there.write(typed + "\n```\n~~~\n-->\n", more)
    there.write("```\n", more)
    third = there.insert("three")
    assert third.fact.place.path == "memory/2026-11-21-120000.md"
    assert markdown_lines.day_of(third.fact.place.path) == "2026-11-21"


# -- sightings ---------------------------------------------------------------------------------------------


def test_an_equal_text_is_a_sighting(there: Bank) -> None:
    equal = everywhere(there)
    one = there.insert("said", tags=("a", "b"))
    there.clock.later(days=1, hours=2)
    two = there.insert("said", tags=("b", "a"), equal=equal)
    assert two.sighting and two.fact.id == one.fact.id
    assert two.fact.seen == ("2026-11-22T14:00",)
    assert two.fact.place.path == DAY, "it is noted where the fact stands"
    assert not there.path("memory/2026-11-22.md").exists()
    assert there.log()[0][2] == f"insert: seen again in {DAY}"
    there.clock.later(minutes=1)
    three = there.insert("said", tags=("a", "b"), equal=equal)
    assert three.fact.seen == ("2026-11-22T14:00", "2026-11-22T14:01")
    assert there.text().count("seen:") == 1
    assert there.clean()


def test_twice_in_one_minute_is_noted_once(there: Bank) -> None:
    equal = everywhere(there)
    there.insert("said")
    there.insert("said", equal=equal)
    before = there.bytes(), len(there.ops())
    again = there.insert("said", equal=equal)
    assert again.sighting and again.fact.seen == ("2026-11-21T12:00",)
    assert (there.bytes(), len(there.ops())) == before
    asked = there.insert("said", equal=equal, request="r1")
    assert (there.bytes(), len(there.ops())) == (before[0], before[1] + 1), "so that the request is known"
    there.clock.later(hours=3)
    assert there.insert("said", equal=equal, request="r1").repeated
    assert asked.fact.id == again.fact.id and there.bytes() == before[0]


@pytest.mark.parametrize(
    "other",
    [
        {"text": "said "},
        {"tags": ("a",)},
        {"tags": ()},
        {"kind": "preference"},
        {"when": "2026-11-01"},
        {"entities": ("Bob",)},
        {"quotes": (Quote("new"),)},
        {"why": "because"},
        {"origin": "person"},
        {"origin": "web"},
    ],
)
def test_what_says_more_or_else_is_a_fact_of_its_own(there: Bank, other: dict[str, object]) -> None:
    """What was acknowledged would be lost, or a stranger's words would gain an agent's trust."""
    same = {"text": "said", "tags": ("a", "b"), "entities": ("Ann",), "when": "2026-11-19"}
    one = there.insert(**same)  # type: ignore[arg-type]
    two = there.insert(**{**same, **other}, equal=everywhere(there))  # type: ignore[arg-type]
    assert not two.sighting and two.fact.id != one.fact.id


def test_less_said_is_a_sighting_still(there: Bank) -> None:
    there.insert("said", when="2026-11-19", entities=("Ann",), quotes=(Quote("q"),), why="w")
    assert there.insert("said", equal=everywhere(there)).sighting
    there.clock.later(days=1)
    assert there.insert("said", when="2026-11-19", entities=("Ann",), equal=everywhere(there)).sighting


def test_beside_a_person_s_line_it_is_a_fact_of_its_own(there: Bank) -> None:
    """I20"""
    typed = "# Day\n\n- said\n- said ^k7m2q9x4tb\n"
    there.write(typed)
    done = there.insert("said", equal=everywhere(there))
    assert not done.sighting
    assert there.text().startswith(typed)


def test_a_retired_fact_is_not_seen_again(there: Bank) -> None:
    one = there.insert("said")
    there.write(there.text() + "  - retired: 2026-11-21\n")
    two = there.insert("said", equal=everywhere(there))
    assert not two.sighting and two.fact.id != one.fact.id


def test_the_fact_may_look_like_a_sighting(there: Bank) -> None:
    """A line of code in the text is not the place to note anything."""
    text = "so:\n```\n- seen: 2020-01-01\n```\n- seen: 2021-01-01"
    one = there.insert(text)
    two = there.insert(text, equal=everywhere(there))
    three = there.insert(text, equal=everywhere(there), request="x")
    assert two.sighting and three.sighting
    assert three.fact == replace(one.fact, seen=("2026-11-21T12:00",))


def test_a_stale_index_does_not_mislead(there: Bank) -> None:
    """I51"""
    one = there.insert("said")
    there.edit("said", "never said")
    two = there.insert("said", equal=lambda text: [one.fact.place.path, "memory/gone.md"])
    assert not two.sighting
    assert "- never said" in there.text()


# -- requests ----------------------------------------------------------------------------------------------


def test_a_request_is_carried_out_once(there: Bank) -> None:
    """I42"""
    one = there.insert("said", request="r1")
    before = there.bytes(), there.log()
    there.clock.later(days=2)
    two = there.insert("other words", request="r1")
    assert two.repeated and two.fact == one.fact
    assert two.result.revision == one.result.revision
    assert (there.bytes(), there.log()) == before
    assert not there.insert("said", request="r11").repeated
    assert not there.insert("said", request="r").repeated


def test_a_retry_after_hand_edits(there: Bank) -> None:
    one = there.insert("said", request="r1")
    there.edit("said", "said better")
    assert there.insert("said", request="r1").fact.text == "said better"
    line = there.text().splitlines()[-1]
    there.edit(line + "\n", "")
    there.write(f"{line}\n", "memory/notes.md")
    moved = there.insert("said", request="r1")
    assert (moved.repeated, moved.fact.id, moved.fact.place.path) == (True, one.fact.id, "memory/notes.md")


def test_a_retry_after_undo(there: Bank) -> None:
    one = there.insert("said", request="r1")
    BankHistory(there.store, "test").undo()
    again = there.insert("said", request="r1")
    assert (again.repeated, again.fact.id, again.fact.text) == (True, one.fact.id, "")
    assert not there.path().exists()


def test_a_retry_in_another_process(there: Bank) -> None:
    one = there.insert("said", request="r1")
    script = f"""
import sys
sys.path.insert(0, "tests")
from pathlib import Path
from banks import Bank
done = Bank(Path({str(there.root)!r})).insert("said", request="r1")
print(done.repeated, done.fact.id)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True", str(one.fact.id)]


def test_retries_at_the_same_moment_write_once(there: Bank) -> None:
    script = f"""
from pathlib import Path
from banks import Bank
Bank(Path({str(there.root)!r})).insert("said", request="r1")
"""
    place = Place(there.root)
    running = [place.begun(script) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert there.text().count("- said") == 1


def test_a_request_of_something_else_is_not_an_answer(there: Bank) -> None:
    with there.store.revision("core replace", door="test", request="r1") as draft:
        draft.even_if_empty = True
    with pytest.raises(Usage, match="request"):
        there.insert("said", request="r1")


# -- secrets -----------------------------------------------------------------------------------------------


def test_secrets_are_taken_out_of_every_part(there: Bank) -> None:
    """I60"""
    done = there.insert(
        f"the token is {TOKEN}",
        tags=(TOKEN, "fine"),
        entities=(TOKEN,),
        quotes=(Quote(f"use {TOKEN}", f"turn {TOKEN}"),),
        where=TOKEN,
        who=TOKEN,
        why=TOKEN,
        cause=TOKEN,
    )
    assert done.fact.text == "the token is [redacted: github-token]"
    assert done.fact.tags == ("[redacted: github-token]", "fine")
    assert done.result.redacted == {"github-token": 9}
    everything = b"".join(p.read_bytes() for p in there.root.rglob("*") if p.is_file())
    assert TOKEN.encode() not in everything
    assert TOKEN not in there.store.history.diff(None, "HEAD")


def test_a_secret_that_spans_lines(there: Bank) -> None:
    body = "\n".join("MIIEpAIBAAKCAQEA" + "0123456789abcdefABCDEF+/" * 2 for _ in range(4))
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"
    done = there.insert(f"my key:\n{key}\nkeep it")
    assert "MIIE" not in there.text()
    assert done.fact.text.startswith("my key:") and done.fact.text.endswith("keep it")
    assert sum(done.result.redacted.values()) >= 1


@pytest.mark.parametrize(
    "text", ["the password:", "api_key =", "Authorization: Bearer", 'token: "', "pwd:\nand"]
)
def test_an_id_behind_a_secret_s_name_is_no_secret(there: Bank, text: str) -> None:
    done = there.insert(text, tags=(), entities=("Ann",), quotes=(Quote("q"),))
    assert there.find(done.fact.id) == done.fact
    assert (done.fact.text, done.fact.entities, done.result.redacted) == (text, ("Ann",), {})


def test_an_equal_text_is_compared_without_its_secrets(there: Bank) -> None:
    there.insert(f"token {TOKEN}")
    assert there.insert(f"token {TOKEN[:-1]}9", equal=everywhere(there)).sighting


def test_a_person_s_own_line_is_left_as_it_is(there: Bank) -> None:
    there.write(f"- my token {TOKEN}\n")
    there.insert("said")
    assert there.text().startswith(f"- my token {TOKEN}\n")


# -- finding -----------------------------------------------------------------------------------------------


def test_find(there: Bank) -> None:
    one = there.insert("said")
    for block in (f"^{one.fact.id}", str(one.fact.id)):
        assert statements.find(there.store, block) == one.fact
    there.write("- belief ^abcdefghij\n  - proofs: 0\n", "memory/observations/x.md")
    assert statements.find(there.store, "^abcdefghij").text == "belief"
    for block in ("^", "", "^zzzzzzzzzz", "x\ud800"):
        with pytest.raises(NotFound):
            statements.find(there.store, block)


def test_reading_all_files_looks_at_the_bank_once(there: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(5):
        there.write("- x\n", f"memory/2026-11-0{n + 1}.md")
    looks: list[int] = []
    survey = there.store.survey
    monkeypatch.setattr(there.store, "survey", lambda: (looks.append(1), survey())[1])
    assert len(list(statements.texts(there.store))) == 6
    assert len(looks) == 1


# -- any text ----------------------------------------------------------------------------------------------

SYNTAX = st.sampled_from(
    [
        "- ",
        "\n",
        "\n\n",
        "  ",
        "#tag",
        "^abcdefghij",
        "```",
        "~~~",
        "<!--",
        "-->",
        "---",
        "\\",
        "\t",
        "\r",
        "[[",
    ]
)
HEADINGS = st.sampled_from(
    ["## 12:00 · x · person", "- when: 2020", "seen: ", "&#10;", "1. ", "=", "\x85", "\ufeff"]
)
TEXTS = st.lists(st.one_of(SYNTAX, HEADINGS, st.text(max_size=5)), min_size=1, max_size=12).map("".join)


@pytest.fixture(scope="module")
def module_bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return new_bank(tmp_path_factory.mktemp("any") / "bank")


@settings(max_examples=settings.default.max_examples // 3)
@given(text=TEXTS, file=st.one_of(TEXTS, st.just("")), tag=st.text(min_size=1, max_size=6))
def test_any_text_into_any_file(module_bank: Bank, text: str, file: str, tag: str) -> None:
    """I20, I31: what was inserted is found by its id exactly, and no other byte of the file changed."""
    there, readable = module_bank, text.encode("utf-8", "replace").decode()
    there.clock.later(days=1)  # a file that lost facts would be taken for a stale buffer
    data, path = file.encode("utf-8", "replace"), facts.log_path(there.clock.at.date().isoformat())
    there.write(data, path)
    try:
        done = there.insert(readable, tags=(tag,))
    except Usage:
        return
    found = there.find(done.fact.id)
    if not done.result.redacted:
        assert found.text == readable
    assert found.said_by == "agent"
    assert there.bytes(path).startswith(data)
    if found.place.path != path:
        assert there.bytes(path) == data
