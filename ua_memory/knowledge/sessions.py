"""Sessions: the verbatim turns of a client's sessions, one markdown file each.

They are in the state folder, on this machine only, as evidence for the facts that a flush extracts. The
format is specified in docs/format.md. Every write replaces the whole file, so a killed process leaves the old
or the new one. A turn is identified by the hash of its id, so adding it again changes nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise
from pathlib import Path

from ua_memory.clients.turns import Session, Turn
from ua_memory.errors import NotFound, Usage, checked, writing
from ua_memory.markdown.blocks import Header, read_header, write_value
from ua_memory.markdown.lines import closes_fence, fence_of, interrupts_paragraph, split
from ua_memory.paths import make_private, project_of, sync_path
from ua_memory.store import swap
from ua_memory.store.draft import Draft
from ua_memory.store.lock import locked
from ua_memory.store.store import Store
from ua_memory.text import wording
from ua_memory.text.patterns import Phrases, late
from ua_memory.text.wording import sentences

# -- format ------------------------------------------------------------------------------------------------
# Front matter, then for each turn its speaker and time, its text, and a block id.


EXTRACTION = "extraction"
"""`read_by` of a session from which facts were extracted without a model."""
CUT_TURN = 32_768
"""Most characters of one turn."""
CODE_LINES, CODE_KEPT = 12, 3
"""A code block of more than `CODE_LINES` lines is cut to `CODE_KEPT`."""
FORGOTTEN = "[forgotten]"
"""Replaces the text of a forgotten turn."""
_FRONT_KEYS = ("project", "started", "through", "parent", "group", "title", "outcome", "open", "read_by")
"""The front matter's keys after `session` and `client`, in order; empty ones are left out."""
_TURN_HEAD = late(r"\*\*(Person|Agent)\*\* (?:(\d{4}-\d\d-\d\d) )?(\d\d:\d\d)\Z")
_TURN_ID = late(r"(?:^| )\^(t-[0-9a-f]{8})\Z")
_LINE_ID = late(r"L\d+(?:\.\d+)?")
"""The id of an entry for which its client has none: its line number."""
_MARKDOWN_START = late(
    r"([ \t]*)(\d*\\|[#>]|[-*+][ \t]|[-*_=]{3}|\d{1,9}[.)][ \t]|<!--|\*\*(?:Person|Agent)\*\* |\^t-)"
)
_ESCAPED_START = late(r"\A([ \t]*\d*)\\(?=[^\w\s]|_)")
_SCALAR = late(r"[A-Za-z0-9][\w./+:-]*(?<!:)", re.ASCII)


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """One turn: `id` is its block id, `at` its local time as YYYY-MM-DD HH:MM, `line` to `end` its lines in
    the file, from 1, with the speaker's line."""

    id: str
    speaker: str
    text: str
    at: str
    line: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)

    @property
    def day(self) -> str:
        return self.at[:10]


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A session's file. `started` is an ISO time, `open` is what was left to do; `read_by` is `extraction` or
    the model's name that extracted its facts, '' before the first flush; `through` is the last turn that was
    read. `group` names the group chat, '' if there is none."""

    path: Path
    session: str
    client: str
    project: str = ""
    started: str = ""
    title: str = ""
    outcome: str = ""
    open: str = ""
    read_by: str = ""
    through: str = ""
    parent: str = ""
    group: str = ""
    turns: tuple[SessionTurn, ...] = ()

    @property
    def name(self) -> str:
        return self.path.name.removesuffix(".md")

    @property
    def day(self) -> str:
        return self.name[:10]

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the session, as its facts have them."""
        known = {name: getattr(self, name) for name in ("session", "parent", "project", "group")}
        return wording.context_tags(self.client, known, wording.AUTO)

    def link(self, entry: str) -> str:
        """The link to a turn, by its entry id or block id, as facts cite it; '' if it is not here."""
        there = {turn.id for turn in self.turns}
        block = entry if entry in there else turn_id(entry)
        return f"[[{self.name}#^{block}]]" if block in there else ""

    def said(self, zone: tzinfo | None) -> list[Turn]:
        """The turns in a transcript's form, with their block ids as ids, without forgotten ones."""
        return [
            Turn(one.id, "person" if one.speaker == "person" else "assistant", one.text,
                 datetime.fromisoformat(one.at).replace(tzinfo=zone))
            for one in self.turns if one.text.strip() != FORGOTTEN
        ]  # fmt: skip


def turn_id(entry: str) -> str:
    """The block id of a turn, from the client's id of the entry."""
    return "t-" + hashlib.sha256(entry.encode("utf-8", "replace")).hexdigest()[:8]


def parse(data: bytes, path: Path) -> SessionFile | None:
    """Parse a session file; None if it is not one, such as a person's note."""
    lines = split(data).lines
    header = read_header(lines)
    session, client = header.text("session"), header.text("client")
    if not session or not client:
        return None
    more = {key: header.text(key) or "" for key in _FRONT_KEYS}
    return SessionFile(path, session, client, **more, turns=tuple(_parse_turns(lines, header, path)))


def _open_fences(lines: Sequence[str]) -> list[str]:
    """The code fence that is open before each line, and after the last; '' for none."""
    fences = [""]
    for line in lines:
        before, bare = fences[-1], line.strip()
        fences.append(("" if closes_fence(bare, before) else before) if before else fence_of(bare))
    return fences


def _with_code_flag(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is in a code block, fences included."""
    for line, (before, after) in zip(lines, pairwise(_open_fences(lines)), strict=True):
        yield line, bool(before or after)


def _parse_turns(lines: Sequence[str], header: Header, path: Path) -> Iterator[SessionTurn]:
    day = path.name[:10]
    rows = enumerate(_with_code_flag(lines[header.size :]), header.size)
    heads = ((number, None if code else _TURN_HEAD.match(line)) for number, (line, code) in rows)
    starts = [(number, head) for number, head in heads if head]
    for (start, head), end in zip(starts, [*(s for s, _ in starts[1:]), len(lines)], strict=True):
        day = head[2] or day
        while end > start + 1 and not lines[end - 1].strip():
            end -= 1
        text, block = _read_text(lines[start + 1 : end])
        yield SessionTurn(block, head[1].lower(), text, f"{day} {head[3]}", start + 1, end)


def _read_text(lines: Sequence[str]) -> tuple[str, str]:
    """(text of a turn, unescaped; its block id, '' for none)."""
    found = _TURN_ID.search(lines[-1]) if lines else None
    rows = [*lines[:-1], lines[-1][: found.start()]] if found else list(lines)
    read = [line if code else _ESCAPED_START.sub(r"\1", line) for line, code in _with_code_flag(rows)]
    return "\n".join(read).strip("\n"), found[1] if found else ""


def _turn_lines(turn: SessionTurn, day: str) -> list[str]:
    """Format a turn as lines. `day` is that of the turn before: the date is written only where it changes."""
    when = turn.at[11:] if turn.day == day else turn.at
    said = turn.text.split("\n")
    rows = [line if code else _escape_line(line) for line, code in _with_code_flag(said)]
    rows += filter(None, _open_fences(said)[-1:])  # an open fence would include the turns after it
    if rows[-1].strip()[:3] in ("```", "~~~") or rows[-1].startswith("|"):
        rows.append(f"^{turn.id}")
    else:
        rows[-1] += f" ^{turn.id}"
    return [f"**{turn.speaker.title()}** {when}", "", *rows, ""]


def _escape_line(line: str) -> str:
    found = _MARKDOWN_START.match(line)
    if not found and not interrupts_paragraph(line.strip()):
        return line
    at = len(found[1]) if found else len(line) - len(line.lstrip())
    at += len(re.match(r"\d*", line[at:])[0])  # type: ignore[index]
    return f"{line[:at]}\\{line[at:]}"


def show(found: SessionFile) -> bytes:
    """Format a session as the bytes of its file."""
    lines, day = ["---"], found.day
    for key in ("session", "client", *_FRONT_KEYS):
        if value := getattr(found, key):
            lines.append(f"{key}: {value if _SCALAR.fullmatch(value) else write_value(value)}")
    lines += ["---", ""]
    for turn in found.turns:
        lines += _turn_lines(turn, day)
        day = turn.day
    return ("\n".join(lines[:-1]) + "\n").encode("utf-8", "replace")


# -- turns to keep -----------------------------------------------------------------------------------------
# All turns of a person are kept, and the agent's except announcements: short turns of which every sentence
# only announces a step ("Let me read the file"), without a number, identifier or result.


_SPECIFIC = late(r"[\d`/_\"“]|[a-z][A-Z]|\b[A-Z]{2,}\b|\w\.\w|\w\(")
_PHRASES = Phrases("session_phrases.txt", re.IGNORECASE)
"""What agents announce and offer, greetings and farewells, and what is left to do."""


def is_announcement(text: str) -> bool:
    """Whether an agent's turn only announces its next step."""
    if len(text) > 240 or _SPECIFIC.search(text):
        return False
    said = sentences(" ".join(text.split()).replace(": ", ". "))
    return bool(said) and all(map(_PHRASES["next_step"].match, said))


def turns_to_keep(turns: Iterable[Turn], agent: str) -> Iterator[Turn]:
    """The turns to save in a session's file. `agent` is the setting sessions.agent: spoken, all or none."""
    for turn in turns:
        person = turn.role == "person"
        if turn.agent or not (person or (turn.role == "assistant" and agent != "none")):
            continue
        if person or agent == "all" or not is_announcement(turn.text):
            yield turn


def shorten_turn(text: str) -> str:
    """Cut long code blocks, and the text after `CUT_TURN` characters, with a note of how much was cut."""
    lines, rows, code = text.split("\n"), list[str](), list[str]()
    for line, (before, after) in zip(lines, pairwise(_open_fences(lines)), strict=True):
        if before and after:
            code.append(line)
        else:
            rows += [*_shorten_code(code), line]
            code = []
    found = "\n".join([*rows, *_shorten_code(code)])
    if len(found) <= CUT_TURN:
        return found
    return f"{found[:CUT_TURN]}\n\n[{len(found) - CUT_TURN:,} more characters]"


def _shorten_code(code: list[str]) -> list[str]:
    if len(code) <= CODE_LINES:
        return code
    return [*code[:CODE_KEPT], f"[{len(code) - CODE_KEPT} more lines]"]


LONGEST_TITLE, LONGEST_OUTCOME = 80, 160
"""Most characters of a title, and of an outcome or what is left to do."""
_CODE = late(r"```.*?(```|\Z)", re.DOTALL)


def outcome_of(turns: Sequence[SessionTurn]) -> str:
    """The outcome of a session: the agent's last statement of 40 characters or more, '' if there is none."""
    for turn in reversed(turns):
        if turn.speaker == "agent":
            said = sentences(" ".join(_CODE.sub(" ", turn.text).split()))
            offer, farewell = _PHRASES["offer"], _PHRASES["farewell"]
            said = [part for part in said if not offer.match(part) and not part.endswith(("?", "？"))]
            if long := [part for part in said if len(farewell.sub(" ", part)) >= 40]:
                return _first_words(long[-1], LONGEST_OUTCOME)
    return ""


_BLOCK_END = late(r"\n\s*(?:\n\s*|(?=\\?(?:[-*+•]|\d+[.)]) ))")
"""The end of a paragraph or list item, whose last sentence often has no full stop."""
LAST_TURNS = 10
"""Turns at the end of a session that `find_unfinished` searches."""


def find_unfinished(turns: Sequence[SessionTurn]) -> str:
    """The last sentence that says what is left to do, in the last turns; '' if there is none."""
    for turn in reversed(turns[-LAST_TURNS:]):
        blocks = [" ".join(block.split()) for block in _BLOCK_END.split(turn.text)]
        parts = [part for block in blocks for part in sentences(block)]
        for number, part in reversed([*enumerate(parts)]):
            left = _PHRASES["farewell"].sub(" ", part).strip()
            if len(left) >= 12 and _PHRASES["unfinished"].search(left) and not part.endswith(("?", "？")):
                named = parts[number:] if part.endswith(":") else [part]
                return _first_words(" ".join(named), LONGEST_OUTCOME)
    return ""


def title_of(turns: Sequence[SessionTurn]) -> str:
    """The title of a session: the beginning of the person's first text, without greetings and thanks."""
    said = (
        turn.text for turn in turns
        if turn.speaker == "person" and not turn.text.startswith(("/", FORGOTTEN))
    )  # fmt: skip
    prose = [text for text in (_CODE.sub(" ", text) for text in said) if any(map(str.isalnum, text))]
    hello = _PHRASES["greeting"]
    asked = (text[greeting.end() :] if (greeting := hello.match(text)) else text for text in prose)
    first = next((text for text in asked if any(map(str.isalnum, text))), prose[0] if prose else "")
    return _first_words(first, LONGEST_TITLE)


def _first_words(text: str, most: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[:most].rsplit(" ", 1)[0].rstrip(",;:") + " …"


# -- passages ----------------------------------------------------------------------------------------------
# The units of search: neighbouring turns, each after its speaker's name.


PASSAGE = 900
"""Most characters of a passage."""


@dataclass(frozen=True, slots=True)
class SessionPassage:
    """Neighbouring turns, or a part of one. `line` to `end` are its lines in the file."""

    text: str
    line: int
    end: int
    day: str
    speakers: frozenset[str]


def passages(found: SessionFile) -> Iterator[SessionPassage]:
    """The passages of a session, in order, without forgotten turns."""
    group: list[SessionTurn] = []
    size = 0
    for turn in found.turns:
        if turn.text.strip() == FORGOTTEN:
            continue
        if group and size + len(turn.text) > PASSAGE:
            yield from _make_passages(group)
            group, size = [], 0
        group.append(turn)
        size += len(turn.text)
    if group:
        yield from _make_passages(group)


def _make_passages(group: list[SessionTurn]) -> Iterator[SessionPassage]:
    first, last = group[0], group[-1]
    if len(first.text) > PASSAGE:
        for text in _split_turn(first.text):
            said = f"{first.speaker.title()}: {text}"
            yield SessionPassage(said, first.line, first.end, first.day, frozenset({first.speaker}))
        return
    said = "\n".join(f"{turn.speaker.title()}: {turn.text}" for turn in group)
    yield SessionPassage(said, first.line, last.end, first.day, frozenset(turn.speaker for turn in group))


def _split_turn(text: str) -> Iterator[str]:
    """Split a long turn into pieces, at the end of a line or sentence if possible."""
    while len(text) > PASSAGE:
        half = text[PASSAGE // 2 : PASSAGE]
        cut = max(half.rfind("\n"), half.rfind(". "), half.rfind("。"))
        at = PASSAGE // 2 + cut + 1 if cut >= 0 else PASSAGE // 2 + half.rfind(" ") + 1
        yield text[:at].strip()
        text = text[at:]
    if text.strip():
        yield text.strip()


# -- files -------------------------------------------------------------------------------------------------
# Find, write and delete the session files of a bank.


FOLDER = "sessions"
IN_BANK = "memory/sessions/"
"""The folder for sessions that a flush has read, with the setting sessions.place = "bank"."""
MEMBER = late(r"sessions/(?!\.)[\w.-]+\.md")
"""The path of a session's file in an archive."""
_NAME = late(r"[\w.-]+")
_TURN_LINK = late(r"\[\[(?P<name>[\w.-]+)#\^(?P<id>t-[0-9a-f]{8})\]\]")


@dataclass(frozen=True, slots=True)
class SessionReading:
    """How a flush read a session: what extracted its facts, the last turn read, and the model's title and
    outcome ('' for none)."""

    read_by: str
    through: str
    title: str = ""
    outcome: str = ""

    def noted(self, found: SessionFile) -> SessionFile:
        """The session with these values. A client's title takes precedence over a model's."""
        title = _first_words(self.title, LONGEST_TITLE) if found.title == title_of(found.turns) else ""
        return replace(
            found, read_by=self.read_by, through=self.through, title=title or found.title,
            outcome=_first_words(self.outcome, LONGEST_OUTCOME) or found.outcome,
        )  # fmt: skip


def _count_copied(turns: Sequence[Turn], theirs: Sequence[SessionTurn], agent: str) -> int:
    """How many turns at the beginning were copied from another session (`theirs`). Turns that no file keeps
    count, too."""
    ids, said = {turn.id for turn in theirs}, 0
    for n, turn in enumerate(turns):
        if any(turns_to_keep([turn], agent)):
            words = [one.text for one in theirs[said : said + 1]]
            same = words == [shorten_turn(turn.text.strip("\n"))]
            if not (same if _LINE_ID.fullmatch(turn.id) else turn_id(turn.id) in ids):
                return n
            said += 1
    return len(turns)


@checked
class SessionFiles:
    """The sessions of one bank: those in the state folder, and those that a flush has moved into the bank. A
    session that continues after that has a file in both until its next flush."""

    def __init__(self, store: Store) -> None:
        self.folder, self._store = store.bank.sessions, store
        self._fresh = self.folder / ".fresh"
        self._in_bank = store.bank.root / IN_BANK

    def add(
        self, session: Session, turns: Iterable[Turn], *, now: datetime, agent: str = "spoken",
        title: str = "",
    ) -> SessionFile | None:  # fmt: skip
        """Save the turns that are to be kept and are new. Returns the session, None if it has no turns. It is
        on disk when this returns. CannotWrite, Busy."""
        wanted = list(turns_to_keep(turns, agent))
        if not wanted and not (there := self.find(session)):
            return None
        with self._writing():
            there = self._here(self.find(session) or self._begun(session, wanted[0].at or now))
            known = {turn.id for turn in there.turns}
            fresh = [self._turn(turn, now) for turn in wanted if turn_id(turn.id) not in known]
            every = (*there.turns, *fresh)
            new = _summed_up(there, every) if fresh else there
            new = replace(new, title=_first_words(title, LONGEST_TITLE) or there.title or title_of(every))
            if new == there and (found := self.find(session)):
                return found
            self._write(new)
            return new

    def mark(self, session: Session, read: SessionReading) -> None:
        """Save how a session was read, unless its file is in the bank. CannotWrite, Busy."""
        with self._writing():
            there = self.find(session)
            if there and not self.in_bank(there) and (new := read.noted(there)) != there:
                self._write(new)

    def merge(self, other: SessionFile, gone: Callable[[str], bool]) -> bool:
        """Add the new turns of a session from an archive; texts for which `gone` is true are forgotten.
        Returns whether any turn was new. CannotWrite, Busy."""
        with self._writing():
            found = self.find(Session(other.client, other.session))
            there = self._here(found) if found else replace(other, path=self._free(other.name), turns=())
            known = {turn.id for turn in there.turns}
            new_turns = [one for one in other.turns if one.id not in known]
            fresh = [replace(one, text=FORGOTTEN) if gone(one.text) else one for one in new_turns]
            turns = tuple(sorted((*there.turns, *fresh), key=lambda turn: turn.at))
            new = _summed_up(there, turns)
            if fresh:
                emptied = any(one.text == FORGOTTEN for one in turns)  # its title may quote a forgotten turn
                self._write(replace(new, title=title_of(turns)) if emptied else new)
            return bool(fresh)

    def find(self, session: Session) -> SessionFile | None:
        """The file of a client's session, None if it has none."""
        for path in self._paths(f"*-{_stem(session)}*.md"):
            found = self._read(path)
            if found and (found.client, found.session) == (session.client, session.session):
                return found
        return None

    def copied(self, session: Session, turns: Sequence[Turn], agent: str) -> int:
        """How many turns at the beginning of a fork were copied from its parents, which have them in their
        own files. They are compared by id or, if the client has only line numbers, by text and order."""
        chain, seen = list[SessionFile](), {session.session}
        while session.parent not in {"", *seen} and (
            found := self.find(replace(session, session=session.parent))
        ):
            chain.insert(0, found)
            seen.add(session.parent)
            session = replace(session, parent=found.parent)
        count = 0
        for one in chain:
            count += _count_copied(turns[count:], one.turns, agent)
        return count

    def all(self, *, project: str = "") -> Iterator[SessionFile]:
        """The sessions, newest first; only those of `project`, if given."""
        for path in reversed(self._paths("*.md")):
            found = self._read(path)
            if found and (not project or found.project == project):
                yield found

    def get(self, name: str) -> SessionFile:
        """A session by its file name, or by the beginning of its id. NotFound; Usage for several."""
        bare = name.removeprefix("sessions/").removesuffix(".md")
        if found := self._cited(bare, None)[0]:
            return found
        near = [one for one in self.all() if one.session.startswith(bare)] if bare else []
        if len(near) > 1:
            raise Usage(f"{len(near)} sessions begin with this", where=name, hint="ua-memory sessions list")
        if not near:
            raise NotFound("no such session", where=name, hint="ua-memory sessions list")
        return near[0]

    def turn(self, text: str) -> tuple[SessionFile, SessionTurn] | None:
        """The turn that a link in a text cites, `[[NAME#^t-…]]`; None if it is not on this machine."""
        cited = _TURN_LINK.search(text)
        found, said = self._cited(cited["name"], cited["id"]) if cited else (None, None)
        return (found, said) if found and said else None

    def named(self, file: str, block: str | None) -> tuple[Path, str] | None:
        """Find the file of `sessions/NAME` or of a link to a turn: (path, lines as `FIRST-LAST`, '' for the
        whole file). None if it names no session. NotFound for a session that is not on this machine."""
        name = file.removeprefix(f"{FOLDER}/").removesuffix(".md")
        if not file.startswith(f"{FOLDER}/") and not (block or "").startswith("t-"):
            return None
        found, turn = self._cited(name, block)
        if found is None or (block and turn is None):
            where = f"{file}#^{block}" if block else file
            raise NotFound("this session is not on this machine", where=where, hint="ua-memory sessions list")
        return found.path, f"{turn.line}-{turn.end}" if turn else ""

    def _cited(self, name: str, block: str | None) -> tuple[SessionFile | None, SessionTurn | None]:
        """The session with this file name, and its turn with this block id; None for what is not here."""
        there = self._paths(f"{name}.md") if _NAME.fullmatch(name) else []
        found = self._read(there[0]) if there else None
        return found, next((turn for turn in found.turns if turn.id == block), None) if found else None

    def delete(self, found: SessionFile) -> None:
        """Delete a session's files. CannotWrite, Busy."""
        with self._writing():
            self._unlink(self.folder / found.path.name)
        if (self._in_bank / found.path.name).exists():
            with self._revision(found) as draft:
                draft.delete(f"{IN_BANK}{found.path.name}")

    def in_bank(self, found: SessionFile) -> bool:
        """Whether a session's file is in the bank."""
        return found.path.parent == self._in_bank

    def publish(self, draft: Draft, found: SessionFile) -> None:
        """Write a session into the bank, in an open revision; `sweep` deletes it from the state folder later.
        Turns that only the bank's file has are kept: they may be from another machine."""
        path = f"{IN_BANK}{found.path.name}"
        there = parse(draft.read(path), found.path)
        draft.write(path, show(_joined(found, there.turns) if there else found))

    def sweep(self) -> None:
        """Delete the files of the state folder of which the bank has all turns. CannotWrite, Busy."""
        if self.folder.is_dir() and self._in_bank.is_dir():
            with self._writing():
                for path in self.folder.glob("*.md"):
                    here, there = self._read(path), self._read(self._in_bank / path.name)
                    if here and there and set(here.turns) <= set(there.turns):
                        self._unlink(path)

    def expire(self, before: str) -> None:
        """Delete the sessions whose last turn is before an ISO day."""
        gone = [one for one in self.all() if one.day < before and all(t.day < before for t in one.turns)]
        for one in gone:
            self.delete(one)

    def forget(self, holds: Callable[[SessionTurn], bool]) -> int:
        """Replace the turns for which `holds` is true by `FORGOTTEN`; their number. CannotWrite, Busy."""
        count = 0
        for place in (self._in_bank, self.folder):
            with self._writing() if place == self.folder and place.is_dir() else nullcontext():
                for one in filter(None, map(self._read, place.glob("*.md"))):
                    turns = tuple(replace(t, text=FORGOTTEN) if holds(t) else t for t in one.turns)
                    if turns != one.turns:
                        count += sum(a != b for a, b in zip(turns, one.turns, strict=True))
                        self._put(replace(_summed_up(one, turns), title=title_of(turns)))
        return count

    # -- single files ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with writing(self.folder):
            make_private(self.folder)
        with locked(self.folder / ".lock", self._store.config.lock_seconds):
            with writing(self._fresh):
                self._fresh.unlink(missing_ok=True)  # left by a killed process; it may have words to forget
            yield

    def _local(self, at: datetime) -> datetime:
        """A time in the bank's time zone."""
        return at.astimezone(self._store.config.zone or self._store.now().tzinfo)

    def _begun(self, session: Session, at: datetime) -> SessionFile:
        local = self._local(at)
        path = self._free(f"{local:%Y-%m-%d-%H%M}-{_stem(session)}")
        project = project_of(Path(session.cwd)) if session.cwd else ""
        started = self._local(session.started or at).isoformat(timespec="seconds")
        return SessionFile(
            path, session.session, session.client, project, started, parent=session.parent,
            group=session.group,
        )  # fmt: skip

    def _paths(self, pattern: str) -> list[Path]:
        """The files by name; of a session in both places, that of the state folder, which has more turns."""
        found = {path.name: path for place in (self._in_bank, self.folder) for path in place.glob(pattern)}
        return [found[name] for name in sorted(found)]

    def _here(self, found: SessionFile) -> SessionFile:
        return replace(found, path=self.folder / found.path.name)

    def _free(self, stem: str) -> Path:
        """An unused path for a session: another one of the client may have started in the same minute."""
        path, number = self.folder / f"{stem}.md", 2
        while path.exists() or (self._in_bank / path.name).exists():
            path, number = self.folder / f"{stem}-{number}.md", number + 1
        return path

    def _turn(self, turn: Turn, now: datetime) -> SessionTurn:
        at = f"{self._local(turn.at or now):%Y-%m-%d %H:%M}"
        speaker = "person" if turn.role == "person" else "agent"
        return SessionTurn(turn_id(turn.id), speaker, shorten_turn(turn.text.strip("\n")), at)

    def _read(self, path: Path) -> SessionFile | None:
        with writing(path):
            try:
                return parse(path.read_bytes(), path)
            except FileNotFoundError:
                return None

    def _unlink(self, path: Path) -> None:
        with writing(path):
            path.unlink(missing_ok=True)
            sync_path(self.folder)

    def _revision(self, found: SessionFile) -> AbstractContextManager[Draft]:
        return self._store.revision("forget", door="sessions", session=found.session)

    def _put(self, found: SessionFile) -> None:
        """Write a session to the place that it was read from."""
        if self.in_bank(found):
            with self._revision(found) as draft:
                self.publish(draft, found)
        else:
            self._write(found)

    def _write(self, found: SessionFile) -> None:
        with writing(found.path):
            swap.replace_file(found.path, show(found), self._fresh)


def _summed_up(found: SessionFile, turns: tuple[SessionTurn, ...]) -> SessionFile:
    return replace(found, turns=turns, outcome=outcome_of(turns), open=find_unfinished(turns))


def _joined(found: SessionFile, others: Sequence[SessionTurn]) -> SessionFile:
    """Merge a session with the turns of another copy. What either has forgotten stays forgotten."""
    known = {turn.id for turn in found.turns}
    gone = {turn.id for turn in others if turn.text == FORGOTTEN}
    ours = (replace(turn, text=FORGOTTEN) if turn.id in gone else turn for turn in found.turns)
    fresh = (turn for turn in others if turn.id not in known)
    turns = tuple(sorted((*ours, *fresh), key=lambda turn: turn.at))
    return found if turns == found.turns else _summed_up(found, turns)


def _stem(session: Session) -> str:
    """`claude-code-0b7c52e1`: the client and the beginning of the session's id."""
    bare = re.sub(r"[^\w-]", "-", session.session, flags=re.ASCII)[:8].strip("-") or "unnamed"
    return f"{re.sub(r'[^a-z0-9-]', '-', session.client.lower())}-{bare}"


def older_than(now: datetime, days: int) -> str:
    """The ISO day so many days before `now`."""
    return (now - timedelta(days=days)).date().isoformat()
