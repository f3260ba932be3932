"""Trace a statement to its sources: from a sentence through its citations to facts, lines and commits."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ua_memory.errors import NotFound, ProblemsFound
from ua_memory.git.repository import BlameLine
from ua_memory.knowledge import statements, tombstones, trust
from ua_memory.knowledge.sessions import SessionFiles
from ua_memory.knowledge.statements import Known, Statement
from ua_memory.knowledge.trust import BrokenLink
from ua_memory.markdown import document as markdown_document
from ua_memory.markdown import fields, lines
from ua_memory.markdown.blocks import BlockShape, scan
from ua_memory.markdown.document import Document
from ua_memory.paths import is_memory_file
from ua_memory.records import Fact, Opinion, Place, Proof, Quote, SourceDocument, ref_of
from ua_memory.store.store import Store

# -- sentences ---------------------------------------------------------------------------------------------
# Splitting a paragraph behind its citations: the text before a citation is what it supports.


_PREFIX = re.compile(r"\A\s*(?:>\s*)*(?:\[![\w-]+\][^\n]*\n(?:\s*>\s*)?)?(?:[-*+]\s+|\d+[.)]\s+)?")


def strip_citations(text: str) -> str:
    """Remove a sentence's bullet, block-quote markers and citations."""
    for each in reversed(list(fields.citations(text))):
        text = text[: each.start] + text[each.end :]
    return re.sub(r"\n\s*>\s?", "\n", _PREFIX.sub("", text))


def split_by_citations(text: str) -> Iterator[tuple[int, int, list[fields.Citation]]]:
    """Split a text behind each group of citations: (start, end, citations), offsets in characters. Text after
    the last citation has none."""
    start = 0
    cited: list[fields.Citation] = []
    for each in fields.citations(text):
        if cited and text[cited[-1].end : each.start].strip(" \t\n,;"):
            yield start, cited[-1].end, cited
            start, cited = cited[-1].end, []
        cited.append(each)
    if cited:
        yield start, cited[-1].end, cited
        start = cited[-1].end
    if rest := text[start:].lstrip():
        yield len(text) - len(rest), len(text), []


# -- steps -------------------------------------------------------------------------------------------------
# The steps of a chain, one type for each kind of record.


@dataclass(frozen=True, slots=True)
class WordOrigin:
    """Where a fact comes from: who said it (`origin`), client, session, ISO day and time. `through` are the
    marks in the log of how far the session was read, `source` is what `origin:` has beside its word, or the
    document that it was drawn from."""

    origin: str
    client: str | None = None
    session: str | None = None
    day: str | None = None
    time: str | None = None
    source: str | None = None
    through: tuple[str, ...] = ()
    words: str = ""
    """The text of the cited turn; empty if the session is not on this machine."""


@dataclass(frozen=True, slots=True)
class FactStep:
    """A fact, the verbatim quotes that support it, and the session it comes from."""

    text: str
    id: str | None
    place: Place
    quotes: tuple[Quote, ...]
    session: WordOrigin
    written: BlameLine | None
    retired: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A citation: the cited id, the quoted words and the cited record. `fault` says why it is broken."""

    id: str
    quote: str
    step: FactStep | BeliefStep | None
    fault: BrokenLink | None = None


@dataclass(frozen=True, slots=True)
class BeliefStep:
    """An observation or an opinion, and its proofs."""

    record: str
    text: str
    id: str | None
    place: Place
    links: tuple[Link, ...]
    written: BlameLine | None
    retired: str | None = None
    fault: BrokenLink | None = None


@dataclass(frozen=True, slots=True)
class SentenceStep:
    """A sentence of a page or of other prose, and what it cites."""

    text: str
    place: Place
    links: tuple[Link, ...]
    written: BlameLine | None
    fault: BrokenLink | None = None


Step = SentenceStep | BeliefStep | FactStep


@dataclass(frozen=True, slots=True)
class CitingStep:
    """Something that cites a statement: an observation, opinion or fact, or a sentence of a page, a model,
    core memory or a note; `cited_by` is what cites it in turn. `record` is its kind in the index."""

    record: str
    text: str
    id: str | None
    place: Place
    retired: str | None = None
    cited_by: tuple[CitingStep, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """The steps traced from a target. `breaks` are the broken links of all steps, in their order."""

    target: str
    steps: tuple[Step, ...]
    breaks: tuple[BrokenLink, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 without broken links; 4 if a cited id is missing or forgotten; else 12."""
        causes = {one.cause for one in self.breaks}
        if causes & {"nowhere", "forgotten"}:
            return NotFound.exit_code
        return ProblemsFound.exit_code if causes else 0


# -- tracing -----------------------------------------------------------------------------------------------
# Following citations from a target: its records, what they cite, and who wrote them.


def why(store: Store, target: str, known: Known | None = None) -> Chain:
    """Trace `^id`, `PATH:LINE` or a whole file to its sources; a page also by its bare name (`infra:8`).
    `known` gives the files that may have an id.

    NotFound for an unknown id (the message says if it was forgotten), file, or a line without text.
    """
    tracer = _Tracer(store)
    named = statements.parse_target(target)
    try:
        found = statements.resolve_target(store, target, known)
    except NotFound:
        if named.id and (on := tracer.forgotten_on(ref_of(named.file, named.id))) is not None:
            what = f"it was forgotten{f' on {on}' if on else ''}"
            raise NotFound(what, where=f"^{named.id}", hint="ua-memory search") from None
        raise
    if found.record:
        steps: Sequence[Step] = [tracer.step(found.record)]
    elif is_memory_file(found.path):
        steps = tracer.lines(found.path, found.span)
    else:
        hint = "name ^id, PATH or PATH:LINE, as `ua-memory search` prints them"
        if os.path.isfile(store.bank.root / found.path):  # noqa: PTH113 (a name that is too long is none)
            hint = f"ua-memory get {target}: what extraPaths adds has no history here"
        raise NotFound("no such file in the bank", where=found.path, hint=hint)
    return Chain(target, tuple(steps), tuple(_broken_links(steps)))


def _broken_links(steps: Sequence[Step]) -> Iterator[BrokenLink]:
    for step in steps:
        if isinstance(step, FactStep):
            continue
        yield from [step.fault] if step.fault else []
        for link in step.links:
            yield from [link.fault] if link.fault else []
            yield from _broken_links([link.step]) if link.step else ()


@dataclass
class _Tracer:
    """Traces one target; caches the files, records and commits it has read."""

    store: Store
    documents: dict[str, Document] = field(default_factory=dict)
    found: dict[str, Statement | None] = field(default_factory=dict)
    blamed: dict[str, list[BlameLine]] = field(default_factory=dict)
    stack: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    # -- finding records -----------------------------------------------------------------------------------

    def document(self, path: str) -> Document:
        if path not in self.documents:
            self.documents[path] = markdown_document.parse(self.store.accepted_bytes(path), path)
        return self.documents[path]

    def find(self, proof: Proof) -> Statement | None:
        """The statement that a proof cites; the file named in its link is searched first."""
        ref = proof.ref
        if ref not in self.found:
            if not self.paths:
                self.paths = [file.path for file in self.store.files()]
            hint = proof.file.rpartition("/")[2]
            named = [path for path in self.paths if hint and path.endswith(f"/{hint}.md")]
            self.found[ref] = None
            for paths in (named, None):
                if there := list(statements.find_by_id(self.store, ref, paths)):
                    self.found[ref] = there[0]
                    break
            else:  # an id that a person typed, and that only another file has
                every = statements.by_ref(statements.find_by_id(self.store, proof.id))
                self.found[ref] = statements.resolve_link(proof, every)
        return self.found[ref]

    def forgotten_on(self, ref: str) -> str | None:
        """The ISO day on which a statement was forgotten; None if it was not."""
        stone = tombstones.read(self.store).by_id.get(ref)
        return stone.on if stone else None

    # -- steps -----------------------------------------------------------------------------------------------

    def step(self, said: Statement) -> FactStep | BeliefStep:
        if isinstance(said, Fact):
            return self._fact(said)
        self.stack.append(said.ref or "")
        links = tuple(self._link(proof, said.place) for proof in trust.proofs_of(said))
        self.stack.pop()
        record = "opinion" if isinstance(said, Opinion) else "observation"
        bare = BrokenLink(said.place.path, said.place.line, "unproved", f"this {record} has no proof")
        return BeliefStep(
            record, said.text, said.id, said.place, links, self.written(said.place), said.retired,
            bare if trust.lacks_proof(said) else None,
        )  # fmt: skip

    def _fact(self, fact: Fact) -> FactStep:
        head, path = fact.heading, fact.place.path
        mark = f"{head.client}/{head.session}/"
        document = self.document(path)
        through = tuple(m for m in document.through if head.session and m.startswith(mark))
        drawn = next(iter(document.of(SourceDocument)), None)
        source = fact.source or (drawn.source or drawn.document_id if drawn else None)
        cited = " ".join([fact.source or "", *(quote.source or "" for quote in fact.quotes)])
        turn = SessionFiles(self.store).turn(cited)
        session = WordOrigin(
            fact.said_by, head.client, head.session, lines.day_of(path), head.time, source, through,
            turn[1].text if turn else "",
        )  # fmt: skip
        written = self.written(fact.place)
        return FactStep(fact.text, fact.id, fact.place, fact.quotes, session, written, fact.retired)

    def _link(self, proof: Proof, place: Place) -> Link:
        said = None if proof.ref in self.stack else self.find(proof)
        texts = {proof.ref: trust.sources(said)} if said else {}
        on = None if said else self.forgotten_on(proof.ref)
        why = trust.broken_reason(proof, texts, {} if on is None else {proof.ref: on})
        if proof.ref in self.stack:
            why = ("unproved", f"^{proof.id} cites itself")
        at = trust.citing_line(self.document(place.path).lines, place, proof.id)
        fault = BrokenLink(place.path, at, *why) if why else None
        return Link(proof.id, proof.quote, self.step(said) if said else None, fault)

    def lines(self, path: str, span: str) -> list[Step]:
        """The steps of the records and sentences on these lines. NotFound if there are none."""
        document = self.document(path)
        every = 1, len(document.lines)
        first, last = statements.line_span(path, span, len(document.lines)) if span else every

        def here(place: Place) -> bool:
            return place.line <= last and place.end >= first

        records = [r for r in document.records if isinstance(r, Statement) and here(r.place)]
        taken = {row for r in records for row in range(r.place.line, r.place.end + 1)}
        steps: list[tuple[int, Step]] = [(r.place.line, self.step(r)) for r in records]
        for block in scan(document.lines, document.front_end):
            place = Place(path, block.start + 1, block.end)
            prose = block.shape not in (BlockShape.HEADING, BlockShape.COMMENT)
            if prose and here(place) and place.line not in taken:
                steps += [(s.place.line, s) for s in self._sentences(document, place) if here(s.place)]
        if not steps:
            raise NotFound("nothing to trace in this line", where=f"{path}:{span}" if span else path)
        return [step for _, step in sorted(steps, key=lambda pair: pair[0])]

    def _sentences(self, document: Document, place: Place) -> list[SentenceStep]:
        """The sentences of a paragraph or list item, split behind their citations."""
        text = "\n".join(document.lines[place.line - 1 : place.end])
        found: list[SentenceStep] = []
        for start, end, cited in split_by_citations(text):
            said = " ".join(strip_citations(text[start:end]).split())
            first = place.line + text.count("\n", 0, start)
            at = Place(place.path, first, place.line + text.count("\n", 0, max(start, end - 1)))
            if not any(map(str.isalnum, said)):
                continue
            links = tuple(self._link(Proof(each.file, each.id), at) for each in cited)
            written = self.written(at)
            loose = not links and written is not None and written.op == trust.REFRESH
            bare = BrokenLink(at.path, at.line, "uncited", "written by a refresh without a citation")
            found.append(SentenceStep(said, at, links, written, bare if loose else None))
        return found

    # -- blame -----------------------------------------------------------------------------------------------

    def written(self, place: Place) -> BlameLine | None:
        """Who wrote the first line of a record; None if it is not committed yet. Adding an id to a line later
        does not count."""
        path = place.path
        if path not in self.blamed:
            self.blamed[path] = self.store.history.blame(path, self.store.accepted_bytes(path))
        line = next((one for one in self.blamed[path] if one.line == place.line), None)
        return line if line and line.revision.strip("0") else None
