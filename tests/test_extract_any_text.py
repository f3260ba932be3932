"""Whatever is said, and however long: extraction makes nothing up and does not hang."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from ua_memory.clients.turns import Turn
from ua_memory.retain.extract import extract, sentences
from ua_memory.text.grounding import ungrounded_claims

FRIDAY = datetime(2026, 11, 20, 14, 30, tzinfo=UTC)


def talk(*lines: tuple[str, str]) -> list[Turn]:
    return [Turn(f"t{n}", role, text, FRIDAY) for n, (role, text) in enumerate(lines, 1)]  # type: ignore[arg-type]


MESSY = st.text(st.sampled_from("abcABC .!?:,;`*_#>|-\n\t()[]{}\"'1→é。"), max_size=300) | st.text(
    max_size=100
)


SAID = st.sampled_from(
    """We decided to use Postgres 16 for the Zenit service because MySQL lost rows.
I live in Kiel and work at Nordlicht Fracht as a data engineer.
Always run `make lint` before you commit.
The staging server listens on port 8443 now.
Actually it is port 8444.
Anna's daughter Lotte is allergic to hazelnuts.
Nein, wir nehmen Redis 7 für den Cache.
No, keep the old one.
Never push to main on a Friday!
The dentist moved to 12 March 2027 at 10:30.""".splitlines()
)
TALK = st.lists(SAID | SAID | MESSY, min_size=1, max_size=4).map(" ".join)


@given(st.lists(st.tuples(st.sampled_from(["person", "assistant", "tool"]), TALK), max_size=12))
def test_whatever_is_said_nothing_is_made_up(lines: list[tuple[str, str]]) -> None:
    said = talk(*lines)
    found = extract(said)
    event("nothing saved" if not found else "something kept")
    for candidate in found:
        turn = next(turn for turn in said if turn.id == candidate.turn)
        assert candidate.quote in " ".join(turn.text.split())
        assert not ungrounded_claims(" ".join(candidate.entities), [turn.text], FRIDAY.date())


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "unit", ["**a ", "`", "(x. ", "a. ", "{", " \t", "_a", "*", "- ", "we decided because ", "I "]
)
def test_no_text_takes_long(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    start = time.process_time()
    extract(talk(("person", text), ("assistant", text)))
    assert time.process_time() - start < 20, "grows with more than the length of the text"


@given(MESSY)
def test_every_quote_stands_in_its_turn(text: str) -> None:
    whole = " ".join(text.split())
    for sentence in sentences(text):
        assert sentence.quote in whole
        assert "\n" not in sentence.text
