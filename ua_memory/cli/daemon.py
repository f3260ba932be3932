"""`daemon` and `mcp`."""

from __future__ import annotations

import gc
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from itertools import dropwhile, takewhile
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from ua_memory import caller, paths
from ua_memory.caller import Call, origin_of
from ua_memory.cli import app
from ua_memory.cli.app import flag, option
from ua_memory.clients.transcripts import TranscriptWords, transcript_words
from ua_memory.daemon import spawn
from ua_memory.daemon.server import CallerStream, Service, standard_input
from ua_memory.daemon.spawn import AlreadyRuns, Log, daemon_pid, ensure_answers, is_running, process_lock
from ua_memory.daemon.worker import WarmBank
from ua_memory.errors import Busy, GitFailed, OutOfMemory, Usage
from ua_memory.hooks.context import placeholder_values, records_of_caller
from ua_memory.index import embedding, vectors
from ua_memory.mcp import relay, tools
from ua_memory.mcp.tools import offered_tools
from ua_memory.paths import default_bank, is_bank
from ua_memory.text.wording import BY_COMMAND, TOOL, context_tags
from ua_memory.views.output import Screen, count, emit_json, fields, note, show_list

if TYPE_CHECKING:
    from typing import BinaryIO, TextIO

    from ua_memory.daemon.server import Output, Request
    from ua_memory.daemon.spawn import Daemon
    from ua_memory.mcp.tools import Caller
    from ua_memory.memory import Memory
    from ua_memory.paths import Bank


# -- daemon ------------------------------------------------------------------------------------------------
# `ua-memory daemon`: start, stop and inspect the process that keeps a bank's index and model loaded.


daemon_app = app.family(
    "daemon", "The background process that keeps index and model loaded. Commands start it automatically."
)


@app.verb(daemon_app, lenient=True)
def start(call: Call, memory: Memory) -> None:
    """Start it, and wait until it answers."""
    _print_status(call, ensure_answers(memory.store.bank, call.env), "Running")


@app.verb(daemon_app, opens_bank=False)
def stop(call: Call, every: bool = flag("--all", "The daemons of all banks.")) -> None:
    """Stop it; a running command is finished first."""
    if every:
        _stop_all(call)
        return
    with caller.opened(call, lenient=True) as memory:
        _print_status(call, _stop(memory.store.bank, call), "Stopped")


@app.verb(daemon_app, lenient=True)
def restart(
    call: Call,
    memory: Memory,
    with_key: bool = flag(
        "--with-key", "Give the daemon this shell's model and key, for its background work."
    ),
) -> None:
    """Restart it."""
    _stop(memory.store.bank, call)
    _print_status(call, ensure_answers(memory.store.bank, call.env, key=with_key), "Running")


@app.verb(daemon_app, lenient=True)
def status(call: Call, memory: Memory) -> None:
    """Show whether it runs, since when, and what it has loaded."""
    found, local = spawn.status(memory.store.bank.root, call.env), memory.store.bank.local
    if found is None and is_running(local):
        raise spawn.not_answering(local)
    _print_status(call, found, "Running")


@app.verb(daemon_app, "list", opens_bank=False)
def list_(call: Call) -> None:
    """List the daemons of all banks."""
    _print_daemons(call, spawn.list_daemons(call.env))


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
    lines: int = option("--lines -n N", "Number of lines.", 20, min=1, max=10_000),
) -> None:
    """Print its log."""
    log = Log(memory.store.bank.local)
    rows = log.tail(lines)
    emit_json(call, {"log": str(log.file), "lines": rows})
    if rows:
        Screen(call).raw("\n".join(rows))


def _stop(bank: Bank, call: Call) -> dict[str, Any] | None:
    """Stop a bank's daemon and return its last status, only its process id if it did not answer, or None if
    none ran. Busy if it does not exit."""
    found, pid = spawn.status(bank.root, call.env), daemon_pid(bank.local)
    if found is None and spawn.is_another_users(pid):
        raise spawn.not_answering(bank.local)

    def stop() -> object:
        return found and spawn.status(bank.root, call.env, "stop")

    if not spawn.stop_daemon(lambda: is_running(bank.local), stop, lambda: daemon_pid(bank.local)):
        raise Busy("the daemon does not exit", where=str(bank.root), hint="ua-memory daemon logs")
    return found or ({"pid": pid} if pid else None)


def _stop_all(call: Call) -> None:
    """Stop the daemons of all banks. Busy names those that do not exit."""
    found = spawn.list_daemons(call.env)
    stay = [one for one in found if not one.end()]
    _print_daemons(call, [one for one in found if one not in stay], "Stopped: ")
    if stay:
        raise Busy("does not exit", where=", ".join(f"process {one.pid}" for one in stay), hint="kill it")


def _print_daemons(call: Call, found: Sequence[Daemon], prefix: str = "") -> None:
    def to_json(one: Daemon) -> dict[str, Any]:
        return fields(one, "pid", "bank", "socket") | {"answers": one.said is not None}

    def to_screen(screen: Screen, one: Daemon) -> None:
        said = f"since {one.said['since']}" if one.said else "does not answer"
        screen.line(f"{prefix}process {one.pid}, {one.bank or one.socket}, {said}")

    show_list(call, "daemons", found, to_json, to_screen, "No daemon runs.")


def _print_status(call: Call, found: dict[str, Any] | None, state: str) -> None:
    emit_json(call, {"running": found is not None and state == "Running", **(found or {})})
    if found is None:
        Screen(call).line("No daemon runs for this bank.")
    elif "since" not in found:
        Screen(call).line(f"{state}: process {found['pid']}, which did not answer")
    else:
        loaded = "index and model loaded" if found["warm"] else "nothing loaded"
        served = count(found["commands"], "command")
        Screen(call).line(f"{state}: process {found['pid']} since {found['since']}, {served}, {loaded}")


# -- mcp ---------------------------------------------------------------------------------------------------
# `ua-memory mcp`: memory's tools for agents, over standard input and output, or over HTTP.


@app.verb(opens_bank=False, json=False)
def mcp(
    call: Call,
    tools_: str | None = option("--tools NAMES", "all, or tools and sets by name, with commas."),
    http: bool = flag("--http", "Serve streamable HTTP on 127.0.0.1, with a token."),
    port: int = option("N", "The port of --http; 0 for any free one.", 8765, min=0, max=65535),
    once: bool = flag("--call", "Answer one request, given as JSON.", hidden=True),
) -> None:
    """Run the MCP server with memory's tools, on standard input and output.

    Clients start it themselves: `claude mcp add ua-memory -- ua-memory mcp --tools all`. The bank's daemon
    does the work. Without --tools it has the ten tools that suit every client. With --http it serves until it
    is stopped, and prints where its token is.
    """
    names = relay.split_names(tools_ or "")
    tools.expand_names(names)
    if http and not once:
        return _serve_http(call, port, names)
    if not once:  # the fast path serves; this is reached by who calls in other ways
        raise Usage("this runs in its own process", hint="run `ua-memory mcp`")
    with caller.opened(call) as memory:
        memory.door = "mcp"
        given = json.loads(call.stdin.read())
        found = tools.answer_request(memory, given, _make_caller(call, memory, given))
        call.stdout.write(json.dumps(found) + "\n")
    return None


def _serve_http(call: Call, port: int, asked: Sequence[str]) -> None:
    """Serve over HTTP. Each request is run as a command, as by the relay."""
    if find_spec("mcp") is None:
        raise Usage("serving over HTTP needs the MCP SDK", hint="pip install 'ua-memory[http]'")
    with caller.opened(call) as memory:
        root, folder = memory.store.bank.root, memory.store.bank.local
        names = offered_tools(memory.config, asked)
        if wrong := relay.unknown_names(memory.config.mcp_tools, relay.read_tool_data()):
            note(call, f"mcp.tools: {wrong}")
    mode = call.env.get("UA_MEMORY_DAEMON") or "auto"
    words = ["--bank", str(root), "mcp"]
    listening = tools.listen(port)
    token, new = tools.read_or_make_token(folder)
    url = f"http://{tools.HOST}:{listening.getsockname()[1]}/mcp"
    call.stdout.write(f"Serving {root} at {url}\n")
    call.stdout.write(f"Token, shown this once: {token}\n" if new else "")
    file = folder / tools.TOKEN_FILE
    call.stdout.write(f"Clients send it as `Authorization: Bearer …`; it is kept in {file}\n")
    call.stdout.flush()
    note(call, f"process {os.getpid()}; Ctrl-C stops it")
    version = relay.read_tool_data()["legacy"]["initialize"]["serverInfo"]["version"]
    if mode != "off":
        relay.start_daemon(words)
    one_child = Lock()

    def answer(asked: Mapping[str, Any]) -> Mapping[str, Any]:
        return relay.ask_memory(words, dict(asked), mode, [], one_child)

    server = tools.make_server(answer, version, names)
    tools.serve_http(server, token, listening)


def _make_caller(call: Call, memory: Memory, given: Mapping[str, Any]) -> Caller:
    """The caller of a tool, from what the relay passed on, else from the environment."""
    client = origin_of(call)[1]
    client = client if client not in ("cli", "terminal") else str(given.get("client") or "mcp")
    client = "mcp" if client in BY_COMMAND else client  # a client may call itself whatever it likes

    def run_detached(words: Sequence[str]) -> str:
        spawn.ignore_hangup()
        return spawn.start_detached(memory.store.bank, call.env, *words)

    session = given.get("session") or call.env.get("CLAUDE_CODE_SESSION_ID")
    tag_values = {**placeholder_values(call), "session": session or ""}
    tags = context_tags(client, tag_values, TOOL, memory.config.observation_scopes)
    project = call.env.get("CLAUDE_PROJECT_DIR")  # the client's working folder
    return tools.Caller(
        client, session, call.model(memory), run_detached, (call.cwd, *([Path(project)] if project else [])),
        tag_values, tags,
        lambda: _transcript_words(memory, given.get("process"), session or ""),
        lambda: [root for root in (paths.found(call), default_bank(call.home)) if root and is_bank(root)],
    )  # fmt: skip


MOST_SESSIONS = 4
"""Sessions of one client process whose transcripts are read to check an edit."""


def _transcript_words(memory: Memory, process: object, session: str) -> TranscriptWords | None:
    """Turns and tool outputs in the transcripts of the client's sessions; None if there is no transcript."""
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


# -- running commands in the daemon ------------------------------------------------------------------------
# The daemon turns a caller's request into a `Call`, and runs it.


BORROWED_VARIABLES = ("HOME", "TZ", "LANG", "LC_", "GIT_", "EMAIL", "XDG_CONFIG_HOME")
"""Prefixes of the variables that child processes and the clock read from this process's environment."""

AGENT_VERBS = frozenset({"hook", "mcp"})
"""Verbs whose output goes to agents, not to people."""
QUERY_FLAGS = ("--json", "--explain")
"""Options without a value that may stand before a query."""


def perform_request(request: Request, output: Output, warm: WarmBank) -> int:
    """Run a caller's command in the daemon's open bank, and return the exit code."""
    if query := guess_query(request.argv):
        warm.prefetch_query(query)
    streams = [CallerStream(output, n, request.encodings[n - 1]) for n in (1, 2)]
    call = Call(
        argv=request.argv, cwd=Path(request.cwd), home=Path(request.home), env=request.env,
        stdin=cast("BinaryIO", standard_input(request.stdin)), stdout=cast("TextIO", streams[0]),
        stderr=cast("TextIO", streams[1]), terminals=request.terminals, width=request.width,
        opener=partial(warm.open_for_caller, env=request.env),
    )  # fmt: skip
    with _caller_environment(request.env):
        code = app.run(call)
        if warm.unreported and not AGENT_VERBS & set(request.argv[:3]):
            for text in dict.fromkeys(warm.unreported):
                note(call, text)
            warm.unreported.clear()
        return code


def guess_query(argv: Sequence[str]) -> str:
    """The query of a search or recall, guessed without parsing the options; '' for other commands."""
    match argv:
        case ["--bank", _, *rest] | [*rest] if rest[:1] in (["search"], ["recall"]):
            words = dropwhile(QUERY_FLAGS.__contains__, rest[1:])
            return " ".join(takewhile(lambda word: not word.startswith("-"), words))
        case _:
            return ""


@contextmanager
def _caller_environment(env: Mapping[str, str]) -> Iterator[None]:
    """Set this process's variables for git and the clock to the caller's while a command runs. Only one
    command runs at a time."""
    before = {name: value for name, value in os.environ.items() if name.startswith(BORROWED_VARIABLES)}
    theirs = {name: value for name, value in env.items() if name.startswith(BORROWED_VARIABLES)}
    if before == theirs:
        yield
        return
    _replace_environment(before, theirs)
    try:
        yield
    finally:
        _replace_environment(theirs, before)


def _replace_environment(old: Mapping[str, str], new: Mapping[str, str]) -> None:
    for name in old.keys() - new.keys():
        del os.environ[name]
    os.environ.update(new)
    if old.get("TZ") != new.get("TZ"):
        time.tzset()


def _require_means(env: Mapping[str, str]) -> None:
    """GitFailed, OutOfMemory: a daemon serves every shell, and must not have less than they may have. Without
    git it would leave uncommitted what they can commit; without memory it would search by keywords only."""
    if not shutil.which("git", path=env.get("PATH")):
        raise GitFailed("git is not on the PATH", where=env.get("PATH"), hint="install git, or extend PATH")
    if embedding.free_address_space() < vectors.OPEN_BYTES:
        raise OutOfMemory("too little memory for Chroma", hint="raise the limit (ulimit -v)")


def serve(call: Call, memory: Memory) -> str:
    """Run the bank's daemon until there is a reason to exit, and return the reason. AlreadyRuns."""
    embedding.use_one_arena()
    # Small matrices: two threads wait for each other longer than one thread takes.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    bank = memory.store.bank
    _require_means(call.env)
    memory.store.make_state()
    gc.set_threshold(10_000)  # a search makes thousands of short-lived objects without reference cycles
    with process_lock(bank.local / "daemon.lock"):
        service = Service(
            WarmBank(bank.root, memory.config, bank.pending, call.env), perform_request, bank.local, call.env
        )
        gc.freeze()
        return service.run()
