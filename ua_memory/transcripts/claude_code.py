"""Claude Code's JSONL: a tree of records, one per content block, between much that is not conversation.

Read are `user` and `assistant` records on the path from the last leaf, and what a person typed while the
agent worked. Attachments, hook output, request copies and meta records hold the memory we injected: they
are never read. A file of sidechain records alone is a sub-agent's; inline ones in a main file are left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ua_memory.text.noise import is_summary, typed_text
from ua_memory.transcripts.format import (
    ContextGauge,
    EntryIds,
    Format,
    Tree,
    all_texts,
    blocks,
    call_result,
    claude_usage,
    id_hash,
    join_texts,
    texts,
)
from ua_memory.transcripts.turns import (
    Boundary,
    Event,
    Record,
    Turn,
    as_dict,
    as_str,
    as_time,
    as_tokens,
    is_ours,
)

_MACHINES = ("acompact", "aprompt_suggestion", "aside_question")
"""The client's own sub-agents: the one for compaction repeats the conversation."""

_RESULTS_ONLY, _QUEUE = 3, 4


class _Branch:
    """The main conversation of a file, or its sidechain: each has a tree, a leaf and usage of its own."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.leaf = -1
        self.gauge = ContextGauge()
        self.boundaries: list[tuple[int, Boundary, str, str]] = []
        """Entry number, boundary, id of the logical parent, id of the first message left in the context."""
        self.summaries: list[int] = []
        """Lines of summaries of turns that are not in the file."""
        self.results: list[int] = []
        self.agent = ""


class ClaudeCode(Format):
    """`~/.claude/projects/<cwd>/<session>.jsonl` and `…/<session>/subagents/agent-<id>.jsonl`."""

    client = "claude-code"

    def __init__(self) -> None:
        super().__init__()
        self._main, self._side = _Branch(), _Branch()
        self._queue_lines: list[int] = []
        self._recorded_texts: set[int] = set()
        """Hashes of a person's texts that have records of their own, which the queue's log repeats."""
        self._branch = self._main
        self._last_head: tuple[object, ...] = ()
        self._our_calls: set[str] = set()
        self._title_rank = -3

    def name(self, line: int, record: Record) -> str:
        if record.get("type") == "queue-operation":
            return f"queued-{as_str(record.get('timestamp')) or line}"
        return as_str(record.get("uuid")) or f"L{line}"

    def survey(self, line: int, record: Record) -> None:
        kind = record.get("type")
        if kind == "queue-operation":
            self._queue_lines.append(line)
            return
        self._title(kind, record)
        id = as_str(record.get("uuid"))
        if not id:
            return
        branch = self._side if record.get("isSidechain") is True else self._main
        self._head(record)
        message = as_dict(record.get("message"))
        parent = as_str(record.get("parentUuid")) or as_str(record.get("logicalParentUuid"))
        summary = _is_summary(record)
        bound = record.get("subtype") == "compact_boundary"
        group = as_str(message.get("id")) if kind == "assistant" else ""
        number = branch.tree.add(id, parent, line, group, follows=summary or bound)
        if bound:
            branch.boundaries.append((number, _boundary(line, record), parent, _first_kept_id(record)))
        elif kind in ("user", "assistant"):
            self._add_message(branch, line, number, record, message)
        elif kind == "attachment":
            queued = as_dict(record.get("attachment"))
            if queued.get("type") == "queued_command":
                self._recorded_texts.update(id_hash(text) for text in texts(queued.get("prompt")))

    def _title(self, kind: object, record: Record) -> None:
        """Update the title: the person's own before the model's, the last of each. A summary, which may be
        another session's, counts only without these."""
        titles = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
        if isinstance(kind, str) and kind in titles and (title := as_str(record.get(titles[kind]))):
            rank = -[*titles].index(kind)
            if rank >= self._title_rank:
                self._title_rank, self.session = rank, replace(self.session, title=title)

    def _add_message(self, branch: _Branch, line: int, number: int, record: Record, message: Record) -> None:
        if _is_summary(record):
            if branch.leaf < 0:
                branch.summaries.append(line)
        elif record.get("type") == "assistant":
            branch.agent = as_str(record.get("agentId")) or branch.agent
            if message.get("model") != "<synthetic>":
                branch.gauge.add(line, claude_usage(as_dict(message.get("usage"))))
        elif "toolUseResult" in record or "sourceToolAssistantUUID" in record:
            branch.results.append(number)
        elif isinstance(message.get("content"), str):
            self._recorded_texts.add(id_hash(message["content"]))
        branch.leaf = number

    def _head(self, record: Record) -> None:
        """Update the session. The last one counts: a resumed file begins with records of the session
        before."""
        head = self.session
        now = (record.get("sessionId"), record.get("forkedFrom"))
        if now == self._last_head:
            return
        self._last_head = now
        session = as_str(record.get("sessionId")) or head.session
        parent = as_str(as_dict(record.get("forkedFrom")).get("sessionId")) or head.parent
        if head.session and session != head.session and not head.parent:
            parent = head.session
        self.session = replace(
            head,
            session=session,
            parent=parent if parent != session else "",
            cwd=head.cwd or as_str(record.get("cwd")),
            started=head.started or as_time(record.get("timestamp")),
        )

    def close(self, lines: int) -> None:
        branch = self._branch = self._main if self._main.leaf >= 0 else self._side
        self.keep = bytearray(lines + 1)
        branch.tree.walk(branch.leaf)
        branch.tree.flag_lines(self.keep)
        for number in branch.results:
            if not branch.tree.flags[number]:
                self.keep[branch.tree.line(number)] = _RESULTS_ONLY
        for line in self._queue_lines:
            self.keep[line] = _QUEUE
        if branch is self._side:
            self.session = replace(self.session, agent=branch.agent)
            if branch.agent.startswith(_MACHINES):
                self.keep = bytearray(lines + 1)
        for number, boundary, parent, first in reversed(branch.boundaries):
            before = branch.tree.find(parent) if parent else -1
            if branch.tree.flags[number] or (before >= 0 and branch.tree.flags[before]):
                kept = branch.tree.line(branch.tree.find(first)) if first else 0
                self.boundary = replace(boundary, kept=kept or boundary.line)
                break
        self.context_size = branch.gauge.size(self.boundary)

    def read_to(self, id: str, line: int) -> int:
        return self._branch.tree.last_read(id)

    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        queue: deque[str] = deque()
        asked: set[str] = set()
        for line, record in records:
            flag = self.keep[line]
            if flag == _QUEUE:
                yield from self._queued_turns(line, record, queue)
                continue
            at = as_time(record.get("timestamp"))
            entry = self.entry(line, record, at, as_str(record.get("agentId")))
            kind = record.get("type")
            if kind == "assistant":
                yield from self._assistant(entry, record, asked)
            elif kind == "user":
                yield from self._user(entry, line, record, asked, flag == _RESULTS_ONLY)
            elif kind == "attachment":
                queued = as_dict(record.get("attachment"))
                if queued.get("type") == "queued_command" and queued.get("commandMode") in (None, "prompt"):
                    text = join_texts(texts(queued.get("prompt")), typed_text)
                    if text and _is_by_person(queued):
                        yield entry.next(text=text)

    def _assistant(self, entry: EntryIds, record: Record, asked: set[str]) -> Iterator[Event]:
        message = as_dict(record.get("message"))
        if record.get("isApiErrorMessage") or message.get("model") == "<synthetic>":
            return
        made = (block for block in blocks(message.get("content")) if block.get("type") == "tool_use")
        asked.update(as_str(block.get("id")) for block in made if block.get("name") == "AskUserQuestion")
        yield from entry.said(message.get("content"), self.session.cwd)

    def _user(
        self, entry: EntryIds, line: int, record: Record, asked: set[str], results_only: bool
    ) -> Iterator[Event]:
        content = as_dict(record.get("message")).get("content")
        for block in blocks(content):
            if block.get("type") == "tool_result":
                key = as_str(block.get("tool_use_id"))
                yield call_result(key, block.get("is_error") is True, block.get("content"))
                if key in asked and (text := _answers_of_person(record)) and not results_only:
                    yield entry.next(text=text)
        if results_only or record.get("isMeta"):
            return
        if _is_summary(record):
            if line in self._branch.summaries:
                text = "\n\n".join(texts(content)).strip()
                yield entry.next(role="assistant", text=text, summary=True)
            return
        if not record.get("isVisibleInTranscriptOnly") and _is_by_person(record):
            yield from self.typed(entry, texts(content))

    def _queued_turns(self, line: int, record: Record, queue: deque[str]) -> Iterator[Event]:
        """Turns that were typed while the agent worked, and given to it in mid-turn.

        The queue's log has no ids; an operation `remove` gave its text to the model. Newer clients also write
        a queued_command record, which is preferred. Version 2.1.39 has only the log, in which notices of
        background tasks are queued, too, but are no turns.
        """
        operation = record.get("operation")
        if operation == "enqueue":
            if typed_text(as_str(record.get("content"))):
                queue.append(as_str(record.get("content")))
            if len(queue) > 1000:
                queue.popleft()
        elif operation in ("dequeue", "remove", "popAll"):
            said = queue.popleft() if queue else ""
            said = as_str(record.get("content")) or said
            text = typed_text(said)
            if operation == "remove" and text and id_hash(said) not in self._recorded_texts:
                at = as_time(record.get("timestamp"))
                yield Turn(self.name(line, record), "person", text, at, line=line)

    def contents(self, line: int, record: Record) -> Iterator[str]:
        if self.keep[line] == 1 and record.get("type") in ("user", "assistant"):
            yield from all_texts(as_dict(record.get("message")).get("content"))

    tells_outputs = True

    def outputs(self, record: Record) -> Iterator[str]:
        for block in blocks(as_dict(record.get("message")).get("content")):
            if block.get("type") == "tool_use" and is_ours(as_str(block.get("name")), None):
                self._our_calls.add(as_str(block.get("id")))
            elif block.get("type") == "tool_result" and block.get("tool_use_id") not in self._our_calls:
                yield "\n".join(texts(block.get("content")))


def _is_summary(record: Record) -> bool:
    if record.get("isCompactSummary"):
        return True
    if record.get("type") != "user":
        return False
    return is_summary(next(texts(as_dict(record.get("message")).get("content")), ""))


def _is_by_person(record: Record) -> bool:
    """Whether a person wrote a prompt, and not the client, a hook or a background task."""
    origins = (record.get("turnOrigin"), as_dict(record.get("origin")).get("kind"))
    return record.get("promptSource") != "system" and all(o in (None, "human", "sdk") for o in origins)


def _answers_of_person(record: Record) -> str:
    """A person's answers to the agent's question, from the client's own record."""
    answers = as_dict(as_dict(record.get("toolUseResult")).get("answers"))
    pairs = (f"{question} {answer}" for question, answer in answers.items() if isinstance(answer, str))
    return "\n".join(pairs).strip()


def _first_kept_id(record: Record) -> str:
    """The id of the first message that a compaction left in the context, or ""."""
    meta = as_dict(record.get("compactMetadata"))
    kept = as_dict(meta.get("preservedMessages")).get("uuids")
    first = as_str(kept[0]) if isinstance(kept, list) and kept else ""
    return first or as_str(as_dict(meta.get("preservedSegment")).get("headUuid"))


def _boundary(line: int, record: Record) -> Boundary:
    left = as_tokens(as_dict(record.get("compactMetadata")).get("postTokens"))
    return Boundary(line, line, left or None)
