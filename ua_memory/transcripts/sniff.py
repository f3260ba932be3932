"""Which client wrote a transcript, by what is in it: names and suffixes of files say nothing in a pipe."""

from __future__ import annotations

import re

from ua_memory.errors import Malformed
from ua_memory.spoken import in_envelope
from ua_memory.transcripts.prose import is_markdown, named_speakers
from ua_memory.transcripts.source import parse
from ua_memory.transcripts.turns import Record, table, word

CLIENTS = ("claude-code", "pi", "clawdbot", "openclaw", "codex", "hermes", "messages", "markdown", "text")

_LOOKED_AT = 50
_CODEX = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
_CLAUDE_CODE = (
    "summary",
    "file-history-snapshot",
    "queue-operation",
    "last-prompt",
    "permission-mode",
    "mode",
    "agent-name",
    "custom-title",
    "ai-title",
)
_CUT_SHORT = (
    (re.compile(r'^\{\s*"type"\s*:\s*"session"'), "pi"),
    (re.compile(r'"type"\s*:\s*"(?:session_meta|response_item|event_msg)"\s*,\s*"payload"'), "codex"),
    (re.compile(r'"(?:parentUuid|isSidechain|sessionId)"\s*:'), "claude-code"),
    (re.compile(r'^\{\s*"(?:messages|model|system|max_tokens|tools|role|content)"\s*:'), "messages"),
)
"""For a line longer than the head: what its beginning gives away."""


_OBJECT = re.compile(r'\{\s*(?:"|\}|$)')
_KEY = re.compile(r',\s*"\w+"\s*:')
_RECORD = re.compile(r'\s*\{\s*"')


def sniff(head: bytes) -> str:
    """One of `CLIENTS`, from the first bytes of a transcript (64 KB are plenty).

    Raises Malformed for JSON that is no transcript we know, and for bytes that are no text: what is in it
    would otherwise be taken for a person's words.
    """
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if re.match(r"\[\s*(?:\{|\]|$)", text):
        return "messages"
    lines = [line for line in text.split("\n")[:_LOOKED_AT] if line.strip()]
    if not _OBJECT.match(text) and not _mostly_objects(lines):
        if b"\0" in head:
            raise Malformed("this is a binary file, not a transcript", mend="ua-memory flush --help")
        return "markdown" if is_markdown(text) or named_speakers(text) else "text"
    records = [record for line in lines if (record := parse(line.encode("utf-8", "replace")))]
    for record in records:
        if client := _client(record, records):
            return client
    for part in (text, *lines):
        for pattern, client in _CUT_SHORT:
            if pattern.search(part):
                return client
    raise Malformed(
        "this is JSON, but no transcript of a client known here",
        mend="known are: " + ", ".join(CLIENTS),
    )


def _mostly_objects(lines: list[str]) -> bool:
    """Whether most lines are JSON objects though the first is not: it is damaged, or
    the end of one, as `tail` cuts it. A person's text with a pasted record in it is still a person's."""
    looks = sum(_RECORD.match(line) is not None for line in lines)
    first = lines[0].rstrip() if lines and not _RECORD.match(lines[0]) else ""
    cut = first.endswith("}")
    rest = cut and first.count("}") > first.count("{") and _KEY.search(first) is not None
    return (looks > 0 or rest) and 2 * (looks + cut) > len(lines)


def _client(record: Record, records: list[Record]) -> str:
    kind = record.get("type")
    if kind == "session" and ("cwd" in record or "version" in record):
        return _of_the_pi_family(record, records)
    if kind in _CODEX and isinstance(record.get("payload"), dict):
        return "codex"
    if (
        kind is None
        and "id" in record
        and "timestamp" in record
        and ("instructions" in record or "git" in record)
    ):
        return "codex"
    if ("session_id" in record and "role" in record) or ("started_at" in record and "source" in record):
        return "hermes"
    if "role" in record and "content" in record and kind in (None, "message"):
        return "codex" if kind and _has_input_text(record) else "messages"
    if isinstance(record.get("messages"), list):
        return "messages"
    if ("uuid" in record and "parentUuid" in record) or "sessionId" in record or kind in _CLAUDE_CODE:
        return "claude-code"
    if kind == "message" and "timestamp" in record and isinstance(record.get("message"), dict):
        return "pi"  # a session file whose header is broken
    return ""


def _has_input_text(record: Record) -> bool:
    content = record.get("content")
    return isinstance(content, list) and any(
        word(table(block).get("type")) in ("input_text", "output_text") for block in content
    )


def _of_the_pi_family(header: Record, records: list[Record]) -> str:
    """v4 is OpenClaw's alone; Clawdbot's v3 is pi's, but chat channels deliver its messages."""
    version = header.get("version")
    if isinstance(version, int) and version >= 4:
        return "openclaw"
    cwd = word(header.get("cwd")).rstrip("/")
    if re.search(r"/(?:clawd|\.clawdbot|\.openclaw|\.moltbot)(?:/|$)", cwd):
        return "clawdbot"
    for record in records:
        message = table(record.get("message"))
        if message.get("role") == "user":
            content = message.get("content")
            first = (
                content
                if isinstance(content, str)
                else word(table((content or [{}])[0]).get("text"))
                if isinstance(content, list)
                else ""
            )
            return "clawdbot" if in_envelope(first) else "pi"
    return "pi"
