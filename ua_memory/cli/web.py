"""`ua-memory web`, and `search -i`."""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.caller import Call, in_process, settings_of
from ua_memory.cli import app
from ua_memory.cli.app import flag, option
from ua_memory.daemon.connect import NoAnswer, run_in_daemon
from ua_memory.daemon.spawn import AlreadyRuns, ensure_started, process_lock
from ua_memory.daemon.watch import Watch
from ua_memory.discovery import is_locked
from ua_memory.errors import Busy, Usage
from ua_memory.index.embedding import clear_caches, trim, use_one_arena
from ua_memory.mcp.tools import HOST, listen
from ua_memory.memory import Memory
from ua_memory.store.scan import SnapshotCache
from ua_memory.text import tokens
from ua_memory.text.redaction import change_texts, redact_lines
from ua_memory.views.hits import search_json
from ua_memory.views.output import note, print_json, printable
from ua_memory.web.app import IDLE, OneTimeLink, Served, put_private, serve
from ua_memory.web.pages import LONGEST_QUERY, Failed, options

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from ua_memory.caller import Clock
    from ua_memory.config import Config

PAGE_HITS = 20
"""Hits of a search."""
CACHED_COMMANDS = frozenset("list log diff entities pages models observations opinions why blame".split())  # noqa: SIM905
"""Commands whose output depends only on the files; it is cached."""
MOST_CACHED = 64
UNMASKED_KEYS = frozenset(("path", "paths", "citation", "id", "link", "revision", "when"))
"""Keys of JSON whose values are names, not text that may hold a secret."""
PORT_HINT = "ua-memory web --port N"
STOP_TIMEOUT = 10.0
"""Seconds in which a page must exit that was told to stop."""
MASKED_COMMANDS = frozenset(("list", "search", "explain", "entities", "status", "stats"))
"""Commands whose text comes from the index, where secrets are masked already."""


@app.verb(json=False)
def web(
    call: Call,
    memory: Memory,
    no_open: bool = flag("--no-open", "Print a one-time link; open no browser."),
    write: bool = flag("--write", "Let the page undo, forget and edit."),
    stop: bool = flag("--stop", "Stop the running page."),
    port: int = option("N", "The port (default: the last one, else any).", 0, min=0, max=65535),
) -> None:
    """Browse the bank in a web browser.

    The page is served on 127.0.0.1 to the browser that has its one-time link, until Ctrl-C, or half an hour
    after the last request. It changes nothing without --write. Where it runs already, it is opened again.
    """
    local = memory.store.bank.local
    running = _read_state(local) if is_locked(local / "web.lock") else {}
    if stop:
        return _stop_page(call, local, running)
    if running:
        if write and not running["write"]:
            hint = "ua-memory web --stop, then: ua-memory web --write"
            raise Usage("the page runs without --write", hint=hint)
        return _open_browser(call, local, int(running["port"]), no_open=no_open)
    return _serve(call, memory, port, write=write, no_open=no_open)


def _serve(call: Call, memory: Memory, port: int, *, write: bool, no_open: bool) -> None:
    """Serve in the foreground, and open the browser."""
    bank = memory.store.bank
    memory.store.make_state()
    use_one_arena()
    try:
        with process_lock(bank.local / "web.lock"):
            listening = _bind(port, int(_read_state(bank.local).get("port", 0)))
            state = {"pid": os.getpid(), "port": listening.getsockname()[1], "write": write}
            put_private(bank.local / "web.json", json.dumps(state))
            where = f"http://{HOST}:{state['port']}/{'' if write else ' (read-only)'}"
            call.stdout.write(f"Serving {bank.root} at {where}\n")
            _open_browser(call, bank.local, state["port"], no_open=no_open)
            note(call, "Ctrl-C stops it")
            watch = Watch(bank.root, bank.local / "web", lambda: None, lambda _: None)
            snapshots = SnapshotCache(watch.change_count, watch.changed_names)
            app_state = Served(
                bank.root,
                {name: WebBank(call, bank.root, snapshots) for name in ("reads", "typing", "meaning")},
                memory.store.history.head, watch.check, _free_memory, write,
            )  # fmt: skip
            serve(app_state, OneTimeLink(bank.local), listening, IDLE)
    except AlreadyRuns:
        raise Busy("the page is starting", hint="ua-memory web") from None


def _free_memory() -> None:
    """Free caches between requests: the table of tokens alone takes 35 MB."""
    clear_caches()
    trim()


def _bind(port: int, last: int) -> socket.socket:
    """A socket on `port`; if that is 0, on the `last` port or, if it is taken, any."""
    with contextlib.suppress(Busy):
        if last and not port:
            return listen(last, PORT_HINT)
    return listen(port, PORT_HINT)


def _open_browser(call: Call, local: Path, port: int, *, no_open: bool) -> None:
    """Open the browser on a one-time link, or print it. The browser gets a file with the link, which only its
    owner can read: a list of processes shows a browser's arguments."""
    import webbrowser

    url, file = f"http://{HOST}:{port}/enter?t={OneTimeLink(local).make()}", local / "web.html"
    refresh = f'<meta http-equiv="refresh" content="0;url={url}">'
    put_private(file, f"<!doctype html>{refresh}<title>ua-memory</title>")
    if no_open or not webbrowser.open(file.as_uri()):
        call.stdout.write(f"Open within a minute: {url}\n")
    call.stdout.flush()


def _read_state(local: Path) -> dict[str, Any]:
    """Process, port and mode of the page that ran last; {} if none did."""
    try:
        found = json.loads((local / "web.json").read_text("utf-8"))
        return {"pid": int(found["pid"]), "port": int(found["port"]) & 0xFFFF, "write": bool(found["write"])}
    except (OSError, ValueError, TypeError, LookupError):
        return {}


def _stop_page(call: Call, local: Path, running: Mapping[str, Any]) -> None:
    if not running:
        call.stdout.write("No page runs for this bank.\n")
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(running["pid"]), signal.SIGTERM)
    until = time.monotonic() + STOP_TIMEOUT
    while is_locked(local / "web.lock"):
        if time.monotonic() > until:
            raise Busy("the page does not exit", where=f"process {running['pid']}", hint="kill it")
        time.sleep(0.05)
    call.stdout.write("Stopped.\n")


class WebBank:
    """The bank for one thread of the page. Commands run in this process, searches in the daemon."""

    def __init__(self, call: Call, root: Path, snapshots: SnapshotCache | None = None) -> None:
        self._call, self.root, self._snapshots = call, root, snapshots
        self._memory: Memory | None = None
        self._known: dict[tuple[str, ...], tuple[object, dict[str, Any]]] = {}

    def ask(self, *argv: str, fails: bool = True) -> dict[str, Any]:
        """See `web.pages.BankPages`. Secrets are masked, as in recall."""
        at = argv.index("--") if "--" in argv else len(argv)
        words = ["--bank", str(self.root), *argv[:at], "--json", *argv[at:]]
        version = self._version() if argv[0] in CACHED_COMMANDS or argv == ("core", "list") else ""
        if version and (known := self._known.get(argv)) and known[0] == version:
            return known[1]
        # Adding a probe needs no model, and a process's arguments would show the question to others.
        in_subprocess = argv[0] == "bench" and not any(each.startswith("--add=") for each in argv)
        # `search` needs a model, which the daemon has loaded.
        run = self._by_subprocess if in_subprocess else self._by_daemon if argv[0] == "search" else self._run
        code, found, error = run(words)
        if code and not found:
            if not fails:
                return {}
            raise Failed(code, error)
        if argv[0] not in MASKED_COMMANDS:
            patterns = self._opened().config.redact

            def mask(text: str) -> str:
                return redact_lines(text, patterns) if len(text) > 8 else text

            found = change_texts(found, mask, UNMASKED_KEYS)
        if version:
            while len(self._known) >= MOST_CACHED:
                del self._known[next(iter(self._known))]
            self._known[argv] = version, found
        return found

    def _version(self) -> str:
        """A key for cached output, which changes with the files; '' if changes may go unseen. Sessions, which
        `why` cites, are replaced by renaming, which changes their folder's time."""
        store = self._opened().store
        files_version = store.survey().proof
        try:
            sessions_changed = store.bank.sessions.stat().st_mtime_ns
        except OSError:
            sessions_changed = 0
        return files_version and f"{store.history.head()} {files_version} {sessions_changed} {self.today()}"

    def by_words(self, query: str, filters: Mapping[str, str]) -> dict[str, Any]:
        """See `web.pages.BankPages`."""

        def as_list(name: str) -> list[str]:
            return [filters[name]] if name in filters else []

        memory = self._opened()
        by = memory.filters(
            since=filters.get("since"), until=filters.get("until"),
            tags=as_list("tag"), kinds=as_list("kind"), sources=as_list("source"),
        )  # fmt: skip
        found = memory.search_many([query], limit=PAGE_HITS, filters=by, by_words=True)
        out = io.StringIO()
        call = replace(self._call, stdout=out, terminals=frozenset())
        call.link_names = memory.store.link_names
        print_json(call, search_json(found[0], explain=True))
        return _parse_output(out.getvalue(), "")[0]

    def by_meaning(self, query: str, filters: Mapping[str, str]) -> dict[str, Any] | None:
        """See `web.pages.BankPages`."""
        given = options(filters, tuple(filters))
        words = ["--bank", str(self.root), "search", "--json", "--explain", "-n", str(PAGE_HITS), *given]
        code, found, _ = self._by_daemon([*words, "--", query])
        return found if code == 0 else None

    def held(self) -> Sequence[str]:
        """See `web.pages.BankPages`."""
        return sorted(self._opened().store.survey().held)

    def today(self) -> str:
        """See `web.pages.BankPages`."""
        return f"{self._opened().store.now():%Y-%m-%d}"

    def _by_daemon(self, words: list[str]) -> tuple[int | None, dict[str, Any], dict[str, Any]]:
        """As `_run`, by the daemon. If none accepts the command, one is started and the exit code is None."""
        printed: dict[int, list[str]] = {1: [], 2: []}

        def collect(chunks: Any) -> int:
            for number, text in chunks:
                printed.get(number, []).append(text)
            return 0

        mode = self._call.env.get("UA_MEMORY_DAEMON") or "auto"
        code: int | None = None
        if mode != "off":
            with contextlib.suppress(NoAnswer):
                code = run_in_daemon(words, None, write=collect)[0]
            if code is None:
                ensure_started(self._opened().store.bank, self._call.env, warm=True)
        return (code, *_parse_output(*map("".join, printed.values()))) if code is not None else (code, {}, {})

    def _by_subprocess(self, words: list[str]) -> tuple[int, dict[str, Any], dict[str, Any]]:
        """As `_run`, in a subprocess, which may load a model."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "ua_memory", *words], env=dict(self._call.env), cwd=self.root,
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
        return done.returncode, *_parse_output(done.stdout.decode(), done.stderr.decode())

    def _run(self, words: list[str]) -> tuple[int, dict[str, Any], dict[str, Any]]:
        """Run a command in this process: (exit code, the JSON printed, the error)."""
        out, err = io.StringIO(), io.StringIO()
        person = frozenset({"stdin"})  # the cookie's owner; an agent that started the page stays an agent
        call = Call(
            argv=words, cwd=self.root, home=self._call.home, env=self._call.env, stdin=io.BytesIO(),
            stdout=out, stderr=err, terminals=person, now=self._call.now, opener=self._keep_open,
        )  # fmt: skip
        code = app.run(call)
        if tokens.unload():  # 35 MB; the counts are cached
            trim()
        return code, *_parse_output(out.getvalue(), err.getvalue())

    @contextlib.contextmanager
    def _keep_open(self, root: Path, config: Config, now: Clock | None) -> Iterator[Memory]:
        """An opener for `Call`: the bank stays open for the next command unless its settings change."""
        yield self._opened(config, now)

    def _opened(self, config: Config | None = None, now: Clock | None = None) -> Memory:
        if self._memory is not None and config not in (None, self._memory.config):
            self._memory.close()
            self._memory = None
        if self._memory is None:
            config = config or settings_of(self._call, self.root, lenient=True)
            self._memory = Memory.open(self.root, config=config, now=now, door="web")
            self._memory.store.snapshots = self._snapshots
        return self._memory


# -- search -i ---------------------------------------------------------------------------------------------
# Search as you type, in a terminal, over the same data as the page.


SEMANTIC_DELAY = 0.18
"""Seconds after the last key before the daemon is asked for a semantic search."""
RETRY_DELAY = 2.0
"""Seconds after which a daemon that was not running yet is asked again."""
ENTER_SCREEN, LEAVE_SCREEN = "\x1b[?1049h\x1b[?2004h", "\x1b[?2004l\x1b[?1049l"
"""Switch to the terminal's alternate screen with bracketed paste, and back."""
PASTE_START, PASTE_END = "\x1b[200~", "\x1b[201~"
PICKER_HELP = "↑↓ choose · Enter open · Ctrl-E edit · Ctrl-Y print its id · Esc leave"
KEY_ACTIONS = {
    "\x1b[A": "up", "\x1bOA": "up", "\x10": "up", "\x1b[B": "down", "\x1bOB": "down", "\x0e": "down",
    "\r": "enter", "\n": "enter", "\x7f": "back", "\x08": "back", "\x15": "clear", "\x1b": "leave",
    "\x03": "leave", "\x04": "leave", "\x05": "edit", "\x19": "print",
}  # fmt: skip
"""What keys send → their actions. Other control sequences do nothing."""
_KEY_SEQUENCE = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)


class Picker:
    """A terminal interface with a query being typed, its hits, and the chosen one."""

    def __init__(self, call: Call, root: Path, query: str, filters: Mapping[str, str]) -> None:
        self.call, self.filters, self.query = call, filters, query
        self.words, self.meaning = WebBank(call, root), WebBank(call, root)
        self.found: dict[str, Any] = {"results": []}
        self.at, self.by, self.shown = 0, "words", ""

    def run(self) -> str:
        """Run until the person leaves, and return what to print then."""
        import termios
        import tty
        from concurrent.futures import ThreadPoolExecutor

        fd, before = 0, termios.tcgetattr(0)
        with ThreadPoolExecutor(1) as thread:
            try:
                while True:
                    tty.setcbreak(fd)
                    plain = termios.tcgetattr(fd)
                    plain[3] &= ~(termios.ISIG | termios.IEXTEN)  # Ctrl-C and Ctrl-Y are keys as any other
                    termios.tcsetattr(fd, termios.TCSADRAIN, plain)
                    self.call.stdout.write(ENTER_SCREEN)
                    done = self._keys(fd, thread)
                    self._restore(fd, before)
                    if done not in ("enter", "edit"):
                        return self._target() if done == "print" else ""
                    self._open(edit=done == "edit")
            finally:
                self._restore(fd, before)

    def _restore(self, fd: int, before: list[Any]) -> None:
        import termios

        termios.tcsetattr(fd, termios.TCSADRAIN, before)
        self.call.stdout.write(LEAVE_SCREEN)
        self.call.stdout.flush()

    def _keys(self, fd: int, thread: Executor) -> str:
        """Read keys and search until one ends the loop, and return its action."""
        import select

        asked: Future[dict[str, Any] | None] | None = None
        utf8, pasting = codecs.getincrementaldecoder("utf-8")("ignore"), False
        self.shown = ""
        if not self.found["results"]:
            self._search()
        due = time.monotonic() + SEMANTIC_DELAY
        while True:
            self._show()
            wait = 0.05 if asked else max(due - time.monotonic(), 0) if self.by != "meaning" else None
            wait = wait if self.query.strip() else None
            if not select.select([fd], [], [], wait)[0]:
                if asked is None:
                    asked = thread.submit(self.meaning.by_meaning, self.query, self.filters)
                elif asked.done():
                    self._show_semantic(asked.result())
                    asked, due = None, time.monotonic() + RETRY_DELAY
                continue
            before = self.query
            for key in _KEY_SEQUENCE.findall(utf8.decode(os.read(fd, 1 << 16))):
                if key in (PASTE_START, PASTE_END):
                    pasting = key == PASTE_START
                key = " " if pasting and key in "\r\n\t" else key
                name = "" if pasting else KEY_ACTIONS.get(key, "")
                if name not in ("", "back", "clear", "leave") and self.query != before:
                    self._search()
                    before = self.query
                if name == "leave" or (name in ("enter", "edit", "print") and self.chosen):
                    return name
                if name in ("up", "down"):
                    last = max(len(self.found["results"]) - 1, 0)
                    self.at = min(max(self.at + (1 if name == "down" else -1), 0), last)
                elif name in ("back", "clear") or key.isprintable():
                    query = {"back": self.query[:-1], "clear": ""}.get(name, self.query + key)
                    self.query = query[:LONGEST_QUERY]
            if self.query != before:  # once for everything typed or pasted meanwhile
                self._search()
            due, asked = time.monotonic() + SEMANTIC_DELAY, None

    @property
    def chosen(self) -> dict[str, Any] | None:
        """The chosen hit."""
        rows: list[dict[str, Any]] = self.found["results"]
        return rows[self.at] if self.at < len(rows) else None

    def _search(self) -> None:
        text = self.query.strip()
        self.found = self.words.by_words(text, self.filters) if text else {"results": []}
        self.at, self.by = 0, "words"

    def _show_semantic(self, found: dict[str, Any] | None) -> None:
        """Show the hits of a semantic search. The chosen hit stays chosen if it is among them."""
        before = self.chosen
        self.by = "meaning" if found else "words"
        if found:
            self.found = found
            places = [(row["path"], row["startLine"]) for row in found["results"]]
            place = (before["path"], before["startLine"]) if before and self.at else None
            self.at = places.index(place) if place in places else 0

    def _target(self) -> str:
        one = self.chosen or {}
        return f"^{one['id']}" if one.get("id") else f"{one['path']}:{one['startLine']}"

    def _open(self, *, edit: bool) -> None:
        """Show the chosen hit's sources, or open it in the editor."""
        words = ["--bank", str(self.words.root), "edit" if edit else "why", "--", self._target()]
        app.run(replace(self.call, argv=words, opener=in_process))
        if not edit:
            import tty

            self.call.stdout.write("\nAny key goes back.")
            self.call.stdout.flush()
            tty.setcbreak(0)
            os.read(0, 1 << 16)

    def _show(self) -> None:
        from rich.console import Console
        from rich.text import Text

        width, height = os.get_terminal_size(1)
        out = io.StringIO()
        console = Console(file=out, force_terminal=True, width=width, highlight=False)
        end = printable(self.query)[-max(width - 4, 1) :]
        console.print(Text.assemble(("> ", "bold"), end, ("▏", "dim")), no_wrap=True, crop=True)
        rows = self.found["results"][: max((height - 3) // 2, 1)]
        if rows and not self.found.get("answered"):
            console.print("  Nothing found. Closest matches:", style="dim")
        for n, hit in enumerate(rows):
            lead = "▶ " if n == self.at else "  "
            line = f"{hit['score']:.2f}  {hit.get('day') or ''}  {hit['citation']}"
            console.print(
                Text(lead + printable(" ".join(hit["snippet"].split())), "bold" if n == self.at else ""),
                no_wrap=True, overflow="ellipsis", crop=True,
            )  # fmt: skip
            console.print(Text(f"    {printable(line)}", "dim"), no_wrap=True, overflow="ellipsis", crop=True)
        status = f"by {self.by} · {PICKER_HELP}" if self.query.strip() else PICKER_HELP
        console.print(Text(status, "dim"), no_wrap=True, overflow="ellipsis", end="")
        if out.getvalue() != self.shown:
            self.shown = out.getvalue()
            self.call.stdout.write(f"\x1b[H\x1b[J{self.shown}")
            self.call.stdout.flush()


def pick(call: Call, root: Path, query: str, filters: Mapping[str, str]) -> None:
    """Search as the person types, and print what they chose to print. Usage without a terminal."""
    if not {"stdin", "stdout"} <= call.terminals:
        raise Usage("-i needs a terminal", hint="ua-memory search WORDS")
    if chosen := Picker(call, root, query, filters).run():
        call.stdout.write(f"{chosen}\n")


def _parse_output(out: str, err: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse a command's output: (its JSON, its error or {})."""
    error = next((line for line in err.splitlines()[::-1] if line.startswith('{"error"')), "")
    return json.loads(out or "{}"), json.loads(error)["error"] if error else {}
