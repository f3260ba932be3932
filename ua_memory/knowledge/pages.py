"""Knowledge pages and mental models: declared, read, changed and deleted, in domain words.

A page's header says what it tracks; its body is written by `reflect.refresh` and by persons. A mental model
is a person's: no machine's door writes one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from ua_memory.discovery import LOGS
from ua_memory.errors import Malformed, NotFound, Usage
from ua_memory.markdown import document, lines, printer
from ua_memory.markdown.lines import readable
from ua_memory.records import MentalModel, Page
from ua_memory.store.draft import Draft, Result
from ua_memory.store.store import Store

Sort = Literal["page", "model"]
FOLDERS: dict[Sort, str] = {"page": f"{LOGS}/pages", "model": f"{LOGS}/models"}
_SORTS: Mapping[type[Page | MentalModel], Sort] = {Page: "page", MentalModel: "model"}
P = TypeVar("P", Page, MentalModel)
MAX_TOKENS = 2048
"""Tokens of a page's body, where its header does not say `max_tokens`."""
LONGEST = {"id": 64, "name": 200, "source_query": 1000}
"""Characters of a header's values."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|com\d|lpt\d)")
"""Names that Windows gives to devices: a bank may be synchronised to one."""


@dataclass(frozen=True, slots=True)
class PageChange:
    """A page or a mental model after what was done to it, and before (None: it is new)."""

    record: Page | MentalModel
    result: Result
    before: Page | MentalModel | None = None


def path_of(sort: Sort, name: str) -> str:
    """The file of a page or model. Usage for an id that could not be a file's name everywhere."""
    word, hint = f"a {_said(sort)}'s id", "use a to z, digits, - and _, as in alice-hosting"
    if not _ID.fullmatch(name) or len(name) > LONGEST["id"]:
        raise Usage(f"{name[:80]!r} cannot be {word}", hint=f"{hint}; at most {LONGEST['id']} characters")
    path = f"{FOLDERS[sort]}/{name}.md"
    if _RESERVED.fullmatch(name) or lines.day_of(path):
        raise Usage(f"{name!r} cannot be {word}: this file name is reserved", hint=hint)
    return path


def every(store: Store, kind: type[P]) -> list[P]:
    """All pages, or mental models, by their ids; a file that says nothing is none."""
    return [record for _, record in _all(store, _SORTS[kind]) if isinstance(record, kind)]


def one(store: Store, kind: type[P], name: str) -> P:
    """One page, or mental model, by its file's name or the id in its header, in any case. NotFound."""
    found = _get(store, _SORTS[kind], name)
    assert isinstance(found, kind)
    return found


def max_tokens(data: bytes, path: str) -> int:
    """What a page's body may take: its header's `max_tokens`, else 2,048. Malformed for no whole number."""
    said = document.parse(data, path).front.get("max_tokens", MAX_TOKENS)
    if not isinstance(said, int) or isinstance(said, bool) or said < 1:
        raise Malformed(
            f"max_tokens: {said!r} is not a number of tokens", where=path, hint="correct the header"
        )
    return said


def recipe(record: Page) -> str:
    """A hash of what a page is written from: another one means that it is written anew."""
    return document.texthash(" ".join(record.source_query.split()))


# -- changing ------------------------------------------------------------------------------------------


def delete(store: Store, sort: Sort, name: str, *, door: str, by_person: bool = False) -> PageChange:
    """Let a page or a mental model go; `undo` brings it back. NotFound; Usage for a machine and a model."""
    if sort == "model":
        person(by_person)
    before = _get(store, sort, name)
    with store.revision(f"{sort} delete", door=door, by_person=by_person) as draft:
        draft.delete(before.place.path)
        _named(draft, sort, before, "delete")
    return PageChange(before, draft.result, before)


def create(store: Store, sort: Sort, made: Page | MentalModel, door: str, by_person: bool) -> PageChange:
    path = path_of(sort, made.id)
    _refuse_second(store, sort, made.id)
    with store.revision(f"{sort} create", door=door, by_person=by_person) as draft:
        if draft.exists(path):
            raise _second(sort, made.id)
        draft.write(path, f"{printer.show(made)}\n".encode("utf-8", "replace"))
        _named(draft, sort, made, "create")
        there = _record(draft.read(path), path)
    return PageChange(there, draft.result)


def update(
    store: Store, sort: Sort, name: str, changes: dict[str, Any], body: str | None, door: str, by_person: bool
) -> PageChange:
    if not changes and body is None:
        raise Usage("nothing to change", hint=f"ua-memory {sort}s update --help")
    path = _get(store, sort, name).place.path
    with store.revision(f"{sort} update", door=door, by_person=by_person) as draft:
        before = _record(draft.read(path), path)
        data = draft.read(path)
        data = document.set_front(data, changes) if changes else data
        draft.write(path, data if body is None else _with_body(data, path, body), removes=[before])
        _named(draft, sort, before, "change")
        after = _record(draft.read(path), path)
    return PageChange(after, draft.result, before)


def _with_body(data: bytes, path: str, body: str) -> bytes:
    front = document.parse(data, path).front_end
    head = b"".join(data.splitlines(keepends=True)[:front]) if front else b""
    newline = document.parse(data, path).newline
    return head + f"\n{body}\n".replace("\n", newline).encode("utf-8", "replace")


def _named(draft: Draft, sort: Sort, record: Page | MentalModel, did: str) -> None:
    draft.subject = f"{_said(sort)}: {did} {record.id}"
    draft.trailers[sort.title()] = [stem(record)]


# -- reading and checking ------------------------------------------------------------------------------


def stem(record: Page | MentalModel) -> str:
    """The file's name of a page or model, without its ending: what trailers and links call it."""
    return record.place.path.rpartition("/")[2].removesuffix(".md") or record.id


def _all(store: Store, sort: Sort) -> Iterator[tuple[str, Page | MentalModel]]:
    for file in sorted(file.path for file in store.files()):
        wanted = lines.kind_of(file).name == sort.upper() and file.endswith(".md")
        if wanted and (found := _found(store.truth(file), file)):  # an editor may just be writing another
            yield file, found


def _found(data: bytes, path: str) -> Page | MentalModel | None:
    return next((r for r in document.parse(data, path).records if isinstance(r, (Page, MentalModel))), None)


def _record(data: bytes, path: str) -> Page | MentalModel:
    found = _found(data, path)
    if found is None:
        raise _empty(path)
    return found


def _empty(path: str) -> Malformed:
    return Malformed("this file is empty", where=path, hint=f"rm {path}, or: ua-memory undo")


def _get(store: Store, sort: Sort, name: str) -> Page | MentalModel:
    there, path = dict(_all(store, sort)), f"{FOLDERS[sort]}/{name}.md"
    if found := there.get(path):
        return found
    if any(file.path == path for file in store.files()):
        raise _empty(path)
    named = [record for record in there.values() if _is_called(record, name)]
    named = [record for record in named if record.id == name] or named
    if len(named) == 1:
        return named[0]
    known = ", ".join(stem(record) for record in there.values()) or "none"
    raise NotFound(
        f"no {_said(sort)} {name!r} (there are: {known})", where=FOLDERS[sort],
        hint=f"ua-memory {sort}s list",
    )  # fmt: skip


def _is_called(record: Page | MentalModel, name: str) -> bool:
    """A file system may take `Alice` and `alice` for one."""
    return name.casefold() in (stem(record).casefold(), record.id.casefold())


def _refuse_second(store: Store, sort: Sort, name: str) -> None:
    if any(_is_called(record, name) for _, record in _all(store, sort)):
        raise _second(sort, name)


def _second(sort: Sort, name: str) -> Usage:
    return Usage(
        f"{_said(sort)} {name!r} already exists", where=FOLDERS[sort],
        hint=f"ua-memory {sort}s update {name}",
    )  # fmt: skip


def _said(sort: Sort) -> str:
    return "page" if sort == "page" else "mental model"


def person(by_person: bool) -> bool:
    if not by_person:
        raise Usage("only a person may write a mental model", hint="propose it to your user")
    return True


def line(text: str, key: str) -> str:
    clean = readable(text).strip()
    if not clean or "\n" in clean or not clean.isprintable() or len(clean) > LONGEST[key]:
        raise Usage(f"{key} is one line of at most {LONGEST[key]} characters, not {clean[:40]!r}")
    return clean


def tags(tags: Sequence[str]) -> tuple[str, ...]:
    clean = tuple(dict.fromkeys(readable(tag).strip().removeprefix("#") for tag in tags))
    for tag in clean:
        if not tag or not tag.isprintable() or "," in tag:
            raise Usage(f"{tag!r} is not a valid tag")
    return clean


def body(text: str) -> str:
    clean = readable(text.replace("\r\n", "\n")).strip("\n")
    if not clean.strip():
        raise Usage("no text given", hint="give it as an argument, or on standard input")
    return clean
