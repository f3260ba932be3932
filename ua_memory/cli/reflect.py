"""`reflect` and `consolidate`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory import caller, discovery
from ua_memory.cli import app
from ua_memory.cli.knowledge import observation_shape as shape_of
from ua_memory.cli.search import Since, TagGroups, Tags, TagsMatch, Until, chosen, scope
from ua_memory.daemon.spawn import Lines, Log
from ua_memory.errors import NotFound, Usage
from ua_memory.views import history, hits, output
from ua_memory.views.output import Screen, commit, count, emit, note, progress

if TYPE_CHECKING:
    from ua_memory.caller import Call
    from ua_memory.llm.model import Model
    from ua_memory.memory import Memory
    from ua_memory.records import Fact
    from ua_memory.reflect.consolidate import ConsolidationResult, Preview
    from ua_memory.reflect.proposals import ObservationChange
    from ua_memory.reflect.refresh import RefreshResult
    from ua_memory.views.output import Piece


# -- reflect -----------------------------------------------------------------------------------------------
# `ua-memory reflect`: a question answered from memory, with its proofs.


reflect_app = app.new()

Question = Annotated[
    list[str] | None, typer.Argument(metavar="QUESTION...", help="The question.", show_default=False)
]
Budget = Annotated[
    str, typer.Option("--budget", metavar="SIZE", help="low, mid or high: how much to search.")
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        "--max-tokens", metavar="N", min=20, max=20_000, show_default=False,
        help="Token limit of the answer (default: 500, 1,000 or 2,000).",
    ),
]  # fmt: skip
Schema = Annotated[
    str | None,
    typer.Option(
        "--schema", metavar="FILE", show_default=False,
        help="A JSON schema for an additional structured answer; - reads standard input.",
    ),
]  # fmt: skip
Context = Annotated[
    str, typer.Option("--context", metavar="TEXT", help="Why the question is asked.", show_default=False)
]
Keep = Annotated[bool, typer.Option("--keep", help="Form or revise opinions, in memory/opinions.md.")]
Explain = Annotated[bool, typer.Option("--explain", help="Show each step and what it found.")]


@reflect_app.command(cls=app.Verb)
def reflect(
    ctx: typer.Context,
    question: Question = None,
    budget: Budget = "low",
    max_tokens: MaxTokens = None,
    schema: Schema = None,
    context_of: Context = "",
    keep: Keep = False,
    explain: Explain = False,
    since: Since = None,
    until: Until = None,
    tag: Tags = None,
    tags_match: TagsMatch = "any_strict",
    tag_groups: TagGroups = "",
    as_json: app.Json = False,
    bank: app.Bank = None,
) -> None:
    """Answer a question from memory, with sources.

    An agent searches mental models first, then observations, then facts; every sentence of its answer must
    be supported by what it cites. Without a model (ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL) the evidence is
    printed in that order. Nothing is written, except with --keep.
    """
    if not question or not " ".join(question).strip():
        raise Usage("there is no question", hint='ua-memory reflect "why did we leave Heroku"')
    with caller.opened(ctx) as (call, memory):
        filters = chosen(memory, since, until, scope(call, tag, tags_match, tag_groups), None, None)
        with progress(call, "Thinking"):
            found = memory.reflect(
                " ".join(question), model=call.endpoint, budget=budget, max_tokens=max_tokens or 0,
                schema=_schema(call, schema), context=context_of, filters=filters, keep_opinion=keep,
            )  # fmt: skip
        if call.as_json:
            emit(call, hits.shape(found, explain))
        else:
            hits.show_answer(call, found, explain)


def _schema(call: Call, given: str | None) -> Any:
    """The JSON of a schema file. Usage where it is none."""
    import json

    if given is None:
        return None
    try:
        data = call.stdin.read() if given == "-" else discovery.read(caller.absolute(call, given))
        return json.loads(data)
    except FileNotFoundError as error:
        raise NotFound("no such file", where=given, hint="--schema FILE, or - for standard input") from error
    except (OSError, ValueError, RecursionError) as error:
        raise Usage(f"the schema cannot be read: {error}", where=given) from error


# -- consolidate -------------------------------------------------------------------------------------------
# `ua-memory consolidate`: facts into observations, by hand or every night.


consolidate_app = app.new()

NO_MODEL = (
    "without a model facts are only compared: what several days repeat was folded, and "
    "nothing was concluded (ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for your own server)"
)
LOG = "consolidate.log"
SHOWN = 20
"""Pairs and refusals that are shown; the rest is counted."""


@app.verb(consolidate_app)
def consolidate(
    call: Call,
    memory: Memory,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the diff without a model, and the price of one.")
    ] = False,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Only the N oldest facts.")] = None,
    max_usd: Annotated[
        float | None, typer.Option(metavar="USD", min=0, help="Cost limit of this run.")
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Retry facts that were set aside.")] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Allow more than a quarter of the observations to be retired.")
    ] = False,
    batch_api: Annotated[
        bool,
        typer.Option(
            "--batch-api", help="Use the batch API at half the price; a later run collects the answers."
        ),
    ] = False,
    log: Annotated[
        bool, typer.Option("--log", help="Write to local/consolidate.log in the state folder instead.")
    ] = False,
) -> None:
    """Create observations from facts that no run has considered.

    With a model (ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL) facts are compared with the observations, which
    are created, strengthened, revised, merged or retired, each with verbatim proofs. Without one, only what
    several days repeat becomes an observation. One run is one commit. Then stale pages are refreshed. If
    there is nothing to do and no terminal, as from cron, nothing is printed.
    """
    with ExitStack() as bar:
        if log:
            _to_log(call, memory)
        if dry_run:
            _preview(call, memory, limit, batch_api)
            return
        if batch_api and call.endpoint is None:
            raise Usage("there is no model to post to", hint="set ANTHROPIC_API_KEY")
        told: dict[str, Any] = {}

        def after(done: ConsolidationResult, model: Model | None) -> None:
            bar.close()
            told.update(shape(done), pages=[])
            if not call.as_json:
                show(call, done)
            if not done.ended:
                memory.pages.refresh_stale(model, done=lambda page: _refreshed(call, page, told["pages"]))

        tell = bar.enter_context(progress(call, "Considering facts"))
        try:
            done = memory.consolidate(
                model=call.endpoint, limit=limit, usd=max_usd, retry=retry, accept=accept,
                batch_api=batch_api, tell=tell, after=after,
            )  # fmt: skip
        except KeyboardInterrupt:
            note(call, "interrupted; the answers are kept, and the next run continues from there")
            raise
        finally:
            if call.as_json and told:
                emit(call, told)
        if done.ended:
            raise done.ended


def _to_log(call: Call, memory: Memory) -> None:
    """From here on, whatever is said goes into a log: cron would mail it, or drop it."""
    memory.store.make_state()
    memory.store.bank.local.mkdir(mode=0o700, exist_ok=True)
    found = Log(memory.store.bank.local, LOG)
    found.say("consolidate")
    call.stdout = call.stderr = Lines(found)


def _refreshed(call: Call, page: RefreshResult, shapes: list[Any]) -> None:
    """A page that was stale, as `pages refresh` tells it."""
    shapes.append(history.refreshed_shape(page, None))
    if not call.as_json:
        history.show_refreshed(call, page)


def _preview(call: Call, memory: Memory, limit: int | None, batch_api: bool) -> None:
    found = memory.observations.preview(model=call.endpoint, limit=limit, batch_api=batch_api)
    if call.as_json:
        emit(call, _shape_of_preview(found))
    else:
        _show_preview(call, found)


# -- for a person --------------------------------------------------------------------------------------


def show(call: Call, done: ConsolidationResult) -> None:
    """What a run did, belief by belief, and what is left for a person to do."""
    screen = Screen(call)
    if done.posted:
        hint = "ua-memory consolidate collects the answers, within a day"
        note(call, f"{count(done.posted, 'fact')} sent as a batch at half the price: {hint}")
    if not done.committed and not done.held and not done.ended:
        if not done.posted and call.on_terminal:
            screen.line("Nothing new to consider.")
        return
    by = f"with {done.by}" if done.by else "without a model"
    if done.committed:
        head = f"{count(done.facts, 'fact')} considered {by}: {_counted(done.changes)} ("
        screen.line(head, commit(done.revision), ")")
    _changes(screen, done.changes)
    if others := [
        path for path in done.paths if path not in {each.after.place.path for each in done.changes}
    ]:
        screen.line()
        screen.item([("Block ids added to the lines they cite in ", "faint")], (", ".join(others), "path"))
    _at_odds(screen, done.at_odds)
    _asides(screen, done)
    for text in done.notes:
        note(call, text)
    for kind, number in done.redacted.items():
        note(call, f"removed before writing: {kind}{f' ({number} times)' if number > 1 else ''}")
    if done.stale:
        old = f"{count(done.stale, 'observation rests', 'observations rest')} on nothing of the last 90 days"
        note(call, f"{old}: ua-memory observations list --stale")
    if done.left:
        note(call, f"{count(done.left, 'fact')} still to consider: ua-memory consolidate")
    if done.committed and not done.by:
        note(call, NO_MODEL)


def _counted(changes: Sequence[ObservationChange]) -> str:
    from collections import Counter

    each = Counter(change.how for change in changes)
    return ", ".join(f"{number} {how}" for how, number in each.items()) or "nothing to change"


def _changes(screen: Screen, changes: Sequence[ObservationChange]) -> None:
    in_order = sorted(changes, key=lambda change: change.after.place.path)
    for path, group in groupby(in_order, key=lambda change: change.after.place.path):
        screen.line()
        screen.line((path, "path"))
        for change in group:
            _changed(screen, change)


def _changed(screen: Screen, change: ObservationChange) -> None:
    new, old = change.after, change.before
    more: list[Piece] = [(f"  {count(len(new.proofs), 'proof')}", "faint"), (f"  ^{new.id}", "id")]
    if new.since and new.last and new.since != new.last:
        more.insert(1, (f", {new.since} to {new.last}", "faint"))
    if new.retired:
        screen.item([("  - ", "removed")], (new.text, "removed"), (f"  ^{new.id}", "id"))
        screen.item("    ", (f"retired: {new.retired}", "faint"))
    elif old is None:
        screen.item([("  + ", "added")], new.text, *more)
    elif old.text != new.text:
        screen.item([("  - ", "removed")], (old.text, "removed"))
        screen.item([("  + ", "added")], new.text, *more)
    else:
        screen.item([("  = ", "faint")], new.text, *more)


def _at_odds(screen: Screen, pairs: Sequence[tuple[Fact, Fact]]) -> None:
    if pairs:
        screen.line()
        screen.line(("Possible contradictions, the newer first:", "warn"))
    for pair in pairs[:SHOWN]:
        for mark, fact in zip("! ", pair, strict=True):
            screen.item([(f"  {mark} ", "warn")], fact.text, (f"  {fact.place.citation}", "path"))
    if len(pairs) > SHOWN:
        screen.line((f"  and {len(pairs) - SHOWN} more", "faint"))


def _asides(screen: Screen, done: ConsolidationResult) -> None:
    if done.refused:
        screen.line()
        screen.line((f"Proposed by {done.by}, and not kept:", "faint"))
    for text in done.refused[:SHOWN]:
        screen.item([("  ? ", "warn")], (text, "faint"))
    if len(done.refused) > SHOWN:
        screen.line((f"  and {len(done.refused) - SHOWN} more", "faint"))
    if done.aside:
        screen.line()
        screen.line(("Set aside without an answer (ua-memory consolidate --retry):", "warn"))
    for fact, why in done.aside:
        screen.item(
            [("  ! ", "warn")], fact.text, (f"  {fact.place.citation}", "path"), (f"  {why}", "faint")
        )
    if done.held:
        screen.line()
        screen.line(
            (f"{count(done.held, 'observation')} more would be retired or merged than one run may: ", "warn"),
            "ua-memory consolidate --accept",
        )


def _show_preview(call: Call, found: Preview) -> None:
    screen = Screen(call)
    if not found.waiting and not found.taken:
        screen.line("Nothing new to consider.")
        return
    screen.line(f"{count(found.taken, 'fact')} to consider; without a model: {_counted(found.changes)}.")
    styles = {"+": "added", "-": "removed", "@": "hunk"}
    for row in found.diff.splitlines():
        screen.item("", (row, styles.get(row[:1], "faint")))
    _at_odds(screen, found.at_odds)
    if (cost := found.estimate) is not None:
        price = "no price known" if cost.usd is None else f"about ${cost.usd:.2f}, prices of {cost.as_of}"
        price = "no bill: it is on this network" if cost.usd == 0 else price
        screen.line()
        much = f"about {cost.tokens:,} tokens in {count(cost.requests, 'request')}"
        screen.line(f"{cost.model} would read {much}, most of them from its cache: {price}.")
    else:
        note(call, NO_MODEL.replace("was folded, and nothing was", "is folded, and nothing is"))


# -- for a script --------------------------------------------------------------------------------------


def shape(done: ConsolidationResult) -> dict[str, Any]:
    """A run as JSON."""
    used = done.usage
    return {
        "model": done.by,
        "facts": done.facts,
        "left": done.left,
        "posted": done.posted,
        "changes": [_change(change) for change in done.changes],
        "atOdds": _pairs(done.at_odds),
        "refused": list(done.refused),
        "aside": [{**_fact(fact), "reason": why} for fact, why in done.aside],
        "held": done.held,
        "stale": done.stale,
        "revision": done.revision,
        "paths": list(done.paths),
        "committed": done.committed,
        "redacted": dict(done.redacted),
        "usage": output.usage(used),
        "notes": list(done.notes),
    }


def _change(change: ObservationChange) -> dict[str, Any]:
    told = {"how": change.how, **shape_of(change.after)}
    reworded = change.before and change.before.text != change.after.text
    return {**told, "before": change.before.text} if change.before and reworded else told


def _fact(fact: Fact) -> dict[str, Any]:
    return {**output.place(fact.place, fact.id), "text": fact.text}


def _pairs(pairs: Sequence[tuple[Fact, Fact]]) -> list[dict[str, Any]]:
    return [{"newer": _fact(newer), "older": _fact(older)} for newer, older in pairs]


def _shape_of_preview(found: Preview) -> dict[str, Any]:
    told: dict[str, Any] = {
        "facts": found.taken,
        "changes": [_change(change) for change in found.changes],
        "atOdds": _pairs(found.at_odds),
        "diff": found.diff,
    }
    if cost := found.estimate:
        usd = {} if cost.usd is None else {"usd": round(cost.usd, 4)}
        told["estimate"] = {"model": cost.model, "tokens": cost.tokens, "requests": cost.requests, **usd}
    return told
