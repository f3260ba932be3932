"""`reflect`, `consolidate`, `observations`, `opinions`, `directives`, `pages`, `models`, `entities`,
`model`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory import discovery, paths
from ua_memory.caller import Call, is_person, origin_of, read_text
from ua_memory.cli import app
from ua_memory.cli.app import argument, flag, option
from ua_memory.cli.search import ScopeOptions, editor_command, run_editor
from ua_memory.daemon.spawn import Log, LogStream
from ua_memory.errors import NotFound, Usage
from ua_memory.retain.conversations import NO_MODEL_HINT
from ua_memory.views import hits, output
from ua_memory.views import knowledge as views
from ua_memory.views.output import Screen, emit_json, fields, note, show_list, show_result, show_revision

if TYPE_CHECKING:
    from ua_memory.llm.ledger import Estimate
    from ua_memory.llm.model import Model
    from ua_memory.memory import Memory
    from ua_memory.reflect.consolidate import ConsolidationResult
    from ua_memory.reflect.refresh import RefreshResult
    from ua_memory.store.draft import Result


# -- observations ------------------------------------------------------------------------------------------
# `ua-memory observations`: statements that follow from several facts.


observations_app = app.family("observations")

ObservationId = argument("^ID", "The observation's block id.")


@app.verb(observations_app, "list")
def observations_list(
    call: Call,
    memory: Memory,
    stale: bool = flag("--stale", "Only those that are stale or whose facts changed."),
    scope: str | None = option("SCOPE", "Only this scope."),
    retired: bool = flag("--retired", "Only retired ones."),
) -> None:
    """List the current observations, file by file."""
    found = memory.observations.list(scope=scope, stale=stale, retired=retired)
    emit_json(call, {"observations": [views.observation_view_json(one) for one in found]})
    any_stale = " is stale" if stale else "s yet. Create some: ua-memory consolidate"
    nothing = f"No observation{'s of this kind' if retired or scope else any_stale}."
    views.show_observations(Screen(call), found, nothing)


@app.verb(observations_app, "get")
def observations_get(call: Call, memory: Memory, block: str = ObservationId) -> None:
    """Show an observation with its proofs, former wordings and freshness."""
    show_result(call, memory.observations.get(block), views.observation_view_json, views.show_observation)


@app.verb(observations_app, "retire")
def observations_retire(
    call: Call,
    memory: Memory,
    block: str = ObservationId,
    because: str = option("--because TEXT", "The reason.", ...),
) -> None:
    """Retire an observation, with a reason. It stays in its file."""
    after, result = memory.observations.retire(block, because, by_person=is_person(call))
    shape = {**views.observation_json(after), "revision": result.revision}
    show_revision(call, result, shape, f"Retired: {after.text}")


# -- opinions ----------------------------------------------------------------------------------------------
# `ua-memory opinions`: what the agent came to think, with its reasons.


opinions_app = app.family("opinions")

OpinionId = argument("^ID", "The opinion.")


@app.verb(opinions_app, "list")
def opinions_list(
    call: Call, memory: Memory, everything: bool = flag("--all", "Include dropped ones.")
) -> None:
    """List the opinions, each with its confidence."""
    nothing = 'No opinions yet. Form some: ua-memory reflect --keep "…"'
    found = memory.opinions.list(retired=everything)
    show_list(call, "opinions", found, views.opinion_json, views.show_opinion, nothing)


@app.verb(opinions_app, "get")
def opinions_get(call: Call, memory: Memory, block: str = OpinionId) -> None:
    """Show an opinion and its reasons."""
    show_result(call, memory.opinions.get(block), views.opinion_json, views.show_opinion)


@app.verb(opinions_app, "revise")
def opinions_revise(
    call: Call,
    memory: Memory,
    block: str = OpinionId,
    text: list[str] | None = argument("[TEXT...]", "The new wording.", None),
    confidence: float | None = option("SHARE", "From 0 to 1.", min=0, max=1),
    because: list[str] | None = option("--because ^ID", "Another fact that supports it."),
) -> None:
    """Change an opinion: its words, its confidence, its reasons.

    Former wordings are in the history: ua-memory blame ^id.
    """
    if not text and confidence is None and not because:
        raise Usage("nothing to change", hint='ua-memory opinions revise ^id "…" --confidence 0.6')
    done = memory.opinions.revise(
        block, text=" ".join(text or ()), confidence=confidence, because=because or (),
        by_person=is_person(call),
    )  # fmt: skip
    show_result(call, done, views.opinion_change_json, views.show_opinion_result)


@app.verb(opinions_app, "drop")
def opinions_drop(
    call: Call,
    memory: Memory,
    block: str = OpinionId,
    why: list[str] | None = argument("[WHY...]", "The reason.", None),
) -> None:
    """Drop an opinion.

    It stays in memory/opinions.md with the day and the reason.
    """
    done = memory.opinions.drop(block, " ".join(why or ()), by_person=is_person(call))
    show_result(call, done, views.opinion_change_json, views.show_opinion_result)


# -- directives --------------------------------------------------------------------------------------------
# `ua-memory directives`: the hard rules of reflect, in ua-memory.toml.


directives_app = app.family("directives", "Rules that reflect must follow, from ua-memory.toml.")


Rule = argument("RULE...", "One rule.")
Number = argument("N", "Its number in the list.")


@app.verb(directives_app, "list")
def directives_list(call: Call, memory: Memory) -> None:
    """List the rules, with the mission and the disposition."""
    config = memory.config
    traits = fields(config, "skepticism", "literalism", "empathy")
    emit_json(call, fields(config, "directives", "mission") | {"disposition": traits})
    views.show_directives(Screen(call), config.directives, config.mission, traits)


@app.verb(directives_app, "create")
def directives_create(call: Call, memory: Memory, rule: list[str] = Rule) -> None:
    """Add a rule at the end.

    It applies from the next question on. Comments in ua-memory.toml stay.
    """
    result = memory.directives.add(" ".join(rule), by_person=is_person(call))
    _show_rule(call, result, memory.directives.list(), 0, "Added")


def _show_rule(call: Call, result: Result, rules: Sequence[str], number: int, did: str) -> None:
    """Print what was done to a rule; number 0 is the last one."""
    rule = rules[number - 1]
    shape = {"directives": list(rules), did.lower(): rule, **fields(result, "revision", "redacted", "notes")}
    show_revision(call, result, shape, f"{did} {number or len(rules)}. {rule}")


@app.verb(directives_app, "get")
def directives_get(call: Call, memory: Memory, number: int = Number) -> None:
    """Read one rule."""
    rule = memory.directives.get(number)
    show_result(call, rule, lambda rule: {"number": number, "directive": rule}, Screen.line)


@app.verb(directives_app, "update")
def directives_update(call: Call, memory: Memory, number: int = Number, rule: list[str] = Rule) -> None:
    """Replace a rule."""
    result = memory.directives.update(number, " ".join(rule), by_person=is_person(call))
    _show_rule(call, result, memory.directives.list(), number, "Changed")


@app.verb(directives_app, "delete")
def directives_delete(call: Call, memory: Memory, number: int = Number) -> None:
    """Delete a rule."""
    gone, result = memory.directives.delete(number, by_person=is_person(call))
    shape = {"removed": gone, **fields(memory.config, "directives"), **fields(result, "revision", "notes")}
    show_revision(call, result, shape, f"Removed {number}. {gone}")


# -- pages -------------------------------------------------------------------------------------------------
# `ua-memory pages`: knowledge pages, which are written from what memory knows.


pages_app = app.family(
    "pages", "Knowledge pages: you choose the topic, memory writes the text and cites its sources."
)

PageId = argument("ID", "The page's id: its file's name.")
Name = option("", "Its name.")
Tag = option("TAG", "A tag; repeatable.")


@app.verb(pages_app, "list")
def pages_list(call: Call, memory: Memory) -> None:
    """List the pages, what each tracks, and whether it is stale."""
    there = [(one, memory.pages.staleness(one.id)) for one in memory.pages.list()]
    notes = dict.fromkeys(said for _, why in there for said in why.notes)
    rows = [{**views.page_json(one), "stale": views.stale_json(why)} for one, why in there]
    emit_json(call, {"pages": rows, "notes": list(notes)})
    screen = Screen(call)
    if not there:
        screen.line("No pages yet. Create one: ua-memory pages create ID --query QUESTION")
    for one in there:
        views.show_stale_page(screen, one)
    screen.note(*notes)


@app.verb(pages_app, "get")
def pages_get(call: Call, memory: Memory, id: str = PageId) -> None:
    """Read a page."""
    show_result(call, memory.pages.get(id), views.page_json, views.show_page)


@app.verb(pages_app, "create")
def pages_create(
    call: Call,
    memory: Memory,
    id: str = PageId,
    query: str = option("--query --source-query TEXT", "The question that it answers.", ...),
    name: str | None = Name,
    tag: list[str] | None = Tag,
) -> None:
    """Create a page.

    The first `pages refresh` writes its text. What you write into it stays.
    """
    done = memory.pages.create(id, name or id, query, tag or (), by_person=is_person(call))
    views.show_page_change(Screen(call), "Created", done)


@app.verb(pages_app, "update")
def pages_update(
    call: Call,
    memory: Memory,
    id: str = PageId,
    name: str | None = Name,
    query: str | None = option("--query --source-query TEXT", "The question that it answers."),
    tag: list[str] | None = Tag,
) -> None:
    """Change what a page is called or tracks.

    After a change of the question, the next refresh creates the page from scratch.
    """
    done = memory.pages.update(id, name=name, source_query=query, tags=tag, by_person=is_person(call))
    views.show_page_change(Screen(call), "Changed", done)


@app.verb(pages_app, "delete")
def pages_delete(call: Call, memory: Memory, id: str = PageId) -> None:
    """Delete a page; `ua-memory undo` restores it."""
    views.show_page_change(Screen(call), "Deleted", memory.pages.delete(id, by_person=is_person(call)))


@app.verb(pages_app, "refresh")
def pages_refresh(
    call: Call,
    memory: Memory,
    id: list[str] | None = argument("[ID...]", "Only these.", None),
    every: bool = flag("--all", "All pages."),
    stale: bool = flag("--stale", "All pages that are stale."),
    full: bool = flag("--full", "Create them from scratch, stale or not."),
    dry_run: bool = flag("--dry-run", "Show what would change, and the price; calls the model."),
) -> None:
    """Refresh pages.

    Pages that are not stale are skipped. Your own paragraphs stay, and become facts. Without a model
    (docs/model.md) a page lists what facts say.
    """
    if bool(id) + every + stale != 1:
        raise Usage("no pages given", hint="name them, or pass --stale or --all")
    shapes: list[dict[str, Any]] = []
    prices: list[Estimate] = []
    model = call.model(memory)

    def tell(price: Estimate) -> None:
        prices.append(price)
        note(call, output.estimate_text(price))

    def show_one(one: RefreshResult) -> None:
        _show_refreshed(call, shapes, one, prices.pop() if prices else None)

    chosen: dict[str, Any] = {"model": model, "full": full, "dry_run": dry_run}
    chosen |= {"tell": tell if dry_run else None}
    try:
        for one in id or ():
            show_one(memory.pages.refresh(one, **chosen))
        if not id:
            memory.pages.refresh_stale(every=every, done=show_one, **chosen)
    finally:  # also print what was written before an error
        if shapes:
            emit_json(call, {"pages": shapes})
    if not shapes:
        emit_json(call, {"pages": []})
        Screen(call).line("No page is stale.")
    elif not model and any(one["diff"] for one in shapes):
        note(call, views.PAGE_WITHOUT_MODEL)


# -- models ------------------------------------------------------------------------------------------------
# `ua-memory models`: mental models, which a person writes and no machine changes.


models_app = app.family("models", "Mental models: texts of your own that reflect uses first.")

ModelId = argument("ID", "The model's id: its file's name.")
Text = argument("[TEXT...]", "Its text; `-` or a pipe reads standard input (default: your editor).", None)


@app.verb(models_app, "list")
def models_list(call: Call, memory: Memory) -> None:
    """List the mental models."""
    nothing = "No mental models yet. Create one: ua-memory models create ID"
    show_list(call, "models", memory.models.list(), views.page_json, views.show_model, nothing)


@app.verb(models_app, "get")
def models_get(call: Call, memory: Memory, id: str = ModelId) -> None:
    """Read a mental model."""
    show_result(call, memory.models.get(id), views.page_json, views.show_page)


@app.verb(models_app, "create")
def models_create(
    call: Call,
    memory: Memory,
    id: str = ModelId,
    text: list[str] | None = Text,
    name: str | None = Name,
    tag: list[str] | None = Tag,
) -> None:
    """Write a mental model.

    Only a person may: agents are refused.
    """
    body = _read_text(call, text, "")
    done = memory.models.create(id, name or id, body, tag or (), by_person=_is_by_person(call))
    views.show_page_change(Screen(call), "Wrote", done)


@app.verb(models_app, "update")
def models_update(
    call: Call, memory: Memory, id: str = ModelId, text: list[str] | None = Text, name: str | None = Name
) -> None:
    """Change a mental model's text or name.

    The file in memory/models/ may be edited as well.
    """
    before = memory.models.get(id)
    body = None if name and not text else _read_text(call, text, before.body)
    done = memory.models.update(id, name=name, body=body, by_person=_is_by_person(call))
    views.show_page_change(Screen(call), "Changed", done)


@app.verb(models_app, "delete")
def models_delete(call: Call, memory: Memory, id: str = ModelId) -> None:
    """Delete a mental model; `ua-memory undo` restores it."""
    views.show_page_change(Screen(call), "Deleted", memory.models.delete(id, by_person=_is_by_person(call)))


@app.verb(models_app, "refresh")
def models_refresh(call: Call, memory: Memory, id: str = ModelId) -> None:
    """Propose changes to a mental model, as a diff with sources. Nothing is written."""
    proposal = memory.models.propose(id, model=call.model(memory))
    show_result(call, proposal, views.model_proposal_json, views.show_model_proposal)


def _is_by_person(call: Call) -> bool:
    """Whether a person makes the call, also through a pipe. An agent's shell says so in its environment."""
    return origin_of(call)[1] in ("terminal", "cli")


def _read_text(call: Call, words: list[str] | None, before: str) -> str:
    """The text from the arguments, standard input, or the editor, which starts with the text `before`."""
    if words or not call.reads_terminal:
        return read_text(call, words)
    edited = _edit_text(call, before) if _is_by_person(call) else before
    if edited == before:
        raise Usage("the editor saved nothing", hint="give the text as an argument, or by a pipe")
    return edited


def _edit_text(call: Call, before: str) -> str:
    """Let the caller edit a text. Usage without an editor, or if it fails."""
    words = editor_command(call)
    with tempfile.TemporaryDirectory(prefix="ua-memory-") as folder:  # only its owner may look into it
        file = Path(folder) / "model.md"
        file.write_text(before, encoding="utf-8")
        run_editor(call, [*words, str(file)])
        return file.read_text(encoding="utf-8", errors="replace")


# -- entities ----------------------------------------------------------------------------------------------
# `ua-memory entities`: the names of the bank, and the decisions about who is who.


entities_app = app.family("entities")


EntityName = argument("NAME", "A name.")
Limit = Annotated[int, typer.Option("-n", "--limit", metavar="N", min=1, help="Maximum number of entities.")]


@app.verb(entities_app, "list")
def entities_list(
    call: Call,
    memory: Memory,
    suggest: bool = flag("--suggest", "Pairs of names that may be the same, with reasons."),
    every: bool = flag("--all", "Include paths, handles, identifiers and uncertain names."),
    limit: Limit = 30,
) -> None:
    """List the names, the most frequent first.

    `--suggest` merges nothing: it prints the commands.
    """
    if suggest:
        pairs = memory.entities.suggestions(limit)
        emit_json(call, {"suggestions": output.json_value(pairs)})
        return views.show_suggestions(Screen(call), pairs)
    found = memory.entities.list(limit, every=every)
    emit_json(call, {"entities": [views.entity_summary_json(one) for one in found]})
    return views.show_entities(Screen(call), found)


@app.verb(entities_app, "show")
def entities_show(call: Call, memory: Memory, name: str = EntityName, limit: Limit = 10) -> None:
    """Show a name: its facts, the names it appears with, a timeline."""
    show_result(call, memory.entities.get(name), views.entity_json, views.show_entity, limit)


@app.verb(entities_app, "graph")
def entities_graph(
    call: Call,
    memory: Memory,
    names: list[str] | None = argument("[NAME...]", "Only these names.", None),
    limit: Limit = 60,
) -> None:
    """Count which names appear together: the most frequent ones, or those given."""
    show_result(call, memory.entities.graph(names or (), limit), views.graph_json, views.show_graph)


# -- decisions ---------------------------------------------------------------------------------------------


def _add_decision(verb: str, first: tuple[str, str], second: tuple[str, str], help: str) -> None:
    """Add a verb that decides about two entities. `first` and `second` are its arguments with their help."""
    one, two = argument(*first), argument(*second)

    def decide(call: Call, memory: Memory, name: str = one, other: str = two) -> None:
        done = getattr(memory.entities, verb)(name, other, by_person=is_person(call))
        show_result(call, done, views.decision_json, views.show_decision)

    app.verb(entities_app, verb, help=help)(decide)


_add_decision("alias", ("NAME", "A name."), ("ALIAS", "The alias."), "Add an alias to a name.")
_add_decision(
    "merge",
    ("NAME", "The name to keep."),
    ("OTHER", "The name that becomes an alias."),
    "Merge two names.\n\n"
    "Only memory/entities.md changes: facts keep their words, and `undo` or `split` reverses it.",
)
_add_decision("split", ("NAME", "A name."), ("OTHER", "The other name."), "Mark two names as different.")
_RENAME_HELP = "Rename; the old name stays as an alias."
_add_decision("rename", ("OLD", "The old name."), ("NEW", "Its name."), _RENAME_HELP)


# -- model -------------------------------------------------------------------------------------------------
# `ua-memory model test`: whether the model answers, and what that took.


model_app = app.family("model", "Test the model that reads conversations and texts.")
model_app.callback()(lambda: None)  # a family although it has one member yet


@app.verb(model_app, "test")
def model_test(call: Call, memory: Memory) -> None:
    """Ask the model for one sentence, and show who answered, how long it took and what it cost."""
    model = call.model(memory)
    if model is None:
        raise Usage("no model is configured", hint=NO_MODEL_HINT)
    show_result(call, memory.access.try_out(model), output.model_trial_json, output.show_model_trial)


# -- reflect -----------------------------------------------------------------------------------------------
# `ua-memory reflect`: a question answered from memory, with its proofs.


@app.verb()
def reflect(
    call: Call,
    memory: Memory,
    *,
    question: list[str] | None = argument("QUESTION...", "The question.", None),
    budget: str = option("--budget SIZE", "low, mid or high: how much to search.", "low"),
    max_tokens: int | None = option(
        "--max-tokens N", "Token limit of the answer (default: 500, 1,000 or 2,000).", min=20, max=20_000
    ),
    schema: str | None = option(
        "--schema FILE", "A JSON schema for an additional structured answer; - reads standard input."
    ),
    context_of: str = option("--context TEXT", "Why the question is asked.", ""),
    keep: bool = flag("--keep", "Form or revise opinions, in memory/opinions.md."),
    explain: bool = flag("--explain", "Show each step and what it found."),
    where: ScopeOptions,
) -> None:
    """Answer a question from memory, with sources.

    An agent searches mental models first, then observations, then facts; every sentence of its answer must
    be supported by what it cites. Without a model (docs/model.md) the evidence is
    printed in that order. Nothing is written, except with --keep.
    """
    filters = where.filters(call, memory)
    with output.progress(call, "Thinking"):
        found = memory.reflect(
            " ".join(question or ()), model=call.model(memory), budget=budget, max_tokens=max_tokens,
            schema=_read_schema(call, schema), context=context_of, filters=filters, keep_opinion=keep,
        )  # fmt: skip
    show_result(call, found, hits.answer_json, hits.show_answer, explain)


def _read_schema(call: Call, given: str | None) -> Any:
    """Read a JSON schema from a file or standard input. Usage, NotFound."""
    if given is None:
        return None
    try:
        data = call.stdin.read() if given == "-" else discovery.read(paths.absolute(call, given))
        return json.loads(data)
    except FileNotFoundError as error:
        raise NotFound("no such file", where=given, hint="--schema FILE, or - for standard input") from error
    except (OSError, ValueError, RecursionError) as error:
        raise Usage(f"the schema cannot be read: {error}", where=given) from error


# -- consolidate -------------------------------------------------------------------------------------------
# `ua-memory consolidate`: facts into observations, by hand or every night.


LOG_NAME = "consolidate.log"


@app.verb()
def consolidate(
    call: Call,
    memory: Memory,
    dry_run: bool = flag("--dry-run", "Show the diff without a model, and the price of one."),
    limit: int | None = option("N", "Only the N oldest facts.", min=1),
    max_usd: float | None = option("USD", "Cost limit of this run.", min=0),
    retry: bool = flag("--retry", "Retry facts that were set aside."),
    accept: bool = flag("--accept", "Allow more than a quarter of the observations to be retired."),
    batch_api: bool = flag(
        "--batch-api", "Use the batch API at half the price; a later run collects the answers."
    ),
    log: bool = flag("--log", "Write to local/consolidate.log in the state folder instead."),
) -> None:
    """Create observations from facts that no run has considered.

    With a model (docs/model.md) facts are compared with the observations, which
    are created, strengthened, revised, merged or retired, each with verbatim proofs. Without one, only what
    several days repeat becomes an observation. One run is one commit. Then stale pages are refreshed. If
    there is nothing to do and no terminal, as from cron, nothing is printed.
    """
    with ExitStack() as bar:
        if log:
            _print_to_log(call, memory)
        if dry_run:
            found = memory.observations.preview(model=call.model(memory), limit=limit, batch_api=batch_api)
            return show_result(call, found, views.preview_json, views.show_preview)
        if batch_api and call.model(memory) is None:
            raise Usage("no model is configured", hint="set ANTHROPIC_API_KEY")
        printed: dict[str, Any] = {}

        def after(done: ConsolidationResult, model: Model | None) -> None:
            bar.close()
            printed.update(views.consolidated_json(done), pages=[])
            views.show_consolidated(Screen(call), done)
            if not done.ended:
                show = partial(_show_refreshed, call, printed["pages"])
                memory.pages.refresh_stale(model, done=show)

        tell = bar.enter_context(output.progress(call, "Considering facts"))
        try:
            done = memory.consolidate(
                model=call.model(memory), limit=limit, usd=max_usd, retry=retry, accept=accept,
                batch_api=batch_api, tell=tell, after=after,
            )  # fmt: skip
        except KeyboardInterrupt:
            note(call, "interrupted; the answers so far are saved, and the next run continues from there")
            raise
        finally:
            if printed:
                emit_json(call, printed)
        if done.ended:
            raise done.ended
        return None


def _print_to_log(call: Call, memory: Memory) -> None:
    """Send all further output of the call to a log: cron would mail or drop it."""
    memory.store.make_state()
    memory.store.bank.local.mkdir(mode=0o700, exist_ok=True)
    found = Log(memory.store.bank.local, LOG_NAME)
    found.say("consolidate")
    call.stdout = call.stderr = LogStream(found)


def _show_refreshed(
    call: Call, pages: list[dict[str, Any]], page: RefreshResult, price: Estimate | None = None
) -> None:
    """Print a page's refresh, and add its JSON to `pages`."""
    pages.append(views.refreshed_json(page, price))
    views.show_refreshed(Screen(call), page)
