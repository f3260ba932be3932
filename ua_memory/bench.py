"""How good search is: data sets, rankings, scores and plots, and probes of a bank of one's own."""

from __future__ import annotations

import json
import math
import re
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory import discovery
from ua_memory.config import Config
from ua_memory.errors import CannotWrite, Malformed, NotFound, Usage, writing
from ua_memory.knowledge import statements
from ua_memory.memory import Memory
from ua_memory.paths import make_private
from ua_memory.records import written_id
from ua_memory.store import files, swap
from ua_memory.text import tokens as text_tokens
from ua_memory.text.calendar import MONTHS
from ua_memory.upkeep.import_ import import_contents

if TYPE_CHECKING:
    from ua_memory.llm.ledger import Spent, Totals
    from ua_memory.recall.search import Hit
    from ua_memory.upkeep.import_ import Comparison, OldHit
    from ua_memory.upkeep.import_sources import SourceContents


# -- score -----------------------------------------------------------------------------------------------
# One question's results into figures, the same as the MTEB's LMEB task takes them.
#
# `R@k` is the share of the evidence that the first k results cover, `all@k` whether it is all of it,
# `hit@k` whether it is any. The same within the first 2,000 tokens: a result that covers many lines earns
# their evidence, and pays for them there. `ses@5`: is any session with evidence among the first five found?


DEPTHS = (5, 10, 20)
BUDGET = 2000
BUDGETS = (50, 100, 200, 300, 500, 750, 1000, 1500, BUDGET, 3000, 4000)
"""Tokens at which the curve of recall against tokens is taken."""


class QuestionScore:
    """A question's results, each turn counted where it is found first."""

    def __init__(
        self, found: Iterable[Sequence[str]], gold: frozenset[str], sessions: Mapping[str, str],
        sizes: Mapping[str, int],
    ) -> None:  # fmt: skip
        self.gold, self.sessions = gold, sessions
        self.fresh: list[set[str]] = []
        self.spent: list[int] = []
        self.order: dict[str, None] = {}
        seen: set[str] = set()
        for covered in found:
            new = dict.fromkeys(turn for turn in covered if turn not in seen)
            seen.update(new)
            self.fresh.append(set(new))
            self.spent.append(sum(sizes[turn] for turn in new) + (self.spent[-1] if self.spent else 0))
            self.order.update(dict.fromkeys(sessions[turn] for turn in covered))

    def figures(self) -> dict[str, float]:
        """Name → figure: shares from 0 to 1, tokens as they are."""
        figures: dict[str, float] = {}
        for name, reach in [*((str(k), k) for k in DEPTHS), (f"{BUDGET}t", self.within(BUDGET))]:
            got = self._found_within(reach)
            figures[f"R@{name}"] = len(got) / len(self.gold)
            figures[f"all@{name}"] = float(got == self.gold)
            figures[f"hit@{name}"] = float(bool(got))
            figures[f"tokens@{name}"] = ([0, *self.spent])[min(reach, len(self.spent))]
        wanted, first = {self.sessions[turn] for turn in self.gold}, set(list(self.order)[:5])
        figures["ses@5"] = float(bool(wanted & first))
        figures["sesall@5"] = float(wanted <= first)
        gains = [1.0 if one & self.gold else 0.0 for one in self.fresh[:10]]
        ideal = sum(1 / math.log2(i + 2) for i in range(min(len(self.gold), 10)))
        figures["nDCG@10"] = min(1.0, sum(g / math.log2(i + 2) for i, g in enumerate(gains)) / ideal)
        figures["MRR@10"] = next((1 / (i + 1) for i, g in enumerate(gains) if g), 0.0)
        return figures

    def curve(self) -> list[float]:
        """The share of the evidence within each of BUDGETS."""
        return [len(self._found_within(self.within(budget))) / len(self.gold) for budget in BUDGETS]

    def within(self, budget: int) -> int:
        """How many of the first results fit a budget of tokens."""
        return sum(spent <= budget for spent in self.spent)

    def _found_within(self, reach: int) -> frozenset[str]:
        return self.gold & frozenset().union(*self.fresh[:reach])


# -- dialogue --------------------------------------------------------------------------------------------
# A dated conversation whose questions name the turns that hold the answer, and the bank made of it.


@dataclass(frozen=True, slots=True)
class BenchTurn:
    """What one said in one go. `who` may be empty: a note that nobody is named for."""

    id: str
    who: str
    text: str

    @property
    def line(self) -> str:
        """The turn as a list item of a daily log."""
        text = " ".join(self.text.split())
        return f"- **{self.who}**: {text}" if self.who else f"- {text}"

    @property
    def tokens(self) -> int:
        """Its length in tokens, taken as four characters each: the same for whatever is compared."""
        return math.ceil(len(self.text + self.who) / 4)


@dataclass(frozen=True, slots=True)
class BenchSession:
    """Turns in their order, begun at `when`. One that runs past midnight stands once a day, with one id."""

    id: str
    when: datetime
    turns: tuple[BenchTurn, ...]


@dataclass(frozen=True, slots=True)
class BenchQuestion:
    """What is asked, and the ids of the turns with the answer. `now` is when, if that is known.

    An adversarial question asks for what was not said; its evidence is what it is easily taken for.
    """

    text: str
    evidence: frozenset[str]
    category: str
    now: datetime | None = None

    @property
    def adversarial(self) -> bool:
        return self.category in ("5", LOCOMO[5], "adversarial")


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One conversation with its questions; `unanswered` counts those that name no evidence."""

    name: str
    sessions: tuple[BenchSession, ...]
    questions: tuple[BenchQuestion, ...]
    unanswered: int = 0

    @property
    def turns(self) -> list[BenchTurn]:
        return [turn for session in self.sessions for turn in session.turns]

    @property
    def session_of(self) -> dict[str, str]:
        """Turn id → session id."""
        return {turn.id: session.id for session in self.sessions for turn in session.turns}


def write_bank(dialogue: Dialogue, root: Path) -> Mapping[tuple[str, int], str]:
    """Write the conversation as a person would: a log a day, a heading a session, a list item a turn.

    Returns (path in the bank, line) → turn id.
    """
    days: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for session in dialogue.sessions:
        lines = days[session.when.date().isoformat()]
        lines += [(f"## {session.when:%H:%M}", ""), ("", "")]
        lines += [(turn.line, turn.id) for turn in session.turns]
        lines.append(("", ""))
    (root / "memory").mkdir(parents=True, exist_ok=True)
    (root / "MEMORY.md").write_text("# Memory\n", encoding="utf-8")
    where = {}
    for day, lines in days.items():
        path = f"memory/{day}.md"
        text = "\n".join([f"# {day}", "", *(line for line, _ in lines)]) + "\n"
        (root / path).write_text(text, encoding="utf-8", errors="replace")
        where.update({(path, number): turn for number, (_, turn) in enumerate(lines, start=3) if turn})
    return where


# -- formats ---------------------------------------------------------------------------------------------
# Data sets into dialogues: LoCoMo, LongMemEval, and one of ours that is easily written (docs/bench.md).


HINT = "the formats are in docs/bench.md"

LOCOMO = {1: "1 multi-hop", 2: "2 temporal", 3: "3 open-domain", 4: "4 single-hop", 5: "5 adversarial"}
"""What LoCoMo's numbers stand for in its authors' code."""


def read(file: Path) -> list[Dialogue]:
    """The conversations of a file, whichever of the formats it has.

    NotFound where there is none; Malformed, with the line where lines count, for what cannot be read.
    """
    try:
        with discovery.open_regular(file) as opened:
            text = opened.read().decode("utf-8-sig")
    except (FileNotFoundError, IsADirectoryError) as error:
        raise NotFound("no such file", where=str(file), hint="give the file of a data set") from error
    except (OSError, UnicodeDecodeError) as error:
        raise Malformed(f"cannot be read: {error}", where=str(file), hint=HINT) from error
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        if len(text.splitlines()) < 2:
            raise Malformed(f"not JSON: {error}", where=str(file), hint=HINT) from error
        data = None
    records = data if isinstance(data, list) else [data]
    reader = _reader(records[0] if records else None)
    if reader is None:
        return [_lines(file, text)]
    try:
        return [reader(record, f"{file.stem} {number}") for number, record in enumerate(records, start=1)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        said = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise Malformed(f"not in this format: {said}", where=str(file), hint=HINT) from error


def _reader(record: Any) -> Callable[[Mapping[str, Any], str], Dialogue] | None:
    """Which format a file has, by the keys of its first record; None for lines."""
    keys = set(record) if isinstance(record, Mapping) else set()
    if "haystack_sessions" in keys:
        return _longmemeval
    if {"sessions", "questions"} <= keys:
        return _sessions
    return _locomo if "conversation" in keys or "session_1" in keys else None


def _dialogue(name: str, sessions: Iterable[BenchSession], asked: Iterable[BenchQuestion]) -> Dialogue:
    """Put together; questions whose evidence is not in the conversation cannot be scored and are counted."""
    kept = tuple(sessions)
    known = {turn.id for session in kept for turn in session.turns}
    questions = [replace(one, evidence=one.evidence & known) for one in asked]
    scored = tuple(one for one in questions if one.evidence)
    return Dialogue(name, kept, scored, len(questions) - len(scored))


# -- LoCoMo ----------------------------------------------------------------------------------------------


def _category(value: Any) -> str:
    return LOCOMO.get(value, str(value)) if isinstance(value, int) else str(value)


def _sessions(record: Mapping[str, Any], name: str) -> Dialogue:
    """LoCoMo laid out plainly: `sessions` of `turns`, and `questions` with `q`, `evidence` and `category`."""
    sessions = [
        BenchSession(
            str(number),
            datetime.fromisoformat(one["when"]),
            tuple(BenchTurn(turn["id"], turn["speaker"], turn["text"]) for turn in one["turns"]),
        )
        for number, one in enumerate(record["sessions"])
    ]
    rows = record["questions"]
    asked = (BenchQuestion(q["q"], frozenset(q["evidence"]), _category(q["category"])) for q in rows)
    return _dialogue(str(record.get("name", name)), sessions, asked)


def _locomo(record: Mapping[str, Any], name: str) -> Dialogue:
    """LoCoMo as its authors publish it: `session_N`, `session_N_date_time`, `qa`.

    A photograph is in the text by its caption, since questions ask for what is on it.
    """
    talk = record.get("conversation", record)
    numbers = sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key))
    sessions = [
        BenchSession(str(n), _moment(talk[f"session_{n}_date_time"]), tuple(map(_turn, talk[f"session_{n}"])))
        for n in numbers
    ]
    asked = (
        BenchQuestion(str(q["question"]), frozenset(_evidence_ids(q)), _category(q["category"]))
        for q in record["qa"]
    )
    return _dialogue(str(record.get("sample_id", name)), sessions, asked)


def _turn(turn: Mapping[str, Any]) -> BenchTurn:
    shown = f" [shares a photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return BenchTurn(turn["dia_id"], turn["speaker"], " ".join(f"{turn['text']}{shown}".split()))


def _evidence_ids(question: Mapping[str, Any]) -> Iterator[str]:
    """Turn ids, mended: some stand several in one text, some as `D30:05` or `D:11:26`."""
    for text in question.get("evidence") or ():
        for session, turn in re.findall(r"D:?(\d+):(\d+)", text):
            yield f"D{int(session)}:{int(turn)}"


def _moment(text: str) -> datetime:
    """`1:56 pm on 8 May, 2023`. Not by strptime, whose months are those of the locale."""
    found = re.fullmatch(r"(\d+):(\d+) ([ap])m on (\d+) (\w+),? (\d{4})", text.strip().lower())
    if not found:
        raise ValueError(f"not a valid time: {text!r}")
    hour, minute, half, day, month, year = found.groups()
    late = 12 if half == "p" else 0
    return datetime(int(year), MONTHS[month], int(day), int(hour) % 12 + late, int(minute))


# -- LongMemEval -----------------------------------------------------------------------------------------


def _longmemeval(record: Mapping[str, Any], _: str) -> Dialogue:
    """One question of LongMemEval with the sessions it is to be answered from.

    Evidence are the turns with `has_answer`, whoever spoke. An abstention has none and is not scored.
    """
    sessions, evidence = [], []
    haystack = (record[f"haystack_{name}"] for name in ("session_ids", "dates", "sessions"))
    for number, (session, when, said) in enumerate(zip(*haystack, strict=True)):
        turns = []
        for place, turn in enumerate(said):
            turns.append(BenchTurn(f"{number}:{place}", turn["role"], turn["content"]))
            evidence += [turns[-1].id] if turn.get("has_answer") else []
        sessions.append(BenchSession(session, _record_time(when), tuple(turns)))
    abstains = record["question_id"].endswith("_abs")
    asked = BenchQuestion(
        record["question"], frozenset(() if abstains else evidence), record["question_type"],
        _record_time(record["question_date"]),
    )  # fmt: skip
    sessions.sort(key=lambda one: one.when)
    return _dialogue(record["question_id"], sessions, [asked])


def _record_time(text: str) -> datetime:
    """`2023/05/20 (Sat) 02:36`."""
    found = re.fullmatch(r"(\d{4})/(\d\d)/(\d\d)(?: \(\w+\))?(?: (\d\d):(\d\d))?", text.strip())
    if not found:
        raise ValueError(f"not a valid time: {text!r}")
    return datetime(*(int(part or 0) for part in found.groups()))  # type: ignore[arg-type]


# -- ours: a line an item, a line a question ---------------------------------------------------------------


def _lines(file: Path, text: str) -> Dialogue:
    """The neutral format. Malformed names the line that is off."""
    parts: dict[tuple[str, str], list[tuple[datetime, BenchTurn]]] = defaultdict(list)
    asked: list[tuple[int, BenchQuestion]] = []
    known: set[str] = set()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if "question" in record:
                asked.append((number, _question(record)))
                continue
            turn = BenchTurn(str(record["id"]), str(record.get("who", "")), str(record["text"]))
            when = datetime.fromisoformat(record["when"])
            if turn.id in known:
                raise ValueError(f"the id {turn.id!r} occurs twice")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            said = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise Malformed(said, where=f"{file}:{number}", hint=HINT) from error
        known.add(turn.id)
        day = when.date().isoformat()
        parts[str(record.get("session", day)), day].append((when, turn))
    for number, one in asked:
        if missing := sorted(one.evidence - known):
            raise Malformed(f"no item has the id {missing[0]!r}", where=f"{file}:{number}", hint=HINT)
    sessions = [BenchSession(key[0], turns[0][0], tuple(t for _, t in turns)) for key, turns in parts.items()]
    sessions.sort(key=lambda one: one.when.replace(tzinfo=None))
    return _dialogue(file.stem, sessions, (one for _, one in asked))


def _question(record: Mapping[str, Any]) -> BenchQuestion:
    evidence, now = record["evidence"], record.get("now")
    if not isinstance(evidence, list):
        raise TypeError("evidence is a list of ids")
    return BenchQuestion(
        str(record["question"]), frozenset(map(str, evidence)), str(record.get("category", "questions")),
        datetime.fromisoformat(now) if now else None,
    )  # fmt: skip


# -- rankings --------------------------------------------------------------------------------------------
# Three ways to put a conversation's turns in order for a question: ours, BM25, and what grep would find.
#
# The two others are here to be measured against, so they share nothing with the index: no stemming, no
# neighbours, no vectors.


Found = list[tuple[str, ...]]
"""The ids of the turns that each result covers, the best result first."""

_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


class Grep:
    """Lines by how many of the question's words stand in them, in whole or as a part of another word."""

    def __init__(self, dialogue: Dialogue) -> None:
        self.lines = [(turn.id, turn.line.casefold()) for turn in dialogue.turns]

    def ask(self, questions: Sequence[BenchQuestion], limit: int) -> list[Found]:
        return [self._one(set(words(one.text)), limit) for one in questions]

    def _one(self, wanted: set[str], limit: int) -> Found:
        scored = [(sum(word in line for word in wanted), turn) for turn, line in self.lines]
        best = sorted((one for one in scored if one[0]), key=lambda one: -one[0])  # stable: else by place
        return [(turn,) for _, turn in best[:limit]]


class BM25:
    """Robertson's BM25 with the usual constants and an inverse document frequency that is never negative.

    After Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009).
    """

    def __init__(self, dialogue: Dialogue, k1: float = 1.2, b: float = 0.75) -> None:
        self.ids = [turn.id for turn in dialogue.turns]
        texts = [words(turn.line) for turn in dialogue.turns]
        mean = sum(map(len, texts)) / len(texts) if texts else 1
        self.postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for number, text in enumerate(texts):
            norm = k1 * (1 - b + b * len(text) / mean)
            for word, times in Counter(text).items():
                self.postings[word].append((number, times * (k1 + 1) / (times + norm)))

    def ask(self, questions: Sequence[BenchQuestion], limit: int) -> list[Found]:
        return [self._one(set(words(one.text)), limit) for one in questions]

    def _one(self, wanted: set[str], limit: int) -> Found:
        scores: dict[int, float] = defaultdict(float)
        for word in sorted(wanted):
            found = self.postings.get(word, [])
            rarity = math.log(1 + (len(self.ids) - len(found) + 0.5) / (len(found) + 0.5))
            for number, share in found:
                scores[number] += rarity * share
        best = sorted(scores, key=lambda number: (-scores[number], number))
        return [(self.ids[number],) for number in best[:limit]]


class OwnRanking:
    """A bank in a folder, asked as anybody asks one, with default settings whatever the environment says.

    Questions that were asked at different times are put at those times; the others at `now`, the clock.
    """

    def __init__(self, dialogue: Dialogue, root: Path, now: Callable[[], datetime] | None = None) -> None:
        self.where: Mapping[tuple[str, int], str] = write_bank(dialogue, root)
        self.at: datetime | None = None
        clock = now or Config().clock()

        def asked() -> datetime:
            return self.at.astimezone() if self.at else clock()

        self.memory = Memory.open(root, now=asked, door="bench")
        self.notes: set[str] = set()

    def index(self) -> None:
        """Build the index, as the first search would."""
        self.notes.update(self.memory.refresh().notes)

    def ask(self, questions: Sequence[BenchQuestion], limit: int) -> list[Found]:
        times: dict[datetime | None, list[int]] = defaultdict(list)
        for number, one in enumerate(questions):
            times[one.now].append(number)
        found: list[Found] = [[] for _ in questions]
        for self.at, numbers in times.items():
            texts = [" ".join(questions[number].text.split()) for number in numbers]
            for number, answer in zip(numbers, self.memory.search_many(texts, limit=limit), strict=True):
                self.notes.update(answer.notes)
                for at in (hit.item.place for hit in answer.hits):
                    lines = ((at.path, line) for line in range(at.line, at.end + 1))
                    found[number].append(tuple(self.where[place] for place in lines if place in self.where))
        return found


Ranks = OwnRanking | BM25 | Grep
"""What is measured: all questions of a conversation at once, at most `limit` results for each."""


# -- report ----------------------------------------------------------------------------------------------
# Every question of every conversation put to every ranking, and what comes out on the average.


LIMIT = 50
"""Results asked for each question."""
NAMES = ("ua-memory", "bm25", "grep")


@dataclass(frozen=True, slots=True)
class MeanRow:
    """The mean of each figure over `n` questions: percent with one digit, tokens as whole numbers."""

    name: str
    n: int
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Ranking:
    """What one ranking reaches. `ms` is the median, over conversations, of the milliseconds a question takes.

    The first row is `all`, without adversarial questions, which have the second; then one a category.
    `curve` has (tokens, R in percent) of the first row.
    """

    name: str
    ms: float
    rows: tuple[MeanRow, ...]
    curve: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class BenchReport:
    """The rankings side by side, and what they were given. `unanswered` questions name no evidence."""

    conversations: int
    turns: int
    questions: int
    unanswered: int
    index_seconds: float
    limit: int
    rankings: tuple[Ranking, ...]
    notes: tuple[str, ...]


def measure(
    files: Sequence[Sequence[Dialogue]], *, limit: int = LIMIT, sample: int | None = None,
    now: Callable[[], datetime] | None = None, progress: Callable[[int, int], None] | None = None,
) -> BenchReport:  # fmt: skip
    """Ask everything. `sample` asks at most so many questions of each file, evenly spread.

    Malformed where no question has evidence. The banks are in a temporary folder, one at a time.
    """
    unanswered = sum(one.unanswered for file in files for one in file)
    dialogues = [one for file in files for one in _sampled(file, sample)]
    if not dialogues:
        raise Malformed("no question in these files has evidence", hint="see docs/bench.md")
    tally = {name: _Tally() for name in NAMES}
    notes: set[str] = set()
    seconds = 0.0
    for number, one in enumerate(dialogues):
        if progress:
            progress(number, len(dialogues))
        with tempfile.TemporaryDirectory(prefix="ua-memory-bench-", ignore_cleanup_errors=True) as scratch:
            ours = OwnRanking(one, Path(scratch) / "bank", now)
            with ours.memory:
                seconds += _timed(ours.index)
                rankings: tuple[Ranks, ...] = (ours, BM25(one), Grep(one))
                for name, ranks in zip(NAMES, rankings, strict=True):
                    tally[name].add(one, ranks, limit)
            notes |= ours.notes
    return BenchReport(
        len(dialogues), sum(len(one.turns) for one in dialogues),
        sum(len(one.questions) for one in dialogues), unanswered, round(seconds, 2), limit,
        tuple(tally[name].ranking(name) for name in NAMES), tuple(sorted(notes)),
    )  # fmt: skip


def _sampled(file: Sequence[Dialogue], sample: int | None) -> list[Dialogue]:
    """The conversations that have questions, with those of the sample."""
    pairs = [(number, question) for number, one in enumerate(file) for question in one.questions]
    if sample and len(pairs) > sample:
        step = len(pairs) / sample
        pairs = [pairs[int(i * step)] for i in range(sample)]
    kept: dict[int, list[BenchQuestion]] = defaultdict(list)
    for number, question in pairs:
        kept[number].append(question)
    return [replace(file[number], questions=tuple(asked)) for number, asked in kept.items()]


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class _Tally:
    """The figures of one ranking, question by question."""

    def __init__(self) -> None:
        self.figures: dict[tuple[int, str], list[Mapping[str, float]]] = defaultdict(list)
        """By the row's place and name: all, adversarial questions, each category."""
        self.curves: dict[tuple[int, str], list[list[float]]] = defaultdict(list)
        self.ms: list[float] = []

    def add(self, dialogue: Dialogue, ranks: Ranks, limit: int) -> None:
        """Ask a conversation's questions at once. The first is asked before the clock starts, to be warm."""
        answers: list[list[tuple[str, ...]]] = []
        ranks.ask(dialogue.questions[:1], limit)
        seconds = _timed(lambda: answers.extend(ranks.ask(dialogue.questions, limit)))
        self.ms.append(1000 * seconds / len(dialogue.questions))
        sessions, sizes = dialogue.session_of, {turn.id: turn.tokens for turn in dialogue.turns}
        for question, found in zip(dialogue.questions, answers, strict=True):
            scored = QuestionScore(found, question.evidence, sessions, sizes)
            figures, rows = scored.figures(), [(0, "all"), (2, question.category)]
            for row in [(1, "adversarial")] if question.adversarial else rows:
                self.figures[row].append(figures)
                self.curves[row].append(scored.curve())

    def ranking(self, name: str) -> Ranking:
        rows = sorted(self.figures)
        means = [statistics.fmean(values) for values in zip(*self.curves[rows[0]], strict=True)]
        return Ranking(
            name,
            round(statistics.median(self.ms), 2),
            tuple(_row(row[1], self.figures[row]) for row in rows),
            tuple((budget, round(100 * mean, 1)) for budget, mean in zip(BUDGETS, means, strict=True)),
        )


def _row(name: str, each: Sequence[Mapping[str, float]]) -> MeanRow:
    means = {key: statistics.fmean(one[key] for one in each) for key in each[0]}
    rounded = {
        key: round(mean) if key.startswith("tokens") else round(100 * mean, 1) for key, mean in means.items()
    }
    return MeanRow(name, len(each), rounded)


# -- plot ------------------------------------------------------------------------------------------------
# The plots: recall against tokens, and what models cost by day. matplotlib comes with `ua-memory[plot]`.


SUFFIXES = (".png", ".svg", ".pdf")


def drawable(file: Path) -> None:
    """Raise what `draw` would, before the long part. Usage without matplotlib or for another kind of file."""
    if file.suffix.lower() not in SUFFIXES:
        raise Usage("a plot is a .png, .svg or .pdf", where=str(file), hint="--plot recall.png")
    if not file.parent.is_dir():
        raise CannotWrite("no such folder", where=str(file.parent), hint=f"mkdir -p {file.parent}")
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise Usage("matplotlib is not installed", hint="pip install 'ua-memory[plot]'") from error


def draw(report: BenchReport, file: Path) -> None:
    """Draw a line for each ranking: tokens returned across, the share of the evidence in them upwards.

    CannotWrite where the file system refuses.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for ranking in report.rankings:
        tokens, recall = zip(*ranking.curve, strict=True)
        axes.plot(tokens, recall, marker="o", markersize=3, label=f"{ranking.name} ({ranking.ms:g} ms)")
    axes.set_xscale("log")
    ticks = [budget for budget, _ in report.rankings[0].curve]
    axes.set_xticks(ticks, [f"{budget:,}" for budget in ticks], rotation=45)
    axes.minorticks_off()
    axes.set_ylim(0, 100)
    axes.set_xlabel("tokens returned (characters / 4)")
    axes.set_ylabel("evidence among them, %")
    axes.set_title(f"{report.rankings[0].rows[0].n:,} questions, {report.turns:,} turns")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    _save(figure, file)


def draw_cost(spent: Spent, file: Path) -> None:
    """Draw a bar for each day from the first to the last, in parts by purpose: dollars, or thousands of
    tokens where no model sent a bill. CannotWrite where the file system refuses."""
    from matplotlib.figure import Figure

    first, last = (date.fromisoformat(pick(spent.by_both)) for pick in (min, max))
    days = [(first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]
    priced = spent.total.usd > 0
    figure = Figure(figsize=(7, 4), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    below = [0.0] * len(days)
    for purpose in sorted(spent.by_purpose, key=lambda name: -_height(spent.by_purpose[name], priced)):
        heights = [_height(spent.by_both.get(day, {}).get(purpose), priced) for day in days]
        axes.bar(range(len(days)), heights, bottom=below, label=purpose, width=0.8)
        below = [low + high for low, high in zip(below, heights, strict=True)]
    step = max(1, len(days) // 12)
    axes.set_xticks(range(0, len(days), step), [day[5:] for day in days[::step]], rotation=45)
    axes.set_ylabel("dollars" if priced else "thousand tokens")
    axes.set_title(f"{days[0]} to {days[-1]}" if len(days) > 1 else days[0])
    axes.grid(axis="y", alpha=0.3)
    axes.legend()
    _save(figure, file)


def _height(one: Totals | None, priced: bool) -> float:
    return 0.0 if one is None else one.usd if priced else one.usage.total / 1000


def _save(figure: Any, file: Path) -> None:
    with writing(file, None):
        figure.savefig(file)


# -- compared --------------------------------------------------------------------------------------------
# `import --compare`: what the old index and ours answer, side by side, before anybody switches.
#
# Ours is a bank in a temporary folder that holds everything the source has; nothing of it is kept.

Clock = Callable[[], datetime]
Progress = AbstractContextManager[Callable[[int, int], None] | None]

RESULTS = 6
NEAR = 40
SECONDS_A_QUERY = 6.0
"""What words find is embedded first, so many of each query, and then the rest for so long: a model reads some
200 facts a second on two cores, and what is far from all queries would not be shown."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One query and what both sides found."""

    query: str
    old: Sequence[OldHit]
    ours: Sequence[Hit]


@dataclass(frozen=True, slots=True)
class Compared:
    """All pairs, who answered for the old side, where our copies come from, the seconds a query took, and
    how many texts there was no time to embed: these are found by words alone."""

    pairs: Sequence[Pair]
    old: Comparison
    sources: dict[str, str]
    seconds: tuple[float, float]
    by_words: int = 0

    def source(self, hit: Hit) -> str:
        return self.sources.get(hit.item.path, hit.item.path)


def compare(
    found: SourceContents, old: Comparison, queries: Sequence[str], *, now: Clock | None, progress: Progress
) -> Compared:
    """Ask both sides. `progress` makes the callback that reports the progress of the embedding."""
    started = time.perf_counter()
    before = [old.ask(query, RESULTS) for query in queries]
    asked = time.perf_counter()
    with ExitStack() as until_done:
        folder = Path(until_done.enter_context(tempfile.TemporaryDirectory(prefix="ua-memory-compare-")))
        (folder / "MEMORY.md").touch()  # the words of a new one are nobody's answer
        memory = until_done.enter_context(Memory.init(folder, now=now, door="import"))
        done = import_contents(memory.store, found, door=memory.door)
        left = _embed(memory, queries, progress)
        memory.search_many(queries[:1], limit=RESULTS)  # models are loaded once, not with each query
        ready = time.perf_counter()
        answers = memory.search_many(queries, limit=RESULTS)
        took = time.perf_counter() - ready
    sources = {each.path: each.source for each in done.taken if each.what == "note"}
    pairs = [Pair(q, b, a.hits) for q, b, a in zip(queries, before, answers, strict=True)]
    return Compared(pairs, old, sources, ((asked - started) / len(queries), took / len(queries)), left)


def _embed(memory: Memory, queries: Sequence[str], progress: Progress) -> int:
    """Embed what may be an answer, then what else there is time for; how many texts are left."""
    memory.refresh(vectors=False)
    found = memory.search_many(queries, limit=NEAR, by_words=True)
    first = sorted({hit.item.vhash for answer in found for hit in answer.hits if hit.item.vhash})
    with progress as tell:
        memory.index.embed_first(first, tell)
        until = time.perf_counter() + SECONDS_A_QUERY
        return memory.refresh(tell, stop=lambda: time.perf_counter() > until).left_texts


# -- probes ----------------------------------------------------------------------------------------------
# Questions to one's own bank and the statements that they should find, kept in a file beside it: asked again
# after a change, they tell what search has gained or lost.


PROBES = "probes.md"
"""In the bank's folder, but no file of memory: never indexed, so that no question is found as an answer."""
LAST_RUN = "probes.json"
PROBE_RESULTS = 50
"""Hits among which a statement is looked for."""
PROBE_DEPTH = 10
"""Within so many a statement counts as found: what is gained or lost."""
_PROBE = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]+(?P<query>\S.*?)[ \t]*(?:→|->)(?P<found>(?:(?!→|->).)*)")
_NAMED = re.compile(r"\^([A-Za-z0-9-]+)")


@dataclass(frozen=True, slots=True)
class Probe:
    """A line of probes.md: a question, and the ids of what it should find."""

    line: int
    query: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """One question asked: the rank of each id among the hits, None where it is none of them, and what that
    `was` in the run before, None where it was not asked then. `missing` are ids that the bank has not."""

    probe: Probe
    ranks: Mapping[str, int | None]
    was: Mapping[str, int | None] | None
    missing: tuple[str, ...]
    tokens: int
    ms: float

    def share(self, depth: int) -> float:
        """The share of its ids among the first hits."""
        return _share(self.ranks, depth)

    @property
    def change(self) -> float:
        """What it finds more than in the run before, less than 0 where that was more."""
        same = {block: self.ranks[block] for block in (self.was or {}) if block in self.ranks}
        return _share(same, PROBE_DEPTH) - _share(self.was, PROBE_DEPTH) if same and self.was else 0.0


def _share(ranks: Mapping[str, int | None], depth: int) -> float:
    return sum(bool(rank and rank <= depth) for rank in ranks.values()) / max(len(ranks), 1)


@dataclass(frozen=True, slots=True)
class ProbeFigures:
    """The means of a run: shares from 0 to 1, tokens of the first hits, the median of milliseconds."""

    when: datetime
    r5: float
    r10: float
    tokens: int
    ms: float


@dataclass(frozen=True, slots=True)
class ProbeRun:
    """All probes asked, and the figures of the run before."""

    results: tuple[ProbeResult, ...]
    figures: ProbeFigures
    last: ProbeFigures | None
    notes: tuple[str, ...] = ()

    @property
    def gained(self) -> tuple[ProbeResult, ...]:
        return tuple(one for one in self.results if one.change > 0)

    @property
    def lost(self) -> tuple[ProbeResult, ...]:
        return tuple(one for one in self.results if one.change < 0)


class Probes:
    """The probes of one bank."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._file = memory.store.bank.root / PROBES
        self._last = memory.store.bank.local / LAST_RUN

    def list(self) -> tuple[list[Probe], list[str]]:
        """The probes in their order, and what is wrong with lines that look like one. Usage for a link."""
        found, wrong = list[Probe](), list[str]()
        for number, text in enumerate(self._text().splitlines(), 1):
            match = _PROBE.fullmatch(text.rstrip())
            if match and (ids := tuple(dict.fromkeys(_NAMED.findall(match["found"])))):
                found.append(Probe(number, match["query"], ids))
            elif match:
                wrong.append(f"{PROBES}:{number}: no ^id behind the arrow")
        return found, wrong

    def _text(self) -> str:
        if self._file.is_symlink():
            raise Usage("a symbolic link is not followed", where=PROBES, hint="put the file itself here")
        return (files.read(self._file) or b"").decode("utf-8", "replace")

    def add(self, query: str, *targets: str) -> Probe:
        """Add a line for a question and the statements that it should find, in any form that `get` takes.
        NotFound; Usage for what has no id, and for a question that says nothing. CannotWrite."""
        query = " ".join(self._memory.store.redacted(query).split()).replace("→", "->").strip()
        if not query or not targets:
            raise Usage("a probe is a question and ids", hint='ua-memory bench probes --add "QUESTION" ^ID')
        found = [self._memory.facts.get(statements.resolve_id(self._memory.store, one)[0]) for one in targets]
        ids = tuple(dict.fromkeys(str(one.id) for one in found))
        before = self._text()
        line = f"- {query} → {' '.join(f'^{block}' for block in ids)}\n"
        line = ("" if before.endswith("\n") else "\n" if before else "# Probes\n\n") + line
        with writing(self._file), self._file.open("a", encoding="utf-8") as file:
            file.write(line)
        return Probe((before + line).count("\n"), query, ids)

    def run(self, progress: Callable[[int, int], None] | None = None) -> ProbeRun:
        """Ask all probes, and remember the ranks for the next run. NotFound where there is none."""
        probes, wrong = self.list()
        if not probes:
            hint = 'ua-memory bench probes --add "QUESTION" ^ID'
            raise NotFound("there are no probes", where=PROBES, hint=hint)
        last, was = self._read_last()
        self._memory.search(probes[0].query)  # the model is loaded once, not with the first question
        results, notes = list[ProbeResult](), dict.fromkeys(wrong)
        for number, probe in enumerate(probes):
            began = time.perf_counter()
            answer = self._memory.search(probe.query, limit=PROBE_RESULTS)
            took = 1000 * (time.perf_counter() - began)
            notes |= dict.fromkeys(answer.notes)
            results.append(self._result(probe, answer.hits, was.get(_key(probe)), took))
            if progress:
                progress(number + 1, len(probes))
        figures = ProbeFigures(
            self._memory.store.now(), statistics.fmean(one.share(5) for one in results),
            statistics.fmean(one.share(PROBE_DEPTH) for one in results),
            round(statistics.fmean(one.tokens for one in results)),
            round(statistics.median(one.ms for one in results), 2),
        )  # fmt: skip
        self._save(figures, results)
        return ProbeRun(tuple(results), figures, last, tuple(notes))

    def _result(
        self, probe: Probe, hits: Sequence[Hit], was: Mapping[str, int | None] | None, ms: float
    ) -> ProbeResult:
        there = [{name for one in (hit.item, *hit.folded) for name in (one.id, one.ref)} for hit in hits]
        ranks = {
            block: next((n for n, names in enumerate(there, 1) if block in names), None)
            for block in probe.ids
        }
        lost = (block for block, rank in ranks.items() if rank is None)
        missing = tuple(block for block in lost if not self._memory.facts.files_of(written_id(block)))
        tokens = sum(text_tokens.count(hit.snippet) for hit in hits[:PROBE_DEPTH])
        return ProbeResult(probe, ranks, was, missing, tokens, round(ms, 2))

    def _read_last(self) -> tuple[ProbeFigures | None, Mapping[str, Mapping[str, int | None]]]:
        try:
            read = json.loads(self._last.read_bytes())
            when = datetime.fromisoformat(read["figures"].pop("when"))
            return ProbeFigures(when, **read["figures"]), dict(read["ranks"])
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None, {}  # a local record, which may be lost

    def _save(self, figures: ProbeFigures, results: Iterable[ProbeResult]) -> None:
        kept = {**asdict(figures), "when": figures.when.isoformat()}
        ranks = {_key(one.probe): dict(one.ranks) for one in results}
        with writing(self._last):
            make_private(self._last.parent)
            data = json.dumps({"figures": kept, "ranks": ranks}).encode()
            swap.replace_file(self._last, data, self._last.with_suffix(".new"))


def _key(probe: Probe) -> str:
    """What a question is known by in the record of a run, which keeps no words."""
    return sha256(probe.query.encode()).hexdigest()[:16]
