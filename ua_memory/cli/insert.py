"""`insert`, `retire`, `vouch` and `core`."""

from __future__ import annotations

import shlex
from functools import partial
from typing import TYPE_CHECKING, Literal

from ua_memory.caller import Call, is_person, origin_of, read_text
from ua_memory.cli import app
from ua_memory.cli.app import argument, option
from ua_memory.errors import Usage
from ua_memory.text.wording import RULES_BLOCK
from ua_memory.views import knowledge as views
from ua_memory.views import output
from ua_memory.views.output import Screen, emit_json, show_result, show_revision

if TYPE_CHECKING:
    from ua_memory.memory import Memory


# -- insert ------------------------------------------------------------------------------------------------
# `ua-memory insert`: remember one fact.


@app.verb()
def insert(
    call: Call,
    memory: Memory,
    text: list[str] | None = argument("TEXT...", "The fact; `-` or nothing reads standard input.", None),
    tag: list[str] | None = option("--tag TAG", "A tag; repeatable."),
    kind: Literal["world", "experience", "preference"] = option(
        "KIND", "world, experience or preference.", "world"
    ),
    when: str | None = option("DATE", "The day or time it is about, if not today: 2026-11-19, tomorrow."),
    entity: list[str] | None = option("--entity NAME", "Who or what it is about; repeatable."),
    origin: Literal["person", "agent", "tool", "web", "import"] | None = option(
        "WORD", "person, agent, tool, web or import (default: person at a terminal, agent for programs)."
    ),
    client: str | None = option("NAME", "The program it came from."),
    session: str | None = app.Session,
    request: str | None = app.Request,
) -> None:
    """Remember one fact, verbatim.

    It is added to today's log and committed before the command returns. Secrets are removed first. A text
    known with this kind and these tags is not added again; today is noted as a day on which it was seen.
    """
    who, through = origin_of(call)
    done = memory.insert(
        read_text(call, text), tags=tag or (), kind=kind, when=when, entities=entity or (),
        origin=origin or who, client=client or through, session=session, request=request,
    )  # fmt: skip
    show_result(call, done, views.insert_json, views.show_insert)


# -- retire ------------------------------------------------------------------------------------------------
# `ua-memory retire`: a fact that no longer holds.


@app.verb()
def retire(
    call: Call,
    memory: Memory,
    target: str = argument("^ID", "The fact.", show_default=False),
    by: str = option("--by ^ID", "The fact that replaces it.", ""),
    why: str = option("--why TEXT", "The reason.", ""),
) -> None:
    """Mark a fact as no longer true.

    It stays in its file, and is found by `search --retired` or a query about the past ("what was the port
    before?"). To remove a fact: ua-memory forget.
    """
    fact, result = memory.retire(target, by=by, why=why, by_person=is_person(call))
    done = "Retired" if result.paths else "Already retired"
    shape = {**output.place_json(fact.place, fact.id), "retired": fact.retired, "revision": result.revision}
    show_revision(call, result, shape, f"{done}: {fact.text}")


# -- vouch -------------------------------------------------------------------------------------------------
# `ua-memory vouch`: a fact of somebody else's that a person stands by.


@app.verb()
def vouch(
    call: Call,
    memory: Memory,
    target: str = argument("^ID", "The fact.", show_default=False),
) -> None:
    """Confirm a fact from an agent, a tool or the web.

    The fact counts as yours from then on: it may become a belief, a page or core memory. Where it came from
    stays in it. Only a person may do this.
    """
    after, result = memory.facts.vouch(target, by_person=is_person(call))
    shape = {**output.place_json(after.place, after.id), "origin": after.said_by, "revision": result.revision}
    show_revision(call, result, shape, f"Vouched for: {after.text}")


# -- core --------------------------------------------------------------------------------------------------
# `ua-memory core`: the blocks of MEMORY.md.


core_app = app.family("core", "Core memory: the blocks of MEMORY.md, which every session begins with.")


@app.verb(core_app, "list")
def core_list(call: Call, memory: Memory) -> None:
    """List the blocks and their share of the budget."""
    whole, *each = memory.core.budgets()
    pairs = zip(memory.core.list(), each, strict=True)
    shapes = [views.block_json(block, budget) for block, budget in pairs]
    emit_json(call, {"blocks": shapes, **output.budget_json(whole)})
    screen = Screen(call)
    if not each:
        screen.line("No blocks yet. Create one: ua-memory core replace NAME VALUE")
    views.show_budgets(screen, [*each, whole])


@app.verb(core_app, "get")
def core_get(
    call: Call, memory: Memory, name: str | None = argument(None, "A block's name (default: all).", None)
) -> None:
    """Read a block, or all of them."""
    blocks = [memory.core.get(name)] if name is not None else memory.core.list()
    if call.as_json:
        budgets = {budget.name: budget for budget in memory.core.budgets()[1:]}
        shapes = [views.block_json(block, budgets[block.name]) for block in blocks]
        emit_json(call, shapes[0] if name is not None else {"blocks": shapes})
    elif name is not None:
        Screen(call).raw(blocks[0].value)
    elif blocks:
        heads = (f"[{block.name}]" if block.labelled else block.name for block in blocks)
        both = zip(heads, blocks, strict=True)
        Screen(call).raw("\n\n".join(f"## {head}\n\n{block.value}" for head, block in both))


@app.verb(core_app, "replace")
def core_replace(
    call: Call,
    memory: Memory,
    name: str = argument(None, "The block's name; created if new."),
    value: list[str] | None = argument(
        "VALUE...", "Its new text; `-` or nothing reads standard input.", None
    ),
    expect: str | None = option("TEXT", "Fail unless this is the block's current text."),
    session: str | None = app.Session,
    request: str | None = app.Request,
) -> None:
    """Replace a block's text, or add a block.

    Nothing else of the file changes. A text over its budget is refused, not cut.
    """
    text = read_text(call, value)
    if not text and value != [""]:  # as of a command that failed before a pipe
        empty = shlex.join(["ua-memory", "core", "replace", name, ""])
        raise Usage("no text given", hint=f"to empty the block: {empty}")
    person = is_person(call)
    done = memory.core.replace(name, text, expect=expect, request=request, session=session, by_person=person)
    show_result(call, done, views.block_change_json, views.show_block_change)


Names = argument("ID...", "As `core proposals` prints them.", show_default=False)


@app.verb(core_app, "proposals")
def core_proposals(call: Call, memory: Memory) -> None:
    """List what is proposed for core memory.

    Rules and preferences that you stated in two sessions, or once with a word such as always or never; edits
    that an agent asked for in words that a tool printed; and edits of agents that you have not seen.
    """
    show_result(call, memory.proposals.list(), views.core_proposals_json, views.show_core_proposals)


@app.verb(core_app, "accept")
def core_accept(
    call: Call,
    memory: Memory,
    ids: list[str] = Names,
    block: str = option("NAME", "The block that rules are added to; created if new.", RULES_BLOCK),
) -> None:
    """Put proposals into core memory, or keep what an agent wrote there.

    Only for a person at a terminal.
    """
    done = memory.proposals.accept(ids, block=block, by_person=is_person(call))
    shown = partial(views.show_decided_proposals, verb="Accepted")
    show_result(call, done, views.decided_proposals_json, shown)


@app.verb(core_app, "reject")
def core_reject(call: Call, memory: Memory, ids: list[str] = Names) -> None:
    """Reject proposals, or undo what an agent wrote into core memory.

    Only for a person at a terminal. What was rejected is not proposed again.
    """
    done = memory.proposals.reject(ids, by_person=is_person(call))
    shown = partial(views.show_decided_proposals, verb="Rejected")
    show_result(call, done, views.decided_proposals_json, shown)
