"""Claude Code's JSONL: a tree of records, one per content block, between much that is not conversation.

Read are `user` and `assistant` records on the path from the last leaf, and what a person typed while the
agent worked. Attachments, hook output, request copies and meta records hold the memory we injected: they
are never read. A file of sidechain records alone is a sub-agent's; inline ones in a main file are left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ua_memory.text.noise import is_summary, typed
from ua_memory.transcripts.format import (
    ContextGauge,
    EntryIds,
    Format,
    Tree,
    blocks,
    claude_usage,
    filling,
    joined,
    mark,
    texts,
)
from ua_memory.transcripts.turns import (
    Boundary,
    CallResult,
    Event,
    Record,
    Turn,
    committed,
    instant,
    ours,
    table,
    tokens,
    word,
)

_MACHINES = ("acompact", "aprompt_suggestion", "aside_question")
"""Sub-agents of the client itself: the one that compacts repeats the conversation."""

_RESULTS_ONLY, _QUEUE = 3, 4


class _Branch:
    """The main line of a file, or its sidechain: each a tree with its own leaf and its own usage."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.leaf = -1
        self.gauge = ContextGauge()
        self.boundaries: list[tuple[int, Boundary, str, str]] = []
        """Number, boundary, what it logically follows, and the first message it left in the context."""
        self.summaries: list[int] = []
        """Lines of summaries before which the file holds nothing that they could sum up."""
        self.results: list[int] = []
        self.agent = ""


class ClaudeCode(Format):
    """`~/.claude/projects/<cwd>/<session>.jsonl` and `…/<session>/subagents/agent-<id>.jsonl`."""

    client = "claude-code"

    def __init__(self) -> None:
        super().__init__()
        self._main, self._side = _Branch(), _Branch()
        self._queue_lines: list[int] = []
        self._queued: set[int] = set()
        """Marks of what a person said in records of its own, which the queue's ledger only repeats."""
        self._strand = self._main
        self._seen: tuple[object, ...] = ()
        self._our_calls: set[str] = set()
        self._title_rank = -3

    def name(self, line: int, record: Record) -> str:
        if record.get("type") == "queue-operation":
            return f"queued-{word(record.get('timestamp')) or line}"
        return word(record.get("uuid")) or f"L{line}"

    def survey(self, line: int, record: Record) -> None:
        kind = record.get("type")
        if kind == "queue-operation":
            self._queue_lines.append(line)
            return
        self._title(kind, record)
        id = word(record.get("uuid"))
        if not id:
            return
        strand = self._side if record.get("isSidechain") is True else self._main
        self._head(record)
        message = table(record.get("message"))
        parent = word(record.get("parentUuid")) or word(record.get("logicalParentUuid"))
        summary = _is_summary(record)
        bound = record.get("subtype") == "compact_boundary"
        group = word(message.get("id")) if kind == "assistant" else ""
        number = strand.tree.add(id, parent, line, group, follows=summary or bound)
        if bound:
            strand.boundaries.append((number, _boundary(line, record), parent, _first_kept(record)))
        elif kind in ("user", "assistant"):
            self._spoken(strand, line, number, record, message)
        elif kind == "attachment":
            queued = table(record.get("attachment"))
            if queued.get("type") == "queued_command":
                self._queued.update(mark(text) for text in texts(queued.get("prompt")))

    def _title(self, kind: object, record: Record) -> None:
        """The person's own title before the model's, of each the last; an old summary may be another
        session's, and counts where there is neither."""
        titles = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
        if isinstance(kind, str) and kind in titles and (title := word(record.get(titles[kind]))):
            rank = -[*titles].index(kind)
            if rank >= self._title_rank:
                self._title_rank, self.session = rank, replace(self.session, title=title)

    def _spoken(self, strand: _Branch, line: int, number: int, record: Record, message: Record) -> None:
        if _is_summary(record):
            if strand.leaf < 0:
                strand.summaries.append(line)
        elif record.get("type") == "assistant":
            strand.agent = word(record.get("agentId")) or strand.agent
            if message.get("model") != "<synthetic>":
                total = claude_usage(table(message.get("usage")))
                strand.gauge.reply(line, word(message.get("model")), total)
        elif "toolUseResult" in record or "sourceToolAssistantUUID" in record:
            strand.results.append(number)
        elif isinstance(message.get("content"), str):
            self._queued.add(mark(message["content"]))
        strand.leaf = number

    def _head(self, record: Record) -> None:
        """The session is the one written last: a resumed file opens with records of the one before."""
        head = self.session
        now = (record.get("sessionId"), record.get("version"), record.get("forkedFrom"))
        if now == self._seen:
            return
        self._seen = now
        session = word(record.get("sessionId")) or head.session
        parent = word(table(record.get("forkedFrom")).get("sessionId")) or head.parent
        if head.session and session != head.session and not head.parent:
            parent = head.session
        self.session = replace(
            head,
            session=session,
            parent=parent if parent != session else "",
            cwd=head.cwd or word(record.get("cwd")),
            started=head.started or instant(record.get("timestamp")),
            version=word(record.get("version")) or head.version,
        )

    def close(self, lines: int) -> None:
        strand = self._strand = self._main if self._main.leaf >= 0 else self._side
        self.keep = bytearray(lines + 1)
        strand.tree.walk(strand.leaf)
        strand.tree.keep(self.keep)
        for number in strand.results:
            if not strand.tree.on[number]:
                self.keep[strand.tree.line(number)] = _RESULTS_ONLY
        for line in self._queue_lines:
            self.keep[line] = _QUEUE
        if strand is self._side:
            self.session = replace(self.session, agent=strand.agent)
            if strand.agent.startswith(_MACHINES):
                self.keep = bytearray(lines + 1)
        for number, boundary, parent, first in reversed(strand.boundaries):
            before = strand.tree.find(parent) if parent else -1
            if strand.tree.on[number] or (before >= 0 and strand.tree.on[before]):
                kept = strand.tree.line(strand.tree.find(first)) if first else 0
                self.boundary = replace(boundary, kept=kept or boundary.line)
                break
        self.usage = strand.gauge.usage(self.boundary)

    def read_to(self, id: str, line: int) -> int:
        return self._strand.tree.last_read(id)

    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        queue: deque[str] = deque()
        asked: set[str] = set()
        for line, record in records:
            flag = self.keep[line]
            if flag == _QUEUE:
                yield from self._typed_meanwhile(line, record, queue)
                continue
            at = instant(record.get("timestamp"))
            entry = self.entry(line, record, at, word(record.get("agentId")))
            kind = record.get("type")
            if kind == "assistant":
                yield from self._assistant(entry, record, asked)
            elif kind == "user":
                yield from self._user(entry, line, record, asked, flag == _RESULTS_ONLY)
            elif kind == "attachment":
                queued = table(record.get("attachment"))
                if queued.get("type") == "queued_command" and queued.get("commandMode") in (None, "prompt"):
                    text = joined(texts(queued.get("prompt")), typed)
                    if text and _human(queued):
                        yield entry.next(text=text)

    def _assistant(self, entry: EntryIds, record: Record, asked: set[str]) -> Iterator[Event]:
        message = table(record.get("message"))
        if record.get("isApiErrorMessage") or message.get("model") == "<synthetic>":
            return
        made = (block for block in blocks(message.get("content")) if block.get("type") == "tool_use")
        asked.update(word(block.get("id")) for block in made if block.get("name") == "AskUserQuestion")
        yield from entry.said(message.get("content"), self.session.cwd)

    def _user(
        self, entry: EntryIds, line: int, record: Record, asked: set[str], results_only: bool
    ) -> Iterator[Event]:
        content = table(record.get("message")).get("content")
        for block in blocks(content):
            if block.get("type") == "tool_result":
                key = word(block.get("tool_use_id"))
                output = "\n".join(texts(block.get("content")))
                yield CallResult(key, block.get("is_error") is True, committed(output))
                if key in asked and (text := _answers(record)) and not results_only:
                    yield entry.next(text=text)
        if results_only or record.get("isMeta"):
            return
        if _is_summary(record):
            if line in self._strand.summaries:
                text = "\n\n".join(texts(content)).strip()
                yield entry.next(role="assistant", text=text, summary=True)
            return
        own = not record.get("isVisibleInTranscriptOnly") and _human(record)
        if own and (text := joined(texts(content), typed)):  # to a sub-agent it is the main agent that speaks
            yield entry.next(text=text, role="assistant" if self.session.agent else "person")

    def _typed_meanwhile(self, line: int, record: Record, queue: deque[str]) -> Iterator[Event]:
        """What was typed while the agent worked, and handed to it in mid-turn.

        The queue's ledger has no ids; what leaves it by `remove` went to the model. Newer clients also write
        a queued_command record, which is preferred; the ledger alone is what 2.1.39 left, where notices of
        background tasks enter the queue too, but leave it without turns.
        """
        operation = record.get("operation")
        if operation == "enqueue":
            if typed(word(record.get("content"))):
                queue.append(word(record.get("content")))
            if len(queue) > 1000:
                queue.popleft()
        elif operation in ("dequeue", "remove", "popAll"):
            said = queue.popleft() if queue else ""
            said = word(record.get("content")) or said
            text = typed(said)
            if operation == "remove" and text and mark(said) not in self._queued:
                yield Turn(
                    self.name(line, record), "person", text, instant(record.get("timestamp")), line=line
                )

    def contents(self, line: int, record: Record) -> Iterator[str]:
        if self.keep[line] == 1 and record.get("type") in ("user", "assistant"):
            yield from filling(table(record.get("message")).get("content"))

    tells_outputs = True

    def outputs(self, record: Record) -> Iterator[str]:
        for block in blocks(table(record.get("message")).get("content")):
            if block.get("type") == "tool_use" and ours(word(block.get("name")), None):
                self._our_calls.add(word(block.get("id")))
            elif block.get("type") == "tool_result" and block.get("tool_use_id") not in self._our_calls:
                yield "\n".join(texts(block.get("content")))


def _is_summary(record: Record) -> bool:
    if record.get("isCompactSummary"):
        return True
    if record.get("type") != "user":
        return False
    return is_summary(next(texts(table(record.get("message")).get("content")), ""))


def _human(record: Record) -> bool:
    """Not a prompt that the client, a hook or a finished background task put in the user's mouth."""
    origins = (record.get("turnOrigin"), table(record.get("origin")).get("kind"))
    return record.get("promptSource") != "system" and all(o in (None, "human", "sdk") for o in origins)


def _answers(record: Record) -> str:
    """What a person answered when the agent asked: the client's own record of it, no tool's output."""
    answers = table(table(record.get("toolUseResult")).get("answers"))
    pairs = (f"{question} {answer}" for question, answer in answers.items() if isinstance(answer, str))
    return "\n".join(pairs).strip()


def _first_kept(record: Record) -> str:
    """A compaction may leave the last messages before it in the context: the id of the first of them."""
    meta = table(record.get("compactMetadata"))
    kept = table(meta.get("preservedMessages")).get("uuids")
    first = word(kept[0]) if isinstance(kept, list) and kept else ""
    return first or word(table(meta.get("preservedSegment")).get("headUuid"))


def _boundary(line: int, record: Record) -> Boundary:
    meta = table(record.get("compactMetadata"))
    return Boundary(
        line,
        line,
        instant(record.get("timestamp")),
        word(meta.get("trigger")),
        tokens(meta.get("preTokens")) or None,
        tokens(meta.get("postTokens")) or None,
    )
