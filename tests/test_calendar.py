"""Dates in words, as said on Saturday 21 November 2026."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ua_memory.text import calendar as stated

SAID = date(2026, 11, 21)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("shipped on 2026-11-19", "2026-11-19"),
        ("at 2026-11-19T10:00:00Z", "2026-11-19"),
        ("on November 3", "2026-11-03"),
        ("on Nov. 3rd, 2025", "2025-11-03"),
        ("the 3rd of November 2025", "2025-11-03"),
        ("3 Dec 2024", "2024-12-03"),
        ("around January 5", "2027-01-05"),
        ("since January 5", "2026-01-05"),
        ("we decided on 3 March to drop it", "2026-03-03"),
        ("On 3 March we decided to drop it", "2026-03-03"),
        ("the launch was on January 5", "2026-01-05"),
        ("Bob went to Riga and Tallinn, on January 5", "2026-01-05"),
        ("we sold a hundred on January 5", "2026-01-05"),
        ("it has been moved on January 5", "2026-01-05"),
        ("3 March: Bob met Ann", "2026-03-03"),
        ("it was agreed that the launch is on January 5", "2027-01-05"),
        ("he agreed that it ships on January 5", "2027-01-05"),
        ("we need it by January 5", "2027-01-05"),
        ("it was planned for January 5", "2027-01-05"),
        ("decided to launch on January 5", "2027-01-05"),
        ("it is needed on January 5", "2027-01-05"),
        ("I will be away on 3 August", "2027-08-03"),
        ("Decision: January 5", "2027-01-05"),
        ("it will have been moved on 3 March", "2027-03-03"),
        ("we’ll have shipped by 3 March", "2027-03-03"),
        ("rent is paid until 5 March", "2027-03-05"),
        ("booked the hotel for 1 May", "2027-05-01"),
        ("the exam was moved to 5 January", "2027-01-05"),
        ("We moved to Ulm on 3 March", "2026-03-03"),
        ("they moved their date, sftp stays on until 11 January now", "2027-01-11"),
        ("the deadline was moved, it's 11 January now", "2027-01-11"),
        ("the cutover slipped to 11 January", "2027-01-11"),
        ("we moved the launch, thats 11 January", "2027-01-11"),
        ("it ran until 11 January", "2026-01-11"),
        ("it's been down since 11 January", "2026-01-11"),
        ("the firm lost its office on 11 January", "2026-01-11"),
        ("since June 5", "2026-06-05"),
        ("today", "2026-11-21"),
        ("Yesterday we", "2026-11-20"),
        ("the day before yesterday", "2026-11-19"),
        ("tomorrow", "2026-11-22"),
        ("last Friday", "2026-11-20"),
        ("last Saturday", "2026-11-14"),
        ("next Monday", "2026-11-23"),
        ("this Monday", "2026-11-16"),
        ("3 days ago", "2026-11-18"),
        ("two weeks ago", "2026-11-07"),
        ("a month ago", "2026-10-21"),
        ("a year ago", "2025-11-21"),
    ],
)
def test_a_day(text: str, day: str) -> None:
    assert stated.days(text, SAID) == (day,)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("last week", "2026-11-09", "2026-11-16"),
        ("this month", "2026-11-01", "2026-12-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("in March 2024", "2024-03-01", "2024-04-01"),
        ("from February next year", "2027-02-01", "2027-03-01"),
        ("in May of last year", "2025-05-01", "2025-06-01"),
        ("3 February next year", "2027-02-03", "2027-02-04"),
        ("we may next year", "2027-01-01", "2028-01-01"),
    ],
)
def test_a_stretch(text: str, start: str, end: str) -> None:
    (span,) = stated.spans(text, SAID)
    assert (span.start.isoformat(), span.end.isoformat()) == (start, end)


@pytest.mark.parametrize(
    "text",
    [
        "May I ask about the march of progress",
        "port 2019",
        "version 3.12",
        "2026-13-45",
        "February 31",
        "build 2026-11-19-rc1",
        "see notes/2026-11-19.md",
        "may 3.5 be enough",
        "a day in the sun",
        "ticket 11-21",
    ],
)
def test_what_is_no_date(text: str) -> None:
    assert stated.spans(text, SAID) == ()


def test_several_in_order() -> None:
    assert stated.days("moved yesterday, planned 3 days ago, due 2026-12-01", SAID) == (
        "2026-11-20",
        "2026-11-18",
        "2026-12-01",
    )


@given(st.text(), st.dates(min_value=date(1, 1, 1), max_value=date(9999, 12, 31)))
def test_any_text_on_any_day(text: str, said: date) -> None:
    for span in stated.spans(text, said):
        assert span.start < span.end
        assert 0 <= span.at < span.to <= len(text)
