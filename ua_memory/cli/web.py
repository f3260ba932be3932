"""`ua-memory web`: the page."""

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

from typer import Option

from ua_memory.caller import Call, in_process, settings_of
from ua_memory.cli import app
from ua_memory.daemon.connect import NoAnswer, exchange
from ua_memory.daemon.spawn import AlreadyRuns, in_background, process_lock
from ua_memory.daemon.watch import Watch
from ua_memory.discovery import is_locked
from ua_memory.errors import Busy, Usage
from ua_memory.index.embedding import clear_caches, trim, use_one_arena
from ua_memory.mcp.tools import HOST, bound
from ua_memory.memory import Memory
from ua_memory.store.scan import SnapshotCache
from ua_memory.text import tokens
from ua_memory.text.redaction import masked
from ua_memory.views.hits import search_json
from ua_memory.views.output import note, print_json, printable
from ua_memory.web.app import IDLE, Served, serve
from ua_memory.web.guard import OneTimeLink, put_private
from ua_memory.web.pages import LONGEST_QUERY, Failed, options

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from ua_memory.caller import Clock
    from ua_memory.config import Config

HITS = 20
"""Hits of a search."""
OF_FILES = frozenset(
    ("list", "log", "entities", "pages", "models", "observations", "opinions", "why", "blame")
)
"""Commands that print the same as long as the files are the same; what they printed is kept."""
MOST_KNOWN = 64
NAMING = frozenset(("path", "paths", "citation", "id", "link", "revision", "when"))
"""What JSON names things by: no words of anybody's."""
PORT = "ua-memory web --port N"
STOPS = 10.0
"""Seconds in which a page must have ended that was told to."""
FROM_INDEX = frozenset(("list", "search", "explain", "entities", "status", "stats"))
"""Commands whose text comes from the index, which holds no secret."""


@app.verb(json=False)
def web(
    call: Call,
    memory: Memory,
    no_open: bool = Option(False, "--no-open", help="Print a one-time link; open no browser."),
    write: bool = Option(False, "--write", help="Let the page undo, forget and edit."),
    stop: bool = Option(False, "--stop", help="End the page that runs."),
    port: int = Option(0, metavar="N", min=0, max=65535, help="The port (default: the last one, else any)."),
) -> None:
    """Look at the bank in a browser.

    The page is served on 127.0.0.1 to the browser that has its one-time link, until Ctrl-C, or half an hour
    after the last request. It changes nothing without --write. Where it runs already, it is opened again.
    """
    local = memory.store.bank.local
    running = _state(local) if is_locked(local / "web.lock") else {}
    if stop:
        return _stop(call, local, running)
    if running:
        if write and not running["write"]:
            hint = "ua-memory web --stop, then: ua-memory web --write"
            raise Usage("the page runs without --write", hint=hint)
        return _open(call, local, int(running["port"]), no_open=no_open)
    return _run(call, memory, port, write=write, no_open=no_open)


def _run(call: Call, memory: Memory, port: int, *, write: bool, no_open: bool) -> None:
    """Serve in the foreground, and open the browser."""
    bank = memory.store.bank
    memory.store.make_state()
    use_one_arena()
    try:
        with process_lock(bank.local / "web.lock"):
            at = _bound(port, int(_state(bank.local).get("port", 0)))
            state = {"pid": os.getpid(), "port": at.getsockname()[1], "write": write}
            put_private(bank.local / "web.json", json.dumps(state))
            call.stdout.write(
                f"Serving {bank.root} at http://{HOST}:{state['port']}/{'' if write else ' (read-only)'}\n"
            )
            _open(call, bank.local, state["port"], no_open=no_open)
            note(call, "Ctrl-C stops it")
            watch = Watch(bank.root, bank.local / "web", lambda: None, lambda _: None)
            seen = SnapshotCache(watch.marks, watch.touched)
            served = Served(
                bank.root, {name: WebBank(call, bank.root, seen) for name in ("reads", "typing", "meaning")},
                memory.store.history.head, watch.tend, _rest, write,
            )  # fmt: skip
            serve(served, OneTimeLink(bank.local), at, IDLE)
    except AlreadyRuns:
        raise Busy("the page is starting", hint="ua-memory web") from None


def _rest() -> None:
    """The table of tokens alone takes 35 MB; it is read again when core memory is looked at."""
    clear_caches()
    trim()


def _bound(port: int, last: int) -> socket.socket:
    """A socket on the port that was asked for; else on the last one, or any, where that is taken."""
    with contextlib.suppress(Busy):
        if last and not port:
            return bound(last, PORT)
    return bound(port, PORT)


def _open(call: Call, local: Path, port: int, *, no_open: bool) -> None:
    """Open the browser on a one-time link, or print it. The link stands in a file that only its owner reads:
    a list of processes shows the arguments of a browser."""
    import webbrowser

    url = f"http://{HOST}:{port}/enter?t={OneTimeLink(local).make()}"
    file = local / "web.html"
    put_private(
        file, f'<!doctype html><meta http-equiv="refresh" content="0;url={url}"><title>ua-memory</title>'
    )
    if no_open or not webbrowser.open(file.as_uri()):
        call.stdout.write(f"Open within a minute: {url}\n")
    call.stdout.flush()


def _state(local: Path) -> dict[str, Any]:
    """What the page that ran last said of itself; {} where none did."""
    try:
        found = json.loads((local / "web.json").read_text("utf-8"))
        return {"pid": int(found["pid"]), "port": int(found["port"]) & 0xFFFF, "write": bool(found["write"])}
    except (OSError, ValueError, TypeError, LookupError):
        return {}


def _stop(call: Call, local: Path, running: Mapping[str, Any]) -> None:
    if not running:
        call.stdout.write("No page runs for this bank.\n")
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(running["pid"]), signal.SIGTERM)
    until = time.monotonic() + STOPS
    while is_locked(local / "web.lock"):
        if time.monotonic() > until:
            raise Busy("the page does not exit", where=f"process {running['pid']}", hint="kill it")
        time.sleep(0.05)
    call.stdout.write("Stopped.\n")


class WebBank:
    """The bank as one thread of the page sees it: commands in this process, and the daemon's searches."""

    def __init__(self, call: Call, root: Path, snapshots: SnapshotCache | None = None) -> None:
        self._call, self.root, self._snapshots = call, root, snapshots
        self._memory: Memory | None = None
        self._known: dict[tuple[str, ...], tuple[object, dict[str, Any]]] = {}

    def ask(self, *argv: str, fails: bool = True) -> dict[str, Any]:
        """See `web.pages.BankPages`. Secrets are masked, as in recall."""
        at = argv.index("--") if "--" in argv else len(argv)
        words = ["--bank", str(self.root), *argv[:at], "--json", *argv[at:]]
        version = self._version() if argv[0] in OF_FILES or argv == ("core", "list") else ""
        if version and (known := self._known.get(argv)) and known[0] == version:
            return known[1]
        # What is added to the probes needs no model; in a process of its own others could read the question.
        apart = argv[0] == "bench" and not any(each.startswith("--add=") for each in argv)
        # `search` loads a model: the daemon's.
        run = self._apart if apart else self._by_daemon if argv[0] == "search" else self._run
        code, found, error = run(words)
        if code and not found:
            if not fails:
                return {}
            raise Failed(code, error)
        if argv[0] not in FROM_INDEX:
            found = _masked(found, self._opened().config.redact)
        if version:
            while len(self._known) >= MOST_KNOWN:
                del self._known[next(iter(self._known))]
            self._known[argv] = version, found
        return found

    def _version(self) -> str:
        """What stays the same as long as commands that only read the files print the same; '' where a file
        may change unseen. Sessions, at which `why` ends, are written by renaming."""
        store = self._opened().store
        proof = store.survey().proof
        try:
            said = store.bank.sessions.stat().st_mtime_ns
        except OSError:
            said = 0
        return proof and f"{store.history.head()} {proof} {said} {self.today()}"

    def by_words(self, query: str, filters: Mapping[str, str]) -> dict[str, Any]:
        """See `web.pages.BankPages`."""

        def one(name: str) -> list[str]:
            return [filters[name]] if name in filters else []

        memory = self._opened()
        where = memory.filters(
            since=filters.get("since"), until=filters.get("until"),
            tags=one("tag"), kinds=one("kind"), sources=one("source"),
        )  # fmt: skip
        found = memory.search_many([query], limit=HITS, filters=where, by_words=True)
        out = io.StringIO()
        call = replace(self._call, stdout=out, terminals=frozenset())
        call.link_names = memory.store.link_names
        print_json(call, search_json(found[0], explain=True))
        return _read(out.getvalue(), "")[0]

    def by_meaning(self, query: str, filters: Mapping[str, str]) -> dict[str, Any] | None:
        """See `web.pages.BankPages`."""
        given = options(filters, tuple(filters))
        words = ["--bank", str(self.root), "search", "--json", "--explain", "-n", str(HITS), *given]
        code, found, _ = self._by_daemon([*words, "--", query])
        return found if code == 0 else None

    def held(self) -> Sequence[str]:
        """See `web.pages.BankPages`."""
        return sorted(self._opened().store.survey().held)

    def today(self) -> str:
        """See `web.pages.BankPages`."""
        return f"{self._opened().store.now():%Y-%m-%d}"

    def _by_daemon(self, words: list[str]) -> tuple[int | None, dict[str, Any], dict[str, Any]]:
        """As `_run`, by the daemon; the code is None where none takes it: one is started then."""
        said: dict[int, list[str]] = {1: [], 2: []}

        def keep(chunks: Any) -> int:
            for number, text in chunks:
                said.get(number, []).append(text)
            return 0

        mode = self._call.env.get("UA_MEMORY_DAEMON") or "auto"
        code: int | None = None
        if mode != "off":
            with contextlib.suppress(NoAnswer):
                code = exchange(words, None, write=keep)[0]
            if code is None:
                in_background(self._opened().store.bank, self._call.env, warm=True)
        return (code, *_read(*map("".join, said.values()))) if code is not None else (code, {}, {})

    def _apart(self, words: list[str]) -> tuple[int, dict[str, Any], dict[str, Any]]:
        """As `_run`, in a process of its own, which may load a model."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "ua_memory", *words], env=dict(self._call.env), cwd=self.root,
            stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
        return done.returncode, *_read(done.stdout.decode(), done.stderr.decode())

    def _run(self, words: list[str]) -> tuple[int, dict[str, Any], dict[str, Any]]:
        """(exit code, what was printed, the error) of a command run here."""
        out, err = io.StringIO(), io.StringIO()
        person = frozenset({"stdin"})  # whoever has the cookie; an agent that started the page stays an agent
        call = Call(
            argv=words, cwd=self.root, home=self._call.home, env=self._call.env, stdin=io.BytesIO(),
            stdout=out, stderr=err, terminals=person, now=self._call.now, opener=self._lent,
        )  # fmt: skip
        code = app.run(call)
        if tokens.unload():  # 35 MB; what was counted is known as long as it stays the same
            trim()
        return code, *_read(out.getvalue(), err.getvalue())

    @contextlib.contextmanager
    def _lent(self, root: Path, config: Config, now: Clock | None) -> Iterator[Memory]:
        """The bank, which stays open for the next command, unless its settings have changed."""
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


# -- picking -----------------------------------------------------------------------------------------------
# `ua-memory search -i`: searching as one types, in a terminal, over the same data as the page.


MEANING = 0.18
"""Seconds after the last key in which the daemon is asked for what is found by meaning."""
AGAIN = 2.0
"""Seconds after which a daemon is asked again that was not there yet."""
ALTERNATE, NORMAL = "\x1b[?1049h\x1b[?2004h", "\x1b[?2004l\x1b[?1049l"
"""Switch to the terminal's other screen, where it marks what is pasted, and back."""
PASTE, PASTED = "\x1b[200~", "\x1b[201~"
HELP = "↑↓ choose · Enter open · Ctrl-E edit · Ctrl-Y print its id · Esc leave"
KEYS = {
    "\x1b[A": "up", "\x1bOA": "up", "\x10": "up", "\x1b[B": "down", "\x1bOB": "down", "\x0e": "down",
    "\r": "enter", "\n": "enter", "\x7f": "back", "\x08": "back", "\x15": "clear", "\x1b": "leave",
    "\x03": "leave", "\x04": "leave", "\x05": "edit", "\x19": "print",
}  # fmt: skip
"""What keys send, and what they do. Other control sequences do nothing."""
_KEY = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)


class Picker:
    """A query that is typed, and its hits, one of them chosen."""

    def __init__(self, call: Call, root: Path, query: str, filters: Mapping[str, str]) -> None:
        self.call, self.filters, self.query = call, filters, query
        self.words, self.meaning = WebBank(call, root), WebBank(call, root)
        self.found: dict[str, Any] = {"results": []}
        self.at, self.by, self.shown = 0, "words", ""

    def run(self) -> str:
        """Until somebody leaves: what is to be printed then."""
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
                    self.call.stdout.write(ALTERNATE)
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
        self.call.stdout.write(NORMAL)
        self.call.stdout.flush()

    def _keys(self, fd: int, thread: Executor) -> str:
        """Follow what is typed until a key says that something else is to be done; that key's name."""
        import select

        asked: Future[dict[str, Any] | None] | None = None
        utf8, pasting = codecs.getincrementaldecoder("utf-8")("ignore"), False
        self.shown = ""
        if not self.found["results"]:
            self._search()
        due = time.monotonic() + MEANING
        while True:
            self._show()
            wait = 0.05 if asked else max(due - time.monotonic(), 0) if self.by != "meaning" else None
            wait = wait if self.query.strip() else None
            if not select.select([fd], [], [], wait)[0]:
                if asked is None:
                    asked = thread.submit(self.meaning.by_meaning, self.query, self.filters)
                elif asked.done():
                    self._take(asked.result())
                    asked, due = None, time.monotonic() + AGAIN
                continue
            before = self.query
            for key in _KEY.findall(utf8.decode(os.read(fd, 1 << 16))):
                if key in (PASTE, PASTED):
                    pasting = key == PASTE
                key = " " if pasting and key in "\r\n\t" else key
                name = "" if pasting else KEYS.get(key, "")
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
            if self.query != before:  # once for all that was typed or pasted meanwhile
                self._search()
            due, asked = time.monotonic() + MEANING, None

    @property
    def chosen(self) -> dict[str, Any] | None:
        """The hit that is chosen."""
        rows: list[dict[str, Any]] = self.found["results"]
        return rows[self.at] if self.at < len(rows) else None

    def _search(self) -> None:
        text = self.query.strip()
        self.found = self.words.by_words(text, self.filters) if text else {"results": []}
        self.at, self.by = 0, "words"

    def _take(self, found: dict[str, Any] | None) -> None:
        """Take what was found by meaning; the hit that is chosen stays chosen, if it is among it."""
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
            console.print("  Nothing found. The nearest:", style="dim")
        for n, hit in enumerate(rows):
            lead = "▶ " if n == self.at else "  "
            place = f"{hit['score']:.2f}  {hit.get('day') or ''}  {hit['citation']}"
            console.print(
                Text(lead + printable(" ".join(hit["snippet"].split())), "bold" if n == self.at else ""),
                no_wrap=True, overflow="ellipsis", crop=True,
            )  # fmt: skip
            console.print(
                Text(f"    {printable(place)}", "dim"), no_wrap=True, overflow="ellipsis", crop=True
            )
        told = f"by {self.by} · {HELP}" if self.query.strip() else HELP
        console.print(Text(told, "dim"), no_wrap=True, overflow="ellipsis", end="")
        if out.getvalue() != self.shown:
            self.shown = out.getvalue()
            self.call.stdout.write(f"\x1b[H\x1b[J{self.shown}")
            self.call.stdout.flush()


def pick(call: Call, root: Path, query: str, filters: Mapping[str, str]) -> None:
    """Search as one types; what was chosen to be printed is printed at the end. Usage without a terminal."""
    if not {"stdin", "stdout"} <= call.terminals:
        raise Usage("-i needs a terminal", hint="ua-memory search WORDS")
    if chosen := Picker(call, root, query, filters).run():
        call.stdout.write(f"{chosen}\n")


def _read(out: str, err: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a command printed, and its error, {} where there is none."""
    error = next((line for line in err.splitlines()[::-1] if line.startswith('{"error"')), "")
    return json.loads(out or "{}"), json.loads(error)["error"] if error else {}


def _masked(value: Any, patterns: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return masked(value, patterns) if len(value) > 8 else value
    if isinstance(value, list):
        return [_masked(each, patterns) for each in value]
    if isinstance(value, dict):
        return {key: each if key in NAMING else _masked(each, patterns) for key, each in value.items()}
    return value
