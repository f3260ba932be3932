"""Statements by their block id, and what a path, a line range or an id names."""

from __future__ import annotations

import errno
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from urllib.parse import unquote

from ua_memory.errors import CannotWrite, Malformed, NotFound, TooLarge, Usage
from ua_memory.markdown import document as markdown_document
from ua_memory.markdown import fields
from ua_memory.markdown import lines as markdown_lines
from ua_memory.markdown.blocks import scan
from ua_memory.markdown.lines import FileKind, readable
from ua_memory.paths import is_memory_file
from ua_memory.records import (
    Fact,
    MentalModel,
    Observation,
    Opinion,
    Page,
    Place,
    Proof,
    SourceDocument,
    is_generated,
    ref_of,
    written_id,
)
from ua_memory.store.draft import Draft
from ua_memory.store.store import Store
from ua_memory.text.wording import counted

# -- statements --------------------------------------------------------------------------------------------
# Statements: what has a block id, found by it, and given one where something must cite it.


ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"

Statement = Fact | Observation | Opinion
"""What has a block id."""
OTHER_VERSION = "changed on two machines, the other version: "
"""What the flag begins with that a sync gives the one of two versions that is to go."""
S = TypeVar("S", Fact, Observation, Opinion, Statement)


def new_id() -> str:
    """Ten base32 characters: 50 bits, never used again."""
    bits = secrets.randbits(50)
    return "".join(ALPHABET[bits >> shift & 31] for shift in range(0, 50, 5))


def name_of(said: Statement) -> str:
    """A statement's name in a trailer: `^id`, or `path#texthash` of a person's line without an id."""
    return f"^{said.ref}" if said.ref else f"{said.place.path}#{markdown_document.texthash(said.text)}"


def ensure_id(draft: Draft, fact: Fact) -> Fact:
    """The fact in the draft, with an id, which it is given if it has none.

    Appending ` ^id` is the only change to a person's line; below an agent's heading `origin: person` is
    added, too. Malformed if the line is gone, or cannot have an id."""
    path = fact.place.path
    there = [f for f in markdown_document.parse(draft.read(path), path).of(Fact) if f.text == fact.text]
    if fact.id:
        there = [f for f in there if f.id == fact.id]
    if not there:
        raise Malformed("this line was changed in the meantime", where=fact.place.citation, hint="try again")
    found = next((f for f in there if f.id), there[0])
    if found.id:
        return found
    block = new_id()
    draft.write(path, markdown_document.with_id(draft.read(path), found, block), removes=[found])
    named, lines = _fact_with_id(draft, path, block)
    if named.said_by != found.said_by:  # typed below an agent's heading, which would now speak for it
        indent = re.match(r"\s*(?:\S+\s+)", lines[named.place.line - 1])
        said = f"{' ' * len(indent[0] if indent else '  ')}- origin: {found.said_by}"
        data = markdown_lines.insert_after(draft.read(path), named.place.end, [said])
        draft.write(path, data, removes=[named])
    return _fact_with_id(draft, path, block)[0]


def _fact_with_id(draft: Draft, path: str, block: str) -> tuple[Fact, Sequence[str]]:
    """The fact with this id, and the lines of its file."""
    document = markdown_document.parse(draft.read(path), path)
    return next(fact for fact in document.of(Fact) if fact.id == block), document.lines


_PASSING = {errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EROFS}
"""What the system says of itself, not of a file: the same file may be read a moment later."""


Progress = Callable[[int, int], None]
"""Called with how much is done, and of how much."""


def texts(
    store: Store, *, every: bool = False, paths: Collection[str] | None = None, tell: Progress | None = None
) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of every markdown file that is searched, or of those at `paths`. Unreadable files are
    left out; `upkeep.audit.file_problems` reports them. `every` raises CannotWrite for a passing error of the
    system, such as too many open files: for callers that conclude something from what is missing. `tell` gets
    (done, total)."""
    seen = store.survey()
    found = (one.path for one in seen.files if one.path.endswith(".md"))
    wanted = [path for path in found if paths is None or path in paths]
    for number, path in enumerate(wanted):
        if tell:
            tell(number, len(wanted))
        try:
            yield path, store.history.blob(seen.held[path]) if path in seen.held else store.read(path)
        except (CannotWrite, NotFound, TooLarge, Usage, OSError) as error:  # no permission, gone, odd name
            cause = error.__cause__ or error
            if every and isinstance(cause, OSError) and cause.errno in _PASSING:
                raise


def find_by_id(store: Store, block: str, paths: Sequence[str] | None = None) -> Iterator[Statement]:
    """All statements with a block id or `ref`, in the given files, else in all."""
    written = written_id(block)
    for path, data in texts(store, every=True) if paths is None else read_files(store, paths):
        if written and written.encode("utf-8", "replace") in data:
            found = markdown_document.parse(data, path).statements
            yield from (one for one in found if one.id and block in (one.ref, one.id))


def find(store: Store, block: str, paths: Sequence[str] | None = None) -> Statement:
    """What has a block id (`^id`, `id` or a `ref`), looked for in the given files, else in all: the first.
    NotFound. For what a person means by an id, see `resolve_target`."""
    wanted = block.removeprefix("^")
    for record in find_by_id(store, wanted, paths):
        return record
    raise NotFound("no such id", where=f"^{wanted}", hint="ua-memory search")


def by_ref(records: Iterable[S]) -> dict[str, S]:
    """{ref: statement} of those that have an id. A typed id that only one file has is a key by itself,
    too."""
    found: dict[str, S] = {}
    files: dict[str, set[str]] = {}
    for one in records:
        if one.id and one.ref:
            found[one.ref] = one
            files.setdefault(one.id, set()).add(one.place.path)
    return found | {str(one.id): one for one in list(found.values()) if len(files[str(one.id)]) == 1}


def resolve_link(link: Proof | fields.Citation, found: Mapping[str, S]) -> S | None:
    """The statement that a link cites, from `by_ref`; None if there is none."""
    return found.get(link.ref) or found.get(link.id)


def is_untrusted(record: object, find: Callable[[str], Statement]) -> bool:
    """Whether a record comes only from untrusted sources: an untrusted fact, or an observation that no person
    worded and whose facts are all untrusted."""
    if isinstance(record, Fact):
        return record.untrusted
    if not isinstance(record, Observation) or record.origin == "person":
        return False
    there = []
    for proof in record.proofs:
        with suppress(NotFound):
            there.append(find(f"^{proof.ref}"))
    return bool(there) and all(isinstance(fact, Fact) and fact.untrusted for fact in there)


def read_files(store: Store, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Path and bytes of those of the files that exist."""
    for path in paths:
        try:
            yield path, store.accepted_bytes(path)
        except NotFound:
            continue


# -- excerpts ----------------------------------------------------------------------------------------------
# What somebody names: an id, a file, lines of it. Read from every form in which a command prints one.


Known = Callable[[str], Sequence[str] | None]
"""The files in which an id stands, as an index knows them; None where it knows of none."""

_LINE_RANGE = r"[0-9]{1,9}(?:-[0-9]{1,9})?"
_ID = r"[A-Za-z0-9-]+"
_POSITION = rf"(?:#L[0-9]+(?:-L?[0-9]+)?|:{_LINE_RANGE})?"
_TARGET_FORMS = (
    re.compile(rf"(?P<file>\S.*?){_POSITION}\s+\^(?P<id>{_ID})"),  # memory/x.md#L3 ^id, as recall cites
    re.compile(rf"\^(?P<id>{_ID})\s+(?P<file>\S.*?){_POSITION}"),  # ^id  memory/x.md:3, as lists have it
    re.compile(r"\^(?P<id>.*)"),
    re.compile(rf"(?P<file>.+)#\^(?P<id>{_ID})"),
    re.compile(r"(?P<file>.+)#L(?P<span>[0-9]{1,9})(?:-L?(?P<to>[0-9]{1,9}))?"),
    re.compile(r"(?P<file>[^#]+)#(?P<texthash>[0-9a-f]{8,64})(?:,[0-9a-f]{8,64})*"),
    re.compile(rf"(?P<file>.+?\.md):(?P<span>{_LINE_RANGE}):.*"),  # memory/x.md:3: what is wrong
    re.compile(rf"(?P<file>[^#:]+):(?P<span>{_LINE_RANGE})"),
)
_LINK = re.compile(r"!?\[\[(?P<file>[^\[\]#|^\n]*)(?:#\^(?P<id>[A-Za-z0-9-]+))?(?:[#|][^\[\]\n]*)?\]\]")
_MARKDOWN_LINK = re.compile(r"!?\[[^\]\n]*\]\(([^()\n]+)\)")
_DIFF_SIDE = re.compile(r"\A[ab]/")
"""How a diff names the two sides of a file."""
_QUOTES = " \t\r\n\"'`“”‘’«»„<>{}"
_END_PUNCTUATION = ".,:;!?…"
_PATH_FORMS = (
    "{}", "{}.md", "memory/{}", "memory/{}.md", "memory/pages/{}.md", "memory/observations/{}.md",
    "memory/models/{}.md", "memory/documents/{}.md",
)  # fmt: skip
"""Where a file is looked for that is named without its folder."""
_KINDS_WITH_ID = (FileKind.PAGE, FileKind.MODEL, FileKind.DOCUMENT)
_MOST_CANDIDATES = 12
"""Candidates that an error lists."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a file: `text` without its final newline, `line` to `end` of `lines` in all."""

    path: str
    line: int
    end: int
    lines: int
    text: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class NamedTarget:
    """A parsed target: a file by path or link name, lines of it (`12-20`), a block id, or the hash of a
    line's text."""

    file: str = ""
    span: str = ""
    id: str | None = None
    texthash: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """A resolved target: a path, lines of it ('' for all), and the statement with the id or hash."""

    path: str
    span: str = ""
    record: Statement | None = None
    id: str | None = None


def excerpt(data: bytes, path: str, span: str, block: str | None = None) -> Excerpt:
    """The lines of a file in a span, '' for all. NotFound, Usage."""
    lines = markdown_document.parse(data, path).lines
    first, last = line_span(path, span, len(lines)) if span else (1, len(lines))
    return Excerpt(path, first, last, len(lines), readable("\n".join(lines[first - 1 : last])), block)


def line_span(path: str, span: str, last: int) -> tuple[int, int]:
    """Parse `12` or `12-20`, cut at the file's `last` line. Usage, NotFound."""
    match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", span)
    if not match or not 1 <= int(match[1]) <= int(match[2] or match[1]):
        raise Usage(f"{span!r} is not a line or range of lines", hint="use PATH:12 or PATH:12-20")
    if int(match[1]) > last:
        raise NotFound(f"the file has {counted(last, 'line')}", where=f"{path}:{span}")
    return int(match[1]), min(int(match[2] or match[1]), last)


# -- by its form alone -------------------------------------------------------------------------------------


def parse_target(given: str) -> NamedTarget:
    """Parse a target in any form that a command prints, with quotes, brackets or punctuation around it. A
    path may have a colon."""
    if is_memory_file(given):
        return NamedTarget(given)
    text = strip_target(given)
    for form in () if is_memory_file(text) else _TARGET_FORMS:
        if match := form.fullmatch(text):
            found = match.groupdict()
            if to := found.pop("to", None):
                found["span"] += f"-{to}"
            return NamedTarget(**found)
    return NamedTarget(*_split_span(text))


def strip_target(given: str) -> str:
    """A target without the quotes, brackets and punctuation around it."""
    text = given.strip(_QUOTES).rstrip(_END_PUNCTUATION + _QUOTES)
    if text.startswith("("):
        text = (text[1:].rpartition(")")[0] or text[1:]).strip(_QUOTES)
    if link := _LINK.match(text):
        return f"{link['file']}#^{link['id']}".removeprefix("#") if link["id"] else link["file"]
    if link := _MARKDOWN_LINK.fullmatch(text):
        return link[1]
    if text.startswith("["):
        text = text[1:].rpartition("]")[0] or text[1:]
    text = text.strip(_QUOTES).rstrip(_END_PUNCTUATION + _QUOTES)
    return text[:-1] if text.endswith((")", "]")) and not {"(", "["} & set(text) else text


def _split_span(target: str) -> tuple[str, str]:
    path, colon, span = target.rpartition(":")
    named = is_memory_file(path) or (path.startswith("/") and re.fullmatch("[0-9-]+", span))
    return (path, span) if colon and named and not is_memory_file(target) else (target, "")


# -- in a bank ---------------------------------------------------------------------------------------------


def resolve_target(store: Store, given: str, known: Known | None = None) -> Target:
    """Resolve a target in the bank. NotFound; Usage if it is ambiguous, with the names to choose from."""
    named = parse_target(given)
    if named.id is not None:
        return _resolve_id(store, named.file, named.id, known)
    path = _resolve_file(store, named.file)
    if named.texthash:
        return _resolve_hash(store, path or named.file, named.texthash)
    if path is None and not named.span:
        if re.fullmatch(_ID, named.file) and not markdown_lines.day_of(f"{named.file}.md"):
            try:
                return _resolve_id(store, "", named.file, known)
            except NotFound as error:
                _refuse_revision(store, named.file, error)
        if day := named_day(named.file, store.now()):
            path = _day_log(store, day)
    return Target(path or named.file, named.span)


def named_day(name: str, now: datetime) -> str | None:
    """The ISO day that a target names (`2026-11-22`, `yesterday`, `last Friday`); None if it names none."""
    from ua_memory.text import dates  # some 40 ms, for what is neither a file nor an id

    try:
        first, last = dates.parse_days(name, now)
    except (ValueError, OverflowError):
        return None
    return first.isoformat() if first and first == last else None


def _day_log(store: Store, day: str) -> str:
    """The log of a day. NotFound; Usage if there are several."""
    path = f"memory/{day}.md"
    found = [file.path for file in store.files() if markdown_lines.day_of(file.path) == day]
    if path in found or len(found) == 1:
        return path if path in found else found[0]
    if found:
        hint = f"specify one: {list_candidates(found)}"
        raise Usage(f"{len(found)} files are of this day", where=day, hint=hint)
    raise NotFound("this day has no log", where=day, hint=f"ua-memory list --since {day} --until {day}")


def id_at(store: Store, named: Target) -> str | None:
    """The id of the statement at these lines; None if there is none."""
    if not named.span:
        return None
    document = markdown_document.parse(store.accepted_bytes(named.path), named.path)
    first, last = line_span(named.path, named.span, len(document.lines))
    there = (one for one in document.statements if one.place.line == first and last <= one.place.end)
    return next((one.id for one in there if one.id), None)


def resolve_id(store: Store, given: str, known: Known | None = None) -> tuple[str, str]:
    """The id that a target means, and its `ref`. An id of ours that no statement has any more is returned as
    it is. NotFound; Usage for lines without an id."""
    named = parse_target(given)
    block = named.id or (named.file if is_generated(named.file) else "")
    if block and (is_generated(block) or named.file):
        return block, ref_of(named.file, block)
    found = resolve_target(store, given, known)
    found_id = found.id or id_at(store, found)
    if not found_id:
        raise Usage("not a statement with an id", where=given[:200], hint="ua-memory why PATH:LINE")
    return found_id, ref_of(found.path, found_id)


def _resolve_id(store: Store, file: str, block: str, known: Known | None) -> Target:
    ours = is_generated(block)
    path = _resolve_file(store, file) if file else None
    hints = [path] if path else (known(block) if known and ours else None) or None
    found = list(find_by_id(store, block, hints))
    if not found and hints and ours:  # the file in a link is a hint, and an index may be old
        found = list(find_by_id(store, block))
    where = f"{file}#^{block}" if file else f"^{block}"
    if not found and block and (place := _find_prose_block(store, block, hints)):
        return Target(place.path, f"{place.line}-{place.end}", id=block)
    if not found or (file and not path and not ours):
        raise NotFound("no such id", where=where, hint="ua-memory search")
    first = found[0]
    files = {each.place.path for each in found}
    if len({each.text for each in found}) > 1 or (len(files) > 1 and not ours):
        names = [f"{at.path}#^{block}" if len(files) == len(found) else f"{at.path}:{at.line}"
                 for at in (each.place for each in found)]  # fmt: skip
        what = f"{len(found)} statements have this id"
        raise Usage(what, where=where, hint=f"specify one: {list_candidates(names)}")
    return Target(first.place.path, f"{first.place.line}-{first.place.end}", first, first.id)


def list_candidates(names: Sequence[str]) -> str:
    more = f", and {len(names) - _MOST_CANDIDATES} more" if len(names) > _MOST_CANDIDATES else ""
    return ", ".join(names[:_MOST_CANDIDATES]) + more


def _find_prose_block(store: Store, block: str, paths: Sequence[str] | None) -> Place | None:
    """The paragraph of prose with a block id, as Obsidian links to; None if there is none."""
    for path, data in texts(store, every=True) if paths is None else read_files(store, paths):
        if f"^{block}".encode() not in data or markdown_lines.kind_of(path) is FileKind.TOMBSTONES:
            continue
        if place := _prose_block(markdown_document.parse(data, path), block):
            return place
    return None


def _prose_block(document: markdown_document.Document, block: str) -> Place | None:
    mark = re.compile(rf"(?:^|\s)\^{re.escape(block)}[ \t\r]*$", re.MULTILINE)
    for part in scan(document.lines, document.front_end):
        if mark.search("\n".join(document.lines[part.start : part.end])):
            return Place(document.path, part.start + 1, part.end)
    return None


def block_span(data: bytes, path: str, block: str) -> str:
    """The lines of a file with a block id. NotFound."""
    document = markdown_document.parse(data, path)
    places = (one.place for one in document.statements if one.id == block)
    if place := next(places, None) or _prose_block(document, block):
        return f"{place.line}-{place.end}"
    raise NotFound("no such id", where=f"{path}#^{block}", hint=f"ua-memory get {path}")


def _resolve_hash(store: Store, path: str, texthash: str) -> Target:
    """The line that a trailer names by its file and the hash of its text. NotFound."""
    for record in markdown_document.parse(store.accepted_bytes(path), path).statements:
        if markdown_document.texthash(record.text).startswith(texthash[:16]):
            return Target(path, f"{record.place.line}-{record.place.end}", record, record.id)
    raise NotFound("no line has this text any more", where=f"{path}#{texthash}", hint=f"ua-memory log {path}")


def _resolve_file(store: Store, name: str) -> str | None:
    """The file with a name: its path, the path without `memory/`, `.md` or its folder, a link's name of it in
    a vault, or the id in its front matter. None if there is none; Usage for several."""
    name = name.removeprefix(f"{store.bank.root}/").removeprefix("./")
    if is_memory_file(name):
        return name
    if not name or not all(part and part[0] != "." for part in name.split("/")):
        return None
    there = [file.path for file in store.files() if file.path.endswith(".md")]
    for each in dict.fromkeys((name, unquote(name), _DIFF_SIDE.sub("", name))):
        for form in _PATH_FORMS:
            if (path := form.format(each)) in there:
                return path
    found = [path for path in there if _matches_path(path, name.removesuffix(".md"))]
    found = found or [path for path in there if _has_front_id(store, path, name)]
    if len(found) > 1:
        hint = f"specify one: {list_candidates(found)}"
        raise Usage(f"{len(found)} files have this name", where=name, hint=hint)
    return found[0] if found else None


def _matches_path(path: str, name: str) -> bool:
    """Whether a link's name, with any number of folders, can mean this file."""
    bare = path.removesuffix(".md")
    return bare.endswith(f"/{name}") or name.endswith(f"/{bare}")


def _has_front_id(store: Store, path: str, name: str) -> bool:
    """Whether the file is a page, mental model or document with this id in its front matter."""
    if markdown_lines.kind_of(path) not in _KINDS_WITH_ID:
        return False
    with suppress(NotFound):
        for each in markdown_document.parse(store.accepted_bytes(path), path).records:
            if isinstance(each, SourceDocument | Page | MentalModel):
                return name == (each.document_id if isinstance(each, SourceDocument) else each.id)
    return False


def _refuse_revision(store: Store, name: str, error: NotFound) -> None:
    """Usage if the name is a revision, which other commands take."""
    if re.fullmatch("[0-9a-f]{7,40}", name):
        with suppress(NotFound):
            store.history.resolve(name)
            raise Usage("this is a revision", where=name, hint=f"ua-memory diff {name}") from error
    if is_generated(name):
        raise error
