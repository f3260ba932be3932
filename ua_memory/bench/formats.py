"""Data sets into dialogues: LoCoMo, LongMemEval, and one of ours that is easily written (docs/bench.md)."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ua_memory import regular
from ua_memory.bench.dialogue import Dialogue, Question, Session, Turn
from ua_memory.errors import Malformed, NotFound

MEND = "the formats are in docs/bench.md"

LOCOMO = {1: "1 multi-hop", 2: "2 temporal", 3: "3 open-domain", 4: "4 single-hop", 5: "5 adversarial"}
"""What LoCoMo's numbers stand for in its authors' code."""
ADVERSARIAL = {5, "5", "adversarial"}

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)


def read(file: Path) -> list[Dialogue]:
    """The conversations of a file, whichever of the formats it has.

    NotFound where there is none; Malformed, with the line where lines count, for what cannot be read.
    """
    try:
        with regular.opened(file) as opened:
            text = opened.read().decode("utf-8-sig")
    except (FileNotFoundError, IsADirectoryError) as error:
        raise NotFound("no such file", where=str(file), mend="name a data set's file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise Malformed(f"cannot be read: {error}", where=str(file), mend=MEND) from error
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        if len(text.splitlines()) < 2:
            raise Malformed(f"this is no JSON: {error}", where=str(file), mend=MEND) from error
        data = None
    records = data if isinstance(data, list) else [data]
    reader = _reader(records[0] if records else None)
    if reader is None:
        return [_lines(file, text)]
    try:
        return [reader(record, f"{file.stem} {number}") for number, record in enumerate(records, start=1)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        said = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise Malformed(f"not as this format has it: {said}", where=str(file), mend=MEND) from error


def _reader(record: Any) -> Callable[[Mapping[str, Any], str], Dialogue] | None:
    """Which format a file has, by the keys of its first record; None for lines."""
    keys = set(record) if isinstance(record, Mapping) else set()
    if "haystack_sessions" in keys:
        return _longmemeval
    if {"sessions", "questions"} <= keys:
        return _sessions
    return _locomo if "conversation" in keys or "session_1" in keys else None


def _dialogue(name: str, sessions: Iterable[Session], asked: Iterable[Question]) -> Dialogue:
    """Put together; questions whose evidence is not in the conversation cannot be scored and are counted."""
    kept = tuple(sessions)
    known = {turn.id for session in kept for turn in session.turns}
    questions = [(one, one.evidence & known) for one in asked]
    scored = tuple(
        Question(one.text, found, one.category, one.adversarial, one.now) for one, found in questions if found
    )
    return Dialogue(name, kept, scored, len(questions) - len(scored))


# -- LoCoMo ----------------------------------------------------------------------------------------------


def _category(value: Any) -> str:
    return LOCOMO.get(value, str(value)) if isinstance(value, int) else str(value)


def _sessions(record: Mapping[str, Any], name: str) -> Dialogue:
    """LoCoMo laid out plainly: `sessions` of `turns`, and `questions` with `q`, `evidence` and `category`."""
    sessions = [
        Session(
            str(number),
            datetime.fromisoformat(one["when"]),
            tuple(Turn(turn["id"], turn["speaker"], turn["text"]) for turn in one["turns"]),
        )
        for number, one in enumerate(record["sessions"])
    ]
    asked = (
        Question(q["q"], frozenset(q["evidence"]), _category(q["category"]), q["category"] in ADVERSARIAL)
        for q in record["questions"]
    )
    return _dialogue(str(record.get("name", name)), sessions, asked)


def _locomo(record: Mapping[str, Any], name: str) -> Dialogue:
    """LoCoMo as its authors publish it: `session_N`, `session_N_date_time`, `qa`.

    A photograph is in the text by its caption, since questions ask for what is on it.
    """
    talk = record.get("conversation", record)
    numbers = sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key))
    sessions = [
        Session(str(n), _spoken(talk[f"session_{n}_date_time"]), tuple(map(_said, talk[f"session_{n}"])))
        for n in numbers
    ]
    asked = (
        Question(
            str(q["question"]),
            frozenset(_cited(q.get("evidence") or ())),
            _category(q["category"]),
            q["category"] in ADVERSARIAL,
        )
        for q in record["qa"]
    )
    return _dialogue(str(record.get("sample_id", name)), sessions, asked)


def _said(turn: Mapping[str, Any]) -> Turn:
    shown = f" [shares a photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return Turn(turn["dia_id"], turn["speaker"], " ".join(f"{turn['text']}{shown}".split()))


def _cited(evidence: Iterable[str]) -> Iterator[str]:
    """Turn ids, mended: some stand several in one text, some as `D30:05` or `D:11:26`."""
    for text in evidence:
        for session, turn in re.findall(r"D:?(\d+):(\d+)", text):
            yield f"D{int(session)}:{int(turn)}"


def _spoken(text: str) -> datetime:
    """`1:56 pm on 8 May, 2023`. Not by strptime, whose months are those of the locale."""
    found = re.fullmatch(r"(\d+):(\d+) ([ap])m on (\d+) (\w+),? (\d{4})", text.strip().lower())
    if not found:
        raise ValueError(f"no time: {text!r}")
    hour, minute, half, day, month, year = found.groups()
    late = 12 if half == "p" else 0
    return datetime(int(year), _MONTHS.index(month) + 1, int(day), int(hour) % 12 + late, int(minute))


# -- LongMemEval -----------------------------------------------------------------------------------------


def _longmemeval(record: Mapping[str, Any], _: str) -> Dialogue:
    """One question of LongMemEval with the sessions it is to be answered from.

    Evidence are the turns with `has_answer`, whoever spoke. An abstention has none and is not scored.
    """
    sessions, evidence = [], []
    numbered = enumerate(
        zip(
            record["haystack_session_ids"], record["haystack_dates"], record["haystack_sessions"], strict=True
        )
    )
    for number, (session, when, said) in numbered:
        turns = []
        for place, turn in enumerate(said):
            turns.append(Turn(f"{number}:{place}", turn["role"], turn["content"]))
            evidence += [turns[-1].id] if turn.get("has_answer") else []
        sessions.append(Session(session, _written(when), tuple(turns)))
    abstains = record["question_id"].endswith("_abs")
    asked = Question(
        record["question"],
        frozenset() if abstains else frozenset(evidence),
        record["question_type"],
        now=_written(record["question_date"]),
    )
    sessions.sort(key=lambda one: one.when)
    return _dialogue(record["question_id"], sessions, [asked])


def _written(text: str) -> datetime:
    """`2023/05/20 (Sat) 02:36`."""
    found = re.fullmatch(r"(\d{4})/(\d\d)/(\d\d)(?: \(\w+\))?(?: (\d\d):(\d\d))?", text.strip())
    if not found:
        raise ValueError(f"no time: {text!r}")
    return datetime(*(int(part or 0) for part in found.groups()))  # type: ignore[arg-type]


# -- ours: a line an item, a line a question ---------------------------------------------------------------


def _lines(file: Path, text: str) -> Dialogue:
    """The neutral format. Malformed names the line that is off."""
    parts: dict[tuple[str, str], list[tuple[datetime, Turn]]] = defaultdict(list)
    asked: list[tuple[int, Question]] = []
    known: set[str] = set()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if "question" in record:
                asked.append((number, _question(record)))
                continue
            when, turn = _item(record)
            if turn.id in known:
                raise ValueError(f"the id {turn.id!r} stands twice")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            said = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise Malformed(said, where=f"{file}:{number}", mend=MEND) from error
        known.add(turn.id)
        day = when.date().isoformat()
        parts[str(record.get("session", day)), day].append((when, turn))
    for number, one in asked:
        if missing := sorted(one.evidence - known):
            raise Malformed(f"no item has the id {missing[0]!r}", where=f"{file}:{number}", mend=MEND)
    sessions = [Session(key[0], turns[0][0], tuple(t for _, t in turns)) for key, turns in parts.items()]
    sessions.sort(key=lambda one: one.when.replace(tzinfo=None))
    return _dialogue(file.stem, sessions, (one for _, one in asked))


def _item(record: Mapping[str, Any]) -> tuple[datetime, Turn]:
    turn = Turn(str(record["id"]), str(record.get("who", "")), str(record["text"]))
    return datetime.fromisoformat(record["when"]), turn


def _question(record: Mapping[str, Any]) -> Question:
    category = record.get("category", "questions")
    evidence = record["evidence"]
    if not isinstance(evidence, list):
        raise TypeError("evidence is a list of ids")
    return Question(
        str(record["question"]),
        frozenset(map(str, evidence)),
        str(category),
        category in ADVERSARIAL,
        datetime.fromisoformat(record["now"]) if record.get("now") else None,
    )
