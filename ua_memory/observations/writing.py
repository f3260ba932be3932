"""What may become of an observation in an open revision: made, strengthened, revised, retired, merged.

Each replaces the lines of one observation, or adds one, and none lets one go: what does not hold any more
has a `retired:` with the reason, and a wording that gave way stays as `was:`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date

from ua_memory import markdown
from ua_memory.errors import Malformed, Usage
from ua_memory.observations.evidence import (
    Ground,
    day_of,
    days_of,
    holds,
    inherited,
    named,
    scope_of,
    stands,
    trend,
)
from ua_memory.observations.files import file_for, title
from ua_memory.records import Fact, Observation, Proof, Was
from ua_memory.statements import cited, new_id
from ua_memory.store import Draft


def add(
    draft: Draft, text: str, grounds: Sequence[Ground], *, today: date, there: Iterable[str] = ()
) -> Observation:
    """Make an observation of these facts, and return it as it stands. `there` are the files there are.

    The facts may be a person's lines without an id, which are given one. Malformed without a proof, with
    words that are not in the fact they are said to be from, or with facts of several scopes.
    """
    stated = _stated(text)
    if not grounds:
        raise Malformed("an observation needs a proof", where=stated[:80])
    scopes = {scope_of(ground.fact) for ground in grounds}
    if len(scopes) > 1:
        raise Malformed("an observation cannot mix scopes", where=", ".join(sorted(scopes)))
    scope = scopes.pop()
    cited_by, spoken = _proofs(draft, grounds)
    names = named(stated, list(spoken.values()))
    found = Observation(stated, id=new_id(), scope=scope or None, entities=names, tags=inherited(grounds))
    made = _resting(found, cited_by, spoken, today)
    told = [fact.text for fact in spoken.values()]
    path = file_for(stated, names, scope, (*there, *draft.files), told)
    data = draft.read(path)
    lines = markdown.show(made).split("\n")
    closed = not markdown.parse(data, path).unclosed
    new = markdown.append(data, lines if data.strip() else [*title(path), *lines], closed=closed)
    draft.write(path, new)
    return _there(draft, replace(made, place=replace(made.place, path=path)))


def strengthen(
    draft: Draft, observation: Observation, grounds: Sequence[Ground], facts: Mapping[str, Fact], *,
    today: date,
) -> Observation:  # fmt: skip
    """Add proofs, each once; what is proved stays as it is. `facts` are all there are, by id.
    Malformed as for `add`."""
    return revise(draft, observation, observation.text, grounds, facts, today=today)


def revise(
    draft: Draft, observation: Observation, text: str, grounds: Sequence[Ground], facts: Mapping[str, Fact],
    *, today: date,
) -> Observation:  # fmt: skip
    """Give an observation another wording and more proofs; the old one stays as `was:` with the day until
    which it held, that of the newest proof. A person's wording is not changed: Malformed, as for `add`."""
    stated = _stated(text)
    old = _there(draft, observation)
    for ground in grounds:
        if scope_of(ground.fact) != (old.scope or ""):
            raise Malformed("an observation cannot mix scopes", where=ground.fact.place.citation)
    changed = stated != old.text
    if changed and by_person(old):
        raise Malformed("a person worded this observation", where=old.place.citation)
    if changed and not grounds:
        raise Malformed("another wording needs a proof", where=old.place.citation)
    cited_by, spoken = _proofs(draft, grounds)
    known = {proof.ref for proof in old.proofs if stands(proof, {**facts, **spoken})}
    fresh = [proof for proof in cited_by if proof.ref not in known]
    # Where a fact was edited so that its old words are gone, the new ones take their place.
    kept = [proof for proof in old.proofs if proof.ref not in {each.ref for each in fresh}]
    if not fresh and not changed:
        return old
    until = max(filter(None, (day_of(ground.fact) for ground in grounds)), default=today.isoformat())
    more = (*old.entities, *named(stated, list(spoken.values())))
    wanted = replace(
        old,
        text=stated,
        id=old.id or new_id(),
        origin=old.origin or ("person" if not old.id else None),
        was=(Was(old.text, until), *old.was) if changed else old.was,
        entities=tuple(dict.fromkeys(more)),
        tags=tuple(dict.fromkeys((*old.tags, *inherited(grounds)))),
    )
    return _swap(draft, old, _resting(wanted, (*kept, *fresh), {**facts, **spoken}, today))


def retire(draft: Draft, observation: Observation, reason: str) -> Observation:
    """Say of an observation that it does not hold any more, and why. Usage without a reason."""
    if not reason.strip():
        raise Usage("retiring an observation needs a reason")
    old = _there(draft, observation)
    return old if old.retired else _swap(draft, old, replace(old, retired=" ".join(reason.split())))


def merge(
    draft: Draft, into: Observation, others: Sequence[Observation], facts: Mapping[str, Fact], *, today: date
) -> Observation:
    """Let one observation take over the proofs of others that say the same; they are retired, with a link to
    it. Malformed where their scopes differ."""
    old = _there(draft, into)
    if any((each.scope or "") != (old.scope or "") for each in others):
        raise Malformed("an observation cannot mix scopes", where=old.place.citation)
    joined = {proof.ref: proof for each in (old, *others) for proof in each.proofs}
    more = tuple(dict.fromkeys(name for each in (old, *others) for name in each.entities))
    tags = tuple(dict.fromkeys(tag for each in (old, *others) for tag in each.tags))
    block = old.id or new_id()
    origin = old.origin or (None if old.id else "person")
    wanted = replace(old, id=block, origin=origin, entities=more, tags=tags)
    made = _swap(draft, old, _resting(wanted, tuple(joined.values()), facts, today))
    for each in others:
        retire(draft, each, f"merged into {markdown.link_to(draft.link_name(made.place.path), block)}")
    return _there(draft, made)


def with_trend(
    draft: Draft, observation: Observation, facts: Mapping[str, Fact], *, today: date
) -> Observation:
    """Bring the `trend:` of an observation up to today; one without a dated proof stays as it is."""
    old = _there(draft, observation)
    word = trend(days_of(old, facts), today)
    return old if not word or word == old.trend else _swap(draft, old, replace(old, trend=word))


def without_lost(
    draft: Draft, observation: Observation, facts: Mapping[str, Fact], *, today: date
) -> Observation:
    """Take away the proofs whose fact is gone, retired, or does not have the words any more, and write down
    how many are left and of which days."""
    old = _there(draft, observation)
    kept = [proof for proof in old.proofs if stands(proof, facts)]
    return _swap(draft, old, _resting(old, kept, facts, today))


def by_person(observation: Observation) -> bool:
    """Whether a person worded it: they typed it, or it says so."""
    return observation.origin == "person" or (not observation.id and observation.origin is None)


def _stated(text: str) -> str:
    stated = " ".join(markdown.readable(text).split())
    if not stated:
        raise Usage("there is no statement")
    return stated


def _proofs(draft: Draft, grounds: Sequence[Ground]) -> tuple[list[Proof], dict[str, Fact]]:
    """The grounds as proofs, each fact once, and the facts by the `ref` they have now. Malformed for words
    that are not in their fact."""
    found: dict[str, Proof] = {}
    facts: dict[str, Fact] = {}
    for ground in grounds:
        quote = " ".join(ground.quote.split())
        if not quote or not holds(quote, ground.fact):
            raise Malformed("these words are not in the fact", where=f"{quote[:80]!r}")
        fact = cited(draft, ground.fact)
        found.setdefault(str(fact.ref), Proof(draft.link_name(fact.place.path), str(fact.id), quote))
        facts[str(fact.ref)] = fact
    return list(found.values()), facts


def _resting(
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


def _there(draft: Draft, observation: Observation) -> Observation:
    """The observation where it stands in the draft now. Malformed where it is gone."""
    path = observation.place.path
    for each in markdown.parse(draft.read(path), path).of(Observation):
        if (each.id == observation.id) if observation.id else (each.text == observation.text and not each.id):
            return each
    raise Malformed("this observation is not there any more", where=observation.place.citation)


def _swap(draft: Draft, old: Observation, new: Observation) -> Observation:
    path = old.place.path
    data = markdown.replace_lines(draft.read(path), old.place, markdown.show(new).split("\n"))
    draft.write(path, data, removes=[old])
    return _there(draft, replace(new, place=old.place))
