"""The reader of time words: each row of tests/data/time_words.md and docs/time.md, and what must hold for
whole families of phrases."""

from __future__ import annotations

import calendar
import re
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from babel import Locale
from hypothesis import given
from hypothesis import strategies as st

from ua_memory.recall import arms
from ua_memory.text import dates
from ua_memory.text import foreign_dates as foreign

DOC = (Path(__file__).parent / "data" / "time_words.md").read_text("utf-8")
PAGE = (Path(__file__).parent.parent / "docs" / "time.md").read_text("utf-8")
ROW = re.compile(r"^\| (.+?) \| (\d{4}-\d\d-\d\d) \| (\S+) \| (\S*) *\| (\S*) *\|$", re.M)
ROWS = [match.groups() for match in ROW.finditer(DOC)]
KYIV = ZoneInfo("Europe/Kyiv")
TODAY = date(2026, 11, 21)


def read(text: str, on: date = TODAY, zone: ZoneInfo = KYIV) -> dates.Reading:
    return dates.read(text, datetime(on.year, on.month, on.day, 14, tzinfo=zone), zone)


def window(text: str, on: date = TODAY) -> tuple[str | None, str | None]:
    found = read(text, on)
    return found.start, found.end


def test_the_table_is_read() -> None:
    sections = dict(re.findall(r"^## (.+?)\n(.*?)(?=^#|\Z)", DOC, re.M | re.S))
    rows = {name: len(ROW.findall(body)) for name, body in sections.items()}
    languages = tuple(re.findall(r"^## (.+)", DOC.partition("# Other languages")[2], re.M))
    assert len(languages) == 12
    assert (
        sum(rows.values())
        == len(ROWS)
        == sum(line.count("|") == 6 for line in DOC.splitlines())
        - 2 * (sum(1 for count in rows.values() if count))
    )
    assert sum(count for name, count in rows.items() if name not in languages) >= 160
    assert rows["Not a time"] >= 40 and all(rows[name] >= 12 for name in languages)
    shown = re.findall(r"^\| (.+?) \| (\S*) *\| (\S*) *\|$", PAGE, re.M)[1:]
    assert len(shown) == sum(line.startswith("|") for line in PAGE.splitlines()) - 2 >= 15
    assert {(text, str(TODAY), "Europe/Kyiv", start, end) for text, start, end in shown} <= set(ROWS)


def test_every_row_is_read_as_it_says() -> None:
    """All rows in one test, which shows those that are not: as many tests would cost as many set-ups."""
    wrong = []
    for row in ROWS:
        text, on, zone, start, end = row
        found = read(text, date.fromisoformat(on), ZoneInfo(zone))
        if start == end == "–":
            good = not found and found.at == ()
        else:
            good = (found.start or "", found.end or "") == (start, end)
            good = good and bool(found.at) and all(0 <= at < to <= len(text) for at, to in found.at)
        wrong += [] if good else [(row, found)]
    assert wrong == []


# -- families: modifier × unit × anchor -----------------------------------------------------------------

MONTHS = list(calendar.month_name)[1:]
DAYS = list(calendar.day_name)
months = st.integers(1, 12)
years = st.integers(1990, 2030)
ons = st.dates(date(2001, 1, 1), date(2030, 12, 31))


def month(year: int, number: int) -> tuple[date, date]:
    return date(year, number, 1), date(year + number // 12, number % 12 + 1, 1)


def iso(*days: date | None) -> tuple[str | None, ...]:
    return tuple(each.isoformat() if each else None for each in days)


FRAMES = (
    "{}",
    "what did we do in {}?",
    "notes from {}",
    "{} planning",
    "Who met Alice in {} and why",
    "during {},",
)


@given(
    months,
    years,
    ons,
    st.sampled_from(FRAMES),
    st.sampled_from(("{} {}", "{}, {}", "{} of {}")),
    st.booleans(),
)
def test_a_month_and_its_year(number: int, year: int, on: date, frame: str, form: str, short: bool) -> None:
    name = calendar.month_abbr[number] if short else MONTHS[number - 1]
    assert window(frame.format(form.format(name, year)), on) == iso(*month(year, number))


@given(
    months,
    ons,
    st.sampled_from(("in {}", "what happened in {}?", "during {}", "in {} we moved", "IN: in {}, please")),
)
def test_a_month_alone_is_the_latest_that_has_begun(number: int, on: date, frame: str) -> None:
    year = on.year if number <= on.month else on.year - 1
    assert window(frame.format(MONTHS[number - 1]), on) == iso(*month(year, number))


@given(
    months,
    ons,
    st.sampled_from(("what is planned in {}?", "what will happen in {}", "what must be paid in {}")),
)
def test_a_month_alone_is_the_next_if_the_future_is_asked_about(number: int, on: date, frame: str) -> None:
    year = on.year if number >= on.month else on.year + 1
    assert window(frame.format(MONTHS[number - 1]), on) == iso(*month(year, number))


@pytest.mark.parametrize(
    "text",
    [
        "was im Mai geplant war",
        "what was planned in May",
        "what should I have done in May",
        "who told me in May that I must go",
    ],
)
def test_a_plan_of_the_past_is_asked_about_the_past(text: str) -> None:
    assert window(text, date(2026, 11, 21)) == ("2026-05-01", "2026-06-01")


@given(months, ons)
def test_last_this_and_next_month_by_name(number: int, on: date) -> None:
    name = MONTHS[number - 1]
    assert window(f"this {name}", on) == iso(*month(on.year, number))
    assert window(f"last {name}", on) == iso(*month(on.year - (number >= on.month), number))
    assert window(f"next {name}", on) == iso(*month(on.year + (number <= on.month), number))
    assert window(f"{name} last year", on) == iso(*month(on.year - 1, number))


@given(
    months,
    years,
    ons,
    st.sampled_from(("since", "until", "before", "after", "by", "starting in", "prior to", "through")),
)
def test_open_sides(number: int, year: int, on: date, side: str) -> None:
    start, end = month(year, number)
    expected = {"since": (start, None), "starting in": (start, None), "after": (end, None)}
    expected |= dict.fromkeys(("before", "prior to"), (None, start))
    expected |= dict.fromkeys(("until", "by", "through"), (None, end))
    assert window(f"everything {side} {MONTHS[number - 1]} {year}", on) == iso(*expected[side])


WRITTEN = "{d} {m} {y}", "{m} {d}, {y}", "the {o} of {m} {y}", "{m} {o} {y}", "{d} {s} {y}", "{d}-{s}-{y}"
ABOUT = "{}", "on {}", "what was said on {} at 14:00?", "meeting of {}", "on the morning of {}"


@given(st.dates(date(1990, 1, 1), date(2030, 12, 31)), ons, st.sampled_from(WRITTEN), st.sampled_from(ABOUT))
def test_a_day_however_it_is_written(day: date, on: date, form: str, frame: str) -> None:
    nth = {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10 if day.day not in (11, 12, 13) else 0, "th")
    parts = {"d": day.day, "o": f"{day.day}{nth}", "m": MONTHS[day.month - 1]}
    parts["s"] = calendar.month_abbr[day.month]
    text = frame.format(form.format(**parts, y=day.year))
    assert window(text, on) == iso(day, day + timedelta(days=1))
    assert window(frame.format(day.isoformat()), on) == iso(day, day + timedelta(days=1))


@given(st.integers(0, 6), ons)
def test_weekdays(number: int, on: date) -> None:
    name = DAYS[number]
    back = (on.weekday() - number) % 7 or 7
    last, ahead = on - timedelta(days=back), on + timedelta(days=(number - on.weekday()) % 7 or 7)
    for text in (
        f"on {name}",
        f"last {name}",
        f"what did Bob say on {name}?",
        f"{name} evening",
        f"{name}'s call",
    ):
        assert window(text, on) == iso(last, last + timedelta(days=1)), text
    assert window(f"next {name}", on) == iso(ahead, ahead + timedelta(days=1))
    assert window(f"since {name}", on) == iso(last, None)
    for text in (f"every {name}", f"{name}s are slow", f"each {name} we meet"):
        assert not read(text, on), text


SPELT = "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905


@given(st.integers(1, 60), st.sampled_from(("day", "week", "month", "year")), ons, st.booleans())
def test_so_many_ago(count: int, unit: str, on: date, spell: bool) -> None:
    number = SPELT[count] if spell and count < 13 else str(count)
    start, end = read(f"we met {number} {unit}{'s' * (count > 1)} ago", on).start, None
    assert start is not None
    first = date.fromisoformat(start)
    if unit == "day":
        assert first == on - timedelta(days=count)
    elif unit == "week":
        assert first == on - timedelta(days=on.weekday(), weeks=count)
    elif unit == "month":
        assert first.day == 1 and (on.year - first.year) * 12 + on.month - first.month == count
    else:
        assert first == date(on.year - count, 1, 1)
    assert end is None


@given(
    st.integers(2, 60),
    st.sampled_from(("days", "weeks", "months", "years")),
    ons,
    st.sampled_from(("last", "past")),
)
def test_the_last_so_many_reach_up_to_today(count: int, unit: str, on: date, word: str) -> None:
    for frame in ("in the {} {} {}", "over the {} {} {}", "{} {} {}", "what changed within the {} {} {}?"):
        found = read(frame.format(word, count, unit), on)
        assert found.end == (on + timedelta(days=1)).isoformat()
        assert found.start is not None
        days = (on - date.fromisoformat(found.start)).days
        least, most = {"days": (1, 1), "weeks": (7, 7), "months": (28, 31), "years": (365, 366)}[unit]
        assert count * least <= days <= count * most


@given(
    st.integers(1, 4),
    years,
    ons,
    st.sampled_from(("Q{q} {y}", "{y}-Q{q}", "{y} Q{q}", "Q{q} of {y}", "the {o} quarter of {y}")),
)
def test_quarters(number: int, year: int, on: date, form: str) -> None:
    ordinal = ("first", "second", "third", "fourth")[number - 1]
    start = date(year, number * 3 - 2, 1)
    end = month(year, number * 3)[1]
    assert window(f"goals for {form.format(q=number, y=year, o=ordinal)}", on) == iso(start, end)


@given(months, months, years, years, ons)
def test_ranges_across_years(first: int, last: int, one: int, other: int, on: date) -> None:
    (first, one), (last, other) = sorted(((first, one), (last, other)), key=lambda each: (each[1], each[0]))
    expected = iso(month(one, first)[0], month(other, last)[1])
    for form in ("between {} {} and {} {}", "from {} {} to {} {}", "{} {} – {} {}", "from {} {} until {} {}"):
        assert window(form.format(MONTHS[first - 1], one, MONTHS[last - 1], other), on) == expected, form


@given(months, months, years)
def test_a_range_has_its_year_from_its_end(first: int, last: int, year: int) -> None:
    begin = month(year if first <= last else year - 1, first)[0]
    text = f"between {MONTHS[first - 1]} and {MONTHS[last - 1]} {year}"
    assert window(text) == iso(begin, month(year, last)[1])


@given(years, st.sampled_from(("in", "since", "before", "during", "throughout", "in early", "in late")))
def test_years_need_a_word_that_makes_them_years(year: int, word: str) -> None:
    assert read(f"what happened {word} {year}?")
    for noun in ("port", "room", "error", "version", "ticket", "line", "flight", "HTTP", "Windows"):
        assert not read(f"{noun} {year}"), noun
    for thing in ("users", "requests", "files", "bytes", "people", "errors"):
        assert not read(f"how did we serve {year} {thing}") and not read(f"in {year} {thing}")


@given(st.sampled_from(["spring", "summer", "autumn", "winter"]), years, ons)
def test_seasons(name: str, year: int, on: date) -> None:
    first = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}[name]
    expected = iso(date(year, first, 1), month(year + (first == 12), (first + 1) % 12 + 1)[1])
    for text in (f"{name} {year}", f"in the {name} of {year}", f"over {name} {year}"):
        assert window(text, on) == expected, text
    last = read(f"last {name}", on)
    assert last.end is not None and last.end <= on.isoformat()
    ago = read(f"two {name}s ago", on)
    assert last.start and ago.start and int(ago.start[:4]) == int(last.start[:4]) - 1


@given(years)
def test_easter_is_a_sunday_after_the_first_full_moon_of_spring(year: int) -> None:
    start = read(f"Easter {year}").start
    assert start is not None
    day = date.fromisoformat(start)
    assert day.weekday() == 6 and date(year, 3, 22) <= day <= date(year, 4, 25)


@pytest.mark.parametrize(
    ("year", "day"), [(2019, "04-21"), (2024, "03-31"), (2025, "04-20"), (2026, "04-05"), (2038, "04-25")]
)
def test_easter_of_known_years(year: int, day: str) -> None:
    assert read(f"Easter {year}").start == f"{year}-{day}"


@given(st.text(), ons)
def test_any_text_is_read_without_a_crash(text: str, on: date) -> None:
    check(text, on)


WORDS = (
    "last next this the early mid late since until between and from to of in May march 3 3rd 2026 spring week"
    " year month Friday ago before after two Q3 weekend half first second yesterday today days , . - / 90s"
    " Christmas quarter end a starting older than more"
)


@given(st.lists(st.sampled_from(WORDS.split()), max_size=9), st.one_of(ons, st.dates()))
def test_any_order_of_time_words_is_read_without_a_crash(words: list[str], on: date) -> None:
    check(" ".join(words), on)


def check(text: str, on: date) -> None:
    found = read(text, on)
    assert bool(found) == bool(found.at)
    assert not (found.start and found.end) or found.start < found.end
    assert all(0 <= at < to <= len(text) for at, to in found.at)


# -- what is read besides ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("what's the latest on the migration", "latest"),
        ("my most recent address", "latest"),
        ("when was the last time we met Alice", "latest"),
        ("how long ago did we leave Heroku", "latest"),
        ("when did I last see Bob?", "latest"),
        ("the last book Alice read", "latest"),
        ("what was the first thing we built", "earliest"),
        ("the earliest note about Fly.io", "earliest"),
        ("when did we first deploy", "earliest"),
        ("Alice's oldest idea", "earliest"),
        ("last name of Bob", None),
        ("in the last 10 days", None),
        ("what happened last week", None),
        ("the first half of 2025", None),
        ("first aid kit", None),
        ("last but not least", None),
        ("where does Alice live", None),
        *((f"{last} foo", "latest") for last in ("dernier", "dernière", "letztes", "último", "laatste")),
        *((f"{first} foo", "earliest") for first in ("premier", "première", "erstes", "primer", "primo")),
        ("la dernière fois", "latest"),
        ("le premier étage", None),
        ("prima di partire", None),
        ("Premier League results", None),
        ("la semaine dernière", None),
        ("premier juillet", None),
        *((word, None) for word in ("number", "numéro de téléphone", "stillness", "currency")),
    ],
)
def test_what_is_asked_for_first(text: str, order: str | None) -> None:
    assert read(text).order == order


def test_the_words_that_were_read_are_told() -> None:
    text = "What did Alice say between March and May 2026 about ports?"
    (place,) = read(text).at
    assert text[slice(*place)] == "between March and May 2026"


def test_the_day_is_the_zones() -> None:
    late = datetime(2026, 11, 21, 23, tzinfo=ZoneInfo("UTC"))
    assert dates.read("today", late, KYIV).start == "2026-11-22"
    assert dates.read("today", late, ZoneInfo("America/New_York")).start == "2026-11-21"
    assert dates.read("today", datetime(2026, 11, 21, 23)).start == "2026-11-21"


def test_several_expressions_make_one_stretch() -> None:
    assert window("in May, that is on May 3rd, 2026") == ("2026-05-03", "2026-05-04")
    assert window("what changed from yesterday's plan to what we said last week?") == (
        "2026-11-09",
        "2026-11-21",
    )


def test_months_and_weekdays_are_those_of_cldr() -> None:
    for language in foreign.languages():
        locale = Locale(language.code)
        for form in ("format", "stand-alone"):
            for names, english in ((locale.months, foreign.MONTHS), (locale.days, foreign.DAYS)):
                said = [name for _, name in sorted(names[form]["wide"].items())]
                assert [language.names.get(name.lower().replace("ʼ", "'")) for name in said] == list(english)


def test_a_query_with_a_date_word_in_plain_letters_is_looked_at() -> None:
    english = {"april", "august", "september", "november", "december", "winter", "week", "weekend", "tag"}
    names = {
        name for language in foreign.languages() for name in language.names if re.fullmatch("[a-z]+", name)
    }
    assert names - english <= dates._MAYBE_FOREIGN and not english & dates._MAYBE_FOREIGN


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vor elf Tagen", ("2026-11-10", "2026-11-11")),
        ("in drei Tagen, im Sommer", ("2026-06-01", "2026-11-25")),
        ("il y a dix-huit jours", ("2026-11-03", "2026-11-04")),
        ("что было неделю назад?", ("2026-11-09", "2026-11-16")),
        ("несколько недель назад", (None, None)),
        ("у п\u02bcятницю", ("2026-11-20", "2026-11-21")),
        ("来年の2月3日", ("2027-02-03", "2027-02-04")),
        ("le 1er novembre", ("2026-11-01", "2026-11-02")),
        ("1er mars", ("2026-03-01", "2026-03-02")),
        ("premier juillet", ("2026-07-01", "2026-07-02")),
        ("el 1º de mayo", ("2026-05-01", "2026-05-02")),
        ("primero de mayo", ("2026-05-01", "2026-05-02")),
        ("am ersten Oktober", ("2026-10-01", "2026-10-02")),
        ("du 1er au 5 novembre", ("2026-11-01", "2026-11-06")),
        ("entre le 1er et le 5 novembre", ("2026-11-01", "2026-11-06")),
        ("la première semaine de novembre", ("2026-11-01", "2026-11-08")),
        ("en mai première réunion", ("2026-05-01", "2026-06-01")),
        ("cet été", ("2026-06-01", "2026-09-01")),
        ("en été", ("2026-06-01", "2026-09-01")),
        ("au printemps", ("2026-03-01", "2026-06-01")),
        ("à l'automne", ("2026-09-01", "2026-12-01")),
        ("à Noël", ("2025-12-25", "2025-12-26")),
        ("zu Weihnachten", ("2025-12-25", "2025-12-26")),
        ("ce week-end", ("2026-11-21", "2026-11-23")),
        ("去年十二月二十四日", ("2025-12-24", "2025-12-25")),
        ("two weekends before Christmas", ("2025-12-13", "2025-12-15")),
    ],
)
def test_counts_in_other_languages(text: str, expected: tuple[str | None, str | None]) -> None:
    assert window(text) == expected


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("cosa ho fatto la settimana scorsa?", True),
        ("che cosa è successo ieri?", True),
        ("o que eu fiz ontem?", True),
        ("o que aconteceu em março?", True),
        ("wat heb ik gisteren gedaan?", True),
        ("wat is er vorige week gebeurd?", True),
        ("qu'est-ce que j'ai fait la semaine dernière ?", True),
        ("おととい何をした？", True),
        ("先月何があった？", True),
        ("来週の予定は？", True),
        ("昨天做了什么？", True),
        ("что было в октябре?", True),
        ("co było w październiku?", True),
        ("geçen hafta ne oldu?", True),
        ("先月佐藤さんと何を決めた？", False),
        ("o que a Ana fez ontem?", False),
        ("cosa ha fatto Ada ieri?", False),
        ("wat zei Anna gisteren?", False),
    ],
)
def test_a_question_that_is_only_a_time(text: str, only: bool) -> None:
    found = read(text)
    assert found and arms.is_generic(text, found.at, foreign=found.foreign) == only
