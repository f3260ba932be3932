"""What of a prompt was typed: without what a client, a channel or memory itself put around and into it."""

from __future__ import annotations

import re

from ua_memory.spoken import typed, without_envelope

CONDENSED = 500
"""Characters that are left of an over-long query: what the model reads is about as much."""

_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_EXPANDED = re.compile(r"\s*<command-(?:name|message|args)>")
_CURRENT = "[Current message - respond to this]"
_REPLY = re.compile(r"\[Replying to [^\]\n]*\].*?\[/Replying\]\s*", re.DOTALL)
_COMMAND = re.compile(r"/([A-Za-z][\w-]*(?:[:.][\w-]+)*)(?:\s+(.*))?", re.DOTALL)
_FOLDERS = frozenset("bin boot dev etc home lib mnt opt proc root run srv sys tmp usr var".split())  # noqa: SIM905
"""What a slash begins that is a place and no command."""
_LABEL = re.compile(
    r"^[ \t]*(?:\*\*)?(?:(user|human|me|you)|assistant|ai|agent|claude|codex|gemini|chatgpt|bot|system|tool)"
    r"(?:\*\*)?[ \t]*:(?:\*\*)?[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")


def was_typed(raw: str) -> str:
    """What a person typed of a prompt, '' if nothing; a command that a client expanded, as it was typed."""
    return _arguments(raw) if _EXPANDED.match(raw) else _asked(raw)


def command(text: str) -> tuple[str, str] | None:
    """(a slash command, what was typed after it), None where the text is none."""
    found = _COMMAND.fullmatch(text)
    if found is None or found[1].casefold() in _FOLDERS:
        return None
    return found[1], (found[2] or "").strip()


def _arguments(raw: str) -> str:
    """What was typed after a command that a client expanded; the command, if nothing was."""
    given = " ".join(found.strip() for found in _ARGUMENTS.findall(raw)).strip()
    name = re.search(r"<command-name>\s*(/?)([^<\s]*)", raw)
    return given or (f"/{name[2]}" if name and name[2] else "")


def _asked(raw: str) -> str:
    """A prompt without what machines put around and into it, and without what is only quoted in it."""
    text = raw.rpartition(_CURRENT)[2] if _CURRENT in raw else raw
    text = typed(without_envelope(_REPLY.sub("", text)))
    text = without_envelope(text)  # a block may stand before the envelope
    lines = text.split("\n")
    if len(lines) > 1:
        own = "\n".join(line for line in lines if not line.lstrip().startswith(">")).strip()
        text = _last_said(own or text)
    return text.strip()


def _last_said(text: str) -> str:
    """The last words of a person in a conversation that has both sides; any other text as it is."""
    labels = list(_LABEL.finditer(text))
    persons = [n for n, found in enumerate(labels) if found[1]]
    if not persons or len(persons) == len(labels):
        return text
    last = persons[-1]
    end = labels[last + 1].start() if last + 1 < len(labels) else len(text)
    return text[labels[last].end() : end].strip() or text


def condensed(text: str) -> str:
    """At most CONDENSED characters of a text, in its own order: its questions from the last on, then its last
    sentence, its first, and others from the end."""
    sentences = [found for found in (each.strip() for each in _SENTENCE.findall(text)) if found]
    numbers = range(len(sentences))
    asking = [n for n in reversed(numbers) if sentences[n].endswith(("?", "？"))]
    wanted = dict.fromkeys([*asking, *numbers[-1:], *numbers[:1], *reversed(numbers)])
    kept, left = set[int](), CONDENSED
    for n in wanted:
        if len(sentences[n]) < left:
            kept.add(n)
            left -= len(sentences[n]) + 1
        elif left < CONDENSED // 4:
            break
    return " ".join(sentences[n] for n in sorted(kept)) or " ".join(text[-CONDENSED:].split())
