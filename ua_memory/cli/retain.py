"""`retain`, `ingest`, `watch`, `flush` and `queue`: what makes facts of texts and conversations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from ua_memory import caller, discovery, paths
from ua_memory.caller import Call, given, origin_of, read_text, told_before
from ua_memory.cli import app
from ua_memory.cli.app import argument, flag, option
from ua_memory.daemon import spawn
from ua_memory.daemon.spawn import ensure_started, is_running
from ua_memory.errors import Malformed, NotFound, UaMemoryError, Usage
from ua_memory.hooks.capture import queue_ended_sessions
from ua_memory.index.filters import parse_day
from ua_memory.retain.documents import is_read
from ua_memory.views import output
from ua_memory.views import retain as views
from ua_memory.views.output import Screen, confirm, count, emit_json, note, progress, show_result

if TYPE_CHECKING:
    from ua_memory.memory import Memory
    from ua_memory.retain.flush import Flush, FlushedSession
    from ua_memory.retain.queue import TextItem
    from ua_memory.retain.retain import RetainResult


# -- retain ------------------------------------------------------------------------------------------------
# `ua-memory retain`: draw the facts out of a text.


Wait = flag("--wait", "Wait for the model and show the result.")
DryRun = flag("--dry-run", "Show what would be saved, and the cost.")
Redo = flag("--redo", "Read unchanged parts again too.")


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """The options of how a text is read."""

    append: bool = flag("--append", "Add to the document, instead of replacing it.")
    mode: Literal["concise", "verbatim", "chunks", "custom"] = option(
        "MODE",
        "concise; verbatim: your wording, the model adds dates and names; chunks: as it is, no model; "
        "custom: by --instructions.",
        "concise",
    )
    mission: str | None = option("TEXT", "What to look for (default: the bank's mission).")
    instructions: str | None = option("TEXT", "How to choose and word facts.")
    about: str | None = option("--context TEXT", "What the text is: minutes of …")
    timestamp: str | None = option("TIME", "When it was written, if not now: 2026-11-19.")
    tag: list[str] | None = option("--tag TAG", "A tag for all its facts; repeatable.")

    def chosen(self, memory: Memory) -> dict[str, Any]:
        """As `memory.documents.item` takes them."""
        return {
            "append": self.append, "mode": self.mode, "mission": self.mission or "",
            "instructions": self.instructions or "", "context": self.about or "",
            "tags": tuple(self.tag or ()), "timestamp": memory.documents.moment(self.timestamp),
        }  # fmt: skip


@app.verb()
def retain(
    call: Call,
    memory: Memory,
    *,
    text: list[str] | None = argument(
        "TEXT... | FILE", "The text, or a file; `-` or nothing reads standard input.", None
    ),
    document_id: str | None = option("ID", "Id of the document; unchanged parts cost nothing."),
    how: ReadingOptions,
    metadata: list[str] | None = option("--metadata KEY=VALUE", "A tag KEY:VALUE of the text; repeatable."),
    origin: Literal["person", "agent", "tool", "web", "import"] | None = option(
        "WORD", "Its origin: person, agent, tool, web or import."
    ),
    client: str | None = option("NAME", "The program it came from."),
    session: str | None = app.Session,
    request: str | None = app.Request,
    redo: bool = Redo,
    batch: bool = flag("--batch", "Input is JSON lines: text, …."),
    wait: bool = Wait,
    dry_run: bool = DryRun,
) -> None:
    """Extract facts from a text.

    With a model it returns as soon as the text is safe on the disk; the work continues in the background.
    Without one the author's own sentences are kept at once. Facts go to the log of the day, or, with
    --document-id, to memory/documents/. The same text again changes nothing.
    """
    who, through = origin_of(call)
    common: dict[str, Any] = {
        **how.chosen(memory), "document_id": document_id or "", "origin": origin or who,
        "client": client or through, "session": session, "request": request, "redo": redo,
        "metadata": dict(each.partition("=")[::2] for each in metadata or ()),
    }  # fmt: skip
    items = _read_items(call, memory, text, common, batch=batch)
    retain_items(call, memory, items, wait=wait, dry_run=dry_run)


def _show_retained(call: Call, memory: Memory, done: Sequence[RetainResult], model: object) -> None:
    """Print what was saved of each text, and once a bank that a model would do better."""
    for one in done:
        views.show_retain(Screen(call), one)
    chosen = any(one.facts and one.item.mode != "chunks" for one in done)
    if model is None and chosen and not told_before(memory, "model"):
        Screen(call).note(views.NO_MODEL)


def retain_items(call: Call, memory: Memory, items: list[TextItem], *, wait: bool, dry_run: bool) -> None:
    """Retain texts now or in a background process, or with `dry_run` print what it would do and cost."""
    model = call.model(memory)
    if dry_run:
        found = memory.documents.preview(items, model=model)
        show_result(call, found, views.retain_preview_json, views.show_retain_preview)
    elif model is None or wait or all(item.mode == "chunks" for item in items):
        with _still_queued(call, memory), progress(call, "Reading chunks") as tell:
            done = memory.documents.retain(items, model=model, tell=tell)
        emit_json(call, {"retained": [views.retain_json(one) for one in done]})
        _show_retained(call, memory, done, model)
    else:
        spawn.ignore_hangup()
        keys = memory.documents.enqueue(items, model=model)
        log = spawn.start_detached(memory.store.bank, call.env, "queue", "retry", *keys)
        emit_json(call, views.queued_texts_json(items, keys, log))
        views.show_queued_texts(Screen(call), items, log)


@contextmanager
def _still_queued(call: Call, memory: Memory) -> Iterator[None]:
    """On Ctrl-C, print what is still in the queue."""
    try:
        yield
    except KeyboardInterrupt:
        each = (("conversation", memory.queue.conversations()), ("text", memory.queue.texts()))
        if waiting := " and ".join(count(len(found), what) for what, found in each if found):
            note(call, f"interrupted; {waiting} in the queue (ua-memory queue list, ua-memory queue retry)")
        raise


def _named_file(call: Call, words: list[str] | None) -> Path | None:
    """The file that the words name, also if it does not exist; None if they are a text."""
    path = paths.absolute(call, words[0]) if words and len(words) == 1 and words != ["-"] else None
    try:
        if path and path.suffix and is_read(path.name) and words and len(words[0].split()) == 1:
            return path
        return path if path and path.exists() and not path.is_dir() else None  # the reader refuses a pipe
    except (OSError, ValueError):  # a sentence is too long for a path
        return None


def _read_items(
    call: Call, memory: Memory, words: list[str] | None, common: dict[str, Any], *, batch: bool
) -> list[TextItem]:
    """The text, a file's or of standard input; of a `batch`, one JSON object a line. Usage, TooLarge."""
    path = _named_file(call, words)
    if batch and words and words != ["-"] and path is None:
        raise Usage("--batch needs a file or standard input", hint="ua-memory retain --batch FILE")
    if batch:
        return memory.documents.read_lines(given(call, path), **common)
    if path:
        return [memory.documents.read(path, **{**common, "origin": "import"})]
    return [memory.documents.item(read_text(call, words), **common)]


# -- ingest ------------------------------------------------------------------------------------------------
# `ua-memory ingest`: files, each as a document.


@app.verb()
def ingest(
    call: Call,
    memory: Memory,
    *,
    file: list[str] = argument("FILE...", "Markdown, text, mail (.eml), HTML, PDF or DOCX."),
    document_id: str | None = option("ID", "Id of the document (default: its path)."),
    how: ReadingOptions,
    redo: bool = Redo,
    wait: bool = Wait,
    dry_run: bool = DryRun,
) -> None:
    """Extract facts from files, one document each.

    Unchanged parts cost nothing and keep their facts; removed parts take their facts with them. HTML, PDF
    and DOCX need the extra: pip install 'ua-memory[ingest]'.
    """
    if document_id and len(file) > 1:
        raise Usage("one --document-id cannot name several files", hint="ingest them one by one")
    common: dict[str, Any] = {
        **how.chosen(memory), "document_id": document_id or "", "origin": "import",
        "client": origin_of(call)[1], "redo": redo,
    }  # fmt: skip
    items = []
    with progress(call, "Reading files") as tell:
        for number, each in enumerate(file):
            if tell:
                tell(number, len(file))
            try:
                items.append(memory.documents.read(paths.absolute(call, each), **common))
            except UaMemoryError as error:
                if len(file) > 1:
                    error.hint = f"{error.hint or 'leave it out'}; nothing was ingested"
                raise
    retain_items(call, memory, items, wait=wait, dry_run=dry_run)


# -- watch -------------------------------------------------------------------------------------------------
# `ua-memory watch`: files and folders outside the bank that are retained when they change.


watch_app = app.family("watch")

Paths = argument("PATH...", "Folders or files outside the bank.")


@app.verb(watch_app, "add")
def watch_add(call: Call, memory: Memory, path: list[str] = Paths) -> None:
    """Watch folders or files: each file becomes a document, updated when it is saved.

    The daemon does it, 30 seconds after a save (watch.quiet_seconds); without a daemon: ua-memory watch run.
    """
    added = [memory.watches.add(paths.absolute(call, each), model=call.model(memory)) for each in path]
    quiet = memory.config.watch_seconds if _ensure_daemon(call, memory) else None
    emit_json(call, {"watched": [views.watched_json(each) for each in added]})
    views.show_added_paths(Screen(call), added, quiet)


def _ensure_daemon(call: Call, memory: Memory) -> bool:
    """Start a daemon unless the caller has switched it off. True if one runs."""
    if (call.env.get("UA_MEMORY_DAEMON") or "auto") == "off":
        return False
    return ensure_started(memory.store.bank, call.env) or is_running(memory.store.bank.local)


@app.verb(watch_app, "list")
def watch_list(call: Call, memory: Memory) -> None:
    """List what is watched, and what has changed there."""
    nothing = "Nothing is watched. Add a path: ua-memory watch add PATH"
    found = memory.watches.list()
    output.show_list(call, "watched", found, views.watched_json, views.show_watched, nothing)


@app.verb(watch_app, "remove")
def watch_remove(call: Call, memory: Memory, path: list[str] = Paths) -> None:
    """Stop watching paths. Their documents stay."""
    gone = [memory.watches.remove(str(paths.absolute(call, each))) for each in path]
    emit_json(call, {"removed": [one.path for one in gone]})
    for one in gone:
        Screen(call).line("No longer watching ", (one.path, "path"), "; its documents stay.")


@app.verb(watch_app, "run")
def watch_run(
    call: Call,
    memory: Memory,
    accept: bool = flag("--accept", "Delete the facts of files that are gone."),
    now: bool = flag("--now", "Include files saved a moment ago."),
    dry_run: bool = DryRun,
) -> None:
    """Retain what has changed, as the daemon does."""
    model = call.model(memory)
    if dry_run:
        preview = memory.watches.preview(model=model)
        return show_result(call, preview, views.retain_preview_json, views.show_retain_preview)
    with progress(call, "Reading chunks") as tell:
        caught = memory.watches.run(model=model, accept=accept, now=now, tell=tell)
    emit_json(call, views.watch_run_json(caught))
    _show_retained(call, memory, caught.done, model)
    views.show_watch_run(Screen(call), caught)


# -- flush -------------------------------------------------------------------------------------------------
# `ua-memory flush`: save what matters of a conversation before its context is reset.


@app.verb(opens_bank=False)
def flush(
    call: Call,
    transcript: str | None = argument(
        "[TRANSCRIPT | -]", "A client's transcript (default: standard input, else the queue).", None
    ),
    force: bool = flag("--force", "Flush even below the threshold."),
    dry_run: bool = flag("--dry-run", "Show what would be saved, and what a model would cost."),
    explain: bool = flag(
        "--explain", "With --dry-run: explain why each of your other sentences is left out."
    ),
    detach: bool = flag("--detach/--wait", "Queue it and return; the work continues in the background."),
    session: str | None = app.Session,
    client: str | None = option("NAME", "The client (default: detected)."),
    tag: list[str] | None = option("--tag TAG", "A tag for all its facts; repeatable."),
    again: bool = flag("--again", "Have a model read the saved sessions that no model has read yet."),
    since: str | None = option(
        "DATE", "With --again: started on this day or later: 30d.", show_default=False
    ),
    yes: bool = flag("--yes", "With --again: do not ask for confirmation."),
    behind: bool = flag("--behind", "", hidden=True),
) -> None:
    """Save what matters from a conversation.

    Below the threshold (UA_TRUNCATION_THRESHOLD) it says so and does nothing. Only what no flush has read
    counts. With a model (docs/model.md) a sub-agent reads the conversation and
    writes the facts; without one the speakers' own sentences are kept. Nothing is lost if the model fails:
    the turns wait for the next flush.

    With --again a model reads the sessions whose facts extraction chose: the price is shown first, its words
    replace the extracted sentences, and what they were stays as `was:`.
    """
    if again:
        if transcript or detach or session or client or tag:
            raise Usage("--again takes no transcript, session, client or tag", hint="ua-memory flush --again")
        with caller.opened(call) as memory:
            return _flush_again(call, memory, since, force=force, dry_run=dry_run, yes=yes)
    if since or yes:
        raise Usage("--since and --yes belong to --again", hint="ua-memory flush --again --since 30d")
    if explain and not dry_run:
        raise Usage("--explain belongs to --dry-run", hint="ua-memory flush --dry-run --explain FILE")
    if detach:
        spawn.ignore_hangup()
    with caller.opened(call) as memory, _open_transcript(call, memory, transcript) as stream:
        chosen: dict[str, Any] = {"force": force, "session": session, "client": client}
        if tag and (stream is None or dry_run):
            raise Usage("--tag is for one transcript that is flushed", hint="ua-memory flush --tag TAG FILE")
        if stream is None and memory.config.enabled and not dry_run:  # what hooks left behind
            queue_ended_sessions(memory, lambda text: note(call, text), model=bool(call.model(memory)))
        if dry_run:
            chosen |= {"model": call.model(memory), "explain": explain}
            found, cost = memory.conversations.preview(stream, **chosen)
            show_result(call, found, views.flush_preview_json, views.show_flush_preview, cost)
        elif detach:
            found = memory.conversations.enqueue(stream, model=call.model(memory), tags=tag or (), **chosen)
            _flush_detached(call, memory, found)
        else:
            _run_flush(call, memory, partial(memory.flush, stream, tags=tag or (), **chosen))
            # The next session's start, too, finds its words at hand where no daemon has read what is new.
            if behind and not is_running(memory.store.bank.local):
                memory.search_many(["what was kept"], by_words=True)


def _flush_again(
    call: Call, memory: Memory, since: str | None, *, force: bool, dry_run: bool, yes: bool
) -> None:
    """Have a model read sessions that none has read, after showing the price and asking on a terminal."""
    day, model = parse_day(since, "--since", memory.store.now()) or "", call.model(memory)
    found, cost = memory.conversations.unread_sessions(day, force=force, model=model)
    turns = sum(len(each.turns) for _, each in found)
    views.show_unread_sessions(Screen(call), len(found), turns, cost)
    if dry_run or not found:
        return emit_json(call, {"sessions": len(found), "turns": turns, **output.estimate_json(cost)})
    asks = model and call.reads_terminal and not (yes or call.as_json)
    if asks and not confirm(call, f"Have {cost.model if cost else 'the model'} read them?"):
        return
    done: list[FlushedSession] = []
    try:
        with progress(call, "Reading turns") as tell:
            for one in memory.conversations.read_again(found, model=model, tell=tell):
                done.append(one)
                views.show_flush(Screen(call), one)
    finally:  # also print what was read before an error
        if done:
            emit_json(call, views.flush_json(None, done, len(memory.queue.conversations())))


@contextmanager
def _open_transcript(call: Call, memory: Memory, given: str | None) -> Iterator[IO[bytes] | None]:
    """The transcript from a file or standard input; None if neither was given."""
    if not memory.config.enabled:
        yield None
    elif given is None or given == "-":
        empty = given is None and (call.reads_terminal or not _has_input(call.stdin))
        yield None if empty else call.stdin
    else:
        path = paths.absolute(call, given)
        try:
            file = discovery.open_regular(path)
        except IsADirectoryError as error:
            raise Usage("a folder is not a transcript", where=given, hint="name the file in it") from error
        except FileNotFoundError as error:
            raise NotFound("no such file", where=given, hint="ua-memory flush --help") from error
        except OSError as error:
            why = f"cannot be read: {error.strerror or error}"
            raise Malformed(why, where=given, hint="name a file, or give it on standard input") from error
        with file:
            yield file


def _has_input(stream: Any) -> bool:
    """Whether a stream has any input, without consuming it."""
    if stream.seekable():
        start = stream.tell()
        found = bool(stream.read(1))
        stream.seek(start)
        return found
    return bool(stream.peek(1))


def _run_flush(
    call: Call, memory: Memory, work: Callable[..., Flush | None], extra: Mapping[str, Any] | None = None
) -> None:
    """Flush conversations by `work` and print each; `extra` is added to the JSON."""
    done: list[FlushedSession] = []
    found: Flush | None = None
    model, finished = call.model(memory), False
    try:
        with _still_queued(call, memory), progress(call, "Reading turns") as tell:
            found = work(model=model, tell=tell, done=done.append)
        finished = True
    finally:  # also print what was flushed before an error
        if finished or done:
            shape = views.flush_json(found, done, len(memory.queue.conversations()))
            emit_json(call, {**shape, **(extra or {})})
        for one in done:
            views.show_flush(Screen(call), one)
    views.conclude_flush(Screen(call), found, done, bool(model) or not done or told_before(memory, "model"))


def _flush_detached(call: Call, memory: Memory, found: Flush | None) -> None:
    """Start a background process that flushes the queue, and print that."""
    waiting = memory.queue.conversations()
    log = spawn.start_detached(memory.store.bank, call.env) if memory.config.enabled and waiting else ""
    emit_json(call, {**views.flush_json(found, [], len(waiting)), **({"log": log} if log else {})})
    if log:
        turns = count(sum(len(each.turns) for each in waiting), "turn")
        said = f"{turns} queued; the flush continues in the background and writes to "
        Screen(call).line(said, (log, "path"))
    else:
        views.conclude_flush(Screen(call), found, [], True)


# -- queue -------------------------------------------------------------------------------------------------
# `ua-memory queue`: conversations that wait for their flush, and texts that wait to be retained.


queue_app = app.family("queue")


@app.verb(queue_app, "list")
def queue_list(call: Call, memory: Memory) -> None:
    """List what is queued, since when, and why."""
    people = partial(views.show_waiting, now=memory.store.now())
    waiting, shape = memory.queue.list(), views.waiting_json
    output.show_list(call, "waiting", waiting, shape, people, "The queue is empty.")


@app.verb(queue_app, "retry")
def queue_retry(
    call: Call,
    memory: Memory,
    key: list[str] | None = argument("[KEY...]", "Only these (default: all).", None),
) -> None:
    """Flush and retain what is queued, now."""
    texts = [each for each in key or () if memory.queue.is_text(each)]
    turns = [each for each in key or () if each not in texts]
    retained: Sequence[RetainResult] = ()
    if texts or (not key and memory.queue.texts()):
        with _still_queued(call, memory), progress(call, "Reading chunks") as tell:
            retained = memory.queue.retry_texts(texts, model=call.model(memory), tell=tell)
    more = {"retained": [views.retain_json(one) for one in retained]} if retained or texts else {}
    if retained:
        _show_retained(call, memory, retained, call.model(memory))

    def retry(**how: Any) -> Flush | None:
        memory.queue.retry_conversations(turns, **how)
        return None if memory.config.enabled else memory.flush()  # it says so, and does nothing

    if turns or (not key and (memory.queue.conversations() or not retained)):
        _run_flush(call, memory, retry, more)
    else:
        emit_json(call, {**views.flush_json(None, [], len(memory.queue.conversations())), **more})


@app.verb(queue_app, "drop")
def queue_drop(call: Call, memory: Memory, key: list[str] = argument("KEY...", "What to discard.")) -> None:
    """Discard what is queued."""
    gone = [memory.queue.drop(one) for one in key]
    emit_json(call, {"dropped": [views.waiting_json(one) for one in gone]})
    for one in gone:
        Screen(call).line(f"Discarded {views.waiting_text(one)} of ", (one.key, "id"))
