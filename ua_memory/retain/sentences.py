"""The sentences of a turn, as their speaker said them: no code, no tables, no headings, no quoted text.

Stripped from a sentence is what decorates it and nothing else: the marker of a list item with its task box or
check mark, asterisks and underscores that make words bold or italic, and line breaks within it. Backquotes,
links, punctuation and everything between them stay as they were said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence or list item. `quote` is its slice of the turn, decoration included, on one line.

    `lead` is the line that introduces its list ("Remaining:"), `heading` the last heading above it, both
    plain. `block` numbers the paragraphs and list items of the turn. `marker` is what opens the item ("-",
    "3."), empty for prose and for what follows in the item; `nested` says that the item is inside another,
    `last` that the sentence ends the turn, `whole` that it ends as a sentence does.
    """

    text: str
    quote: str
    index: int
    block: int = 0
    marker: str = ""
    nested: bool = False
    heading: str = ""
    lead: str = ""
    last: bool = False

    @property
    def item(self) -> bool:
        return bool(self.marker)

    @property
    def whole(self) -> bool:
        return bool(_ENDED.search(self.text))


LONGEST = 100_000
"""Characters of one turn that are looked at from either end: more than that was pasted, not said."""

_LONGEST_SENTENCE = 2_000
"""Characters; what goes on longer without an end was no sentence."""

_ENDED = re.compile(r"[.!?。！？…][\"'”’)\]*_`]*$")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*?)\s*#*$")
_ITEM = re.compile(r"(\s*)(?:[-*+•◦]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?:[✅✓✔☑❌✗☐➜→]\ufe0f?\s+)?")
_MARKED = re.compile(r"\s*[✅✓✔☑❌✗☐]\ufe0f?\s+")
_OTHER = re.compile(r"\s*(?:[|>]|[-=_*─]{3,}\s*$|[├└│┌┐┘↓↑➜$%]|</?[a-zA-Z][\w-]*[\s>])")
"""Tables, quotations, rules, drawings, shell prompts, markup: no words of the speaker's."""
_DUMP = re.compile(
    r"\s*(?:[{}\[\]()]+[,;]?\s*$|[{\[]\s*[\"'{\[]|at\s+\S+\s*\(|File \"|Traceback |diff --git|@@ |"
    r"[+-]{3} [ab]/|"
    r"[\w.$]+\s*=\s*\S.*[;{(]\s*$|(?:import|from|const|let|var|def|class|function|export|return)\b.*[;:{(]\s*$|"
    r"(?:\w+)?Error\b:?\s|[\w./-]+:\d+(?::\d+)?:?(?:\s|$)|\"?[\w-]+\"?:\s\S.*,\s*$)|.*(?:[{};]|=>|\\)\s*$|.*\{\"|"
    r"\s*(?:\"?[\w-]+\"?:\s+)?[\"{\[].*[\"\]},]\s*$"
)
_BOLD = re.compile(r"(\*\*\*|\*\*|__)(?=\S)(.{1,300}?)(?<=\S)\1")
_ITALIC = re.compile(
    r"(?<![\w*])\*(?=[^\s*])([^*]+?)(?<=[^\s*])\*(?![\w*])|(?<![\w_])_(?=[^\s_])([^_]+?)(?<=[^\s_])_(?![\w_])"
)
_CODE = re.compile(r"(`+)(?!`).{1,600}?(?<!`)\1(?!`)")
_END = re.compile(r"(?<=[.!?…])(?:[\"'”’)\]*_]*)\s+(?=\S)|(?<=[。！？])\s*(?=\S)")
_NO_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|ca|approx|Mr|Mrs|Ms|Dr|Prof|St|Nr|Fig|Inc|Ltd|Co|Jr|Sr|al|aka|a\.k\.a|z\.B|bzw)|"
    r"(?<=\w)str|(?<![\w.])[A-Z]|\b[A-Z]\.[A-Z]|^\s*\d{1,3})\.$",
    re.IGNORECASE,
)
_SHORTENED = re.compile(
    r"(?:\b(?:e\.g|i\.e|vs|cf|ca|approx|Mr|Mrs|Ms|Dr|Prof|St|Nr|Fig|z\.B|bzw)|(?<=\w)str)\.$", re.IGNORECASE
)
"""What stands before a name or a number: a line that ends in it goes on."""
DANGLES = re.compile(
    r"\b(?:because|and|or|but|nor|the|an?|of|to|than|from|by|if|whether|which|whose|my|our|your|its|their)$",
    re.IGNORECASE,
)
"""No statement ends in such a word."""
_SPACE = re.compile(r"\s+")
_WRAPPED = 60
"""Characters from which a line without an end is taken to go on in the next one, as editors wrap text."""

_ASIDE = 400
"""Characters after which an open bracket is taken to have been forgotten; a stop before is inside it."""


def sentences(text: str) -> list[Sentence]:
    """All sentences of one turn's text, in order. Of a very long text its beginning and its end are read."""
    if len(text) > 2 * LONGEST:
        text = text[:LONGEST] + "\n\n" + text[-LONGEST:]
    found: list[Sentence] = []
    for number, block in enumerate(_blocks(text)):
        for n, (start, end) in enumerate(_spans(block.text)):
            quote = one_line(block.text[start:end])
            if len(quote) > _LONGEST_SENTENCE:
                continue
            said = plain(quote)
            if any(letter.isalpha() for letter in said):
                marker = block.marker if n == 0 else ""
                where = (len(found), number, marker, block.nested, block.heading, block.lead)
                found.append(Sentence(said, quote, *where))
    if found and text.rstrip().endswith(found[-1].quote[-20:]):
        found[-1] = replace(found[-1], last=True)
    return found


def one_line(text: str) -> str:
    """White space made single spaces."""
    return _SPACE.sub(" ", text).strip()


def plain(text: str) -> str:
    """Without the asterisks and underscores of bold and italic type, outside code."""
    parts, at = [], 0
    for code in _CODE.finditer(text):
        parts += [_without_type(text[at : code.start()]), code[0]]
        at = code.end()
    spread = "".join([*parts, _without_type(text[at:])])
    # Bold type around code ("**`name`** does …") spans the pieces above.
    return _BOLD.sub(r"\2", spread).strip() if "**" in spread else spread.strip()


def _without_type(text: str) -> str:
    if "*" not in text and "_" not in text:
        return text
    return _ITALIC.sub(lambda m: m[1] or m[2], _BOLD.sub(r"\2", text))


@dataclass(slots=True)
class _Block:
    """Lines that belong together: a paragraph or one list item, with what stands over them."""

    text: str
    marker: str
    nested: bool
    heading: str
    lead: str


def _blocks(text: str) -> Iterator[_Block]:
    heading = lead = fence = ""
    open_block: _Block | None = None
    dumped = False
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence or mark:
            if mark and not fence:
                fence = mark[1]
            elif mark and line.strip() == mark[1] and mark[1].startswith(fence):
                fence = ""
            kind = "break"
        else:
            kind = _kind(line)
            # What was pasted goes on until an empty line.
            dumped = kind != "blank" and (dumped or kind == "dump")
            kind = "break" if dumped else kind
        if open_block and (kind != "prose" or not _goes_on(open_block, line)):
            yield open_block
            # A line that ends in a colon introduces the list below it.
            if not open_block.marker:
                lead = plain(one_line(open_block.text)) if open_block.text.rstrip(" *_").endswith(":") else ""
            open_block = None
        if kind == "heading":
            heading, lead = plain(_HEADING.match(line)[1]), ""  # type: ignore[index]
        elif kind == "item":
            marker = _ITEM.match(line) or _MARKED.match(line)
            assert marker
            nested = len(line) - len(line.lstrip()) > 1
            open_block = _Block(line[marker.end() :], one_line(marker[0]), nested, heading, lead)
        elif kind == "prose":
            if open_block:
                open_block.text += "\n" + line
            else:
                lead = ""
                open_block = _Block(line.strip(), "", False, heading, lead)
    if open_block:
        yield open_block


def _kind(line: str) -> str:
    if not line.strip():
        return "blank"
    if _HEADING.match(line):
        return "heading"
    if _ITEM.match(line) or _MARKED.match(line):
        return "item"
    if _DUMP.match(line) and not _ENDED.search(line):
        return "dump"
    if _OTHER.match(line) or line.startswith(("    ", "\t")):
        return "break"
    return "prose"


def _goes_on(block: _Block, line: str) -> bool:
    """Whether a line continues the one above: a wrapped line does, a line of its own does not."""
    above = block.text.rsplit("\n", 1)[-1].rstrip()
    if above.endswith((":", ".", "!", "?")) and not _SHORTENED.search(above):
        return line.startswith("  ") and bool(block.marker)
    if above.endswith((",", ".")) or DANGLES.search(above) or len(above) >= _WRAPPED:
        return True
    # In a chat each line is one message, and mostly all of them begin small.
    wrapped = block.text.lstrip()[:1].isupper() and line[:1].islower()
    return wrapped or (bool(block.marker) and line.startswith("  "))


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence of a block begins and ends; a stop inside code or an abbreviation is none."""
    hidden = _CODE.sub(lambda m: "x" * len(m[0]), text) if "`" in text else text
    start = 0
    for stop in _END.finditer(hidden):
        if _NO_END.search(hidden[max(start, stop.start() - 8) : stop.start()]):
            continue
        if stop.start() - start < _ASIDE and hidden.count("(", start, stop.end()) > hidden.count(
            ")", start, stop.end()
        ):
            continue
        yield start, stop.end()
        start = stop.end()
    if start < len(text):
        yield start, len(text)
