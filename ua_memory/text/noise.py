"""What a person typed of a text, without what clients, hooks and memory added; the block of recalled
memory in a prompt."""

from __future__ import annotations

import re

from ua_memory.text.patterns import late, sections
from ua_memory.text.wording import sentences

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


# -- queries -----------------------------------------------------------------------------------------------
# What a person typed of a query that an agent or client sends: the same for the command line, MCP and hooks.
#
# A prompt may contain reminders, recalled memory, a channel's envelope, an expanded slash command or a pasted
# log. Only the typed words are searched for. Every prompt loads this module, so it imports nothing slow.


SKIP = "skip"
"""A value of `recall.long_query_behavior`."""
MARKUP = "<[/\n"
"""Characters around text that was not typed. A prompt without any is used as it is."""


class QueryText:
    """The `text` to search for, '' if the query is skipped, and `why` it was skipped or condensed; `long` if
    because of its length."""

    __slots__ = ("long", "text", "why")

    def __init__(self, text: str, why: str = "", long: bool = False) -> None:
        self.text, self.why, self.long = text, why, long

    @property
    def skipped(self) -> bool:
        """Whether there is nothing to search for, and a reason."""
        return not self.text and bool(self.why)


def read_query(raw: str, behavior: str = SKIP, longest: int = 2000) -> QueryText:
    """The text to search for. A query of more than `longest` characters is skipped or condensed."""
    is_plain = not any(sign in raw for sign in MARKUP) and not raw.startswith(_MACHINE_TEXTS)
    if len(raw) <= longest and is_plain:
        return QueryText(raw)  # as nearly all are
    text = typed_prompt(raw)
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
    text = condense(text)
    return QueryText(text, f"{size}, condensed to “{text}”", long=True)


# -- fence -------------------------------------------------------------------------------------------------
# The block of recalled memory in a prompt: an opening and a closing tag, one line for each memory.
#
# `transcripts` skips these blocks, so that recalled memory is not retained again. A block is the same to the
# byte for the same lines, so that a prompt cache can reuse it.


RECALL_OPEN = "<ua-memory-recall"
"""The beginning of the opening tag; attributes and `>` follow."""
RECALL_CLOSE = "</ua-memory-recall>"

LONGEST_BLOCK = 9500
"""Characters of a block with its tags. Claude Code puts a hook's output of more than 10,000 into a file and
shows its beginning only; Codex cuts at 2,500 tokens."""
PROMPT_PASSAGES = 2
"""Passages of sessions that a prompt is given."""

_CONTROL_CHARACTERS = late(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
"""Control characters: line ends, text direction, invisible letters (the last range, tags), surrogates."""
_DIRECTION_AND_TAGS = late("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
_ZERO_WIDTH = "\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff"
_TAG = late(rf"[<\uff1c\ufe64](?P<name>[\s/|{_ZERO_WIDTH}]*[\w:{_ZERO_WIDTH}-]+)")
_TAG_FILLER = late(rf"[\s/|{_ZERO_WIDTH}]+")
_CONFUSABLES = str.maketrans("асԁеһіјӏорԛѕуѵхтмκνορτυіь", "acdehijlopqsyvxtmkvoptuib")
"""Letters of other scripts that look like Latin ones (Unicode calls them confusables)."""
RESERVED_TAGS = (
    "ua-memory", "system", "im_start", "im_end", "function_calls", "function_results", "tool_use",
    "tool_result", "antml:",
)  # fmt: skip
"""Beginnings of tag names that clients and models give a meaning."""


def escape_tags(text: str, *names: str) -> str:
    """A text for use between tags of these names in a prompt: `<` is replaced in tags that could close them
    or look like a client's own, also in lookalike letters. The text stays readable."""
    begins = (*(name.casefold() for name in names), *RESERVED_TAGS)

    def escaped(tag: re.Match[str]) -> str:
        name = _TAG_FILLER.sub("", tag["name"]).casefold()
        if not name.isascii():
            from unicodedata import normalize

            name = normalize("NFKC", name).casefold().translate(_CONFUSABLES)
        return "‹" + tag["name"] if name.startswith(begins) else tag[0]

    return _TAG.sub(escaped, _DIRECTION_AND_TAGS.sub("", text))


def sanitize(text: str) -> str:
    """A text without control characters, and with its tags escaped."""
    return escape_tags(_CONTROL_CHARACTERS.sub(" ", text))


def fenced(kind: str, body: str) -> str:
    """A text as a block of recalled memory; `kind` is one word."""
    return f'{RECALL_OPEN} kind="{kind}">\n{sanitize(body)}\n{RECALL_CLOSE}'


_BLOCK = late(rf"{RECALL_OPEN}(?P<kind>[^<>]*)>(?P<body>.*?)(?:{RECALL_CLOSE}|\Z)", re.DOTALL)
HAND_OVER = "hand-over"
"""The kind of the block that begins a context that was reset."""
SAVED = "Saved "
"""The beginning of its parts that are facts."""


def block_lines(text: str) -> Iterator[str]:
    """The lines of the blocks of recalled memory in a text; of a hand-over only the saved facts."""
    for found in _BLOCK.finditer(text):
        parts = found["body"].split("\n\n")
        if f'"{HAND_OVER}"' in found["kind"]:
            parts = [part for part in parts if part.lstrip().startswith(SAVED)]
        yield from (line.strip() for part in parts for line in part.split("\n") if line.strip())


def row(date: str, text: str, source: str) -> str:
    """One line of a block: date, text, source."""
    flat = " ".join(sanitize(text).split())
    return f"- {date or 'undated'}: {flat} [{' '.join(sanitize(source).split())}]"


def block(
    kind: str, head: str, parts: Iterable[str], separator: str = "\n", most: int = LONGEST_BLOCK
) -> tuple[str, Sequence[str]]:
    """(a block with all parts that fit, in order; the parts that do not fit). '' if none fits."""
    fitting: list[str] = []
    rest: list[str] = []
    size = len(fenced(kind, head))
    for part in map(sanitize, parts):
        if size + len(separator) + len(part) <= most:
            fitting.append(part)
            size += len(separator) + len(part)
        else:
            rest.append(part)
    return (fenced(kind, separator.join([head, *fitting])) if fitting else ""), rest


# -- turns -------------------------------------------------------------------------------------------------
# The speaker's own words of a recorded turn: without text that a client, a hook or ua-memory added. A prompt
# (`typed_prompt`) also loses quoted replies, a channel's envelope, and quoted lines.


MEMORY_TAGS = (
    *(RECALL_OPEN[1:], "hindsight-recall", "hindsight_memories"),
    *("memory-context", "relevant-memories", "relevant_memories"),
)
"""Tags of recalled memory, ours (`hindsight-recall` is that of our plugin for pi) and other tools'. Without a
closing tag it runs to the end of the text."""

_TEXTS = {kind: tuple(text.split("\n")) for kind, text in sections("client_texts.txt").items()}
_MACHINE_TEXTS = _TEXTS["machine texts"]
"""Beginnings of texts in the user's role that a machine wrote entirely."""
_OPENING_TAG = late(r"<(" + "|".join(map(re.escape, (*MEMORY_TAGS, *_TEXTS["tags"]))) + r")(?=[\s>])[^<>]*>")
_FILE = late(r'<(file|skill) name="[^"\n]*"[^<>\n]*>')
"""Files on its command line, which pi puts into the prompt."""

_SUMMARIES = ("This session is being continued from a previous conversation that ran out of context",)

_CODEX_REQUEST = "## My request for Codex:"
_CHANNELS = "|".join(_TEXTS["channels"])
_ENVELOPE = late(rf"\[(?:(?:{_CHANNELS}) [^\]\n]*|[^\]\n]*\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d[^\]\n]*)\]\s*")
_MESSAGE_ID = late(r"\n?\[(?:message_id|slack message id|discord message id):[^\]\n]*\]\s*$", re.IGNORECASE)
_METADATA = late(r"[^\n]{3,60}\(untrusted[^)\n]*\):\s*```json\n.*?\n```\s*", re.DOTALL)
_SYSTEM_LINE = late(r"System: \[[^\]\n]*\d{4}-\d\d-\d\d[^\]\n]*\][^\n]*\n*")


def typed_text(text: str) -> str:
    """What a person typed of a text in the user's role; "" if a machine wrote all of it."""
    text = stripped(text)
    if text.startswith(_MACHINE_TEXTS) or is_summary(text):
        return ""
    text = _remove_blocks(text, _OPENING_TAG)
    if "<file name=" in text or "<skill name=" in text:
        text = _remove_blocks(text, _FILE)
    if text.startswith("# Context from my IDE setup:") and _CODEX_REQUEST in text:
        text = text.rpartition(_CODEX_REQUEST)[2]
    return text.strip()


def assistant_text(text: str) -> str:
    """An assistant's text without recalled memory; "" for an empty reply."""
    text = stripped(text)
    return "" if text in _TEXTS["empty replies"] else _remove_blocks(text, _OPENING_TAG, MEMORY_TAGS).strip()


def without_envelope(text: str) -> str:
    """A channel's message to Clawdbot or OpenClaw as its sender wrote it."""
    text = stripped(text)
    for pattern in (_METADATA, _SYSTEM_LINE):
        while found := pattern.match(text):
            text = text[found.end() :]
    if found := _ENVELOPE.match(text):
        text = text[found.end() :]
    return _MESSAGE_ID.sub("", text)


def has_envelope(text: str) -> bool:
    """Whether a text has the envelope of a chat channel, which only Clawdbot and OpenClaw add."""
    return bool(
        re.match(rf"\[(?:{_CHANNELS}) [^\]\n]*\]|(?:Conversation info|Sender) \(untrusted", text.lstrip())
    )


def is_summary(text: str) -> bool:
    """Whether it is the summary that opens a continued session (older clients do not flag it)."""
    return text.startswith(_SUMMARIES)


def stripped(text: str) -> str:
    """A text without surrounding space and lone surrogates, which cannot be encoded."""
    text = text.strip()
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-8", "replace").decode()
    return text


def _remove_blocks(text: str, opens: re.Pattern[str], tags: tuple[str, ...] = ()) -> str:
    """A text without the blocks that these tags open; with `tags`, only blocks of these names.

    Without a closing tag a block runs to the end if it is recalled memory, or a client's at the beginning of
    the text: clients write no space behind a tag. Any other unclosed tag is a person's text. A missing
    closing tag is searched for once for each name, so that the time is linear.
    """
    pieces: list[str] = []
    at = 0
    unclosed: set[str] = set()
    for found in opens.finditer(text):
        tag, begin = found[1], found.start()
        if begin < at or tag in unclosed or (tags and tag not in tags):
            continue
        end = text.find(f"</{tag}>", found.end())
        if end < 0 and tag not in MEMORY_TAGS and (text[:begin].strip() or text.startswith(" ", found.end())):
            unclosed.add(tag)
            continue
        pieces.append(text[at:begin])
        at = len(text) if end < 0 else end + len(tag) + 3
    return "".join(pieces) + text[at:] if pieces else text


# -- prompts -----------------------------------------------------------------------------------------------
# The typed part of a prompt: without text that a client, a channel or memory added.


CONDENSED = 500
"""Characters of a condensed query, about as many as the embedding model reads."""

_ARGUMENTS = late(r"<command-args>(.*?)</command-args>", re.DOTALL)
_EXPANDED = late(r"\s*<command-(?:name|message|args)>")
_CURRENT_MESSAGE = "[Current message - respond to this]"
_REPLY = late(r"\[Replying to [^\]\n]*\].*?\[/Replying\]\s*", re.DOTALL)
_COMMAND = late(r"/([A-Za-z][\w-]*(?:[:.][\w-]+)*)(?:\s+(.*))?", re.DOTALL)
_FOLDERS = frozenset("bin boot dev etc home lib mnt opt proc root run srv sys tmp usr var".split())  # noqa: SIM905
"""Names after a slash that are folders and no commands."""
_SPEAKER_LABEL = late(
    r"^[ \t]*(?:\*\*)?(?:(user|human|me|you)|assistant|ai|agent|claude|codex|gemini|chatgpt|bot|system|tool)"
    r"(?:\*\*)?[ \t]*:(?:\*\*)?[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)


def typed_prompt(raw: str) -> str:
    """What a person typed of a prompt, '' if nothing; of an expanded command the arguments."""
    return _command_arguments(raw) if _EXPANDED.match(raw) else _strip_markup(raw)


def command(text: str) -> tuple[str, str] | None:
    """(name of a slash command, the text after it), None if the text is no command."""
    found = _COMMAND.fullmatch(text)
    if found is None or found[1].casefold() in _FOLDERS:
        return None
    return found[1], (found[2] or "").strip()


def _command_arguments(raw: str) -> str:
    """The arguments of an expanded command; the command if it has none."""
    given = " ".join(found.strip() for found in _ARGUMENTS.findall(raw)).strip()
    name = re.search(r"<command-name>\s*(/?)([^<\s]*)", raw)
    return given or (f"/{name[2]}" if name and name[2] else "")


def _strip_markup(raw: str) -> str:
    """A prompt without text that machines added, and without quoted lines."""
    text = raw.rpartition(_CURRENT_MESSAGE)[2] if _CURRENT_MESSAGE in raw else raw
    text = typed_text(without_envelope(_REPLY.sub("", text)))
    text = without_envelope(text)  # a block may stand before the envelope
    lines = text.split("\n")
    if len(lines) > 1:
        own = "\n".join(line for line in lines if not line.lstrip().startswith(">")).strip()
        text = _last_person_turn(own or text)
    return text.strip()


def _last_person_turn(text: str) -> str:
    """The last turn of the person in a pasted conversation of both sides; any other text unchanged."""
    labels = list(_SPEAKER_LABEL.finditer(text))
    persons = [n for n, found in enumerate(labels) if found[1]]
    if not persons or len(persons) == len(labels):
        return text
    last = persons[-1]
    end = labels[last + 1].start() if last + 1 < len(labels) else len(text)
    return text[labels[last].end() : end].strip() or text


def condense(text: str) -> str:
    """At most CONDENSED characters of a text, in order: questions from the last on, then the last sentence,
    the first, and others from the end."""
    said = sentences(text)
    numbers = range(len(said))
    asking = [n for n in reversed(numbers) if said[n].endswith(("?", "？"))]
    wanted = dict.fromkeys([*asking, *numbers[-1:], *numbers[:1], *reversed(numbers)])
    chosen, room = set[int](), CONDENSED
    for n in wanted:
        if len(said[n]) < room:
            chosen.add(n)
            room -= len(said[n]) + 1
        elif room < CONDENSED // 4:
            break
    return " ".join(said[n] for n in sorted(chosen)) or " ".join(text[-CONDENSED:].split())
