"""`daemon` and `mcp`."""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from typer import Option

from ua_memory import caller
from ua_memory.caller import Call
from ua_memory.caller import caller as caller_origin
from ua_memory.cli import app
from ua_memory.daemon import spawn
from ua_memory.daemon.server import CallerStream, Service, given
from ua_memory.daemon.spawn import AlreadyRuns, Log, ensure, holder, process_lock, runs
from ua_memory.daemon.worker import Warm
from ua_memory.errors import Busy, Usage
from ua_memory.hooks.context import places, records_of_caller
from ua_memory.index import embedding
from ua_memory.mcp import relay, tools
from ua_memory.mcp.tools import offered
from ua_memory.paths import default_bank, is_bank
from ua_memory.text.wording import BY_COMMAND, TOOL, said_in
from ua_memory.transcripts.reader import TranscriptWords, transcript_words
from ua_memory.views.output import Screen, count, emit_json, fields, note, show_list

if TYPE_CHECKING:
    from typing import BinaryIO, TextIO

    from ua_memory.daemon.server import Output, Request
    from ua_memory.daemon.spawn import Daemon
    from ua_memory.mcp.tools import Caller
    from ua_memory.memory import Memory
    from ua_memory.paths import Bank


# -- daemon ------------------------------------------------------------------------------------------------
# `ua-memory daemon`: start, stop and watch the process that keeps a bank warm.


daemon_app = app.new(
    no_args_is_help=True,
    help="The background process that keeps index and model loaded. Commands start it automatically.",
)


@app.verb(daemon_app, lenient=True)
def start(call: Call, memory: Memory) -> None:
    """Start it, and wait until it answers."""
    _tell(call, ensure(memory.store.bank, call.env), "Running")


@app.verb(daemon_app, opens=False)
def stop(call: Call, every: bool = Option(False, "--all", help="The daemons of all banks.")) -> None:
    """Stop it; a running command is finished first."""
    if every:
        _stop_all(call)
        return
    with caller.opened(call, lenient=True) as memory:
        _tell(call, _stopped(memory.store.bank, call), "Stopped")


@app.verb(daemon_app, lenient=True)
def restart(
    call: Call,
    memory: Memory,
    with_key: bool = Option(
        False, "--with-key", help="Give the daemon this shell's model and key, for its background work."
    ),
) -> None:
    """Restart it."""
    _stopped(memory.store.bank, call)
    _tell(call, ensure(memory.store.bank, call.env, key=with_key), "Running")


@app.verb(daemon_app, lenient=True)
def status(call: Call, memory: Memory) -> None:
    """Show whether it runs, since when, and what it has loaded."""
    found, local = spawn.status(memory.store.bank.root, call.env), memory.store.bank.local
    if found is None and runs(local):
        what = "the daemon does not answer"
        raise Busy(what, where=str(local / "daemon.lock"), hint="ua-memory daemon restart")
    _tell(call, found, "Running")


@app.verb(daemon_app, "list", opens=False)
def list_(call: Call) -> None:
    """List the daemons of all banks."""
    _listed(call, spawn.every(call.env))


@app.verb(daemon_app, lenient=True)
def run(call: Call, memory: Memory) -> None:
    """Run the daemon in the foreground until Ctrl-C."""
    try:
        why = serve(call, memory)
    except AlreadyRuns:
        why = "this bank already has a daemon"
    if call.terminals:
        note(call, f"the daemon exited: {why}")


@app.verb(daemon_app, lenient=True)
def logs(
    call: Call,
    memory: Memory,
    lines: int = Option(20, "--lines", "-n", metavar="N", min=1, max=10_000, help="Number of lines."),
) -> None:
    """Print its log."""
    log = Log(memory.store.bank.local)
    rows = log.tail(lines)
    emit_json(call, {"log": str(log.file), "lines": rows})
    if rows:
        Screen(call).raw("\n".join(rows))


def _stopped(bank: Bank, call: Call) -> dict[str, Any] | None:
    """What it said of itself before it left, or only its process id if it did not answer; None if there was
    none. Busy if it does not leave."""
    found, pid = spawn.status(bank.root, call.env), holder(bank.local)

    def stop() -> object:
        return found and spawn.status(bank.root, call.env, "stop")

    if not spawn.end(lambda: runs(bank.local), stop, lambda: holder(bank.local)):
        raise Busy("the daemon does not exit", where=str(bank.root), hint="ua-memory daemon logs")
    return found or ({"pid": pid} if pid else None)


def _stop_all(call: Call) -> None:
    """Stop the daemons of all banks. Busy names those that do not leave."""
    found = spawn.every(call.env)
    stay = [one for one in found if not one.end()]
    _listed(call, [one for one in found if one not in stay], "Stopped: ")
    if stay:
        raise Busy("does not exit", where=", ".join(f"process {one.pid}" for one in stay), hint="kill it")


def _listed(call: Call, found: Sequence[Daemon], did: str = "") -> None:
    def shape(one: Daemon) -> dict[str, Any]:
        return fields(one, "pid", "bank", "socket") | {"answers": one.said is not None}

    def people(screen: Screen, one: Daemon) -> None:
        said = f"since {one.said['since']}" if one.said else "does not answer"
        screen.line(f"{did}process {one.pid}, {one.bank or one.socket}, {said}")

    show_list(call, "daemons", found, shape, people, "No daemon runs.")


def _tell(call: Call, found: dict[str, Any] | None, did: str) -> None:
    emit_json(call, {"running": found is not None and did == "Running", **(found or {})})
    if found is None:
        Screen(call).line("No daemon runs for this bank.")
    elif "since" not in found:
        Screen(call).line(f"{did}: process {found['pid']}, which did not answer")
    else:
        holds = "index and model loaded" if found["warm"] else "nothing loaded"
        served = count(found["commands"], "command")
        Screen(call).line(f"{did}: process {found['pid']} since {found['since']}, {served}, {holds}")


# -- mcp ---------------------------------------------------------------------------------------------------
# `ua-memory mcp`: memory's tools for agents, over standard input and output, or over HTTP.


@app.verb(opens=False, json=False)
def mcp(
    call: Call,
    tools_: str | None = Option(
        None, "--tools", metavar="NAMES", help="all, or tools and sets by name, with commas."
    ),
    http: bool = Option(False, "--http", help="Serve streamable HTTP on 127.0.0.1, with a token."),
    port: int = Option(8765, metavar="N", min=0, max=65535, help="The port of --http; 0 for any free one."),
    once: bool = Option(False, "--call", hidden=True, help="Answer one request, given as JSON."),
) -> None:
    """Run the MCP server with memory's tools, on standard input and output.

    Clients start it themselves: `claude mcp add ua-memory -- ua-memory mcp --tools all`. The bank's daemon
    does the work. Without --tools it has the ten tools that suit every client. With --http it serves until it
    is stopped, and prints where its token is.
    """
    names = relay.split_names(tools_ or "")
    tools.chosen(names)
    if http and not once:
        return _serve_http(call, port, names)
    if not once:  # the fast path serves; this is reached by who calls in other ways
        raise Usage("this runs in its own process", hint="run `ua-memory mcp`")
    with caller.opened(call) as memory:
        memory.door = "mcp"
        given = json.loads(call.stdin.read())
        found = tools.answer(memory, given, _caller(call, memory, given))
        call.stdout.write(json.dumps(found) + "\n")
    return None


def _serve_http(call: Call, port: int, asked: Sequence[str]) -> None:
    """Serve over HTTP. Each request is answered by a command of its own, as the relay has it done."""
    if find_spec("mcp") is None:
        raise Usage("serving over HTTP needs the MCP SDK", hint="pip install 'ua-memory[http]'")
    with caller.opened(call) as memory:
        root, folder = memory.store.bank.root, memory.store.bank.local
        names = offered(memory.config, asked)
        if wrong := relay.unknown_names(memory.config.mcp_tools, relay.read_known()):
            note(call, f"mcp.tools: {wrong}")
    mode = call.env.get("UA_MEMORY_DAEMON") or "auto"
    words = ["--bank", str(root), "mcp"]
    at = tools.bound(port)
    token, new = tools.token(folder)
    url = f"http://{tools.HOST}:{at.getsockname()[1]}/mcp"
    call.stdout.write(f"Serving {root} at {url}\n")
    call.stdout.write(f"Token, shown this once: {token}\n" if new else "")
    file = folder / tools.COOKIE_NAME
    call.stdout.write(f"Clients send it as `Authorization: Bearer …`; it is kept in {file}\n")
    call.stdout.flush()
    note(call, f"process {os.getpid()}; Ctrl-C stops it")
    version = relay.read_known()["legacy"]["initialize"]["serverInfo"]["version"]
    made = tools.server(lambda asked: relay.ask(words, dict(asked), mode, []), version, names)
    tools.serve(made, token, at)


def _caller(call: Call, memory: Memory, given: Mapping[str, Any]) -> Caller:
    """Who calls: by what the relay was told, else by the environment."""
    known = caller_origin(call)[1]
    known = known if known not in ("cli", "terminal") else str(given.get("client") or "mcp")
    known = "mcp" if known in BY_COMMAND else known  # a client may call itself whatever it likes

    def behind(words: Sequence[str]) -> str:
        spawn.survive()
        return spawn.start_detached(memory.store.bank, call.env, *words)

    session = given.get("session") or call.env.get("CLAUDE_CODE_SESSION_ID")
    here = {**places(call), "session": session or ""}
    tags = said_in(known, here, TOOL, memory.config.observation_scopes)
    project = call.env.get("CLAUDE_PROJECT_DIR")  # that the client says it works in
    return tools.Caller(
        known, session, call.model(memory), behind, (call.cwd, *([Path(project)] if project else [])),
        here, tags,
        lambda: _words(memory, given.get("process"), session or ""),
        lambda: [root for root in (caller.found(call), default_bank(call.home)) if root and is_bank(root)],
    )  # fmt: skip


MOST_SESSIONS = 4
"""Sessions of one client's process whose transcripts are read for a check."""


def _words(memory: Memory, process: object, session: str) -> TranscriptWords | None:
    """What was said and printed in the sessions that the caller's client runs, as far as their transcripts
    tell; None where there is none to be read."""
    pid = process if isinstance(process, int) else 0
    records = records_of_caller(memory.store.bank.pending, pid, session)
    found = [
        transcript_words(str(one.get("transcript") or ""), str(one.get("client")))
        for one in records[:MOST_SESSIONS]
    ]
    read = [words for words in found if words]
    if not read:
        return None
    said = tuple(text for words in read for text in words.said)
    outputs = tuple(text for words in read for text in words.outputs)
    return TranscriptWords(said, outputs, len(read) == len(records) and all(w.complete for w in read))


# -- serving -----------------------------------------------------------------------------------------------
# The daemon's side of the command line: a request of a caller becomes the call that it is.


LENT = ("HOME", "TZ", "LANG", "LC_", "GIT_", "EMAIL", "XDG_CONFIG_HOME")
"""How a variable begins that processes we start, or the clock, take from the environment of this process."""

ANSWERS_AGENTS = frozenset({"hook", "mcp"})
"""Verbs whose answer no person reads."""
FLAGS = ("--json", "--explain")
"""What may stand before the words of a query and says nothing of them."""


def perform_request(request: Request, output: Output, warm: Warm) -> int:
    """Run a command as its caller would have, in the bank that is kept warm, and return the exit code."""
    if query := likely(request.argv):
        warm.expect(query)
    streams = [CallerStream(output, n, request.encodings[n - 1]) for n in (1, 2)]
    call = Call(
        argv=request.argv, cwd=Path(request.cwd), home=Path(request.home), env=request.env,
        stdin=cast("BinaryIO", given(request.stdin)), stdout=cast("TextIO", streams[0]),
        stderr=cast("TextIO", streams[1]), terminals=request.terminals, width=request.width,
        opener=partial(warm.opened, env=request.env),
    )  # fmt: skip
    with _lent(request.env):
        code = app.run(call)
        if warm.unreported and not ANSWERS_AGENTS & set(request.argv[:3]):
            for text in dict.fromkeys(warm.unreported):
                note(call, text)
            warm.unreported.clear()
        return code


def likely(argv: Sequence[str]) -> str:
    """What a command line is likely to ask, '' where it begins otherwise: it is not read for that."""
    match argv:
        case ["--bank", _, *rest] | [*rest] if rest[:1] in (["search"], ["recall"]):
            words = dropwhile(FLAGS.__contains__, rest[1:])
            return " ".join(takewhile(lambda word: not word.startswith("-"), words))
        case _:
            return ""


@contextmanager
def _lent(env: Mapping[str, str]) -> Iterator[None]:
    """Have this process's environment be the caller's in what git and the clock read from it.

    Only one command runs at a time, and mostly there is nothing to change.
    """
    before = {name: value for name, value in os.environ.items() if name.startswith(LENT)}
    theirs = {name: value for name, value in env.items() if name.startswith(LENT)}
    if before == theirs:
        yield
        return
    _exchange(before, theirs)
    try:
        yield
    finally:
        _exchange(theirs, before)


def _exchange(old: Mapping[str, str], new: Mapping[str, str]) -> None:
    for name in old.keys() - new.keys():
        del os.environ[name]
    os.environ.update(new)
    if old.get("TZ") != new.get("TZ"):
        time.tzset()


def serve(call: Call, memory: Memory) -> str:
    """Be the bank's daemon until there is a reason to leave, and return it. AlreadyRuns."""
    embedding.use_one_arena()
    # Its matrices are small: two threads wait for each other longer than one takes, on loaded cores twice.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    bank = memory.store.bank
    memory.store.make_state()
    gc.set_threshold(10_000)  # a search makes thousands of short-lived things, and none goes in circles
    with process_lock(bank.local / "daemon.lock"):
        service = Service(
            Warm(bank.root, memory.config, bank.pending, call.env), perform_request, bank.local, call.env
        )
        gc.freeze()
        return service.run()
