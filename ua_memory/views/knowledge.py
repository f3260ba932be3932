"""Facts, core memory, observations, opinions, pages, models, entities, directives: as text and as JSON."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

from ua_memory.text.wording import MODEL_HINT
from ua_memory.views import output
from ua_memory.views.output import Screen, Styled, commit_label, count, fields, id_label, json_value

if TYPE_CHECKING:
    from ua_memory.index.entities import EntityDetails, EntityGraph, EntitySummary
    from ua_memory.knowledge.core import BlockChange, Budget, CoreProposal, DecidedProposals
    from ua_memory.knowledge.entities import EntityDecision, Suggestion
    from ua_memory.knowledge.facts import InsertResult
    from ua_memory.knowledge.observations import ObservationView
    from ua_memory.knowledge.opinions import OpinionChange
    from ua_memory.knowledge.pages import PageChange
    from ua_memory.llm.ledger import Estimate
    from ua_memory.records import CoreBlock, Fact, MentalModel, Observation, Opinion, Page
    from ua_memory.reflect.consolidate import ConsolidationResult, Preview
    from ua_memory.reflect.proposals import ObservationChange
    from ua_memory.reflect.refresh import Proposal, RefreshResult, StaleReasons


# -- facts and core memory -------------------------------------------------------------------------------


def insert_json(done: InsertResult) -> dict[str, Any]:
    names = ("fact.place", "result.revision", "sighting", "repeated", "result.redacted", "result.notes")
    return fields(done, *names)


def show_insert(screen: Screen, done: InsertResult) -> None:
    did = "Already known:" if done.sighting else "Remembered in"
    did = "This request was already carried out:" if done.repeated else did
    fact = done.fact
    block: list[Styled] = [(f"^{fact.id}", "id"), ", "] if fact.id else []
    place: Styled = (f"{fact.place.path}:{fact.place.line}", "path") if fact.place.path else "removed since"
    when = [f", when {fact.when}"] if fact.when else []
    screen.line(f"{did} ", place, " (", *block, commit_label(done.result.revision), ")", *when)
    screen.outcome(done.result)


def show_budgets(screen: Screen, budgets: list[Budget]) -> None:
    rows = []
    for one in budgets:
        name = (one.name, "strong") if one.name else ("all of MEMORY.md", "faint")
        used = f"{one.used:,} of {one.limit:,} tokens{'  over its budget' if one.used > one.limit else ''}"
        bar = screen.bar(one.used / one.limit, 10 if screen.width >= 60 else 5)
        rows.append([name, *bar[:-1], used])
    screen.rows(rows)


def block_json(block: CoreBlock, budget: Budget) -> dict[str, Any]:
    return fields(block, "name", "value", "place") | output.budget_json(budget)


def block_change_json(done: BlockChange) -> dict[str, Any]:
    before = fields(done, "before.value as before") if done.before else {}
    return fields(done, "after.name", "after.value") | before | fields(done, "after.place", *RESULT_FIELDS)


RESULT_FIELDS = ("result.revision", "result.redacted", "warnings", "result.notes")
"""The fields of a change to core memory."""


def show_block_change(screen: Screen, done: BlockChange) -> None:
    block = done.after
    old = done.before.value if done.before else ""
    if done.before and old == block.value:
        screen.line(f"{block.name} already says that. Nothing was changed.")
        return
    place = (f"{block.place.path}:{block.place.line}", "path")
    did = "Replaced " if done.before else "Added "
    screen.line(did, (block.name, "strong"), " in ", place, " (", commit_label(done.result.revision), ")")
    screen.changes(old, block.value)
    screen.outcome(done.result, *done.warnings)


def core_proposals_json(found: Sequence[CoreProposal]) -> dict[str, Any]:
    """The proposals for core memory as JSON, without empty fields."""
    every = map(json_value, found)
    rows = ({key: value for key, value in row.items() if value not in output.EMPTY_VALUES} for row in every)
    return {"proposals": list(rows)}


def show_core_proposals(screen: Screen, found: Sequence[CoreProposal]) -> None:
    """Print each proposal for core memory: its id, the reason, and the rule or the changed lines."""
    for one in found:
        about = [one.why, *(f"project {name}" for name in one.projects)]
        about += [f"block {one.block}"] if one.kind != "statement" else []
        screen.item([(_short_id(one), "id"), "  "], "; ".join(about))
        if one.kind == "statement":
            screen.item("    ", (one.text, "strong"))
            continue
        for row in one.text.splitlines():
            style = "added" if row.startswith("+") else "removed"
            screen.item([(f"    {row[:2]}", style)], (row[2:], style))
    if not found:
        screen.line("Nothing is proposed for core memory.")
    else:
        screen.note("to decide: ua-memory core accept ID, ua-memory core reject ID")


def _short_id(one: CoreProposal) -> str:
    return one.id[:10] if one.kind == "unseen" else one.id


def decided_proposals_json(done: DecidedProposals) -> dict[str, Any]:
    """Accepted or rejected proposals as JSON."""
    return core_proposals_json(done.proposals) | fields(done, *RESULT_FIELDS)


def show_decided_proposals(screen: Screen, done: DecidedProposals, verb: str) -> None:
    """Print accepted or rejected proposals, a line each."""
    for one in done.proposals:
        first, *more = one.text.splitlines()
        screen.item([f"{verb} ", (_short_id(one), "id"), "  "], first + (" …" if more else ""))
    screen.outcome(done.result, *done.warnings)


# -- observations ----------------------------------------------------------------------------------------


def show_observations(screen: Screen, found: Sequence[ObservationView], nothing: str) -> None:
    """Print observations by file, or the text `nothing`."""
    if not found:
        screen.line(nothing)
    for number, (path, group) in enumerate(groupby(found, key=lambda one: one.observation.place.path)):
        if number:
            screen.line()
        screen.line((path, "path"))
        for one in group:
            _observation_line(screen, one)


def _observation_line(screen: Screen, one: ObservationView) -> None:
    each = one.observation
    days = f", last {each.last}" if each.last else ""
    more = f"  {one.trend or 'undated'}, {count(len(each.proofs), 'proof')}{days}"
    screen.item([("  - ", "faint")], each.text, (more, "faint"), id_label(each.id))
    for why in (each.retired and f"retired: {each.retired}", *one.freshness.why):
        if why:
            screen.item("    ", (why, "warn"))


def show_observation(screen: Screen, one: ObservationView) -> None:
    """Print an observation with its proofs, former wordings and freshness."""
    each = one.observation
    screen.line((each.text, "strong"))
    screen.line((each.place.citation, "path"), id_label(each.id))
    span = f"{each.since} to {each.last}" if each.since != each.last else str(each.since)
    rests = f"{count(len(each.proofs), 'proof')}, {span if each.since else 'undated'}"
    said = {"Based on": rests, "Trend": one.trend, "Scope": each.scope, "Retired": each.retired}
    said["Fresh"] = "\n".join(one.freshness.why) or "yes"
    screen.rows([[(name, "strong"), text] for name, text in said.items() if text])
    for proof in each.proofs:
        link = (f"[[{proof.file}#^{proof.id}]]", "id")
        screen.item([("  “", "faint")], proof.quote or "…", ("”  ", "faint"), link)
    for was in each.was:
        screen.item([("  was ", "faint")], was.text, (f"  until {was.until}", "faint"))


def observation_json(one: Observation) -> dict[str, Any]:
    """An observation as JSON: what its file says."""
    known = ("since?", "last?", "scope?", "retired?", "entities?", "tags?", "was?")
    return fields(one, "place", "text", "proofs", *known)


def observation_view_json(one: ObservationView) -> dict[str, Any]:
    """An observation as JSON with its trend today, and whether it is fresh."""
    fresh = {"fresh": not one.freshness.stale, **fields(one, "freshness.why")}
    return observation_json(one.observation) | fields(one, "trend") | fresh


# -- opinions --------------------------------------------------------------------------------------------

CONFIDENCE = {"high": "good", "medium": "strong", "low": "warn", "none": "warn"}
"""Words for the confidence in an answer or an opinion → their styles."""


def show_opinion_result(screen: Screen, one: OpinionChange) -> None:
    """Print a change of an opinion, and the notes of its revision."""
    show_opinion_change(screen, one)
    screen.outcome(one.result)


def show_opinion_change(screen: Screen, one: OpinionChange) -> None:
    """Print how an opinion was formed, revised or dropped, as a diff."""
    did = "Dropped" if one.after.retired else "Revised" if one.before else "Formed"
    kind = f"{'an' if one.after.kind == 'opinion' else 'a'} {one.after.kind}"
    screen.line(f"{did} {kind} (", commit_label(one.result.revision), ")")
    if one.before and (one.before.text != one.after.text or one.after.retired):
        screen.item([("  - ", "removed")], *_opinion_text(one.before))
    if not one.after.retired:
        screen.item([("  + ", "added")], *_opinion_text(one.after))


def show_opinion(screen: Screen, one: Opinion) -> None:
    """Print an opinion with its citations."""
    screen.item([(f"{one.confidence or 0:.2f}  ", CONFIDENCE[confidence_word(one)])], *_opinion_text(one))
    for proof in one.because:
        link = (f"[[{proof.file}#^{proof.id}]] ", "id")
        screen.item([("      because ", "faint")], link, f"“{proof.quote}”")
    details = [one.when and f"since {one.when}", one.retired and f"dropped {one.retired}"]
    if any(details):
        screen.item("      ", (", ".join(filter(None, details)), "faint"))


def confidence_word(one: Opinion) -> str:
    """An opinion's confidence as a word: high, medium or low."""
    share = one.confidence or 0.0
    return "high" if share >= 0.75 else "medium" if share >= 0.5 else "low"


def _opinion_text(one: Opinion) -> list[Styled]:
    return [one.text, (f"  {one.kind}" if one.kind != "opinion" else "", "faint"), id_label(one.id)]


def opinion_json(one: Opinion) -> dict[str, Any]:
    """An opinion as JSON."""
    return fields(one, "place", "text", "kind", "confidence?", "when?", "retired?", "flag?", "because")


def opinion_change_json(one: OpinionChange) -> dict[str, Any]:
    """A change of an opinion as JSON."""
    did = "drop" if one.after.retired else "revise" if one.before else "form"
    before = ["before.text as before"] if one.before else []
    opinion = fields(one, ("after as opinion", opinion_json), *before)
    return {"did": did, **opinion, **fields(one, "result.revision", "result.notes")}


# -- pages and models ------------------------------------------------------------------------------------


def show_page(screen: Screen, one: Page | MentalModel) -> None:
    """Print the text of a page or a mental model."""
    if one.body:
        screen.raw(one.body)
    else:
        screen.line(f"Not written yet: ua-memory pages refresh {one.id}")


def show_stale_page(screen: Screen, page: tuple[Page, StaleReasons]) -> None:
    """Print a page in one line: its query, and why it is stale."""
    one, why = page
    state: Styled = (f"stale: {why}", "warn") if why else ("up to date", "good")
    screen.item([(one.id, "id"), "  "], (one.name, "strong"), f"  {one.source_query}  ", state)


def show_model(screen: Screen, one: MentalModel) -> None:
    """Print a mental model in one line: its name and first words."""
    first = " ".join(one.body.split())
    screen.item([(one.id, "id"), "  "], (one.name, "strong"), (f"  {first[:160]}", "faint"))


def page_json(one: Page | MentalModel) -> dict[str, Any]:
    """A page or a mental model as JSON; only a page has a `query`."""
    query = ["source_query as query"] if hasattr(one, "source_query") else []
    return fields(one, "id", "name", *query, "tags", "body") | output.place_json(one.place, None)


def show_page_change(screen: Screen, verb: str, done: PageChange) -> None:
    """Print a change of a page or a mental model, as text or JSON."""
    result, record = done.result, done.record
    place = (record.place.path, "path")
    shape = page_json(record) | fields(result, "revision", "redacted", "notes")
    output.show_revision(screen.call, result, shape, f"{verb} ", (record.name, "strong"), " in ", place)


# -- refreshing pages ------------------------------------------------------------------------------------

PAGE_WITHOUT_MODEL = (
    f"without a model the page lists facts in their own words; a model would write it {MODEL_HINT}"
)


def show_refreshed(screen: Screen, one: RefreshResult) -> None:
    """Print a page's refresh: why, its diff, and what became of a person's sentences."""
    page = one.page
    front: list[Any] = [(page.id, "id"), "  "]
    if not one.why and not one.revision and not one.diff:
        screen.item(front, "up to date")
        screen.note(*one.notes)
        return
    did = ("would be " if one.dry_run else "") + ("created" if one.full else "refreshed")
    where: list[Any] = [" (dry run)"] if one.dry_run else [" (", commit_label(one.revision), ")"]
    why = f": {one.why or 'asked for'}" if str(one.why) != "never refreshed" else " (first refresh)"
    screen.item(front, f"{did}{why}", *where)
    if one.diff:
        screen.diff(one.diff.removesuffix("\n"))
    else:
        screen.item("  ", ("its text stays as it is", "faint"))
    for fact in one.learnt:
        screen.item([("  + ", "added")], "yours, added as a fact: ", fact.text, id_label(fact.id))
    for fact in one.flagged:
        screen.item([("  ? ", "warn")], f"memory contradicts it: {fact.text} ", (f"({fact.flag})", "faint"))
    if one.left_out:
        left = count(one.left_out, "more fact")
        screen.item([("  ! ", "warn")], f"no room for {left} (max_tokens in its header)")
    screen.refused(one.refused, one.by, apart=False)
    screen.redacted(one.redacted)
    screen.note(*one.notes)


def show_model_proposal(screen: Screen, one: Proposal) -> None:
    """Print a proposed change of a mental model."""
    if one.diff:
        screen.diff(one.diff.removesuffix("\n"))
        screen.note("a proposal: nothing was written; edit the file, or: ua-memory models update")
    else:
        screen.line(f"Compared with {count(one.evidence, 'fact')}: nothing to propose.")
    screen.refused(one.refused, one.by, apart=False)
    screen.note(*one.notes)


def stale_json(why: StaleReasons) -> dict[str, Any]:
    """Why a page is stale, as JSON. A fact's name is `^id`, or `path#texthash` if it has no id."""
    return {"is": bool(why), "why": str(why), **fields(why, "new", "edited", "gone", "yours")}


def refreshed_json(one: RefreshResult, cost: Estimate | None) -> dict[str, Any]:
    """A page's refresh as JSON; `estimate` only where the price was told before."""
    page = ("page.id", "page.place.path", "by as model", ("why as stale", stale_json))
    facts = (("learnt", _fact_json), ("flagged", _fact_json))
    known = ("refused", "left_out", "revision", "redacted", "usage", "notes")
    found = fields(one, *page, "full", "dry_run", "diff", "page.body", *facts, *known)
    return output.estimate_json(cost) | found


def _fact_json(fact: Any) -> dict[str, Any]:
    return fields(fact, *(["place"] if fact.place.path else []), "text", "flag?")


def model_proposal_json(one: Proposal) -> dict[str, Any]:
    """A proposed change of a mental model as JSON."""
    named = ("model.id", "model.place.path", "by as model")
    return fields(one, *named, "diff", "evidence", "refused", "usage", "notes")


# -- entities --------------------------------------------------------------------------------------------

EXCERPT_LENGTH = 220
"""Characters of a text that are shown around an entity's name."""


def show_entities(screen: Screen, found: Sequence[EntitySummary]) -> None:
    """Print entities with how often and when they are mentioned."""
    if not found:
        screen.line("No names yet.")
    rows: list[list[Any]] = []
    for one in found:
        seen = one.first if one.first == one.last else f"{one.first} to {one.last}"
        rows.append([(f"{one.count:>5}", "faint"), (one.name, "strong"), seen, (_aliases_text(one), "faint")])
    screen.rows(rows)


def _aliases_text(one: EntitySummary) -> str:
    both = {"also": one.aliases, "not": one.nots}
    return "; ".join(f"{word} {', '.join(names)}" for word, names in both.items() if names)


def show_suggestions(screen: Screen, pairs: Sequence[Suggestion]) -> None:
    """Print pairs of entities that may be the same, each with the command that merges them."""
    if not pairs:
        screen.line("No similar names.")
    for one in pairs:
        screen.item("", (one.name, "strong"), " and ", (one.other, "strong"), f": {one.reason}")
        names = f"{shlex.quote(one.name)} {shlex.quote(one.other)}"
        screen.line((f"  ua-memory entities merge {names}", "faint"))
    if pairs:
        how = ("ua-memory entities split NAME OTHER", "strong")
        screen.line("\nIf two are different, ", how, " records that.")


def show_entity(screen: Screen, found: EntityDetails, limit: int) -> None:
    """Print an entity: those it appears with, a timeline, and its newest facts."""
    one = found.known
    seen = one.first if one.first == one.last else f"{one.first} to {one.last}"
    screen.line((one.name, "strong"), f"  {count(one.count, 'place')}" + (f", {seen}" if seen else ""))
    if _aliases_text(one):
        screen.item("", _aliases_text(one))
    if found.beside:
        beside = ", ".join(f"{name} ({number})" for name, number in [*found.beside.items()][:12])
        screen.item([("appears with  ", "faint")], beside)
    if len(found.timeline) > 1:
        screen.line()
        _show_timeline(screen, found.timeline)
    if found.items:
        screen.line()
    for item in [*reversed(found.items)][:limit]:
        day = item.day or item.date or " " * 10
        cited = f"^{item.id}" if item.id else f"{item.path}:{item.line}"
        text = _excerpt(" ".join(item.text.split()), (one.name, *one.aliases))
        about = f"  about {item.when}" if item.when and item.when != item.day else ""
        screen.item([(day + about, "faint"), "  "], text, "  ", (cited, "id" if item.id else "path"))
    if len(found.items) > limit:
        screen.line((f"and {len(found.items) - limit} before these: --limit {len(found.items)}", "faint"))


def _excerpt(text: str, names: tuple[str, ...]) -> str:
    """The part of a long text around its first mention of one of the names."""
    at = min((at for name in names if (at := text.casefold().find(name.casefold())) >= 0), default=0)
    start = max(0, min(at - EXCERPT_LENGTH // 3, len(text) - EXCERPT_LENGTH))
    cut = text[start : start + EXCERPT_LENGTH]
    return f"{'…' if start else ''}{cut}{'…' if start + EXCERPT_LENGTH < len(text) else ''}"


def _show_timeline(screen: Screen, timeline: Mapping[str, int]) -> None:
    most, room = max(timeline.values()), max(10, min(40, screen.width - 30))
    rows: list[list[Any]] = []
    for when, number in timeline.items():
        bar = "█" * max(1, round(number / most * room)) if screen.is_terminal else ""
        rows.append([(when, "faint"), f"{number:>4}", (bar, "good")])
    screen.rows(rows)


def entity_summary_json(one: EntitySummary) -> dict[str, Any]:
    """An entity with its aliases as JSON."""
    return fields(one, "name", "count", "settled", "first?", "last?", "aliases?", "nots as not?")


def entity_json(found: EntityDetails, limit: int) -> dict[str, Any]:
    """An entity with its newest facts as JSON."""
    facts = ((item, {"text": item.text, "day": item.day or item.date}) for item in reversed(found.items))
    known = ("record", "kind", "when?", "origin", "place")
    return {
        **entity_summary_json(found.known),
        "beside": [{"name": name, "count": number} for name, number in found.beside.items()],
        "timeline": [{"when": when, "count": number} for when, number in found.timeline.items()],
        "facts": [said | fields(item, *known) for item, said in islice(facts, limit)],
    }


def graph_json(found: EntityGraph) -> dict[str, Any]:
    """Entities, and pairs that are mentioned together, as JSON."""
    pairs = [{"one": one, "other": other, "count": n} for (one, other), n in found.together.items()]
    return fields(found, ("known as entities", entity_summary_json)) | {"together": pairs}


def show_graph(screen: Screen, found: EntityGraph) -> None:
    """Print pairs of entities, those that are mentioned together most often first."""
    pairs = found.together.items()
    if not pairs:
        screen.line("No two of these names appear together.")
    screen.rows([[(f"{n:>5}", "faint"), (one, "strong"), other] for (one, other), n in pairs])


def show_decision(screen: Screen, done: EntityDecision) -> None:
    """Print the entities that a decision (merge, alias, split) has changed."""
    for each in done.entities:
        also = f"  also {', '.join(each.aliases)}" if each.aliases else ""
        nots = f"  not {', '.join(each.nots)}" if each.nots else ""
        screen.item("", (each.name, "strong"), also, nots)
    screen.line((f"{done.path}", "path"), "  ", commit_label(done.result.revision))
    screen.outcome(done.result)


def decision_json(done: EntityDecision) -> dict[str, Any]:
    """The entities that a decision has changed, as JSON."""
    entities = ("entities", ("name", "aliases", "nots as not", "place.line"))
    return fields(done, entities, "path", "result.revision", "result.notes")


# -- consolidation ---------------------------------------------------------------------------------------

CONSOLIDATED_WITHOUT_MODEL = f"without a model facts are only compared; no conclusions are drawn {MODEL_HINT}"

SHOWN_PAIRS = 20
"""Contradictions and refusals that are shown; the rest are counted."""


def show_consolidated(screen: Screen, done: ConsolidationResult) -> None:
    """Print a consolidation: its changes by file, contradictions, and what is left to do."""
    if done.posted:
        hint = "ua-memory consolidate collects the answers, within a day"
        screen.note(f"{count(done.posted, 'fact')} sent as a batch at half the price: {hint}")
    if not done.committed and not done.held and not done.ended:
        if not done.posted and screen.call.on_terminal:
            screen.line("Nothing new to consider.")
        return
    by = f"with {done.by}" if done.by else "without a model"
    if done.committed:
        head = f"{count(done.facts, 'fact')} considered {by}: {_change_counts(done.changes)} ("
        screen.line(head, commit_label(done.revision), ")")
    _show_changes(screen, done.changes)
    changed = {each.after.place.path for each in done.changes}
    if others := [path for path in done.paths if path not in changed]:
        screen.line()
        screen.item([("Block ids added to the lines they cite in ", "faint")], (", ".join(others), "path"))
    _show_contradictions(screen, done.at_odds)
    _show_left_over(screen, done)
    screen.note(*done.notes)
    screen.redacted(done.redacted)
    if done.stale:
        old = count(done.stale, "observation rests", "observations rest")
        screen.note(f"{old} on nothing from the last 90 days: ua-memory observations list --stale")
    if done.left:
        screen.note(f"{count(done.left, 'fact')} still to consider: ua-memory consolidate")
    if done.committed and not done.by:
        screen.note(CONSOLIDATED_WITHOUT_MODEL)


def _change_counts(changes: Sequence[ObservationChange]) -> str:
    each = Counter(change.how for change in changes)
    return ", ".join(f"{number} {how}" for how, number in each.items()) or "nothing to change"


def _show_changes(screen: Screen, changes: Sequence[ObservationChange]) -> None:
    in_order = sorted(changes, key=lambda change: change.after.place.path)
    for path, group in groupby(in_order, key=lambda change: change.after.place.path):
        screen.heading((path, "path"))
        for change in group:
            _show_change(screen, change)


def _show_change(screen: Screen, change: ObservationChange) -> None:
    new, old = change.after, change.before
    span = f", {new.since} to {new.last}" if new.since and new.last and new.since != new.last else ""
    more: list[Styled] = [(f"  {count(len(new.proofs), 'proof')}{span}", "faint"), id_label(new.id)]
    if new.retired:
        screen.item([("  - ", "removed")], (new.text, "removed"), id_label(new.id))
        screen.item("    ", (f"retired: {new.retired}", "faint"))
    elif old is None:
        screen.item([("  + ", "added")], new.text, *more)
    elif old.text != new.text:
        screen.item([("  - ", "removed")], (old.text, "removed"))
        screen.item([("  + ", "added")], new.text, *more)
    else:
        screen.item([("  = ", "faint")], new.text, *more)


def _show_contradictions(screen: Screen, pairs: Sequence[tuple[Fact, Fact]]) -> None:
    if pairs:
        screen.heading(("Possible contradictions, the newer first:", "warn"))
    for pair in pairs[:SHOWN_PAIRS]:
        for mark, fact in zip("! ", pair, strict=True):
            screen.item([(f"  {mark} ", "warn")], fact.text, (f"  {fact.place.citation}", "path"))
    if len(pairs) > SHOWN_PAIRS:
        screen.line((f"  and {len(pairs) - SHOWN_PAIRS} more", "faint"))


def _show_left_over(screen: Screen, done: ConsolidationResult) -> None:
    screen.refused(done.refused[:SHOWN_PAIRS], done.by)
    if len(done.refused) > SHOWN_PAIRS:
        screen.line((f"  and {len(done.refused) - SHOWN_PAIRS} more", "faint"))
    if done.aside:
        screen.heading(("Set aside without an answer (ua-memory consolidate --retry):", "warn"))
    for fact, why in done.aside:
        at = (f"  {fact.place.citation}", "path")
        screen.item([("  ! ", "warn")], fact.text, at, (f"  {why}", "faint"))
    if done.held:
        more = f"{count(done.held, 'observation')} more would be retired or merged than one run allows: "
        screen.heading((more, "warn"), "ua-memory consolidate --accept")


def show_preview(screen: Screen, found: Preview) -> None:
    """Print what a consolidation without a model would do, and what one with it would cost."""
    if not found.waiting and not found.taken:
        screen.line("Nothing new to consider.")
        return
    taken = count(found.taken, "fact")
    screen.line(f"{taken} to consider; without a model: {_change_counts(found.changes)}.")
    styles = {"+": "added", "-": "removed", "@": "hunk"}
    for row in found.diff.splitlines():
        screen.item("", (row, styles.get(row[:1], "faint")))
    _show_contradictions(screen, found.at_odds)
    if (cost := found.estimate) is not None:
        screen.heading(output.estimate_text(cost))
    else:
        screen.note(CONSOLIDATED_WITHOUT_MODEL)


def consolidated_json(done: ConsolidationResult) -> dict[str, Any]:
    """A consolidation as JSON."""
    known = ("held", "stale", "revision", "paths", "committed", "redacted", "usage", "notes")
    found = fields(done, "by as model", "facts", "left", "posted", *CHANGES, "refused")
    aside = [{**_fact_json(fact), "reason": why} for fact, why in done.aside]
    return {**found, "aside": aside, **fields(done, *known)}


def _change_json(change: ObservationChange) -> dict[str, Any]:
    details = {"how": change.how, **observation_json(change.after)}
    reworded = change.before and change.before.text != change.after.text
    return {**details, "before": change.before.text} if change.before and reworded else details


def _contradiction_json(pair: tuple[Fact, Fact]) -> dict[str, Any]:
    return dict(zip(("newer", "older"), map(_fact_json, pair), strict=True))


CHANGES = (("changes", _change_json), ("at_odds", _contradiction_json))


def preview_json(found: Preview) -> dict[str, Any]:
    """What a consolidation without a model would do, as JSON."""
    return fields(found, "taken as facts", *CHANGES, "diff") | output.estimate_json(found.estimate)


# -- directives ------------------------------------------------------------------------------------------


def show_directives(screen: Screen, rules: Sequence[str], mission: str, traits: Mapping[str, int]) -> None:
    """Print the directives by number, the mission and the disposition."""
    if not rules:
        screen.line('No directives. Add one: ua-memory directives create "Never name a customer."')
    for number, rule in enumerate(rules, 1):
        screen.item([(f"{number:>2}. ", "strong")], rule)
    screen.heading(("Mission: ", "faint"), mission or ("not set", "faint"))
    screen.line(("Disposition: ", "faint"), ", ".join(f"{name} {level}" for name, level in traits.items()))
