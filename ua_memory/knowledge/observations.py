"""Observations: what follows from several facts, with proofs, in `memory/observations/*.md`."""

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
# What a belief rests on: the words of its facts, the days they are of, and what these days say of it.


TRENDS = ("new", "strengthening", "steady", "weakening", "stale")
RECENT, OLD = timedelta(days=30), timedelta(days=90)
"""Hindsight's two windows."""
MORE, LESS = 1.5, 0.5
"""How much denser, or thinner, recent evidence is than what came before, to be called a change."""


@dataclass(frozen=True, slots=True)
class ProofText:
    """A fact, and the words of it that a belief rests on, copied exactly."""

    fact: Fact
    quote: str


def sources(fact: Fact) -> list[str]:
    """The texts a quote may come from: the fact's own, and the verbatim quotes it carries itself."""
    return [fact.text, *(quote.text for quote in fact.quotes)]


def has_quote(quote: str, fact: Fact) -> bool:
    """Whether the fact has these very words, white space and the shape of quotation marks aside."""
    return locate(quote, sources(fact)) is not None


def is_supported(proof: Proof, facts: Mapping[str, Fact]) -> bool:
    """Whether a proof's fact is there, is not retired, and has the words."""
    fact = resolve_link(proof, facts)
    return fact is not None and not fact.retired and (not proof.quote or has_quote(proof.quote, fact))


def scope_of(fact: Fact) -> str:
    """Where a fact belongs, '' for nowhere in particular: its tags of the form `key:value`, sorted, those of
    a single session aside, and of the tags of its heading those that say `scope:`. `scope:work` is `work`,
    `project:shop` stays as it is. Beliefs never mix them."""
    named = (*fact.tags, *(tag for tag in fact.heading.tags if tag.startswith("scope:")))
    placed = {tag for tag in named if 0 < tag.find(":") < len(tag) - 1}
    placed = {tag for tag in placed if not tag.startswith(OF_ONE_SESSION)}
    return ", ".join(sorted(tag.removeprefix("scope:") for tag in placed))


def day_of(fact: Fact) -> str:
    """The ISO day a fact is about: its `when`, else its log's day; '' where neither names one."""
    when = (fact.when or "")[:10]
    return when if len(when) == 10 else markdown_lines.day_of(fact.place.path) or _month_start(when)


def _month_start(month: str) -> str:
    return {4: f"{month}-01-01", 7: f"{month}-01"}.get(len(month.partition("/")[0]), "")


def days_of(observation: Observation, facts: Mapping[str, Fact]) -> list[str]:
    """The ISO days of an observation's proofs and of the sightings of these facts, in order. A proof whose
    fact is gone has the day of the log that it names."""
    found: list[str] = []
    for proof in observation.proofs:
        fact = resolve_link(proof, facts)
        found.append(day_of(fact) if fact else markdown_lines.day_of(f"{proof.file}.md") or "")
        found.extend(stamp[:10] for stamp in (fact.seen if fact else ()))
    return sorted(filter(None, found))


def trend(days: Iterable[str], today: date) -> str:
    """What the days of the evidence say of a belief, '' where there are none.

    `new` if all of it is of the last 30 days, `stale` if none is of the last 90. Otherwise evidence a day in
    the last 30 is compared with that before: half as much again is `strengthening`, less than half is
    `weakening`, anything between is `steady`. Days to come count as today.
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
    """The tags that a belief takes over from its facts, each once; those of a single session stay behind."""
    tags = (tag for ground in grounds for tag in ground.fact.tags)
    each = dict.fromkeys(tag for tag in tags if not tag.startswith(OF_ONE_SESSION))
    return tuple(sorted(each, key=lambda tag: ":" in tag))  # those that can stand behind the text come first


def named_entities(text: str, facts: Sequence[Fact]) -> tuple[str, ...]:
    """The entities of the facts that the belief is about: those its text names, and those that at least half
    of the facts share."""
    plain, counted = text.casefold(), dict[str, int]()
    for fact in facts:
        for name in dict.fromkeys(fact.entities):
            counted[name] = counted.get(name, 0) + 1
    half = max(len(facts) / 2, 1)
    return tuple(name for name, n in counted.items() if name.casefold() in plain or n >= half)


# -- files -------------------------------------------------------------------------------------------------
# Which file of `memory/observations/` a belief goes to: what a person would look for it under.
#
# Obsidian opens `[[Alice]]` with the file of that name, so the beliefs on Alice stand in `Alice.md`.


FOLDER = "memory/observations"
REST = "General"
_UNFIT = late(r'[\x00-\x1f\x7f/\\:*?"<>|#^\[\]]+')
_LONGEST = 80
_SUBJECT = late(r"([A-Z][\w.-]*\w)(?:'s)? (?:is|was|has|had|did|will|[a-z]+s)\b")
"""What a sentence is about that begins with it: `Alice chooses`, not `Create Gumroad`."""


def choose_file(
    text: str, entities: Iterable[str], scope: str, there: Iterable[str], told: Sequence[str] = ()
) -> str:
    """The path for a new belief, named after its main entity: the first that its text names, else the first
    there is. Else after what its text begins with as its subject, else the name in it that most of its facts
    have (their texts are `told`), else its scope, else General.

    `there` are the files that exist: one that differs in letter case alone is the one.
    """
    plain = text.casefold()
    given = list(entities)
    main = [name for name in given if name.casefold() in plain] or given
    flat = [each.casefold() for each in told]

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
    """A name as every file system takes it, and no log's: a day in front would make it one."""
    plain = (
        " ".join(_UNFIT.sub(" ", markdown_lines.readable(name)).split()).strip(". ")[:_LONGEST].strip(". ")
    )
    return f"On {plain}" if is_dated(plain) else plain


# -- reading -----------------------------------------------------------------------------------------------
# All beliefs of a bank, and the facts they may rest on, in one pass over its files.


_COUNT = late(r"\s+[-*+]\s+proofs:\s*(\d{1,9})\s*")


@dataclass(frozen=True, slots=True)
class ObservationIndex:
    """`observations` are all there are, retired ones as well, `facts` likewise; each knows its place."""

    observations: tuple[Observation, ...] = ()
    facts: tuple[Fact, ...] = ()
    by_id: Mapping[str, Fact] = field(default_factory=dict)
    """Those facts that have an id; see `knowledge.statements.by_ref`."""
    miscounted: frozenset[str] = frozenset()
    """The ids of the observations whose `proofs:` is another number than they have: a person took some."""

    @property
    def live(self) -> tuple[Observation, ...]:
        """The observations that hold."""
        return tuple(each for each in self.observations if not each.retired)


def all_observations(store: Store, paths: Collection[str] | None = None) -> ObservationIndex:
    """What the files say now, all of them or those at `paths`; of a disappearance that is held, what the
    trail says."""
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
    """The observation that is named (`excerpts`). NotFound."""
    found = statements.resolve_target(store, block).record
    if not isinstance(found, Observation):
        raise NotFound("no observation has this id", where=block, hint="ua-memory observations list")
    return found


# -- writing -----------------------------------------------------------------------------------------------
# What may become of an observation in an open revision: made, strengthened, revised, retired, merged.
#
# Each replaces the lines of one observation, or adds one, and none lets one go: what does not hold any more
# has a `retired:` with the reason, and a wording that gave way stays as `was:`.


def add(
    draft: Draft, text: str, grounds: Sequence[ProofText], *, today: date, there: Iterable[str] = ()
) -> Observation:
    """Make an observation of these facts, and return it as it stands. `there` are the files there are.

    The facts may be a person's lines without an id, which are given one. Malformed without a proof, with
    words that are not in the fact they are said to be from, or with facts of several scopes.
    """
    stated = _check_text(text)
    if not grounds:
        raise Malformed("an observation needs at least one proof", where=stated[:80])
    scopes = {scope_of(ground.fact) for ground in grounds}
    if len(scopes) > 1:
        raise Malformed("an observation cannot mix scopes", where=", ".join(sorted(scopes)))
    scope = scopes.pop()
    cited_by, spoken = _make_proofs(draft, grounds)
    names = named_entities(stated, list(spoken.values()))
    found = Observation(stated, id=new_id(), scope=scope or None, entities=names, tags=inherit_tags(grounds))
    made = _with_proofs(found, cited_by, spoken, today)
    told = [fact.text for fact in spoken.values()]
    path = choose_file(stated, names, scope, (*there, *draft.files), told)
    data = draft.read(path)
    lines = printer.show(made).split("\n")
    closed = not markdown_document.parse(data, path).unclosed
    new = markdown_document.append(data, lines if data.strip() else [*title(path), *lines], closed=closed)
    draft.write(path, new)
    return _find_in_draft(draft, replace(made, place=replace(made.place, path=path)))


def revise(
    draft: Draft, observation: Observation, text: str, grounds: Sequence[ProofText],
    facts: Mapping[str, Fact],
    *, today: date,
) -> Observation:  # fmt: skip
    """Give an observation another wording and more proofs; the old one stays as `was:` with the day until
    which it held, that of the newest proof. A person's wording is not changed: Malformed, as for `add`."""
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
    cited_by, spoken = _make_proofs(draft, grounds)
    known = {proof.ref for proof in old.proofs if is_supported(proof, {**facts, **spoken})}
    fresh = [proof for proof in cited_by if proof.ref not in known]
    # Where a fact was edited so that its old words are gone, the new ones take their place.
    kept = [proof for proof in old.proofs if proof.ref not in {each.ref for each in fresh}]
    if not fresh and not changed:
        return old
    until = max(filter(None, (day_of(ground.fact) for ground in grounds)), default=today.isoformat())
    more = (*old.entities, *named_entities(stated, list(spoken.values())))
    wanted = replace(
        old,
        text=stated,
        id=old.id or new_id(),
        origin=old.origin or ("person" if not old.id else None),
        was=(Was(old.text, until), *old.was) if changed else old.was,
        entities=tuple(dict.fromkeys(more)),
        tags=tuple(dict.fromkeys((*old.tags, *inherit_tags(grounds)))),
    )
    return _replace(draft, old, _with_proofs(wanted, (*kept, *fresh), {**facts, **spoken}, today))


def retire(draft: Draft, observation: Observation, reason: str) -> Observation:
    """Say of an observation that it does not hold any more, and why. Usage without a reason."""
    if not reason.strip():
        raise Usage("retiring an observation needs a reason")
    old = _find_in_draft(draft, observation)
    return old if old.retired else _replace(draft, old, replace(old, retired=" ".join(reason.split())))


def merge(
    draft: Draft, into: Observation, others: Sequence[Observation], facts: Mapping[str, Fact], *, today: date
) -> Observation:
    """Let one observation take over the proofs of others that say the same; they are retired, with a link to
    it. Malformed where their scopes differ."""
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
    """Bring the `trend:` of an observation up to today; one without a dated proof stays as it is."""
    old = _find_in_draft(draft, observation)
    word = trend(days_of(old, facts), today)
    return old if not word or word == old.trend else _replace(draft, old, replace(old, trend=word))


def drop_lost_proofs(
    draft: Draft, observation: Observation, facts: Mapping[str, Fact], *, today: date
) -> Observation:
    """Take away the proofs whose fact is gone, retired, or does not have the words any more, and write down
    how many are left and of which days."""
    old = _find_in_draft(draft, observation)
    kept = [proof for proof in old.proofs if is_supported(proof, facts)]
    return _replace(draft, old, _with_proofs(old, kept, facts, today))


def by_person(observation: Observation) -> bool:
    """Whether a person worded it: they typed it, or it says so."""
    return observation.origin == "person" or (not observation.id and observation.origin is None)


def _check_text(text: str) -> str:
    stated = " ".join(markdown_lines.readable(text).split())
    if not stated:
        raise Usage("no statement given")
    return stated


def _make_proofs(draft: Draft, grounds: Sequence[ProofText]) -> tuple[list[Proof], dict[str, Fact]]:
    """The grounds as proofs, each fact once, and the facts by the `ref` they have now. Malformed for words
    that are not in their fact."""
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
    """The observation with these proofs, the newest first, and what their days say of it."""

    def day(proof: Proof) -> str:
        return max(days_of(replace(observation, proofs=(proof,)), facts), default="")

    known = replace(observation, proofs=tuple(sorted(rests, key=day, reverse=True)))
    days = days_of(known, facts)
    if not days:
        return known
    return replace(known, since=days[0], last=days[-1], trend=trend(days, today))


def _find_in_draft(draft: Draft, observation: Observation) -> Observation:
    """The observation where it stands in the draft now. Malformed where it is gone."""
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


# -- fresh -------------------------------------------------------------------------------------------------
# Whether a belief is still up to date: of each its own, told from the files and from what waits.


_SHARED_WORDS = 0.5
"""The part of a belief's words that a fact must have to speak of it, where no entity tells."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """`newer` are facts that speak of the belief and that no consolidation has considered; `lost` are those
    of its proofs that do not stand any more, each as `[[file#^id]] is gone`, and one for all where a person
    took them out of the file."""

    newer: tuple[Fact, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def stale(self) -> bool:
        """Whether the belief must be held against the facts before anybody relies on it."""
        return bool(self.newer or self.lost)

    @property
    def why(self) -> tuple[str, ...]:
        """The reasons in words, none for one that is fresh."""
        count = len(self.newer)
        fresh = f"{counted(count, 'newer fact')} on it not considered yet"
        return (*([fresh] if count else []), *self.lost)


def freshness(observation: Observation, facts: Mapping[str, Fact], waiting: Iterable[Fact]) -> Freshness:
    """How fresh an observation is: `facts` are all there are, by id, `waiting` those that no run has
    considered (`reflect.proposals` tells). Retired facts prove nothing, and being new make nothing stale."""
    words = terms(observation.text)
    newer = (fact for fact in waiting if not fact.retired and may_concern(fact, observation, words))
    return Freshness(tuple(newer), tuple(_lost_proofs(observation, facts)))


def may_concern(fact: Fact, observation: Observation, words: frozenset[str] | None = None) -> bool:
    """Whether a fact may bear on a belief: of the same scope, and names an entity of it, or has half of its
    words. `words` are the belief's, where they are known already. Its own proofs bear on it anyway."""
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


# -- believed ----------------------------------------------------------------------------------------------
# An observation as it stands today, and all of them in numbers.


@dataclass(frozen=True, slots=True)
class ObservationView:
    """An observation with what its days say today, and how fresh it is."""

    observation: Observation
    trend: str
    freshness: Freshness


@dataclass(frozen=True, slots=True)
class ObservationCounts:
    """Beliefs in numbers: observations that hold, facts that no run has looked at, facts set aside, and facts
    that a batch is under way with, since when ('' without one)."""

    observations: int
    waiting: int
    aside: int
    posted: int = 0
    since: str = ""
