"""Lists without a query: filters, days, and what a person sees of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from terminal import EVERY, Shell, new_shell
from test_cli_json import agrees

from ua_memory.memory import Memory
from ua_memory.views.output import cell_width

NOTES = """# Notes

- Die Hecke ist geschnitten. #garten
- Le portail est repeint. #maison/jardin
- 生垣を刈った。玄関の前まで。 #庭

A paragraph about the shed. #garten
"""


def fill(shell: Shell) -> None:
    shell.write("memory/2026-05-02.md", NOTES)
    shell.write("memory/shed.md", "- The shed key hangs by the door. #garten\n")
    shell.ok("insert", "Marta Kowalczyk signs off metrics.", "--tag", "work", "--session", "8f2c")
    shell.ok("insert", "Marta prefers tea.", "--kind", "preference")
    shell.ok("insert", "The dentist is at nine.", "--when", "tomorrow at 9:00", "--session", "8f2c")
    done = shell.ok("insert", "The boat came out.", "--when", "last week", "--tag", "boat")
    assert ", when 2026-11-09/2026-11-15\n" in done.out


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return new_shell(tmp_path, "list", fill)


def texts(shell: Shell, *argv: str) -> list[str]:
    return [one["text"] for one in shell.ok(*argv, "--json").json["results"]]


def test_a_session_is_its_whole_id_if_there_is_one(shell: Shell) -> None:
    for name in ("s-7", "s-77", "s-8"):
        shell.ok("insert", f"in {name}", "--session", name)
    assert texts(shell, "list", "--session", "s-7") == ["in s-7"]
    assert texts(shell, "list", "--session", "s-77") == ["in s-77"]
    assert shell("list", "--session", "s-9").code == shell("list", "--person", "s-9").code == 4
    assert texts(shell, "list", "--session", "s-") == ["in s-8", "in s-77", "in s-7"]


def test_a_note_has_the_day_of_its_front_matter_and_a_line_the_one_it_begins_with(shell: Shell) -> None:
    shell.write(
        "memory/notes/repairs.md",
        "---\ndate: 2026-05-03\n---\n\n- 2026-10-08 the heater was replaced\n- Mike cleaned the gutter\n",
    )
    shell.ok(
        "retain",
        "--document-id",
        "memo",
        "--timestamp",
        "2026-11-20",
        "Carol brought a pumpkin pie for dinner.",
    )
    assert texts(shell, "list", "--since", "2026-10-08", "--until", "2026-10-08") == [
        "2026-10-08 the heater was replaced"
    ]
    assert texts(shell, "list", "--since", "2026-05-03", "--until", "2026-05-03") == [
        "Mike cleaned the gutter"
    ]
    assert texts(shell, "yesterday") == ["Carol brought a pumpkin pie for dinner."]


def test_a_list_is_by_day_the_newest_first(shell: Shell) -> None:
    out = shell.ok("list").out
    titles = [row for row in out.split("\n") if row and not row.startswith("- ")]
    assert titles == [
        "Saturday 21 November 2026 (today)",
        "Monday 9 November 2026",
        "Saturday 2 May 2026",
        "Undated",
    ]
    assert texts(shell, "list", "-n", "3") == [
        "The dentist is at nine.",
        "Marta prefers tea.",
        "Marta Kowalczyk signs off metrics.",
    ]
    assert "3 of 9 shown; -n 9 shows all" in shell.ok("list", "-n", "3").err
    assert "noted 2026-11-21" in out and "#boat" in out
    assert re.search("The dentist is at nine.*about 2026-11-22", out), "a later day heads no list"
    for by_date in (("--since", "tomorrow"), ("--by-date",)):
        assert shell.ok("list", *by_date).out.startswith("Sunday 22 November 2026")
    assert "memory/2026-05-02.md:3" in out, "what has no id is named by its place"


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (("--tag", "garten"), ["paragraph", "Hecke", "shed key"]),
        (("--tag", "maison"), ["portail"]),
        (("--tag", "庭"), ["生垣"]),
        (("--tag", "garten", "--since", "May", "--until", "May"), ["paragraph", "Hecke"]),
        (("--since", "letzte Woche", "--until", "hier"), ["boat"]),
        (("--since", "tomorrow"), ["dentist"]),
        (("--since", "2026-11-12", "--until", "2026-11-13"), ["boat"]),
        (("--kind", "preference"), ["tea"]),
        (("--person", "Marta"), ["tea", "signs off"]),
        (("--person", "marta kowalczyk"), ["signs off"]),
        (("--session", "8f2c"), ["dentist", "signs off"]),
        (("--session", "8f"), ["dentist", "signs off"]),
        (("--tag-groups", '[{"not": {"tags": ["garten"]}}]', "--until", "June"), ["生垣", "portail"]),
        (("--source", "person", "--kind", "passage"), ["paragraph"]),
    ],
)
def test_filters(shell: Shell, filters: tuple[str, ...], found: list[str]) -> None:
    listed = texts(shell, "list", *filters)
    assert len(listed) == len(found)
    assert all(word in text for word, text in zip(found, listed, strict=True)), listed
    if not {"--person", "--session"} & {*filters}:
        assert texts(shell, "search", *filters) == listed


def test_a_name_that_is_not_known_is_an_error(shell: Shell) -> None:
    assert shell("list", "--person", "Nobody").code == 4
    assert shell("search").code == 2
    assert "Try without the filters" in shell.ok("list", "--tag", "none").out


def test_a_fact_about_a_month_is_listed_by_the_days_of_it(shell: Shell) -> None:
    shell.ok("insert", "The roof is done.", "--when", "October")
    assert texts(shell, "list", "--since", "2026-10-15", "--until", "2026-10-20") == ["The roof is done."]
    assert "\nOctober 2026\n" in shell.ok("list").out


def test_a_day_to_come_that_a_fact_names_is_the_day_it_is_about(shell: Shell) -> None:
    shell.ok("insert", "Physio on 7 December at 9.")
    out = shell.ok("list", "--since", "2026-12-01").out
    assert re.search(r"7 December 2026\n- Physio .*noted 2026-11-21", out)
    assert "Physio" in shell.ok("today").out
    assert "Physio" in shell.ok("list", "--since", "today", "--until", "today").out, "and when it was said"


def test_what_no_longer_holds_is_left_out(shell: Shell) -> None:
    (block,) = (one["id"] for one in shell.ok("list", "--tag", "boat", "--json").json["results"])
    shell.ok("retire", block)
    assert texts(shell, "list", "--tag", "boat") == []
    for filtered in (("--tag", "boat"), ()):
        assert "retired 2026-11-21" in shell.ok("list", *filtered, "--retired").out


def test_a_day_is_its_log_and_what_is_about_it(shell: Shell) -> None:
    out = shell.ok("today").out
    assert out.startswith("Saturday 21 November 2026 (today)\n\n09:")
    assert out.index("Kowalczyk") < out.index("prefers tea") < out.index("dentist")
    assert "session 8f2c" in out and "about 2026-11-22" in out
    assert shell.ok("yesterday").out == "Nothing for Friday 20 November 2026 (yesterday).\n"
    shell.time = shell.time.replace(day=22)
    assert shell.ok("today").out.split("\n")[2] == "About this day"
    assert "dentist" in shell.ok("today").out


def test_a_bare_day_is_its_log(shell: Shell) -> None:
    assert shell.ok("get", "2026-05-02").out == NOTES
    assert "prefers tea" in shell.ok("get", "today").out
    shell.write("memory/2026-06-01-market.md", "- Plums are in.\n")
    assert shell.ok("get", "2026-06-01").out == "- Plums are in.\n"
    shell.write("memory/2026-06-01-evening.md", "- Plums are eaten.\n")
    assert shell("get", "2026-06-01").code == 2
    missing = shell("get", "2026-06-02")
    assert missing.code == 4 and "this day has no log" in missing.err


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_list_fits_the_terminal(shell: Shell, width: int) -> None:
    shell.ok("insert", "Zaun, Tor und Hecke " * 100)
    shell.ok("insert", "生垣を刈った。" * 60)
    shell.terminals, shell.width = EVERY, width
    out = re.sub(r"\x1b\[[0-9;]*m", "", shell.ok("list", "-n", "50").out)
    assert max(map(cell_width, out.split("\n"))) <= width
    assert out.count("…") == 2
    assert len(texts(shell, "list", "--tag", "garten")) == 3


def test_an_empty_bank_says_so(tmp_path: Path) -> None:
    shell = new_shell(tmp_path)
    assert shell.ok("list").out == "Nothing is remembered yet.\n"
    assert shell.ok("today").out == "Nothing for Saturday 21 November 2026 (today).\n"
    assert shell.ok("list", "--json").json == {"results": [], "total": 0, "notes": []}


def test_a_damaged_file_hides_no_other(shell: Shell) -> None:
    (shell.cwd / "memory/2026-11-20.md").write_bytes(b"\xff\xfe- one\n\x00```\n- two \x1b[31m\n")
    assert len(texts(shell, "list", "-n", "50")) >= 9
    assert "\x1b" not in shell.ok("yesterday").out


def test_python(shell: Shell) -> None:
    with Memory.open(shell.cwd, now=lambda: shell.time) as memory:
        found = memory.list(filters=memory.filters(tags=["garten"]), limit=2)
        assert (len(found.items), found.total) == (2, 3)
        assert [one.text for one in memory.list(person="Kowalczyk").items] == [
            "Marta Kowalczyk signs off metrics."
        ]
        done = memory.insert("Lunch with Ada.", when="yesterday at 1 pm")
        assert done.fact.when == "2026-11-20T13:00"


def test_the_log_is_asked_for_by_the_same_words(shell: Shell) -> None:
    shell.time = shell.time.replace(day=24)
    shell.ok("insert", "Plums are in.")

    def subjects(*argv: str) -> list[str]:
        return [one["subject"] for one in shell.ok("log", "-n", "50", *argv, "--json").json["revisions"]]

    assert len(subjects("--since", "last week", "--until", "yesterday")) + 1 == len(subjects())
    assert len(subjects("--since", "today")) == 1 == len(subjects("--since", "today", "--op", "insert"))
    assert subjects("--until", "last month") == []
    assert "Plums" in shell.ok("log", "--since", "yesterday").out
    assert "Plums" not in shell.ok("log", "--until", "yesterday").out
    assert shell("log", "--since", "sometime").code == 2


def test_items_are_counted_by_what_filters_compare(shell: Shell) -> None:
    found = shell.ok("list", "--counts", "--json").json
    agrees("list --counts", found)
    assert found["total"] == shell.ok("list", "--json").json["total"] == sum(found["kinds"].values())
    for option, name in (
        ("--kind", "kinds"),
        ("--source", "origins"),
        ("--tag", "tags"),
        ("--session", "sessions"),
    ):
        for value, number in found[name].items():
            assert shell.ok("list", option, value, "--json").json["total"] == number, (option, value)
    assert shell.ok("list", "--counts", "--tag", "boat", "--json").json["total"] == found["tags"]["boat"]
    assert len(shell.ok("list", "--counts", "-n", "1", "--json").json["origins"]) == 1
    assert "tags: " in shell.ok("list", "--counts").out
    assert shell("list", "--counts", "--person", "Marta").code == 2


# -- by day, counted -------------------------------------------------------------------------------------


def test_days_are_counted_by_when_it_was_said(shell: Shell) -> None:
    found = shell.ok("list", "--days", "--json").json
    agrees("list --days", found)
    assert [(one["day"], one["facts"], one["sessions"]) for one in found["days"]] == [
        ("2026-11-21", 4, 1),
        ("2026-05-02", 3, 0),
    ]
    assert found["days"][0]["origins"] == {"agent": 4} and found["days"][1]["origins"] == {"person": 3}
    assert [one["day"] for one in shell.ok("list", "--days", "-n", "1", "--json").json["days"]] == [
        "2026-11-21"
    ]
    of_may = shell.ok("list", "--days", "--since", "2026-05", "--until", "2026-05", "--json").json
    assert [one["day"] for one in of_may["days"]] == ["2026-05-02"]
    assert shell.ok("list", "--days", "--tag", "boat", "--json").json["days"][0]["facts"] == 1
    assert "2026-05-02  Sat       3  3 person" in shell.ok("list", "--days").out
    assert shell.ok("list", "--days", "--until", "2020").out == "No facts.\n"
    assert shell("list", "--days", "--person", "Marta").code == 2
    of_more = shell("list", "--day", "2026-05")
    assert of_more.code == 2 and "--since 2026-05-01 --until 2026-05-31" in of_more.err
    shell.ok("insert", "One more.")
    shell.write("memory/2026-05-02.md", "")
    assert [one["facts"] for one in shell.ok("list", "--days", "--json").json["days"]] == [5]


def test_days_are_counted_from_an_index_of_their_own(shell: Shell) -> None:
    with Memory.open(shell.cwd) as memory:
        assert len(memory.facts.days("2026-01-01", "2026-12-31")) == 2
        plan = " ".join(row[-1] for row in memory.index.words.db.execute(
            "EXPLAIN QUERY PLAN SELECT day, origin, session, count(*) FROM items WHERE record = 'fact' AND"
            " day BETWEEN '0' AND '9' AND 1 GROUP BY day, origin, session ORDER BY day, origin, session"
        ))  # fmt: skip
    assert "COVERING INDEX items_day" in plan and "TEMP" not in plan
