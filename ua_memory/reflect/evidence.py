"""The evidence of a reflection, and whether an answer is supported by what it cites."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import Literal, cast

from ua_memory.errors import NotFound, UaMemoryError
from ua_memory.index.filters import Filters
from ua_memory.knowledge import statements
from ua_memory.knowledge.observations import ObservationView
from ua_memory.markdown import document
from ua_memory.markdown import lines as markdown_lines
from ua_memory.recall.search import Hit, SearchResult
from ua_memory.records import TEXT_KEYS, Fact, MentalModel, Observation, Passage, Place, Record
from ua_memory.store.store import Store
from ua_memory.text import tokens
from ua_memory.text.grounding import contradiction, is_supported, terms, ungrounded_claims
from ua_memory.text.wording import counted, spans

# -- evidence ----------------------------------------------------------------------------------------------
# What a reflection has found: numbered pieces of memory in three layers, searched in this order: mental
# models, which the user curated; observations with their freshness; facts and notes. Pages are left out:
# they are written from the same facts, and would only seem to be another proof.


Layer = Literal["models", "observations", "facts"]
LAYERS: Mapping[Layer, tuple[str, ...]] = {
    "models": ("model",),
    "observations": ("observation",),
    "facts": ("fact", "passage", "core"),
}
"""The layers in the order in which they are searched, and their kinds of records."""
TITLES: Mapping[Layer, str] = {
    "models": "Mental models (curated by the owner)",
    "observations": "Observations (consolidated beliefs)",
    "facts": "Facts and notes (what was said)",
}
LEAST_SIMILARITY = 0.35
"""The similarity from which a text that only the semantic search found is evidence. For a question that
memory cannot answer the nearest texts have 0.15 to 0.3 (a month of somebody's logs, MiniLM)."""
COVERED_SHARE = 0.8
"""With this share of a question's words in a fresh mental model, the lower layers are not searched."""
NEWER = 8
"""Most newer facts on an observation that `read` shows with its proofs."""
_LONGEST = 1200
"""Most characters of a piece that are shown; `read` shows all."""


@dataclass(frozen=True, slots=True)
class EvidencePiece:
    """One numbered piece of evidence. `number` is what an answer cites it by, the same throughout a run.

    `day` is the ISO day it is about, `said` the day it was said; `stale`: newer facts are on it, or it has
    had no evidence for long. `proofs` are the ids of the facts behind it, its own for a fact. `more_words` is
    further text of it that an answer may use: quotes, who, why, its names. `untrusted`: neither the owner nor
    an agent of theirs said it.
    """

    number: int
    layer: Layer
    text: str
    place: Place
    id: str | None = None
    day: str = ""
    said: str = ""
    origin: str = ""
    stale: bool = False
    about: str = ""
    proofs: tuple[str, ...] = ()
    disputed: str = ""
    more_words: tuple[str, ...] = ()
    record: Record | None = None
    untrusted: bool = False

    @property
    def citation(self) -> str:
        """`path#L5`."""
        return self.place.citation

    @property
    def words(self) -> list[str]:
        """All text that an answer that cites this may use."""
        return [self.text, self.day, self.said, self.citation, *self.more_words]

    def line(self) -> str:
        """The piece as a line for a model or a person: number, description, text."""
        flat = " ".join(self.text.split())
        flat = flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST]} … (read {self.number} shows all)"
        return f"[{self.number}] {self.about}: {flat}"


class EvidenceCollector:
    """Collects the evidence of one run. `find` searches the bank; `clean` removes secrets; `all_beliefs`
    gives the observations with their freshness."""

    def __init__(
        self, store: Store, find: Callable[..., SearchResult], clean: Callable[[str], str], today: date,
        filters: Filters, all_beliefs: Callable[[], Sequence[ObservationView]],
    ) -> None:  # fmt: skip
        self.pieces: dict[int, EvidencePiece] = {}
        self._store, self._find, self._clean, self._today, self._filters = store, find, clean, today, filters
        self._all_beliefs, self._beliefs = all_beliefs, cast("dict[Place, ObservationView] | None", None)
        self._known: dict[tuple[str, int], int] = {}
        self._files: dict[str, tuple[Record, ...]] = {}
        self.notes: dict[str, None] = {}
        """The notes of all searches."""

    def search(self, layer: Layer, query: str, limit: int, room: int) -> list[EvidencePiece]:
        """The best pieces of a layer for a query: at most `limit`, and `room` tokens."""
        where = replace(self._filters, kinds=LAYERS[layer], retired=False)
        found: list[EvidencePiece] = []
        answer = self._find(query, limit=limit, filters=where)
        self.notes |= dict.fromkeys(answer.notes)
        for hit in filter(is_evidence, answer.hits):
            piece = self._from_hit(layer, hit)
            room -= tokens.count(piece.text)
            if room < 0 and found:
                break
            found.append(self._add(piece))
        return found

    def related(self, number: int) -> list[EvidencePiece]:
        """More evidence for a piece: an observation's proofs and newer facts on it, a fact's neighbours in
        its file, or the whole mental model."""
        piece = self.pieces[number]
        if isinstance(piece.record, Observation):
            proofs = [self._cited_fact(proof.ref) for proof in piece.record.proofs]
            since = [self._from_record(fact, "facts") for fact in self._newer_facts(piece.record)[:NEWER]]
            return [*map(self._add, filter(None, proofs)), *map(self._add, since)]
        there = self._records(piece.place.path)
        if piece.layer == "models":
            return [self._add_record(record, "models") for record in there if isinstance(record, Passage)]
        at = next((n for n, one in enumerate(there) if one.place == piece.place), None)
        near = there[max(0, at - 2) : at + 3] if at is not None else ()
        return [self._add_record(one, "facts") for one in near if isinstance(one, Fact | Passage)]

    # -- pieces ------------------------------------------------------------------------------------------

    def _from_hit(self, layer: Layer, hit: Hit) -> EvidencePiece:
        item = hit.item
        record = next((one for one in self._records(item.path) if one.place.line == item.line), None)
        if record is not None and not isinstance(record, MentalModel):
            made = self._from_record(record, layer)
            if item.untrusted and not made.untrusted:
                made = replace(made, untrusted=True, about=f"{made.about}, untrusted: {item.origin}")
            return replace(made, place=item.place, text=item.text)
        head = f"{layer[:-1]}, {item.date}" if item.date else layer[:-1]
        when = (item.date, item.day or "")
        return EvidencePiece(0, layer, item.text, item.place, item.id, *when, item.origin, about=head)

    def _add(self, piece: EvidencePiece) -> EvidencePiece:
        key = (piece.place.path, piece.place.line)
        number = self._known.setdefault(key, len(self._known) + 1)
        if number not in self.pieces:
            self.pieces[number] = replace(piece, number=number)
        return self.pieces[number]

    def _add_record(self, record: Record, layer: Layer) -> EvidencePiece:
        return self._add(self._from_record(record, layer))

    def _from_record(self, record: Record, layer: Layer) -> EvidencePiece:
        if isinstance(record, Observation):
            return self._from_observation(record)
        day = markdown_lines.day_of(record.place.path) or ""
        if isinstance(record, Fact):
            more = (*(q.text for q in record.quotes), *(getattr(record, key) for key in TEXT_KEYS))
            about = (record.when or day)[:10]
            return EvidencePiece(
                0, "facts", self._clean(record.text), record.place, record.id, about, day, record.said_by,
                about=", ".join(filter(None, (about or "undated", record.said_by))),
                proofs=(record.ref or record.place.citation,), disputed=record.flag or "", record=record,
                more_words=tuple(map(self._clean, (*filter(None, more), *record.entities, *_above(record)))),
                untrusted=record.untrusted,
            )  # fmt: skip
        text = self._clean(getattr(record, "text", "") or getattr(record, "value", ""))
        if layer == "models":
            return self._from_model(text, record)
        return EvidencePiece(
            0, "facts", text, record.place, None, day, day, "person", about=f"{day}, note" if day else "note",
            proofs=(record.place.citation,), more_words=_above(record), record=record,
        )  # fmt: skip

    def _from_observation(self, record: Observation) -> EvidencePiece:
        known = self._view_of(record)
        newer = self._newer_facts(record)
        why = [f"{counted(len(newer), 'fact')} on it not considered yet"] if newer else []
        why += known.freshness.lost[:1] if known else []
        trend = known.trend if known else record.trend
        why += ["nothing new for long"] if trend == "stale" else []
        dates = " to ".join(dict.fromkeys(filter(None, (record.since, record.last))))
        count = len({proof.ref for proof in record.proofs})
        said = [f"stale: {', '.join(why)}" if why else "fresh", trend, counted(count, "proof"), dates]
        quotes = [proof.quote for proof in record.proofs if proof.quote]
        return EvidencePiece(
            0, "observations", self._clean(record.text), record.place, record.id, record.last or "",
            record.last or "", record.origin or "agent", bool(why),
            ", ".join(["observation", *dict.fromkeys(filter(None, said))]),
            tuple(dict.fromkeys(proof.ref for proof in record.proofs)), record.flag or "",
            tuple(map(self._clean, (*quotes, record.since or "", *record.entities, *_above(record)))), record,
        )  # fmt: skip

    def _newer_facts(self, record: Observation) -> list[Fact]:
        """Facts on an observation that no consolidation has considered and that are not its proofs; the
        newest first."""
        known, behind = self._view_of(record), {proof.ref for proof in record.proofs}
        found = [fact for fact in known.freshness.newer if fact.ref not in behind] if known else []
        return sorted(found, key=lambda fact: markdown_lines.day_of(fact.place.path) or "", reverse=True)

    def _view_of(self, record: Observation) -> ObservationView | None:
        """The freshness of an observation; all are read once, when one is found."""
        if self._beliefs is None:
            self._beliefs = {one.observation.place: one for one in self._all_beliefs()}
        return self._beliefs.get(record.place)

    def _from_model(self, text: str, record: Record) -> EvidencePiece:
        """A passage of a mental model, with the model's name and the day of its last change."""
        path = record.place.path
        models = [one for one in self._records(path) if isinstance(one, MentalModel)]
        name = models[0].name if models else path
        changed = self._last_changed(path)
        about = ", ".join(filter(None, (f"model “{name}”", f"changed {changed}" if changed else "")))
        return EvidencePiece(
            0, "models", text, record.place, None, changed, changed, "person", about=about,
            proofs=(path,), more_words=(name, *_above(record)), record=record,
        )  # fmt: skip

    def _last_changed(self, path: str) -> str:
        """The day of a file's last commit; today if it is not committed yet."""
        try:
            done = self._store.history.log([path], limit=1)
        except UaMemoryError:
            return ""
        return done[0].when.date().isoformat() if done else self._today.isoformat()

    # -- records -----------------------------------------------------------------------------------------

    def _cited_fact(self, block: str) -> EvidencePiece | None:
        """The fact that a proof cites, unless it is gone or retired."""
        try:
            found = statements.find(self._store, block)
        except NotFound:
            return None
        return self._from_record(found, "facts") if isinstance(found, Fact) and not found.retired else None

    def _records(self, path: str) -> tuple[Record, ...]:
        if path not in self._files:
            try:
                self._files[path] = document.parse(self._store.accepted_bytes(path), path).records
            except (UaMemoryError, OSError):  # gone meanwhile, or not the bank's
                self._files[path] = ()
        return self._files[path]


def is_evidence(hit: Hit) -> bool:
    """Whether a hit is evidence: a retriever other than the semantic one found it, or its similarity is high
    enough. A search always returns something, which is no reason to answer."""
    if set(hit.arms) - {"semantic"}:
        return True
    return "semantic" in hit.arms and hit.arms["semantic"][1] >= LEAST_SIMILARITY


def covers_question(question: str, pieces: Sequence[EvidencePiece]) -> bool:
    """Whether these pieces have nearly all words of a question."""
    asked = terms(question)
    said = terms(" ".join(word for piece in pieces for word in piece.words))
    return bool(asked) and len(asked & said) >= COVERED_SHARE * len(asked)


def format_pieces(pieces: Sequence[EvidencePiece], shown: set[int]) -> Iterator[str]:
    """A line for each piece; only the number for those that were shown before."""
    for piece in pieces:
        yield f"[{piece.number}] is shown above" if piece.number in shown else piece.line()


def _above(record: Record) -> tuple[str, ...]:
    """The texts of the headings that a record stands under."""
    heading = getattr(record, "heading", None)
    return tuple(heading.texts) if heading else ()


# -- checking an answer ------------------------------------------------------------------------------------
# An answer is checked against what it cites: every number must have been shown, every name and date be in the
# evidence. The model gets one chance to correct its faults. Sentences that are still wrong are cut, and the
# answer says so.


_CITED = re.compile(r"\s*\[(\d{1,4}(?:\s*[-–,;]\s*\d{1,4})*)\]")
_DENIAL = re.compile(
    r"\b(?:no|not|nothing|never|none|neither|nor|nobody|unknown|unclear|without)\b|n't\b", re.I
)
_ABOUT_MEMORY = re.compile(
    r"\b(?:memory|notes?|records?|evidence|sources?|mention\w*|known|unknown|unclear|says?|said|state[sd]?)\b",
    re.I,
)
_LIST_MARK = re.compile(r"^\s*(?:[-*+•]|\d+[.)]|#{1,6})\s+")
_SHARED_WORDS = 0.5
"""The share of its words that a sentence without a citation must have in common with the other citations."""
_MOST_FAULTS = 6

CAPS = (0.0, 0.7, 0.8, 0.9)
"""The highest confidence with no, one, two and three proofs; with more of them it is 0.95."""
CURATED_CAP = 0.9
"""The highest confidence with a mental model, which its owner wrote."""
WEAK_CAP = 0.5
"""The highest confidence with disputed evidence, or with stale observations alone."""


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """A sentence of an answer, and the numbers that it cites."""

    text: str
    cites: tuple[int, ...]

    @property
    def bare(self) -> str:
        """The text without citations and list marks."""
        return _LIST_MARK.sub("", _CITED.sub("", self.text)).strip()


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """The supported part of an answer: `text`, the numbers it cites in order, `faults` in words for the
    model, and the sentences that were `cut`."""

    text: str
    cites: tuple[int, ...]
    faults: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()


def check_answer(
    text: str, pieces: Mapping[int, EvidencePiece], question: str, *, found: bool, checked: Collection[int]
) -> CheckedAnswer:
    """Check an answer against the evidence. `checked` are stale observations that the model compared with
    facts.

    If `found`, each sentence must be supported by what it cites, and one without a citation by what the
    others cite. A sentence that says what is missing may repeat the question.
    """
    lines = [list(sentences(line)) for line in text.strip().split("\n")]
    every = [sentence for line in lines for sentence in line]
    known = [n for n in dict.fromkeys(n for sentence in every for n in sentence.cites) if n in pieces]
    all_cited = [pieces[n] for n in known] if found else [*pieces.values()]
    rows, cites, faults, cut = [], dict[int, None](), [], []
    for line in lines:
        supported_sentences = []
        for sentence in line:
            wrong = _faults(sentence, pieces, all_cited, question, found, checked)
            faults += wrong
            if wrong and not _unknown_number(sentence, pieces, wrong):
                cut.append(sentence.bare)
            else:
                supported_sentences.append(renumber_citations(sentence.text, {n: n for n in pieces}))
                cites.update(dict.fromkeys(n for n in sentence.cites if n in pieces))
        if supported_sentences or not line:
            rows.append(" ".join(supported_sentences))
    if found and not cites and not faults:
        faults.append("no sentence cites a number")
    body = re.sub(r"\n{3,}", "\n\n", "\n".join(rows)).strip()
    found_faults = tuple(dict.fromkeys(faults))[:_MOST_FAULTS]
    return CheckedAnswer(body, tuple(cites), found_faults, tuple(dict.fromkeys(cut)))


def sentences(line: str) -> Iterator[AnswerSentence]:
    """The sentences of a line, each with the citations in or after it."""
    bare = _CITED.sub(lambda m: " " * len(m[0]), line)
    for start, end in pairwise([*(start for start, _ in spans(bare)), len(line)]):
        if text := line[start:end].strip():
            yield AnswerSentence(text, _numbers(text))


def unsupported_claims(
    text: str, pieces: Sequence[EvidencePiece], beside: Sequence[str] = ()
) -> tuple[str, ...]:
    """The names, numbers and dates of a text that none of the pieces has. Relative dates are resolved from
    each piece's day."""
    words = [word for piece in pieces for word in piece.words if word]
    days = dict.fromkeys(piece.said for piece in pieces)
    missing: tuple[str, ...] | None = None
    for day in days or [""]:
        not_here = ungrounded_claims(text, [*words, *beside], _parse_date(day))
        missing = not_here if missing is None else tuple(claim for claim in missing if claim in not_here)
        if not missing:
            return ()
    return missing or ()


def bounded_confidence(confidence: float, pieces: Sequence[EvidencePiece]) -> float:
    """A confidence, bounded by the citations: the number of independent proofs, staleness, disputes."""
    proofs = {proof for piece in pieces for proof in piece.proofs}
    cap = CAPS[len(proofs)] if len(proofs) < len(CAPS) else 0.95
    if any(piece.layer == "models" for piece in pieces):
        cap = max(cap, CURATED_CAP)
    stale = [piece for piece in pieces if piece.stale]
    if any(piece.disputed for piece in pieces) or (stale and len(stale) == len(pieces)):
        cap = min(cap, WEAK_CAP)
    return round(max(0.0, min(confidence, cap)), 2)


def _faults(
    one: AnswerSentence, pieces: Mapping[int, EvidencePiece], whole: Sequence[EvidencePiece],
    question: str, found: bool, checked: Collection[int],
) -> list[str]:  # fmt: skip
    """The faults of a sentence, in words for the model."""
    invented = [n for n in one.cites if n not in pieces]
    wrong = [f"nothing is numbered {', '.join(map(str, invented))}"] if invented else []
    mine = [pieces[n] for n in one.cites if n in pieces]
    denies = not found or _DENIAL.search(one.bare) is not None
    missing = unsupported_claims(one.bare, mine or whole, [question] if denies else ())
    numbers = ", ".join(f"[{piece.number}]" for piece in mine)
    if missing:
        where = f"is not in {numbers}" if mine else "is in nothing that you cite"
        wrong.append(f"“{_shorten(one.bare)}”: {', '.join(missing)} {where}")
    elif found and not one.cites and not denies and not _is_covered(one.bare, whole, question):
        wrong.append(f"“{_shorten(one.bare)}” cites nothing")
    elif found and mine and (why := _why_unsupported(one.bare, _all_words(mine), question, denies=denies)):
        wrong.append(f"“{_shorten(one.bare)}”: {numbers} {why}")
    stale = [piece.number for piece in mine if piece.stale]
    if stale and len(stale) == len(mine) and not set(stale) <= set(checked):
        wrong.append(f"[{stale[0]}] is stale: read {stale[0]} first, or cite a fact beside it")
    return wrong


def _why_unsupported(text: str, said: Sequence[str], question: str, *, denies: bool) -> str:
    """Why a sentence does not agree with what it cites, '' if it does. A sentence that says that memory lacks
    something may use other words."""
    if not denies and not is_supported(text, said, question):
        return "have hardly a word of it"
    why = "" if denies and _ABOUT_MEMORY.search(text) else contradiction(text, said, said)
    return f"do not say so: {why}" if why else ""


def _unknown_number(one: AnswerSentence, pieces: Mapping[int, EvidencePiece], wrong: Sequence[str]) -> bool:
    """Whether the only fault is one unknown number among valid ones."""
    invented = any(n not in pieces for n in one.cites)
    return invented and len(wrong) == 1 and any(n in pieces for n in one.cites)


def _is_covered(text: str, pieces: Sequence[EvidencePiece], question: str) -> bool:
    """Whether a sentence without a citation shares enough words with the pieces."""
    mine = terms(text) - terms(question)
    said = terms(" ".join(_all_words(pieces)))
    return len(mine & said) >= _SHARED_WORDS * len(mine)


def _all_words(pieces: Sequence[EvidencePiece]) -> list[str]:
    return [word for piece in pieces for word in piece.words]


def renumber_citations(text: str, numbers: Mapping[int, int]) -> str:
    """The text with renumbered citations; those without a new number are removed."""

    def left(match: re.Match[str]) -> str:
        kept = sorted(numbers[n] for n in _cited_numbers(match[1]) if n in numbers)
        return f" [{', '.join(map(str, kept))}]" if kept else ""

    return "\n".join(_CITED.sub(left, line).strip() for line in text.split("\n"))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(n for match in _CITED.finditer(text) for n in _cited_numbers(match[1])))


def _cited_numbers(written: str) -> Iterator[int]:
    """The numbers of a citation such as `2, 5-7`."""
    for part in re.split(r"[,;]", written):
        first, *last = (int(number) for number in re.findall(r"\d+", part))
        yield from range(first, min(last[-1] if last else first, first + 20) + 1)


def _parse_date(day: str) -> date | None:
    try:
        return date.fromisoformat(day[:10])
    except ValueError:
        return None


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}…"
