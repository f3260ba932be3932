"""`ua-memory mcp`: memory's tools for agents, over standard input and output, or over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ua_memory.cli.call import Call
    from ua_memory.mcp_server import Caller
    from ua_memory.memory import Filters, Memory

mcp_app = verbs.new()

Calling = Annotated[bool, typer.Option("--call", hidden=True, help="Answer one request, given as JSON.")]


@mcp_app.command(cls=verbs.Verb)
def mcp(ctx: typer.Context, call: Calling = False, bank: verbs.Bank = None) -> None:
    """Memory's tools for agents: an MCP server on standard input and output.

    Clients start it themselves: `claude mcp add ua-memory -- ua-memory mcp`. It
    answers at once and has the bank's daemon do the work.
    """
    import json

    from ua_memory import mcp_server
    from ua_memory.errors import Usage

    if not call:  # the fast path serves; this is reached by who calls in other ways
        raise Usage("this is served by a process of its own", mend="run `ua-memory mcp`")
    with context.opened(ctx) as (asked, memory):
        memory.door = "mcp"
        given = json.loads(asked.stdin.read())
        found = mcp_server.answer(memory, given, _caller(asked, memory, given))
        asked.stdout.write(json.dumps(found) + "\n")


def _caller(call: Call, memory: Memory, given: Mapping[str, Any]) -> Caller:
    """Who calls: by what the relay was told, else by the environment."""
    from ua_memory import mcp_server
    from ua_memory.cli import detached
    from ua_memory.cli.origin import caller

    known = caller(call)[1]
    known = known if known not in ("cli", "terminal") else str(given.get("client") or "mcp")

    def behind(words: Sequence[str]) -> str:
        detached.survive()
        return detached.start(call, memory, *words)

    session = given.get("session") or call.env.get("CLAUDE_CODE_SESSION_ID")
    return mcp_server.Caller(
        known, session, call.endpoint, behind, _folders(call), lambda bank, args: _scope(call, bank, args)
    )


def _folders(call: Call) -> tuple[Path, ...]:
    """Where the client was started, and the project that it says it works in."""
    from pathlib import Path

    project = call.env.get("CLAUDE_PROJECT_DIR")
    return (call.cwd, *([Path(project)] if project else []))


def _scope(call: Call, memory: Memory, given: Mapping[str, Any]) -> Filters:
    import json

    from ua_memory.cli.search import chosen, scope

    groups = json.dumps(given["tag_groups"]) if given.get("tag_groups") else ""
    tags = scope(call, given.get("tags"), given.get("tags_match", "any_strict"), groups)
    return chosen(memory, given.get("since"), given.get("until"), tags, given.get("kinds"), None)
