"""What a person typed or said in a recorded text, without what clients, hooks and memory added."""

from __future__ import annotations

import re

from ua_memory.text.patterns import late

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


# -- queries -----------------------------------------------------------------------------------------------
# A query as an agent makes it, and what of it a person asked: the same for every door.
#
# What reaches memory is often more than was typed: a prompt with reminders, recalled memory and a channel's
# envelope in it, a slash command that a client expanded, a pasted log. The words that were typed win over
# all that. Read for every prompt: nothing is imported that costs.


SKIP = "skip"
MACHINES = (
    "(no content)",
    "A new session was started",
    "Another language model started",
    "Caveat: The messages",
    "Pre-compaction memory flush",
    "Read HEARTBEAT.md",
)
"""How a prompt of one line begins that no person typed, and that has none of SIGNS."""
SIGNS = "<[/\n"
"""What something stands between, or after, that was not typed. A prompt without any is asked as it is."""


class QueryText:
    """What is looked for: `text`, '' where nothing is, and `why` it was skipped or condensed; `long` if that
    was for its length."""

    __slots__ = ("long", "text", "why")

    def __init__(self, text: str, why: str = "", long: bool = False) -> None:
        self.text, self.why, self.long = text, why, long

    @property
    def skipped(self) -> bool:
        """Whether nothing is to be looked for, and a reason is said."""
        return not self.text and bool(self.why)


def read_query(raw: str, behavior: str = SKIP, longest: int = 2000) -> QueryText:
    """What a query asks for. One of more than `longest` characters is skipped, or condensed. Never raises."""
    if len(raw) <= longest and not any(sign in raw for sign in SIGNS) and not raw.startswith(MACHINES):
        return QueryText(raw)  # as nearly all are
    text = was_typed(raw)
    if not text:
        said = "not searched: a client or memory itself wrote all of the query"
        return QueryText("", said if raw.strip() else "")
    found = command(text)
    if found:
        name, text = found
        if not text:
            return QueryText("", f"not searched: /{name} is a command without words to search for")
    if len(text) <= longest:
        return QueryText(text)
    size = f"a query of {len(text):,} characters, where {longest:,} are the most (recall.longest_query)"
    if behavior == SKIP:
        return QueryText("", f"not searched: {size}; ask less, or set recall.long_query_behavior", long=True)
    text = condensed(text)
    return QueryText(text, f"{size}, condensed to “{text}”", long=True)


_ASKS = late(r"[?？]\s*$|^\W*(?:what|why|how|when|where|who|whose|which)\b", re.IGNORECASE)
_DESCRIBED = late(
    r"\b(?:the|my|our|his|her|their)\s+(?:\w+\s+)?(?:\w+\s+who\s+"
    r"|(?:person|man|woman|guy|girl|boy|one|friend|colleague|neighbou?r|boss|doctor|teacher|coach|company|firm"
    r"|vendor|supplier|shop|place|team)\s+(?:who|that|which|with|from)\s+)(?P<clause>\w.*?)[?!.\s]*$",
    re.IGNORECASE,
)
_DOES = late(r"\b(?:do|does|did|will|can|could|should|would)\s*$", re.IGNORECASE)


def asks(prompt: str) -> bool:
    """Whether a prompt asks something."""
    return _ASKS.search(prompt) is not None


def described_in(query: str) -> re.Match[str] | None:
    """Where a query about somebody describes instead of naming them: `clause` is what it says of them."""
    return _DESCRIBED.search(query)


def naming(described: re.Match[str], name: str) -> str:
    """A query with a name in place of the description. After "where does" the last word is what they do."""
    before = described.string[: described.start()]
    verb = described["clause"].split()[-1] if _DOES.search(before) else ""
    return f"{before}{name} {verb}".strip()


# -- fence -------------------------------------------------------------------------------------------------
# How recalled memory stands in a prompt: between two marks, one line each, as data.
#
# `transcripts` leaves out what stands between the marks, so that nothing recalled is learnt again as if it
# were new. A block is the same to the byte for the same lines: a prompt cache can keep it. Read by every
# hook: nothing is imported that costs.


RECALL_OPEN = "<ua-memory-recall"
"""How a block of recalled memory begins; attributes and `>` follow."""
RECALL_CLOSE = "</ua-memory-recall>"

MOST = 9500
"""Characters of a block, marks and all. Claude Code puts a hook's output of more than 10,000 into a file and
shows its beginning only; Codex cuts at 2,500 tokens."""
PASSAGES = 2
"""Passages of sessions that a prompt is given."""

_HIDDEN = late(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
"""What is not seen, and ends a line, turns it around, smuggles letters (the last) or is no text."""
_TURNED = late("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_WIDTHLESS = "\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff"
_TAG = late(rf"[<\uff1c\ufe64](?P<name>[\s/|{_WIDTHLESS}]*[\w:{_WIDTHLESS}-]+)")
_BARE = late(rf"[\s/|{_WIDTHLESS}]+")
_ALIKE = str.maketrans("асԁеһіјӏорԛѕуѵхтмκνορτυіь", "acdehijlopqsyvxtmkvoptuib")
"""Letters of other scripts that look like Latin ones."""
FRAMES = (
    "ua-memory", "system", "im_start", "im_end", "function_calls", "function_results", "tool_use",
    "tool_result", "antml:",
)  # fmt: skip
"""How the marks begin that clients and models give a meaning, besides those around a text of ours."""


def defanged(text: str, *names: str) -> str:
    """A text as it stands between marks of these names in a prompt: nothing in it can end them, open others
    or pass for a client's own, nor in letters that only look so. What it says is left to be read."""
    begins = (*(name.casefold() for name in names), *FRAMES)

    def broken(mark: re.Match[str]) -> str:
        name = _BARE.sub("", mark["name"]).casefold()
        if not name.isascii():
            from unicodedata import normalize

            name = normalize("NFKC", name).casefold().translate(_ALIKE)
        return "‹" + mark["name"] if name.startswith(begins) else mark[0]

    return _TAG.sub(broken, _TURNED.sub("", text))


def harmless(text: str) -> str:
    """The text without what is not seen, and with no mark in it that could end the block or open one."""
    return defanged(_HIDDEN.sub(" ", text))


def fenced(kind: str, body: str) -> str:
    """A text of our own making as a block of recalled memory; `kind` is one word."""
    return f'{RECALL_OPEN} kind="{kind}">\n{harmless(body)}\n{RECALL_CLOSE}'


_BLOCK = late(rf"{RECALL_OPEN}(?P<kind>[^<>]*)>(?P<body>.*?)(?:{RECALL_CLOSE}|\Z)", re.DOTALL)
HAND_OVER, SAVED = "hand-over", "Saved "
"""The kind of block that a reset context begins with, and how its parts begin that hold facts."""


def recalled(text: str) -> Iterator[str]:
    """The lines of the blocks of recalled memory in a text; of a hand-over only what was saved."""
    for found in _BLOCK.finditer(text):
        parts = found["body"].split("\n\n")
        if f'"{HAND_OVER}"' in found["kind"]:
            parts = [part for part in parts if part.lstrip().startswith(SAVED)]
        yield from (line.strip() for part in parts for line in part.split("\n") if line.strip())


def row(date: str, text: str, source: str) -> str:
    """One line of a block: when, what, and where it stands."""
    flat = " ".join(harmless(text).split())
    return f"- {date or 'undated'}: {flat} [{' '.join(harmless(source).split())}]"


def block(
    kind: str, head: str, parts: Iterable[str], gap: str = "\n", most: int = MOST
) -> tuple[str, Sequence[str]]:
    """(the block with as many of the parts, in their order, as fit whole; those that do not).

    The block is empty where no part fits.
    """
    kept: list[str] = []
    left: list[str] = []
    size = len(fenced(kind, head))
    for part in map(harmless, parts):
        if size + len(gap) + len(part) <= most:
            kept.append(part)
            size += len(gap) + len(part)
        else:
            left.append(part)
    return (fenced(kind, gap.join([head, *kept])) if kept else ""), left


# -- spoken ------------------------------------------------------------------------------------------------
# What of a recorded text its speaker said: without what a client, a hook or we ourselves put into it.
#
# Recalled memory goes into a prompt between the marks of `fence`. Nothing between them is ever read as if
# it were new.


MEMORIES = (
    RECALL_OPEN[1:],
    "hindsight-recall",
    "hindsight_memories",
    "memory-context",
    "relevant-memories",
    "relevant_memories",
)
"""Blocks of recalled memory, ours and the neighbours'. One without an end runs to the end of the text."""

_CLIENT = (
    "system-reminder",
    "task-notification",
    "teammate-message",
    "command-name",
    "command-message",
    "command-args",
    "command-contents",
    "local-command-caveat",
    "local-command-stdout",
    "local-command-stderr",
    "bash-input",
    "bash-stdout",
    "bash-stderr",
    "user-prompt-submit-hook",
    "session-start-hook",
    "hook_context",
    "hook_prompt",
    "ide_opened_file",
    "ide_selection",
    "ide_diagnostics",
    "new-diagnostics",
    "untrusted_context",
    "environment_context",
    "user_instructions",
    "permissions instructions",
    "collaboration_mode",
    "user_shell_command",
    "turn_aborted",
    "subagent_notification",
    "skills_instructions",
    "INSTRUCTIONS",
)
_OPENS = late(r"<(" + "|".join(map(re.escape, (*MEMORIES, *_CLIENT))) + r")(?=[\s>])[^<>]*>")
_FILE = late(r'<(file|skill) name="[^"\n]*"[^<>\n]*>')
"""pi puts the files named on its command line into the prompt."""

_MACHINE = (
    "<command-name>",
    "<command-message>",
    "<local-command-",
    "<bash-input>",
    "<bash-stdout>",
    "<task-notification",
    "<user-prompt-submit-hook>",
    "[Request interrupted by user",
    "Caveat: The messages below were generated by the user while running local commands",
    "# AGENTS.md instructions for ",
    "Another language model started to solve this problem",
    "Read HEARTBEAT.md if it exists",
    "Pre-compaction memory flush",
    "A new session was started via /new or /reset",
    "[cron:",
    "(no content)",
)
"""A text of the user's role that begins so was written by a machine, to its end."""

_SILENT = frozenset({"(no content)", "No response requested.", "NO_REPLY", "HEARTBEAT_OK"})
"""What assistants write when they say nothing."""

_SUMMARIES = ("This session is being continued from a previous conversation that ran out of context",)

_REQUEST = "## My request for Codex:"
_CHANNELS = (
    r"WebChat|WhatsApp|Telegram|Signal|Slack|Discord|iMessage|Teams|Matrix|Google Chat|BlueBubbles|"
    r"Mattermost|Nostr|LINE|Zalo|Zalo Personal|Feishu|Lark|IRC|Twitch|SMS"
)
_ENVELOPE = late(rf"\[(?:(?:{_CHANNELS}) [^\]\n]*|[^\]\n]*\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d[^\]\n]*)\]\s*")
_MESSAGE_ID = late(r"\n?\[(?:message_id|slack message id|discord message id):[^\]\n]*\]\s*$", re.IGNORECASE)
_METADATA = late(r"[^\n]{3,60}\(untrusted[^)\n]*\):\s*```json\n.*?\n```\s*", re.DOTALL)
_SYSTEM_LINE = late(r"System: \[[^\]\n]*\d{4}-\d\d-\d\d[^\]\n]*\][^\n]*\n*")


def typed(text: str) -> str:
    """What a person said in a text of the user's role; "" if all of it came from a machine."""
    text = clean(text)
    if text.startswith(_MACHINE) or is_summary(text):
        return ""
    text = _without(text, _OPENS)
    if "<file name=" in text or "<skill name=" in text:
        text = _without(text, _FILE)
    if text.startswith("# Context from my IDE setup:") and _REQUEST in text:
        text = text.rpartition(_REQUEST)[2]
    return text.strip()


def uttered(text: str) -> str:
    """What an assistant said: without recalled memory, and "" for the words that stand for silence."""
    text = clean(text)
    return "" if text in _SILENT else _without(text, _OPENS, MEMORIES).strip()


def without_envelope(text: str) -> str:
    """A channel's message to Clawdbot or OpenClaw as its sender wrote it."""
    text = clean(text)
    for pattern in (_METADATA, _SYSTEM_LINE):
        while found := pattern.match(text):
            text = text[found.end() :]
    if found := _ENVELOPE.match(text):
        text = text[found.end() :]
    return _MESSAGE_ID.sub("", text)


def in_envelope(text: str) -> bool:
    """Whether a chat channel delivered it, which only Clawdbot and OpenClaw do."""
    return bool(
        re.match(rf"\[(?:{_CHANNELS}) [^\]\n]*\]|(?:Conversation info|Sender) \(untrusted", text.lstrip())
    )


def is_summary(text: str) -> bool:
    """Whether it is the summary that opens a continued session (older clients do not flag it)."""
    return text.startswith(_SUMMARIES)


def clean(text: str) -> str:
    """Without space around it, and without halves of surrogate pairs, which no file could take."""
    text = text.strip()
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-8", "replace").decode()
    return text


def _without(text: str, opens: re.Pattern[str], tags: tuple[str, ...] = ()) -> str:
    """The text without the blocks that these marks open (with `tags`, without those of these names alone).

    A block of recalled memory that nothing closes runs to the end. Another that nothing closes is a word a
    person used. Each tag's end is searched for once at most in vain, so that the whole is linear.
    """
    kept: list[str] = []
    at = 0
    endless: set[str] = set()
    for found in opens.finditer(text):
        tag = found[1]
        if found.start() < at or tag in endless or (tags and tag not in tags):
            continue
        end = text.find(f"</{tag}>", found.end())
        if end < 0 and tag not in MEMORIES and text[: found.start()].strip():
            endless.add(tag)
            continue
        kept.append(text[at : found.start()])
        at = len(text) if end < 0 else end + len(tag) + 3
    return "".join(kept) + text[at:] if kept else text


# -- prompts -----------------------------------------------------------------------------------------------
# What of a prompt was typed: without what a client, a channel or memory itself put around and into it.


CONDENSED = 500
"""Characters that are left of an over-long query: what the model reads is about as much."""

_ARGUMENTS = late(r"<command-args>(.*?)</command-args>", re.DOTALL)
_EXPANDED = late(r"\s*<command-(?:name|message|args)>")
_CURRENT = "[Current message - respond to this]"
_REPLY = late(r"\[Replying to [^\]\n]*\].*?\[/Replying\]\s*", re.DOTALL)
_COMMAND = late(r"/([A-Za-z][\w-]*(?:[:.][\w-]+)*)(?:\s+(.*))?", re.DOTALL)
_FOLDERS = frozenset("bin boot dev etc home lib mnt opt proc root run srv sys tmp usr var".split())  # noqa: SIM905
"""What a slash begins that is a place and no command."""
_LABEL = late(
    r"^[ \t]*(?:\*\*)?(?:(user|human|me|you)|assistant|ai|agent|claude|codex|gemini|chatgpt|bot|system|tool)"
    r"(?:\*\*)?[ \t]*:(?:\*\*)?[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_SENTENCE = late(r"[^.!?。！？\n]+[.!?。！？]*")


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
