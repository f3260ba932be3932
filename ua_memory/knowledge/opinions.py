"""Opinions: the agent's own conclusions with their reasons, in `memory/opinions.md`.

They are kept apart from facts. Each has at least one `because`. One that no longer holds is retired, not
deleted. One that changed is rewritten in place; its earlier text is in the history (`ua-memory blame ^id`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from ua_memory.errors import Malformed, NotFound, Usage, checked, one_line
from ua_memory.knowledge import statements
from ua_memory.markdown import document, lines, printer
from ua_memory.records import Fact, Kind, Observation, Opinion, Proof
from ua_memory.store.draft import Draft, Result
from ua_memory.store.store import Store
from ua_memory.text.grounding import locate, terms

PATH = "memory/opinions.md"
TITLE = b"# Opinions\n\n"
KINDS: tuple[Kind, ...] = ("opinion", "pattern", "risk")
LONGEST = 1000
ALIKE = 0.6
"""Share of common words from which two texts count as the same opinion."""
_QUOTE_LENGTH = 200
_UNTRUSTED = "this is from an untrusted source, which cannot support an opinion"
_CITE_HINT = "cite what a person or the agent has said"

Ground = tuple[Fact | Observation, str]
"""A reason for an opinion, and the words to quote; '' quotes its beginning."""


@dataclass(frozen=True, slots=True)
class OpinionChange:
    """An opinion before (None if it is new) and after a change, and the revision."""

    before: Opinion | None
    after: Opinion
    result: Result


def all_opinions(store: Store, *, retired: bool = False) -> list[Opinion]:
    """The opinions that hold, in file order; with `retired` those that were dropped, too."""
    try:
        data = store.accepted_bytes(PATH)
    except NotFound:
        return []
    return [one for one in document.parse(data, PATH).of(Opinion) if retired or not one.retired]


def find_similar(text: str, there: Sequence[Opinion]) -> Opinion | None:
    """An existing opinion with nearly the same words, None if there is none. It should be revised instead of
    adding a second one."""
    mine = terms(text)
    for one in there:
        both = terms(one.text)
        if mine and both and len(mine & both) >= ALIKE * min(len(mine), len(both)):
            return one
    return None


# -- in an open revision -------------------------------------------------------------------------------


def form(
    draft: Draft, text: str, grounds: Sequence[Ground], *, kind: Kind = "opinion", confidence: float, day: str
) -> Opinion:
    """Write a new opinion at the end of the file. Usage without grounds, or for a quote that is not in its
    record."""
    said, kind, confidence = _check_text(text), _kind(kind), _check_confidence(confidence)
    made = Opinion(said, statements.new_id(), kind, confidence, _make_proofs(draft, grounds), day)
    data = draft.read(PATH)
    draft.write(PATH, document.append(data or TITLE, printer.show(made).split("\n")))
    return _find_in_draft(draft, made.id)


def revise(
    draft: Draft, opinion: Opinion, *, text: str = "", grounds: Sequence[Ground] = (),
    kind: Kind | None = None, confidence: float | None = None, day: str,
) -> Opinion:  # fmt: skip
    """Change the given fields of an opinion; new grounds are added. A retired one holds again.

    Usage as for `form`; Malformed if the opinion no longer exists.
    """
    before = _find_in_draft(draft, opinion.id)
    because = _make_proofs(draft, grounds, before.because) if grounds else before.because
    after = replace(
        before,
        text=_check_text(text) if text else before.text,
        kind=_kind(kind) if kind else before.kind,
        confidence=before.confidence if confidence is None else _check_confidence(confidence),
        because=because,
        when=day,
        retired=None,
    )
    if not after.because:
        hint = "name facts: --because ^id"
        raise Usage("an opinion needs at least one reason", where=f"^{opinion.id}", hint=hint)
    return _replace(draft, before, after)


def drop(draft: Draft, opinion: Opinion, why: str, day: str) -> Opinion:
    """Retire an opinion: it stays in the file with the day and the reason."""
    before = _find_in_draft(draft, opinion.id)
    reason = " ".join(why.split())
    return _replace(draft, before, replace(before, retired=f"{day}, {reason}" if reason else day))


def _replace(draft: Draft, before: Opinion, after: Opinion) -> Opinion:
    if after == before:
        return before
    data = draft.read(PATH)
    new = lines.replace_lines(data, before.place, printer.show(after).split("\n"))
    draft.write(PATH, new, removes=[before])
    return _find_in_draft(draft, after.id)


def _find_in_draft(draft: Draft, block: str | None) -> Opinion:
    for one in document.parse(draft.read(PATH), PATH).of(Opinion):
        if block and one.id == block:
            return one
    raise Malformed("this opinion no longer exists", where=f"^{block}", hint="ua-memory opinions list")


# -- validation ----------------------------------------------------------------------------------------


_check_text = partial(one_line, most=LONGEST, what="an opinion", example='ua-memory opinions revise ^id "…"')


def _kind(kind: Kind) -> Kind:
    if kind not in KINDS:
        raise Usage(f"{kind!r} is not a kind of opinion", hint=f"one of {', '.join(KINDS)}")
    return kind


def _check_confidence(confidence: float) -> float:
    if not 0 <= confidence <= 1:
        raise Usage(f"{confidence} is not a confidence", hint="from 0 to 1")
    return round(confidence, 2)


def _make_proofs(draft: Draft, grounds: Sequence[Ground], there: Sequence[Proof] = ()) -> tuple[Proof, ...]:
    """Make proofs from grounds, with verbatim quotes, and add them to the proofs in `there`. A proof whose
    quote is not in its record any more is replaced. Usage for a ground that cannot be cited."""
    if not grounds:
        raise Usage("an opinion needs at least one reason", hint="name facts")
    found = {proof.ref: proof for proof in there}
    for given, words in grounds:
        if isinstance(given, Fact) and given.untrusted and not draft.by_person:
            raise Usage(_UNTRUSTED, where=given.place.citation, hint=_CITE_HINT)
        record = statements.ensure_id(draft, given) if isinstance(given, Fact) else given
        if not record.id:
            raise Usage("this has no id, so it cannot be cited", where=record.place.citation)
        quote = " ".join(words.split()) or _first_words(record.text)
        said = [record.text, *(quote.text for quote in getattr(record, "quotes", ()))]
        if locate(quote, said) is None:
            hint = f"ua-memory get ^{record.id}"
            raise Usage("it does not contain these words", where=record.place.citation, hint=hint)
        old = found.get(str(record.ref))
        if old is None or (old.quote and locate(old.quote, said) is None):
            found[str(record.ref)] = Proof(draft.link_name(record.place.path), record.id, quote)
    return tuple(found.values())


def _first_words(text: str) -> str:
    """The beginning of a text, cut at a word, as a quote."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _QUOTE_LENGTH else re.sub(r"\s\S*$", "", flat[:_QUOTE_LENGTH])


# -- interface -----------------------------------------------------------------------------------------


@checked
class Opinions:
    """The opinions of one bank; `door` names the caller."""

    def __init__(self, store: Store, door: str) -> None:
        self._store, self._door = store, door

    def list(self, *, retired: bool = False) -> Sequence[Opinion]:
        """The opinions that hold, in file order; with `retired` those that were dropped, too."""
        return all_opinions(self._store, retired=retired)

    def get(self, block: str) -> Opinion:
        """The opinion with this id; it may be retired. NotFound."""
        named = statements.parse_target(block)
        wanted = named.id or named.file
        for one in self.list(retired=True):
            if one.id == wanted:
                return one
        raise NotFound("no opinion has this id", where=f"^{wanted}", hint="ua-memory opinions list")

    def revise(
        self, block: str, *, text: str = "", confidence: float | None = None, because: Sequence[str] = (),
        by_person: bool = False,
    ) -> OpinionChange:  # fmt: skip
        """Change an opinion's text or confidence, or add reasons: `because` are ids of facts and
        observations. One revision. NotFound, Usage."""
        before = self.get(block)
        grounds, day = [_evidence(self._store, each, by_person) for each in because], self._today()
        with self._store.revision("opinions", door=self._door, by_person=by_person) as draft:
            after = revise(draft, before, text=text, confidence=confidence, grounds=grounds, day=day)
            draft.subject, draft.facts = f"opinions: revise ^{after.id}", [f"^{after.id}"]
        return OpinionChange(before, after, draft.result)

    def drop(self, block: str, why: str = "", *, by_person: bool = False) -> OpinionChange:
        """Retire an opinion: it stays in its file with the day and the reason. One revision. NotFound; Usage
        if it is retired already."""
        before = self.get(block)
        if before.retired:
            raise Usage(f"already dropped: {before.retired}", where=f"^{before.id}")
        with self._store.revision("opinions", door=self._door, by_person=by_person) as draft:
            after = drop(draft, before, why, self._today())
            draft.subject, draft.facts = f"opinions: drop ^{after.id}", [f"^{after.id}"]
        return OpinionChange(before, after, draft.result)

    def _today(self) -> str:
        return self._store.now().date().isoformat()


def _evidence(store: Store, block: str, by_person: bool) -> Ground:
    found = statements.resolve_target(store, block).record
    if found is None:
        raise NotFound("no such statement", where=block, hint="name facts: --because ^id")
    if isinstance(found, Opinion):
        raise Usage("an opinion cannot be the reason for another", where=f"^{found.id}")
    if not by_person and statements.is_untrusted(found, partial(statements.find, store)):
        raise Usage(_UNTRUSTED, where=f"^{found.id}", hint=_CITE_HINT)
    return found, ""
