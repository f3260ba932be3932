"""`ua-memory mcp`: memory's tools for agents, over standard input and output."""

from __future__ import annotations

from typing import Annotated

import typer

from ua_memory.cli import context, verbs

mcp_app = verbs.new()

Call = Annotated[bool, typer.Option("--call", hidden=True, help="Answer one call, given as JSON.")]


@mcp_app.command(cls=verbs.Verb)
def mcp(ctx: typer.Context, call: Call = False, bank: verbs.Bank = None) -> None:
    """Memory's tools for agents: an MCP server on standard input and output.

    Clients start it themselves: `claude mcp add ua-memory -- ua-memory mcp`. It
    answers at once and has the bank's daemon do the work.
    """
    import json

    from ua_memory import mcp_server
    from ua_memory.cli.origin import caller
    from ua_memory.errors import Usage

    if not call:  # the fast path serves; this is reached by who calls in other ways
        raise Usage("this is served by a process of its own", mend="run `ua-memory mcp`")
    with context.opened(ctx) as (asked, memory):
        memory.door = "mcp"
        given = json.loads(asked.stdin.read())
        client = caller(asked)[1]
        who = mcp_server.Caller(
            client if client not in ("cli", "terminal") else "mcp", asked.env.get("CLAUDE_CODE_SESSION_ID")
        )
        text, failed = mcp_server.call(memory, given["name"], given.get("arguments"), who)
        asked.stdout.write(json.dumps({"text": text, "failed": failed}) + "\n")
