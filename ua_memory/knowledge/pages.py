"""Knowledge pages and mental models: create, read, update and delete.

A page's header says what it tracks; its body is written by `reflect.refresh` and by persons. Only a person
may write a mental model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from ua_memory.discovery import LOGS
from ua_memory.errors import Malformed, NotFound, Usage
from ua_memory.markdown import document, lines, printer
from ua_memory.markdown.lines import is_visible, readable
from ua_memory.records import MentalModel, Page
from ua_memory.store.draft import Draft, Result
from ua_memory.store.store import Store

PageKind = Literal["page", "model"]
FOLDERS: dict[PageKind, str] = {"page": f"{LOGS}/pages", "model": f"{LOGS}/models"}
KINDS: Mapping[type[Page | MentalModel], PageKind] = {Page: "page", MentalModel: "model"}
P = TypeVar("P", Page, MentalModel)
MAX_TOKENS = 2048
"""Most tokens of a page's body, if its header has no `max_tokens`."""
LONGEST = {"id": 64, "name": 200, "source_query": 1000}
"""Most characters of the values in a header."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)")
"""Device names on Windows, which cannot be file names there."""


@dataclass(frozen=True, slots=True)
class PageChange:
    """A page or mental model after a change, and before it (None if it is new)."""

    record: Page | MentalModel
    result: Result
    before: Page | MentalModel | None = None


def path_of(sort: PageKind, name: str) -> str:
    """The path of a page or model. Usage for an id that is not a valid file name on every system."""
    word, hint = f"a {_kind_name(sort)}'s id", "use a to z, digits, - and _, as in alice-hosting"
    if not _ID.fullmatch(name) or len(name) > LONGEST["id"]:
        raise Usage(f"{name[:80]!r} cannot be {word}", hint=f"{hint}; at most {LONGEST['id']} characters")
    path = f"{FOLDERS[sort]}/{name}.md"
    if _RESERVED.fullmatch(name) or lines.day_of(path):
        raise Usage(f"{name!r} cannot be {word}: this file name is reserved", hint=hint)
    return path


def all_records(store: Store, kind: type[P]) -> list[P]:
    """All pages, or mental models, in order of their paths; empty files are skipped."""
    return [record for _, record in _records(store, KINDS[kind]) if isinstance(record, kind)]


def get_record(store: Store, kind: type[P], name: str) -> P:
    """One page, or mental model, by its file name or the id in its header, ignoring case. NotFound."""
    found = _find_record(store, KINDS[kind], name)
    assert isinstance(found, kind)
    return found


def max_tokens(data: bytes, path: str) -> int:
    """Most tokens of a page's body: its header's `max_tokens`, else 2,048. Malformed if that is no positive
    integer."""
    said = document.parse(data, path).front.get("max_tokens", MAX_TOKENS)
    if not isinstance(said, int) or isinstance(said, bool) or said < 1:
        wrong = f"max_tokens: {said!r} is not a number of tokens"
        raise Malformed(wrong, where=path, hint="correct the header")
    return said


def recipe(record: Page) -> str:
    """A hash of a page's source query; the page is rewritten when it changes."""
    return document.texthash(" ".join(record.source_query.split()))


# -- changing ------------------------------------------------------------------------------------------


def delete(store: Store, sort: PageKind, name: str, *, door: str, by_person: bool = False) -> PageChange:
    """Delete a page or mental model. NotFound; Usage for a mental model unless `by_person`."""
    if sort == "model":
        require_person(by_person)
    before = _find_record(store, sort, name)
    with store.revision(f"{sort} delete", door=door, by_person=by_person) as draft:
        draft.delete(before.place.path)
        _set_subject(draft, sort, before, "delete")
    return PageChange(before, draft.result, before)


def create(store: Store, sort: PageKind, made: Page | MentalModel, door: str, by_person: bool) -> PageChange:
    path = path_of(sort, made.id)
    if any(_is_called(record, made.id) for _, record in _records(store, sort)):
        raise _exists_error(sort, made.id)
    with store.revision(f"{sort} create", door=door, by_person=by_person) as draft:
        if draft.exists(path):
            raise _exists_error(sort, made.id)
        draft.write(path, f"{printer.show(made)}\n".encode("utf-8", "replace"))
        _set_subject(draft, sort, made, "create")
        there = _record(draft.read(path), path)
    return PageChange(there, draft.result)


def update(
    store: Store, sort: PageKind, name: str, changes: dict[str, Any], body: str | None, door: str,
    by_person: bool,
) -> PageChange:  # fmt: skip
    if not changes and body is None:
        raise Usage("nothing to change", hint=f"ua-memory {sort}s update --help")
    path = _find_record(store, sort, name).place.path
    with store.revision(f"{sort} update", door=door, by_person=by_person) as draft:
        before = _record(draft.read(path), path)
        data = draft.read(path)
        data = document.set_front(data, changes) if changes else data
        draft.write(path, data if body is None else _with_body(data, path, body), removes=[before])
        _set_subject(draft, sort, before, "change")
        after = _record(draft.read(path), path)
    return PageChange(after, draft.result, before)


def _with_body(data: bytes, path: str, body: str) -> bytes:
    before = document.parse(data, path)
    head = b"".join(data.splitlines(keepends=True)[: before.front_end])
    return head + f"\n{body}\n".replace("\n", before.newline).encode("utf-8", "replace")


def _set_subject(draft: Draft, sort: PageKind, record: Page | MentalModel, did: str) -> None:
    draft.subject = f"{_kind_name(sort)}: {did} {record.id}"
    draft.trailers[sort.title()] = [stem(record)]


# -- reading and checking ------------------------------------------------------------------------------


def stem(record: Page | MentalModel) -> str:
    """The file name of a page or model without its ending, as trailers and links have it."""
    return record.place.path.rpartition("/")[2].removesuffix(".md") or record.id


def _records(store: Store, sort: PageKind) -> Iterator[tuple[str, Page | MentalModel]]:
    for file in sorted(file.path for file in store.files()):
        wanted = lines.kind_of(file).name == sort.upper() and file.endswith(".md")
        found = _parse_record(store.accepted_bytes(file), file) if wanted else None
        if found:  # None as well if an editor has emptied it to save it
            yield file, found


def _parse_record(data: bytes, path: str) -> Page | MentalModel | None:
    return next((r for r in document.parse(data, path).records if isinstance(r, (Page, MentalModel))), None)


def _record(data: bytes, path: str) -> Page | MentalModel:
    found = _parse_record(data, path)
    if found is None:
        raise _empty_error(path)
    return found


def _empty_error(path: str) -> Malformed:
    return Malformed("this file is empty", where=path, hint=f"rm {path}, or: ua-memory undo")


def _find_record(store: Store, sort: PageKind, name: str) -> Page | MentalModel:
    there, path = dict(_records(store, sort)), f"{FOLDERS[sort]}/{name}.md"
    if found := there.get(path):
        return found
    if any(file.path == path for file in store.files()):
        raise _empty_error(path)
    named = [record for record in there.values() if _is_called(record, name)]
    named = [record for record in named if record.id == name] or named
    if len(named) == 1:
        return named[0]
    known = ", ".join(stem(record) for record in there.values()) or "none"
    raise NotFound(
        f"no {_kind_name(sort)} {name!r} (there are: {known})", where=FOLDERS[sort],
        hint=f"ua-memory {sort}s list",
    )  # fmt: skip


def _is_called(record: Page | MentalModel, name: str) -> bool:
    """Whether a record has this name, ignoring case: some file systems do not tell `Alice` from `alice`."""
    return name.casefold() in (stem(record).casefold(), record.id.casefold())


def _exists_error(sort: PageKind, name: str) -> Usage:
    return Usage(
        f"{_kind_name(sort)} {name!r} already exists", where=FOLDERS[sort],
        hint=f"ua-memory {sort}s update {name}",
    )  # fmt: skip


def _kind_name(sort: PageKind) -> str:
    return "page" if sort == "page" else "mental model"


def require_person(by_person: bool) -> bool:
    if not by_person:
        raise Usage("only a person may write a mental model", hint="propose it to your user")
    return True


def check_line(text: str, key: str) -> str:
    clean = readable(text).strip()
    if not clean or "\n" in clean or not is_visible(clean) or len(clean) > LONGEST[key]:
        raise Usage(f"{key} is one line of at most {LONGEST[key]} characters, not {clean[:40]!r}")
    return clean


def check_tags(tags: Sequence[str]) -> tuple[str, ...]:
    clean = tuple(dict.fromkeys(readable(tag).strip().removeprefix("#") for tag in tags))
    for tag in clean:
        if not tag or not tag.isprintable() or "," in tag:
            raise Usage(f"{tag!r} is not a valid tag")
    return clean


def check_body(text: str) -> str:
    clean = readable(text.replace("\r\n", "\n")).strip("\n")
    if not clean.strip():
        raise Usage("no text given", hint="give it as an argument, or on standard input")
    return clean
