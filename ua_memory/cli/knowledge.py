"""`observations`, `opinions`, `directives`, `pages`, `models`, `entities`."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory import caller
from ua_memory.caller import caller as caller_origin
from ua_memory.caller import is_person, read_text
from ua_memory.cli import app
from ua_memory.errors import Usage
from ua_memory.views import history, hits, output
from ua_memory.views.output import Screen, commit, count, emit, note, outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ua_memory.caller import Call
    from ua_memory.index.entities import EntityDetails, EntitySummary
    from ua_memory.knowledge.entities import EntityDecision, Suggestion
    from ua_memory.knowledge.observations import ObservationView
    from ua_memory.knowledge.pages import PageChange
    from ua_memory.memory import Memory
    from ua_memory.records import MentalModel, Observation, Page
    from ua_memory.reflect.refresh import RefreshPrice, RefreshResult


# -- observations ------------------------------------------------------------------------------------------
# `ua-memory observations`: what is believed, and on what grounds.


observations_app = app.new(no_args_is_help=True, help="Observations: what follows from several facts.")

ObservationId = Annotated[
    str, typer.Argument(metavar="^ID", help="The observation's block id.", show_default=False)
]


@app.verb(observations_app, "list")
def observations_list(
    call: Call,
    memory: Memory,
    stale: Annotated[
        bool, typer.Option("--stale", help="Only those that are stale or whose facts changed.")
    ] = False,
    scope: Annotated[
        str | None, typer.Option(metavar="SCOPE", help="Only this scope.", show_default=False)
    ] = None,
    retired: Annotated[bool, typer.Option("--retired", help="Only retired ones.")] = False,
) -> None:
    """List the current observations, file by file."""
    found = memory.observations.list(scope=scope, stale=stale, retired=retired)
    if call.as_json:
        emit(call, {"observations": [told(one) for one in found]})
        return
    screen = Screen(call)
    if not found:
        any_stale = " is stale" if stale else "s yet. Create some: ua-memory consolidate"
        screen.line(f"No observation{'s of this kind' if retired or scope else any_stale}.")
    for number, (path, group) in enumerate(groupby(found, key=lambda one: one.observation.place.path)):
        if number:
            screen.line()
        screen.line((path, "path"))
        for one in group:
            _line(screen, one)


def _line(screen: Screen, one: ObservationView) -> None:
    each = one.observation
    days = f", last {each.last}" if each.last else ""
    more = f"  {one.trend or 'undated'}, {count(len(each.proofs), 'proof')}{days}"
    name = [(f"  ^{each.id}", "id")] if each.id else []
    screen.item([("  - ", "faint")], each.text, (more, "faint"), *name)
    for why in (each.retired and f"retired: {each.retired}", *one.freshness.why):
        if why:
            screen.item("    ", (why, "warn"))


@app.verb(observations_app, "show", hidden=True)
@app.verb(observations_app, "get")
def observations_get(call: Call, memory: Memory, block: ObservationId) -> None:
    """Show an observation with its proofs, former wordings and freshness."""
    one = memory.observations.get(block)
    if call.as_json:
        emit(call, told(one))
    else:
        _show(call, memory, one)


def _show(call: Call, memory: Memory, one: ObservationView) -> None:
    screen, each = Screen(call), one.observation
    screen.line((each.text, "strong"))
    screen.line((each.place.citation, "path"), (f"  ^{each.id}" if each.id else "", "id"))
    span = f"{each.since} to {each.last}" if each.since != each.last else str(each.since)
    said = [("Rests on", f"{count(len(each.proofs), 'proof')}, {span if each.since else 'undated'}")]
    said += [("Trend", one.trend)] if one.trend else []
    said += [("Scope", each.scope)] if each.scope else []
    said += [("Retired", each.retired)] if each.retired else []
    said += [("Fresh", "\n".join(one.freshness.why) or "yes")]
    screen.rows([[(name, "strong"), text] for name, text in said])
    for proof in each.proofs:
        screen.item(
            [("  “", "faint")], proof.quote or "…", ("”  ", "faint"), (f"[[{proof.file}#^{proof.id}]]", "id")
        )
    for was in each.was:
        screen.item([("  was ", "faint")], was.text, (f"  until {was.until}", "faint"))


@app.verb(observations_app, "retire")
def observations_retire(
    call: Call,
    memory: Memory,
    block: ObservationId,
    because: Annotated[str, typer.Option("--because", metavar="TEXT", help="The reason.")],
) -> None:
    """Retire an observation, with a reason. It stays in its file."""
    after, result = memory.observations.retire(block, because, by_person=is_person(call))
    if call.as_json:
        emit(call, {**observation_shape(after), "revision": result.revision})
        return
    Screen(call).line(f"Retired: {after.text} (", commit(result.revision), ")")
    outcome(call, result)


def observation_shape(one: Observation) -> dict[str, Any]:
    """An observation as JSON: what its lines say."""
    known = {
        "since": one.since, "last": one.last, "scope": one.scope, "retired": one.retired,
        "entities": list(one.entities), "tags": list(one.tags),
        "was": [{"text": was.text, "until": was.until} for was in one.was],
    }  # fmt: skip
    return {
        **output.place(one.place, one.id),
        "text": one.text,
        "proofs": [{"file": each.file, "id": each.id, "quote": each.quote} for each in one.proofs],
        **output.without_empty(known),
    }


def told(one: ObservationView) -> dict[str, Any]:
    """An observation with its trend today, and how fresh it is."""
    return {
        **observation_shape(one.observation), "trend": one.trend, "fresh": not one.freshness.stale,
        "why": list(one.freshness.why),
    }  # fmt: skip


# -- opinions ----------------------------------------------------------------------------------------------
# `ua-memory opinions`: what the agent came to think, with its reasons.


opinions_app = app.new(no_args_is_help=True, help="The agent's opinions and their reasons.")

OpinionId = Annotated[str, typer.Argument(metavar="^ID", help="The opinion.", show_default=False)]


@app.verb(opinions_app, "list")
def opinions_list(
    call: Call,
    memory: Memory,
    everything: Annotated[bool, typer.Option("--all", help="Include dropped ones.")] = False,
) -> None:
    """List the opinions, each with its confidence."""
    found = memory.opinions.list(retired=everything)
    if call.as_json:
        emit(call, {"opinions": [hits.shape_of_opinion(one) for one in found]})
        return
    screen = Screen(call)
    if not found:
        screen.line('No opinions yet. Form some: ua-memory reflect --keep "…"')
    for one in found:
        hits.show_opinion(screen, one)


@app.verb(opinions_app, "show", hidden=True)
@app.verb(opinions_app, "get")
def opinions_get(call: Call, memory: Memory, block: OpinionId) -> None:
    """Show an opinion and its reasons."""
    found = memory.opinions.get(block)
    if call.as_json:
        emit(call, hits.shape_of_opinion(found))
    else:
        hits.show_opinion(Screen(call), found)


@opinions_app.command("revise", cls=app.Verb)
def opinions_revise(
    ctx: typer.Context,
    block: OpinionId,
    text: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT...]", help="The new wording.", show_default=False)
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(metavar="SHARE", min=0, max=1, help="From 0 to 1.", show_default=False)
    ] = None,
    because: Annotated[
        list[str] | None,
        typer.Option("--because", metavar="^ID", help="Another fact that supports it.", show_default=False),
    ] = None,
    as_json: app.Json = False,
    bank: app.Bank = None,
) -> None:
    """Change an opinion: its words, its confidence, its reasons.

    Former wordings are in the history: ua-memory blame ^id.
    """
    if not text and confidence is None and not because:
        raise Usage("nothing to change", hint='ua-memory opinions revise ^id "…" --confidence 0.6')
    with caller.opened(ctx) as (call, memory):
        done = memory.opinions.revise(
            block, text=" ".join(text or ()), confidence=confidence, because=because or (),
            by_person=is_person(call),
        )  # fmt: skip
        if call.as_json:
            emit(call, hits.shape_of_change(done))
        else:
            hits.show_change(Screen(call), done)
            outcome(call, done.result)


@app.verb(opinions_app, "drop")
def opinions_drop(
    call: Call,
    memory: Memory,
    block: OpinionId,
    why: Annotated[
        list[str] | None, typer.Argument(metavar="[WHY...]", help="The reason.", show_default=False)
    ] = None,
) -> None:
    """Drop an opinion.

    It stays in memory/opinions.md with the day and the reason.
    """
    done = memory.opinions.drop(block, " ".join(why or ()), by_person=is_person(call))
    if call.as_json:
        emit(call, hits.shape_of_change(done))
    else:
        hits.show_change(Screen(call), done)
        outcome(call, done.result)


# -- directives --------------------------------------------------------------------------------------------
# `ua-memory directives`: the hard rules of reflect, in ua-memory.toml.


directives_app = app.new(no_args_is_help=True, help="The hard rules of reflect, in ua-memory.toml.")


Rule = Annotated[list[str], typer.Argument(metavar="RULE...", help="One rule.", show_default=False)]
Number = Annotated[int, typer.Argument(metavar="N", help="Its number in the list.", show_default=False)]


@app.verb(directives_app, "list")
def directives_list(call: Call, memory: Memory) -> None:
    """List the rules, with the mission and the disposition."""
    config = memory.config
    traits = {name: getattr(config, name) for name in ("skepticism", "literalism", "empathy")}
    if call.as_json:
        emit(
            call,
            {"directives": list(config.directives), "mission": config.mission, "disposition": traits},
        )
        return
    screen = Screen(call)
    if not config.directives:
        screen.line('No directives. Add one: ua-memory directives create "Never name a customer."')
    for number, rule in enumerate(config.directives, 1):
        screen.item([(f"{number:>2}. ", "strong")], rule)
    screen.line()
    screen.line(("Mission: ", "faint"), config.mission or ("not set", "faint"))
    screen.line(("Disposition: ", "faint"), ", ".join(f"{name} {level}" for name, level in traits.items()))


@app.verb(directives_app, "create")
def directives_create(call: Call, memory: Memory, rule: Rule) -> None:
    """Add a rule at the end.

    It applies from the next question on. Comments in ua-memory.toml stay.
    """
    result = memory.directives.add(" ".join(rule), by_person=is_person(call))
    rules = memory.directives.list()
    if call.as_json:
        emit(call, {"directives": list(rules), "added": rules[-1], "revision": result.revision,
                    "redacted": dict(result.redacted), "notes": list(result.notes)})  # fmt: skip
        return
    Screen(call).line(f"Added {len(rules)}. {rules[-1]} (", commit(result.revision), ")")
    outcome(call, result)


@app.verb(directives_app, "get")
def directives_get(call: Call, memory: Memory, number: Number) -> None:
    """Read one rule."""
    rule = memory.directives.get(number)
    if call.as_json:
        emit(call, {"number": number, "directive": rule})
    else:
        Screen(call).line(rule)


@app.verb(directives_app, "update")
def directives_update(call: Call, memory: Memory, number: Number, rule: Rule) -> None:
    """Replace a rule."""
    result = memory.directives.update(number, " ".join(rule), by_person=is_person(call))
    rules = memory.directives.list()
    if call.as_json:
        emit(call, {"directives": list(rules), "changed": rules[number - 1], "revision": result.revision,
                    "redacted": dict(result.redacted), "notes": list(result.notes)})  # fmt: skip
        return
    Screen(call).line(f"Changed {number}. {rules[number - 1]} (", commit(result.revision), ")")
    outcome(call, result)


@app.verb(directives_app, "delete")
def directives_delete(call: Call, memory: Memory, number: Number) -> None:
    """Delete a rule."""
    gone, result = memory.directives.delete(number, by_person=is_person(call))
    if call.as_json:
        emit(call, {"removed": gone, "directives": list(memory.config.directives),
                    "revision": result.revision, "notes": list(result.notes)})  # fmt: skip
        return
    Screen(call).line(f"Removed {number}. {gone} (", commit(result.revision), ")")
    outcome(call, result)


# -- pages -------------------------------------------------------------------------------------------------
# `ua-memory pages`: knowledge pages, which are written from what memory knows.


pages_app = app.new(
    no_args_is_help=True, help="Knowledge pages: you say what one tracks, memory writes it, with its sources."
)

PageId = Annotated[
    str, typer.Argument(metavar="ID", help="The page's id: its file's name.", show_default=False)
]
Name = Annotated[str | None, typer.Option(help="Its name.", show_default=False)]
Query = Annotated[
    str | None,
    typer.Option(
        "--query",
        "--source-query",
        metavar="TEXT",
        help="The question that it answers.",
        show_default=False,
    ),
]
Tag = Annotated[list[str] | None, typer.Option(metavar="TAG", help="A tag; repeatable.", show_default=False)]


@app.verb(pages_app, "list")
def pages_list(call: Call, memory: Memory) -> None:
    """List the pages, what each tracks, and whether it is stale."""
    there = [(one, memory.pages.staleness(one.id)) for one in memory.pages.list()]
    notes = dict.fromkeys(said for _, why in there for said in why.notes)
    if call.as_json:
        told = [{**page_shape(one), "stale": history.stale(why)} for one, why in there]
        emit(call, {"pages": told, "notes": list(notes)})
        return
    screen = Screen(call)
    if not there:
        screen.line("No pages yet. Create one: ua-memory pages create ID --query QUESTION")
    for one, why in there:
        state: list[Any] = [(f"stale: {why}", "warn")] if why else [("up to date", "good")]
        screen.item([(one.id, "id"), "  "], (one.name, "strong"), f"  {one.source_query}  ", *state)
    for said in notes:
        note(call, said)


@app.verb(pages_app, "get")
def pages_get(call: Call, memory: Memory, id: PageId) -> None:
    """Read a page."""
    show(call, memory.pages.get(id))


@app.verb(pages_app, "create")
def pages_create(
    call: Call,
    memory: Memory,
    id: PageId,
    query: Annotated[
        str,
        typer.Option("--query", "--source-query", metavar="TEXT", help="The question that it answers."),
    ],
    name: Name = None,
    tag: Tag = None,
) -> None:
    """Create a page.

    The first `pages refresh` writes its text. What you write into it stays.
    """
    tell(call, "Created", memory.pages.create(id, name or id, query, tag or (), by_person=is_person(call)))


@app.verb(pages_app, "update")
def pages_update(
    call: Call, memory: Memory, id: PageId, name: Name = None, query: Query = None, tag: Tag = None
) -> None:
    """Change what a page is called or tracks.

    After a change of the question, the next refresh creates the page from scratch.
    """
    done = memory.pages.update(id, name=name, source_query=query, tags=tag, by_person=is_person(call))
    tell(call, "Changed", done)


@app.verb(pages_app, "delete")
def pages_delete(call: Call, memory: Memory, id: PageId) -> None:
    """Delete a page; `ua-memory undo` restores it."""
    tell(call, "Deleted", memory.pages.delete(id, by_person=is_person(call)))


@pages_app.command("refresh", cls=app.Verb)
def pages_refresh(
    ctx: typer.Context,
    id: Annotated[
        list[str] | None, typer.Argument(metavar="[ID...]", help="Only these.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All pages.")] = False,
    stale: Annotated[bool, typer.Option("--stale", help="All pages that are stale.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Create them from scratch, stale or not.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and the price; calls the model.")
    ] = False,
    as_json: app.Json = False,
    bank: app.Bank = None,
) -> None:
    """Refresh pages.

    Pages that are not stale are skipped. Your own paragraphs stay, and become facts. Without a model
    (ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL) a page lists what facts say.
    """
    if bool(id) + every + stale != 1:
        raise Usage("which pages?", hint="name them, or pass --stale or --all")
    done: list[RefreshResult] = []
    shapes: list[dict[str, Any]] = []
    prices: list[RefreshPrice] = []
    with caller.opened(ctx) as (call, memory):
        model = call.endpoint

        def tell(price: RefreshPrice) -> None:
            prices.append(price)
            history.told_price(call, price)

        def show_one(one: RefreshResult) -> None:
            done.append(one)
            shapes.append(history.refreshed_shape(one, prices.pop() if prices else None))
            if not call.as_json:
                history.show_refreshed(call, one)

        chosen: dict[str, Any] = {"model": model, "full": full, "dry_run": dry_run}
        chosen |= {"tell": tell if dry_run else None}
        try:
            for one in id or ():
                show_one(memory.pages.refresh(one, **chosen))
            if not id:
                memory.pages.refresh_stale(every=every, done=show_one, **chosen)
        finally:  # what was written before another one failed is told in any case
            if call.as_json and done:
                emit(call, {"pages": shapes})
        if call.as_json and not done:
            emit(call, {"pages": []})
        elif not done:
            Screen(call).line("No page is stale.")
        elif not model and any(one.diff for one in done):
            note(call, history.NO_MODEL)


def show(call: Call, one: Page | MentalModel) -> None:
    """A page or a mental model: its text as it stands, after a line that says what it is."""
    if call.as_json:
        emit(call, page_shape(one))
    elif one.body:
        Screen(call).raw(one.body)
    else:
        Screen(call).line(f"Not written yet: ua-memory pages refresh {one.id}")


def page_shape(one: Page | MentalModel) -> dict[str, Any]:
    """A page or a mental model as JSON; `query` is a page's."""
    return {
        "id": one.id,
        "name": one.name,
        **({"query": one.source_query} if hasattr(one, "source_query") else {}),
        "tags": list(one.tags),
        "body": one.body,
        **output.place(one.place, None),
    }


def tell(call: Call, did: str, done: PageChange) -> None:
    """What was done to a page or a mental model."""
    if call.as_json:
        result = done.result
        more = {"redacted": dict(result.redacted), "notes": list(result.notes)}
        emit(call, {**page_shape(done.record), "revision": result.revision, **more})
        return
    place = (done.record.place.path, "path")
    Screen(call).line(
        f"{did} ", (done.record.name, "strong"), " in ", place, " (", commit(done.result.revision), ")"
    )
    outcome(call, done.result)


# -- models ------------------------------------------------------------------------------------------------
# `ua-memory models`: mental models, which a person writes and no machine changes.


models_app = app.new(no_args_is_help=True, help="Mental models: texts of your own that reflect uses first.")

ModelId = Annotated[
    str, typer.Argument(metavar="ID", help="The model's id: its file's name.", show_default=False)
]
Text = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TEXT...]",
        help="Its text; `-` or a pipe reads standard input (default: your editor).",
        show_default=False,
    ),
]


@app.verb(models_app, "list")
def models_list(call: Call, memory: Memory) -> None:
    """List the mental models."""
    there = memory.models.list()
    if call.as_json:
        emit(call, {"models": [page_shape(one) for one in there]})
        return
    screen = Screen(call)
    if not there:
        screen.line("No mental models yet. Create one: ua-memory models create ID")
    for one in there:
        first = " ".join(one.body.split())
        screen.item([(one.id, "id"), "  "], (one.name, "strong"), (f"  {first[:160]}", "faint"))


@app.verb(models_app, "get")
def models_get(call: Call, memory: Memory, id: ModelId) -> None:
    """Read a mental model."""
    show(call, memory.models.get(id))


@app.verb(models_app, "create")
def models_create(
    call: Call,
    memory: Memory,
    id: ModelId,
    text: Text = None,
    name: Name = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="A tag; repeatable.", show_default=False)
    ] = None,
) -> None:
    """Write a mental model.

    Only a person may: agents are refused.
    """
    body = _text(call, text, "")
    tell(call, "Wrote", memory.models.create(id, name or id, body, tag or (), by_person=_by_person(call)))


@app.verb(models_app, "update")
def models_update(call: Call, memory: Memory, id: ModelId, text: Text = None, name: Name = None) -> None:
    """Change a mental model's text or name.

    The file in memory/models/ may be edited as well.
    """
    before = memory.models.get(id)
    body = None if name and not text else _text(call, text, before.body)
    tell(call, "Changed", memory.models.update(id, name=name, body=body, by_person=_by_person(call)))


@app.verb(models_app, "delete")
def models_delete(call: Call, memory: Memory, id: ModelId) -> None:
    """Delete a mental model; `ua-memory undo` restores it."""
    tell(call, "Deleted", memory.models.delete(id, by_person=_by_person(call)))


@app.verb(models_app, "refresh")
def models_refresh(call: Call, memory: Memory, id: ModelId) -> None:
    """Propose changes to a mental model, as a diff with sources. Nothing is written."""
    done = memory.models.propose(id, model=call.endpoint)
    if call.as_json:
        emit(call, history.proposal(done))
    else:
        history.show_proposal(call, done)


def _by_person(call: Call) -> bool:
    """A pipe of a person's is theirs; a shell that an agent runs says so in its environment."""
    return caller_origin(call)[1] in ("terminal", "cli")


def _text(call: Call, words: list[str] | None, before: str) -> str:
    """The text: words, standard input, or what an editor leaves, which begins with what there was."""
    if words or not call.reads_terminal:
        return read_text(call, words)
    edited = _edited(call, before) if _by_person(call) else before
    if edited == before:
        raise Usage("nothing was saved in the editor", hint="give the text as an argument, or by a pipe")
    return edited


def _edited(call: Call, before: str) -> str:
    """What the caller's editor makes of a text. Usage where there is none, or where it fails."""
    import shlex
    import subprocess
    import tempfile
    from pathlib import Path

    editor = call.env.get("VISUAL") or call.env.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="ua-memory-") as folder:  # only its owner may look into it
        file = Path(folder) / "model.md"
        file.write_text(before, encoding="utf-8")
        try:
            code = subprocess.run(
                [*shlex.split(editor), str(file)], env=dict(call.env), check=False
            ).returncode
        except OSError as error:
            raise Usage(f"the editor cannot be started: {error}", hint="set EDITOR") from error
        if code:
            raise Usage(
                f"the editor {editor!r} ended with {code}", hint="set EDITOR, or give the text by a pipe"
            )
        return file.read_text(encoding="utf-8", errors="replace")


# -- entities ----------------------------------------------------------------------------------------------
# `ua-memory entities`: the names of the bank, and the decisions about who is who.


entities_app = app.new(no_args_is_help=True, help="Names and their aliases.")

SHOWN = 220
"""Characters of a text that are shown around a name."""

EntityName = Annotated[str, typer.Argument(metavar="NAME", help="A name.", show_default=False)]
Limit = Annotated[int, typer.Option("-n", "--limit", metavar="N", min=1, help="At most so many.")]


@app.verb(entities_app, "list")
def entities_list(
    call: Call,
    memory: Memory,
    suggest: Annotated[
        bool, typer.Option("--suggest", help="Pairs of names that may be the same, with reasons.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Paths, handles, identifiers and doubtful words too.")
    ] = False,
    limit: Limit = 30,
) -> None:
    """List the names, the most frequent first.

    `--suggest` merges nothing: it prints the commands.
    """
    if suggest:
        pairs = memory.entities.suggestions(limit)
        shapes = [{"name": p.name, "other": p.other, "how": p.how, "reason": p.reason} for p in pairs]
        emit(call, {"suggestions": shapes}) if call.as_json else _suggest(call, pairs)
        return
    found = memory.entities.list(limit, every=every)
    emit(call, {"entities": [_known(one) for one in found]}) if call.as_json else _list(call, found)


def _list(call: Call, found: Sequence[EntitySummary]) -> None:
    screen = Screen(call)
    if not found:
        screen.line("No names yet.")
    rows: list[list[Any]] = []
    for one in found:
        seen = one.first if one.first == one.last else f"{one.first} to {one.last}"
        rows.append([(f"{one.count:>5}", "faint"), (one.name, "strong"), seen, (_also(one), "faint")])
    screen.rows(rows)


def _also(one: EntitySummary) -> str:
    also = [f"also {', '.join(one.aliases)}"] if one.aliases else []
    return "; ".join(also + ([f"not {', '.join(one.nots)}"] if one.nots else []))


def _suggest(call: Call, pairs: Sequence[Suggestion]) -> None:
    import shlex

    screen = Screen(call)
    if not pairs:
        screen.line("No names look alike.")
    for one in pairs:
        screen.item("", (one.name, "strong"), " and ", (one.other, "strong"), f": {one.reason}")
        names = f"{shlex.quote(one.name)} {shlex.quote(one.other)}"
        screen.line((f"  ua-memory entities merge {names}", "faint"))
    if pairs:
        screen.line(
            "\nIf two are different, ",
            ("ua-memory entities split NAME OTHER", "strong"),
            " records that.",
        )


@app.verb(entities_app, "show")
def entities_show(call: Call, memory: Memory, name: EntityName, limit: Limit = 10) -> None:
    """Show a name: its facts, the names it appears with, a timeline."""
    found = memory.entities.get(name)
    if call.as_json:
        emit(call, _portrait(found, limit))
    else:
        _tell(call, found, limit)


def _tell(call: Call, found: EntityDetails, limit: int) -> None:
    screen, one = Screen(call), found.known
    seen = one.first if one.first == one.last else f"{one.first} to {one.last}"
    screen.line((one.name, "strong"), f"  {count(one.count, 'place')}" + (f", {seen}" if seen else ""))
    if _also(one):
        screen.item("", _also(one))
    if found.beside:
        screen.item(
            [("appears with  ", "faint")], ", ".join(f"{n} ({k})" for n, k in [*found.beside.items()][:12])
        )
    if len(found.timeline) > 1:
        screen.line()
        _draw(screen, found.timeline)
    if found.items:
        screen.line()
    for item in [*reversed(found.items)][:limit]:
        day = item.day or item.date or " " * 10
        cited = f"^{item.id}" if item.id else f"{item.path}:{item.line}"
        text = _around(" ".join(item.text.split()), (one.name, *one.aliases))
        screen.item([(day, "faint"), "  "], text, "  ", (cited, "id" if item.id else "path"))
    if len(found.items) > limit:
        screen.line((f"and {len(found.items) - limit} before these: --limit {len(found.items)}", "faint"))


def _around(text: str, names: tuple[str, ...]) -> str:
    """A long text where it has one of the names first."""
    at = min((at for name in names if (at := text.casefold().find(name.casefold())) >= 0), default=0)
    start = max(0, min(at - SHOWN // 3, len(text) - SHOWN))
    cut = text[start : start + SHOWN]
    return f"{'…' if start else ''}{cut}{'…' if start + SHOWN < len(text) else ''}"


def _draw(screen: Screen, timeline: Mapping[str, int]) -> None:
    most, room = max(timeline.values()), max(10, min(40, screen.width - 30))
    rows: list[list[Any]] = []
    for when, number in timeline.items():
        bar = "█" * max(1, round(number / most * room)) if screen.fancy else ""
        rows.append([(when, "faint"), f"{number:>4}", (bar, "good")])
    screen.rows(rows)


# -- decisions ---------------------------------------------------------------------------------------------


@entities_app.command("alias", cls=app.Verb)
def entities_alias(
    ctx: typer.Context,
    name: EntityName,
    alias: Annotated[str, typer.Argument(metavar="ALIAS", help="The alias.", show_default=False)],
    as_json: app.Json = False,
    bank: app.Bank = None,
) -> None:
    """Add an alias to a name."""
    _decide(ctx, "alias", name, alias)


@entities_app.command("merge", cls=app.Verb)
def entities_merge(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name that stays.", show_default=False)],
    other: Annotated[
        str, typer.Argument(metavar="OTHER", help="The name that becomes an alias.", show_default=False)
    ],
    as_json: app.Json = False,
    bank: app.Bank = None,
) -> None:
    """Merge two names.

    Only memory/entities.md changes: facts keep their words, and `undo` or `split` reverses it.
    """
    _decide(ctx, "merge", name, other)


@entities_app.command("split", cls=app.Verb)
def entities_split(
    ctx: typer.Context,
    name: EntityName,
    alias: Annotated[str, typer.Argument(metavar="OTHER", help="The other name.", show_default=False)],
    as_json: app.Json = False,
    bank: app.Bank = None,
) -> None:
    """Mark two names as different."""
    _decide(ctx, "split", name, alias)


@entities_app.command("rename", cls=app.Verb)
def entities_rename(
    ctx: typer.Context,
    old: Annotated[str, typer.Argument(metavar="OLD", help="The old name.", show_default=False)],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its name.", show_default=False)],
    as_json: app.Json = False,
    bank: app.Bank = None,
) -> None:
    """Rename; the old name stays as an alias."""
    _decide(ctx, "rename", old, new)


def _decide(ctx: typer.Context, what: str, one: str, other: str) -> None:
    with caller.opened(ctx) as (call, memory):
        done: EntityDecision = getattr(memory.entities, what)(one, other, by_person=is_person(call))
        if call.as_json:
            emit(call, _decision(done))
            return
        screen = Screen(call)
        for each in done.entities:
            also = f"  also {', '.join(each.aliases)}" if each.aliases else ""
            nots = f"  not {', '.join(each.nots)}" if each.nots else ""
            screen.item("", (each.name, "strong"), also, nots)
        screen.line((f"{done.path}", "path"), "  ", commit(done.result.revision))
        outcome(call, done.result)


# -- JSON --------------------------------------------------------------------------------------------------


def _known(one: EntitySummary) -> dict[str, Any]:
    known = {"first": one.first, "last": one.last, "aliases": list(one.aliases), "not": list(one.nots)}
    return {"name": one.name, "count": one.count, "settled": one.settled, **output.without_empty(known)}


def _portrait(found: EntityDetails, limit: int) -> dict[str, Any]:
    items = [*reversed(found.items)][:limit]
    return {
        **_known(found.known),
        "beside": [{"name": name, "count": number} for name, number in found.beside.items()],
        "timeline": [{"when": when, "count": number} for when, number in found.timeline.items()],
        "facts": [
            {"text": item.text, "day": item.day or item.date, "record": item.record, "kind": item.kind}
            | output.place(item.place, item.id)
            for item in items
        ],
    }


def _decision(done: EntityDecision) -> dict[str, Any]:
    return {
        "entities": [
            {"name": e.name, "aliases": list(e.aliases), "not": list(e.nots), "line": e.place.line}
            for e in done.entities
        ],
        "path": done.path,
        "revision": done.result.revision,
        "notes": list(done.result.notes),
    }
