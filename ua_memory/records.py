"""The nouns of the domain: every kind of record a bank's files can hold, as frozen values.

Nothing here reads, writes or parses. `markdown` turns bytes into these and these into bytes;
everything above passes them along. Lines count from 1 and ranges include both ends, because that
is how editors, `git blame` and citations count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Literal

from ua_memory.text import wording

Kind = Literal["world", "experience", "preference", "observation", "opinion", "pattern", "risk"]
Origin = Literal["person", "agent", "tool", "web", "import", "compaction"]

KINDS: tuple[Kind, ...] = ("world", "experience", "preference", "observation", "opinion", "pattern", "risk")
ORIGINS: tuple[Origin, ...] = ("person", "agent", "tool", "web", "import", "compaction")


_GENERATED = re.compile("[a-z0-9]{10}")
_OF_A_FILE = re.compile("(.+)-[0-9a-f]{10}")


def is_generated(block: str) -> bool:
    """Whether a block id is of our kind, given once in a bank. Any other was typed by a person, as Obsidian
    lets them: `^budget` may stand in every file."""
    return _GENERATED.fullmatch(block) is not None


def ref_of(file: str, block: str) -> str:
    """What an id is known by in the whole bank: itself, if it is of our kind; one that was typed with a hash
    of its file's bare name, `budget-1f2e3d4c5b`. `file` is a path, or what a link calls it."""
    if is_generated(block):
        return block
    stem = file.rpartition("/")[2].removesuffix(".md")
    return f"{block}-{blake2b(f'{stem}#^{block}'.encode('utf-8', 'replace'), digest_size=5).hexdigest()}"


def written_id(ref: str) -> str:
    """The id as it stands in its file, of what `ref_of` makes of it."""
    match = None if is_generated(ref) else _OF_A_FILE.fullmatch(ref)
    return match[1] if match else ref


class _Identified:
    """What has a block id in a file."""

    __slots__ = ()
    id: str | None
    place: Place

    @property
    def ref(self) -> str | None:
        """What its id is known by; see `ref_of`."""
        return ref_of(self.place.path, self.id) if self.id else None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in a file, as a value: printed `file:line: message`, never raised."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record stands: bank-relative path and its first and last line."""

    path: str
    line: int
    end: int

    @property
    def citation(self) -> str:
        """`path#L35-L48`, or `path#L5` for a single line (OpenClaw's form)."""
        return f"{self.path}#L{self.line}" + (f"-L{self.end}" if self.end != self.line else "")


NOWHERE = Place("", 0, 0)


@dataclass(frozen=True, slots=True)
class Heading:
    """The heading a record stands under, with what a heading of ours says for all its items.

    `## 14:32 · claude-code · session 8f2c · tool` gives time "14:32", client "claude-code",
    session "8f2c", origin "tool". `texts` are those of the headings above and its own, outermost first.
    """

    texts: tuple[str, ...] = ()
    time: str | None = None
    client: str | None = None
    session: str | None = None
    origin: Origin | None = None
    tags: tuple[str, ...] = ()
    """What `<!-- tags: […] -->` below it says of all its items: in what they were said, for filters."""
    whole: bool = False
    """The origin is the whole file's, which was imported: it holds for lines without an id, too."""


@dataclass(frozen=True, slots=True)
class Quote:
    """Verbatim words, and what they are from: `quote: "…" (turn 41)`."""

    text: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Was:
    """A former wording of a fact or an observation and the day until which it held."""

    text: str
    until: str


TEXT_KEYS = ("where", "who", "why", "cause")
"""The metadata of a fact that is words, as attributes of `Fact`: read and printed, redacted, searched, and
shown to models."""


@dataclass(frozen=True, slots=True)
class Fact(_Identified):
    """One remembered statement. `text` is exact, newlines included; `id` has no caret.

    `when` is an ISO day or time, None meaning the log's day. `tags` are those that stand behind the
    text or in `tags:`; hashtags inside the text stay part of it (see `markdown.hashtags`). `origin`
    None means what the heading says, else person.
    """

    text: str
    id: str | None = None
    kind: Kind = "world"
    when: str | None = None
    where: str | None = None
    who: str | None = None
    why: str | None = None
    cause: str | None = None
    importance: int | None = None
    entities: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    quotes: tuple[Quote, ...] = ()
    seen: tuple[str, ...] = ()
    was: tuple[Was, ...] = ()
    """Former wordings, the newest first."""
    origin: Origin | None = None
    source: str | None = None
    """What `origin:` says beside the word: `origin: web (https://…)` has the source `https://…`."""
    retired: str | None = None
    flag: str | None = None
    place: Place = field(default=NOWHERE, compare=False)
    heading: Heading = field(default=Heading(), compare=False)

    @property
    def said_by(self) -> Origin:
        """Who said it: what the fact itself says, else its heading; a line without an id is a person's.

        Every door gives an id, so a line that has none was typed into the file, wherever it stands; but an
        imported file is copied as it was.
        """
        if self.origin:
            return self.origin
        if not self.id and not self.heading.whole:
            return "person"
        return self.heading.origin or ("agent" if self.heading.client else "person")

    @property
    def untrusted(self) -> bool:
        """Whether no person, and no agent in its own words, has said it; see `trust`."""
        return wording.untrusted(self.said_by, self.heading.client, self.place.path)


@dataclass(frozen=True, slots=True)
class Proof:
    """A fact behind a belief: `proof: [[2026-11-21#^k7m2q9x4tb]] "verbatim quote"`."""

    file: str
    id: str
    quote: str = ""

    @property
    def ref(self) -> str:
        """What the id of the fact is known by; see `ref_of`."""
        return ref_of(self.file, self.id)


@dataclass(frozen=True, slots=True)
class Observation(_Identified):
    """A consolidated belief with its proofs (`memory/observations/*.md`)."""

    text: str
    id: str | None = None
    proofs: tuple[Proof, ...] = ()
    since: str | None = None
    last: str | None = None
    trend: str | None = None
    scope: str | None = None
    was: tuple[Was, ...] = ()
    entities: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    origin: Origin | None = None
    retired: str | None = None
    flag: str | None = None
    place: Place = field(default=NOWHERE, compare=False)
    heading: Heading = field(default=Heading(), compare=False)


@dataclass(frozen=True, slots=True)
class Opinion(_Identified):
    """What the agent itself came to think (`memory/opinions.md`); kind is opinion, pattern or risk."""

    text: str
    id: str | None = None
    kind: Kind = "opinion"
    confidence: float | None = None
    because: tuple[Proof, ...] = ()
    when: str | None = None
    entities: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    retired: str | None = None
    flag: str | None = None
    place: Place = field(default=NOWHERE, compare=False)
    heading: Heading = field(default=Heading(), compare=False)


@dataclass(frozen=True, slots=True)
class Entity:
    """A settled name (`memory/entities.md`): what else it is called, and what it is not."""

    name: str
    aliases: tuple[str, ...] = ()
    nots: tuple[str, ...] = ()
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A forgotten fact: its id, a salted hash of its text, the day. Never the text."""

    id: str
    hash: str
    on: str
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Page:
    """A knowledge page: the front matter is its recipe, the body is written by refresh."""

    id: str
    name: str
    source_query: str
    tags: tuple[str, ...] = ()
    body: str = ""
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class MentalModel:
    """Curated by the user, first in reflect, never rewritten by a machine."""

    id: str
    name: str
    tags: tuple[str, ...] = ()
    body: str = ""
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """The front matter of `memory/documents/*.md`: what its facts were drawn from."""

    document_id: str
    source: str | None = None
    chunks: tuple[str, ...] = ()
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class CoreBlock:
    """One `## Section` of MEMORY.md. `name` has no brackets; `value` is the body between the headings,
    without the blank lines around it. `labelled` tells `## [LABEL]` from `## Section`. What stands in no
    section is a block, too, `top`: named after the title above it, and its place is its value's alone."""

    name: str
    value: str
    labelled: bool = False
    place: Place = field(default=NOWHERE, compare=False)
    top: bool = False


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of prose that is no record: indexed with its headings, never rewritten."""

    text: str
    place: Place = field(default=NOWHERE, compare=False)
    heading: Heading = field(default=Heading(), compare=False)


Record = (
    Fact
    | Observation
    | Opinion
    | Entity
    | Tombstone
    | Page
    | MentalModel
    | SourceDocument
    | CoreBlock
    | Passage
)
