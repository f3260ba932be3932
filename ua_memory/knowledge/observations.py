"""Observations: conclusions from facts, with proofs, in `memory/observations/*.md`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

from ua_memory.discovery import is_dated
from ua_memory.errors import Malformed, NotFound, Usage
from ua_memory.knowledge import statements
from ua_memory.knowledge.statements import ensure_id, new_id, resolve_link
from ua_memory.markdown import document as markdown_document
from ua_memory.markdown import fields, printer
from ua_memory.markdown import lines as markdown_lines
from ua_memory.markdown.document import Document
from ua_memory.records import Fact, Observation, Proof, Was
from ua_memory.store.draft import Draft
from ua_memory.store.store import Store
from ua_memory.text.grounding import locate, terms
from ua_memory.text.names import ORDINARY, names
from ua_memory.text.patterns import late
from ua_memory.text.wording import OF_ONE_SESSION, counted

# -- evidence ----------------------------------------------------------------------------------------------
# The facts that support an observation: their words, their days, and the trend computed from the days.


RECENT, OLD = timedelta(days=30), timedelta(days=90)
"""Evidence is recent within the first, and stale beyond the second (as in Hindsight)."""
MORE, LESS = 1.5, 0.5
"""Ratios of recent to earlier evidence a day, above and below which a trend is strengthening or weakening."""


@dataclass(frozen=True, slots=True)
class ProofText:
    """A fact, and the verbatim words of it that support an observation."""

    fact: Fact
    quote: str


def sources(fact: Fact) -> list[str]:
    """The texts that a proof may quote: the fact's text and its own quotes."""
    return [fact.text, *(quote.text for quote in fact.quotes)]


def has_quote(quote: str, fact: Fact) -> bool:
    """Whether the fact has these words verbatim, ignoring white space and the form of quotation marks."""
    return locate(quote, sources(fact)) is not None


def is_supported(proof: Proof, facts: Mapping[str, Fact]) -> bool:
    """Whether a proof's fact exists, is not retired, and has the quoted words."""
    fact = resolve_link(proof, facts)
    return fact is not None and not fact.retired and (not proof.quote or has_quote(proof.quote, fact))


def scope_of(fact: Fact) -> str:
    """A fact's scope, '' for none: its tags of the form `key:value` and the `scope:` tags of its heading,
    sorted, without tags of a single session. `scope:work` becomes `work`, `project:shop` stays. All facts of
    an observation have the same scope."""
    named = (*fact.tags, *(tag for tag in fact.heading.tags if tag.startswith("scope:")))
    placed = {tag for tag in named if 0 < tag.find(":") < len(tag) - 1}
    placed = {tag for tag in placed if not tag.startswith(OF_ONE_SESSION)}
    return ", ".join(sorted(tag.removeprefix("scope:") for tag in placed))


def day_of(fact: Fact) -> str:
    """The ISO day of a fact: its `when`, else the day of its log; '' if neither has one."""
    when = (fact.when or "")[:10]
    if len(when) == 10:
        return when
    first = {4: f"{when}-01-01", 7: f"{when}-01"}.get(len(when.partition("/")[0]), "")
    return markdown_lines.day_of(fact.place.path) or first


def days_of(observation: Observation, facts: Mapping[str, Fact]) -> list[str]:
    """The ISO days of an observation's proofs, and those on which their facts were seen again, sorted. A
    proof whose fact is gone has the day of the log in its link."""
    found: list[str] = []
    for proof in observation.proofs:
        fact = resolve_link(proof, facts)
        found.append(day_of(fact) if fact else markdown_lines.day_of(f"{proof.file}.md") or "")
        found.extend(stamp[:10] for stamp in (fact.seen if fact else ()))
    return sorted(filter(None, found))


def trend(days: Iterable[str], today: date) -> str:
    """The trend of an observation from the ISO days of its evidence; '' without any.

    `new` if all are within the last 30 days, `stale` if none is within the last 90. Otherwise the evidence a
    day in the last 30 days is compared with that before: more than 1.5 times is `strengthening`, less than
    half is `weakening`, else `steady`. Future days count as today.
    """
    dated = sorted(min(date.fromisoformat(day), today) for day in days)
    if not dated:
        return ""
    border = today - RECENT
    if dated[-1] < today - OLD:
        return "stale"
    if dated[0] >= border:
        return "new"
    recent = sum(day >= border for day in dated)
    before = (len(dated) - recent) / max((border - dated[0]).days, RECENT.days)
    change = recent / RECENT.days / before
    return "strengthening" if change > MORE else "weakening" if change < LESS else "steady"


def inherit_tags(grounds: Sequence[ProofText]) -> tuple[str, ...]:
    """The tags of the facts for their observation, each once, without those of a single session."""
    tags = (tag for ground in grounds for tag in ground.fact.tags)
    each = dict.fromkeys(tag for tag in tags if not tag.startswith(OF_ONE_SESSION))
    return tuple(sorted(each, key=lambda tag: ":" in tag))  # plain tags first: they stand behind the text


def named_entities(text: str, facts: Sequence[Fact]) -> tuple[str, ...]:
    """The entities of an observation: those of its facts that its text names, or that at least half of the
    facts have."""
    plain, counted = text.casefold(), dict[str, int]()
    for fact in facts:
        for name in dict.fromkeys(fact.entities):
            counted[name] = counted.get(name, 0) + 1
    half = max(len(facts) / 2, 1)
    return tuple(name for name, n in counted.items() if name.casefold() in plain or n >= half)


# -- files -------------------------------------------------------------------------------------------------
# The file of `memory/observations/` for an observation.
#
# Obsidian opens `[[Alice]]` as the file of that name, so the observations about Alice are in `Alice.md`.


FOLDER = "memory/observations"
REST = "General"
_UNFIT = late(r'[\x00-\x1f\x7f/\\:*?"<>|#^\[\]]+')
_LONGEST = 80
_SUBJECT = late(r"([A-Z][\w.-]*\w)(?:'s)? (?:is|was|has|had|did|will|[a-z]+s)\b")
"""The subject at the start of a sentence: `Alice chooses`, not `Create Gumroad`."""


def choose_file(
    text: str, entities: Iterable[str], scope: str, there: Iterable[str], facts: Sequence[str] = ()
) -> str:
    """The path for a new observation, named after its main entity: the first that its text names, else the
    first of all. Without entities: the subject of its first sentence, else the name in it that most of its
    facts have (`facts` are their texts), else its scope, else General.

    `there` are the existing files: one that differs only in letter case is used.
    """
    plain, given, flat = text.casefold(), list(entities), [each.casefold() for each in facts]
    main = [name for name in given if name.casefold() in plain] or given

    def rank(name: str) -> tuple[int, bool]:  # what opens a sentence may be a verb: "Ask Alice"
        return -sum(name.casefold() in each for each in flat), text.startswith(name)

    drawn = sorted(names(text), key=rank)
    subject = _SUBJECT.match(text)
    opens = [subject[1]] if subject and subject[1].casefold() not in ORDINARY else []
    chosen = next(filter(None, map(_safe_name, (*main[:1], *opens, *drawn[:1], scope))), REST)
    known = {path.casefold(): path for path in there}
    path = f"{FOLDER}/{chosen}.md"
    return known.get(path.casefold(), path)


def title(path: str) -> list[str]:
    """The lines a new file begins with."""
    return [f"# {path.rpartition('/')[2].removesuffix('.md')}", ""]


def _safe_name(name: str) -> str:
    """A file name valid on every file system. `On` precedes a day, which would make it a log's name."""
    words = " ".join(_UNFIT.sub(" ", markdown_lines.readable(name)).split())
    plain = words.strip(". ")[:_LONGEST].strip(". ")
    return f"On {plain}" if is_dated(plain) else plain


# -- reading -----------------------------------------------------------------------------------------------
# Read all observations of a bank, and the facts that may support them, in one pass over its files.


_COUNT = late(r"\s+[-*+]\s+proofs:\s*(\d{1,9})\s*")


@dataclass(frozen=True, slots=True)
class ObservationIndex:
    """All observations and facts of the bank, retired ones included."""

    observations: tuple[Observation, ...] = ()
    facts: tuple[Fact, ...] = ()
    by_id: Mapping[str, Fact] = field(default_factory=dict)
    """The facts that have an id, by `knowledge.statements.by_ref`."""
    miscounted: frozenset[str] = frozenset()
    """The ids of observations whose `proofs:` is not their number of proofs: a person removed some."""

    @property
    def live(self) -> tuple[Observation, ...]:
        """The observations that are not retired."""
        return tuple(each for each in self.observations if not each.retired)


def all_observations(store: Store, paths: Collection[str] | None = None) -> ObservationIndex:
    """Read the observations and facts of all files, or those at `paths`. A file whose deletion is not
    confirmed yet is read from the history."""
    observations: list[Observation] = []
    facts: list[Fact] = []
    miscounted: list[str] = []
    for path, data in statements.texts(store, every=True, paths=paths):
        document = markdown_document.parse(data, path)
        observations += document.of(Observation)
        facts += document.of(Fact)
        miscounted += _wrong_counts(document) if document.problems else ()
    by_id = statements.by_ref(facts)
    return ObservationIndex(tuple(observations), tuple(facts), by_id, frozenset(miscounted))


def _wrong_counts(document: Document) -> Iterator[str]:
    for each in document.of(Observation):
        counts = map(_COUNT.fullmatch, document.lines[each.place.line - 1 : each.place.end])
        if each.id and any(count and int(count[1]) != len(each.proofs) for count in counts):
            yield str(each.ref)


def find(store: Store, block: str) -> Observation:
    """The observation with this id. NotFound."""
    found = statements.resolve_target(store, block).record
    if not isinstance(found, Observation):
        raise NotFound("no observation has this id", where=block, hint="ua-memory observations list")
    return found


# -- writing -----------------------------------------------------------------------------------------------
# Changes of observations in an open revision: add, revise, retire, merge.
#
# None deletes an observation: one that does not hold any more gets a `retired:` with the reason, and a
# replaced text is kept as `was:`.


def add(
    draft: Draft, text: str, grounds: Sequence[ProofText], *, today: date, there: Iterable[str] = ()
) -> Observation:
    """Write a new observation with these proofs, and return it. `there` are the existing files.

    A person's line without an id is given one. Malformed without a proof, for quoted words that are not in
    their fact, or for facts of several scopes.
    """
    stated = _check_text(text)
    if not grounds:
        raise Malformed("an observation needs at least one proof", where=stated[:80])
    scopes = {scope_of(ground.fact) for ground in grounds}
    if len(scopes) > 1:
        raise Malformed("an observation cannot mix scopes", where=", ".join(sorted(scopes)))
    scope = scopes.pop()
    proofs, cited = _make_proofs(draft, grounds)
    names = named_entities(stated, list(cited.values()))
    found = Observation(stated, id=new_id(), scope=scope or None, entities=names, tags=inherit_tags(grounds))
    made = _with_proofs(found, proofs, cited, today)
    facts = [fact.text for fact in cited.values()]
    path = choose_file(stated, names, scope, (*there, *draft.files), facts)
    data = draft.read(path)
    lines = printer.show(made).split("\n")
    closed = not markdown_document.parse(data, path).unclosed
    new = markdown_document.append(data, lines if data.strip() else [*title(path), *lines], closed=closed)
    draft.write(path, new)
    return _find_in_draft(draft, replace(made, place=replace(made.place, path=path)))


def revise(
    draft: Draft, observation: Observation, text: str, grounds: Sequence[ProofText],
    facts: Mapping[str, Fact], *, today: date,
) -> Observation:  # fmt: skip
    """Change an observation's text and add proofs. The old text is kept as `was:` with the day of the newest
    proof. Malformed as for `add`, and for a change of a person's text."""
    stated = _check_text(text)
    old = _find_in_draft(draft, observation)
    for ground in grounds:
        if scope_of(ground.fact) != (old.scope or ""):
            raise Malformed("an observation cannot mix scopes", where=ground.fact.place.citation)
    changed = stated != old.text
    if changed and by_person(old):
        raise Malformed("a person worded this observation", where=old.place.citation)
    if changed and not grounds:
        raise Malformed("a new wording needs at least one proof", where=old.place.citation)
    proofs, cited = _make_proofs(draft, grounds)
    known = {proof.ref for proof in old.proofs if is_supported(proof, {**facts, **cited})}
    fresh = [proof for proof in proofs if proof.ref not in known]
    # Where a fact was edited so that its old words are gone, the new ones take their place.
    kept = [proof for proof in old.proofs if proof.ref not in {each.ref for each in fresh}]
    if not fresh and not changed:
        return old
    until = max(filter(None, (day_of(ground.fact) for ground in grounds)), default=today.isoformat())
    more = (*old.entities, *named_entities(stated, list(cited.values())))
    wanted = replace(
        old,
        text=stated,
        id=old.id or new_id(),
        origin=old.origin or ("person" if not old.id else None),
        was=(Was(old.text, until), *old.was) if changed else old.was,
        entities=tuple(dict.fromkeys(more)),
        tags=tuple(dict.fromkeys((*old.tags, *inherit_tags(grounds)))),
    )
    return _replace(draft, old, _with_proofs(wanted, (*kept, *fresh), {**facts, **cited}, today))


def retire(draft: Draft, observation: Observation, reason: str) -> Observation:
    """Retire an observation. Usage without a reason."""
    if not reason.strip():
        raise Usage("retiring an observation needs a reason")
    old = _find_in_draft(draft, observation)
    return old if old.retired else _replace(draft, old, replace(old, retired=" ".join(reason.split())))


def merge(
    draft: Draft, into: Observation, others: Sequence[Observation], facts: Mapping[str, Fact], *, today: date
) -> Observation:
    """Merge observations that say the same: `into` gets the proofs, entities and tags of the others, which
    are retired with a link to it. Malformed if their scopes differ."""
    old = _find_in_draft(draft, into)
    if any((each.scope or "") != (old.scope or "") for each in others):
        raise Malformed("an observation cannot mix scopes", where=old.place.citation)
    joined = {proof.ref: proof for each in (old, *others) for proof in each.proofs}
    more = tuple(dict.fromkeys(name for each in (old, *others) for name in each.entities))
    tags = tuple(dict.fromkeys(tag for each in (old, *others) for tag in each.tags))
    block = old.id or new_id()
    origin = old.origin or (None if old.id else "person")
    wanted = replace(old, id=block, origin=origin, entities=more, tags=tags)
    made = _replace(draft, old, _with_proofs(wanted, tuple(joined.values()), facts, today))
    for each in others:
        retire(draft, each, f"merged into {fields.link_to(draft.link_name(made.place.path), block)}")
    return _find_in_draft(draft, made)


def update_trend(
    draft: Draft, observation: Observation, facts: Mapping[str, Fact], *, today: date
) -> Observation:
    """Update the `trend:` of an observation to today; one without a dated proof is unchanged."""
    old = _find_in_draft(draft, observation)
    word = trend(days_of(old, facts), today)
    return old if not word or word == old.trend else _replace(draft, old, replace(old, trend=word))


def drop_lost_proofs(
    draft: Draft, observation: Observation, facts: Mapping[str, Fact], *, today: date
) -> Observation:
    """Remove proofs that are not supported any more (`is_supported`); update their number and days."""
    old = _find_in_draft(draft, observation)
    kept = [proof for proof in old.proofs if is_supported(proof, facts)]
    return _replace(draft, old, _with_proofs(old, kept, facts, today))


def by_person(observation: Observation) -> bool:
    """Whether a person wrote it: it has `origin: person`, or neither id nor origin."""
    return observation.origin == "person" or (not observation.id and observation.origin is None)


def _check_text(text: str) -> str:
    stated = " ".join(markdown_lines.readable(text).split())
    if not stated:
        raise Usage("no statement given")
    return stated


def _make_proofs(draft: Draft, grounds: Sequence[ProofText]) -> tuple[list[Proof], dict[str, Fact]]:
    """(proofs, one for each fact; the facts by their `ref` now). Malformed for words that are not in their
    fact."""
    found: dict[str, Proof] = {}
    facts: dict[str, Fact] = {}
    for ground in grounds:
        quote = " ".join(ground.quote.split())
        if not quote or not has_quote(quote, ground.fact):
            raise Malformed("these words are not in the fact", where=f"{quote[:80]!r}")
        fact = ensure_id(draft, ground.fact)
        found.setdefault(str(fact.ref), Proof(draft.link_name(fact.place.path), str(fact.id), quote))
        facts[str(fact.ref)] = fact
    return list(found.values()), facts


def _with_proofs(
    observation: Observation, rests: Sequence[Proof], facts: Mapping[str, Fact], today: date
) -> Observation:
    """The observation with these proofs, newest first, and its days and trend updated."""

    def day(proof: Proof) -> str:
        return max(days_of(replace(observation, proofs=(proof,)), facts), default="")

    known = replace(observation, proofs=tuple(sorted(rests, key=day, reverse=True)))
    days = days_of(known, facts)
    if not days:
        return known
    return replace(known, since=days[0], last=days[-1], trend=trend(days, today))


def _find_in_draft(draft: Draft, observation: Observation) -> Observation:
    """The observation as it is in the draft now. Malformed if it is gone."""
    path = observation.place.path
    for each in markdown_document.parse(draft.read(path), path).of(Observation):
        if (each.id == observation.id) if observation.id else (each.text == observation.text and not each.id):
            return each
    raise Malformed("this observation no longer exists", where=observation.place.citation)


def _replace(draft: Draft, old: Observation, new: Observation) -> Observation:
    path = old.place.path
    data = markdown_lines.replace_lines(draft.read(path), old.place, printer.show(new).split("\n"))
    draft.write(path, data, removes=[old])
    return _find_in_draft(draft, replace(new, place=old.place))


# -- freshness ---------------------------------------------------------------------------------------------
# Whether an observation is up to date: its proofs still hold, and no newer fact concerns it.


_SHARED_WORDS = 0.5
"""Share of an observation's words that a fact must have to concern it, if they share no entity."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """Whether an observation is up to date: `newer` are facts that may concern it and that no consolidation
    has considered; `lost` are messages on proofs that do not hold any more, as `[[file#^id]] is gone`."""

    newer: tuple[Fact, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def stale(self) -> bool:
        """Whether the observation must be checked against the facts again."""
        return bool(self.newer or self.lost)

    @property
    def why(self) -> tuple[str, ...]:
        """The reasons in words; empty if it is fresh."""
        count = len(self.newer)
        fresh = f"{counted(count, 'newer fact')} on it not considered yet"
        return (*([fresh] if count else []), *self.lost)


def freshness(observation: Observation, facts: Mapping[str, Fact], waiting: Iterable[Fact]) -> Freshness:
    """Whether an observation is up to date. `facts` are all facts by id, `waiting` those that no
    consolidation has considered (see `reflect.proposals`). A retired fact is no proof, and makes nothing
    stale as a newer one."""
    words = terms(observation.text)
    newer = (fact for fact in waiting if not fact.retired and may_concern(fact, observation, words))
    return Freshness(tuple(newer), tuple(_lost_proofs(observation, facts)))


def may_concern(fact: Fact, observation: Observation, words: frozenset[str] | None = None) -> bool:
    """Whether a fact may concern an observation: it has the same scope, and names an entity of it or has half
    of its words. `words` are the observation's terms, if the caller has them."""
    if scope_of(fact) != (observation.scope or ""):
        return False
    text = fact.text.casefold()
    entities = {name.casefold() for name in fact.entities}
    if any(name.casefold() in entities or name.casefold() in text for name in observation.entities):
        return True
    words = terms(observation.text) if words is None else words
    return len(words & terms(fact.text)) >= max(2, _SHARED_WORDS * len(words))


def _lost_proofs(observation: Observation, facts: Mapping[str, Fact]) -> Iterable[str]:
    if not (observation.proofs or observation.retired or by_person(observation)):
        yield "its proofs were taken out of the file"
    for proof in observation.proofs:
        fact = resolve_link(proof, facts)
        cited = f"[[{proof.file}#^{proof.id}]]"
        if fact is None:
            yield f"{cited} is gone"
        elif fact.retired:
            yield f"{cited} was retired: {fact.retired}"
        elif proof.quote and not has_quote(proof.quote, fact):
            yield f"{cited} was edited: it does not say {proof.quote!r} any more"


# -- views -------------------------------------------------------------------------------------------------
# What lists and status show of observations.


@dataclass(frozen=True, slots=True)
class ObservationView:
    """An observation with its trend as of today, and its freshness."""

    observation: Observation
    trend: str
    freshness: Freshness


@dataclass(frozen=True, slots=True)
class ObservationCounts:
    """Numbers of live observations, of facts that no consolidation has considered, of facts set aside, and of
    facts in a pending batch (`posted`), which was sent at `since` ('' without one)."""

    observations: int
    waiting: int
    aside: int
    posted: int = 0
    since: str = ""
