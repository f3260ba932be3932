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


Http = Annotated[
    bool, typer.Option("--http", help="Serve streamable HTTP on 127.0.0.1, with a token.", show_default=False)
]
Port = Annotated[
    int, typer.Option(metavar="N", min=0, max=65535, help="The port of --http; 0 for any that is free.")
]


@mcp_app.command(cls=verbs.Verb)
def mcp(
    ctx: typer.Context,
    http: Http = False,
    port: Port = 8765,
    call: Calling = False,
    bank: verbs.Bank = None,
) -> None:
    """Memory's tools for agents: an MCP server on standard input and output.

    Clients start it themselves: `claude mcp add ua-memory -- ua-memory mcp`. It
    answers at once and has the bank's daemon do the work. With --http it serves
    until it is stopped, and says where its token is.
    """
    import json

    from ua_memory import mcp_server
    from ua_memory.errors import Usage

    if http and not call:
        return _serve_http(ctx, port)
    if not call:  # the fast path serves; this is reached by who calls in other ways
        raise Usage("this is served by a process of its own", mend="run `ua-memory mcp`")
    with context.opened(ctx) as (asked, memory):
        memory.door = "mcp"
        given = json.loads(asked.stdin.read())
        found = mcp_server.answer(memory, given, _caller(asked, memory, given))
        asked.stdout.write(json.dumps(found) + "\n")
    return None


def _serve_http(ctx: typer.Context, port: int) -> None:
    """Serve over HTTP. Each request is answered by a command of its own, as the relay has it done."""
    import os

    from ua_memory.cli import relay
    from ua_memory.cli.format import note
    from ua_memory.mcp_server import loopback, sdk, switched_on

    with context.opened(ctx) as (call, memory):
        root, folder, names = memory.store.bank.root, memory.store.bank.local, switched_on(memory.config)
    mode = call.env.get("UA_MEMORY_DAEMON") or "auto"
    words = ["--bank", str(root), "mcp"]
    at = loopback.bound(port)
    token, new = loopback.token(folder)
    url = f"http://{loopback.HOST}:{at.getsockname()[1]}/mcp"
    call.stdout.write(f"Serving {root} at {url}\n")
    call.stdout.write(f"Token, shown this once: {token}\n" if new else "")
    file = folder / loopback.NAME
    call.stdout.write(f"Clients send it as `Authorization: Bearer …`; it is kept in {file}\n")
    call.stdout.flush()
    note(call, f"process {os.getpid()}; Ctrl-C stops it")
    version = relay.read_known()["legacy"]["initialize"]["serverInfo"]["version"]
    made = sdk.server(lambda asked: relay.ask(words, dict(asked), mode, []), version, names)
    loopback.serve(made, token, at)


def _caller(call: Call, memory: Memory, given: Mapping[str, Any]) -> Caller:
    """Who calls: by what the relay was told, else by the environment."""
    from ua_memory import mcp_server
    from ua_memory.cli import detached
    from ua_memory.cli.origin import caller
    from ua_memory.cli.places import places
    from ua_memory.places import TOOL, said_in
    from ua_memory.trust import BY_COMMAND

    known = caller(call)[1]
    known = known if known not in ("cli", "terminal") else str(given.get("client") or "mcp")
    known = "mcp" if known in BY_COMMAND else known  # a client may call itself whatever it likes

    def behind(words: Sequence[str]) -> str:
        detached.survive()
        return detached.start(call, memory, *words)

    session = given.get("session") or call.env.get("CLAUDE_CODE_SESSION_ID")
    here = {**places(call), "session": session or ""}
    tags = said_in(known, here, TOOL, memory.config.observation_scopes)
    return mcp_server.Caller(
        known,
        session,
        call.endpoint,
        behind,
        _folders(call),
        lambda bank, args: _scope(call, bank, args),
        tags,
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
