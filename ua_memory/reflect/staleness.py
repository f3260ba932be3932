"""Whether a page is out of date: what recall finds for it now, against what its last refresh saw.

Computed, never stored as truth: a refresh leaves hashes of what it saw in its commit (`Seen:`), and what is
new, edited or gone since is told from the files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ua_memory import markdown, pages
from ua_memory.errors import NotFound
from ua_memory.history import MACHINE, BlameLine, Revision
from ua_memory.records import Fact, Page
from ua_memory.reflect.grounds import Evidence
from ua_memory.reflect.units import Owner
from ua_memory.store import Store

IN_A_LINE = 12
"""Names with their hashes in one line of a commit's message."""
EXTRACT = "extract"
"""What `By:` says of a refresh without a model."""


@dataclass(frozen=True, slots=True)
class Last:
    """A page's last refresh that was not taken back: its commit, recipe's hash, writer, what it saw."""

    revision: str
    recipe: str
    by: str
    seen: Mapping[str, str]
    passed: Mapping[str, str] = field(default_factory=dict)
    """What recall found and was too far from the question."""


@dataclass(frozen=True, slots=True)
class Stale:
    """Why a page is to be refreshed; false where nothing has changed. The names are those of trailers:
    `^id`, or `path#texthash` of a line without an id. `yours` counts what persons wrote on the page since."""

    never: bool = False
    question: bool = False
    new: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    yours: int = 0
    draft: bool = field(default=False, compare=False)
    """Its sentences were put together without a model."""
    broken: str = ""
    """Why the page cannot be refreshed, and so nobody knows whether it is up to date."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What the search that this rests on had to leave out."""

    def __bool__(self) -> bool:
        counted = self.new or self.edited or self.gone or self.yours
        return bool(self.broken or self.never or self.question or counted)

    def __str__(self) -> str:
        if self.broken:
            return self.broken
        if self.never:
            return "never refreshed"
        counts = [(self.new, "new"), (self.edited, "edited"), (self.gone, "gone")]
        said = ["another question"] if self.question else []
        said += [f"{len(names)} {word}" for names, word in counts if names]
        said += [f"{self.yours} of yours to learn"] if self.yours else []
        return ", ".join(said)


def last_refresh(store: Store, page: Page) -> Last | None:
    """The refresh a page has its text from; None if there is none since it was declared."""
    name = pages.stem(page)
    back = store.history.taken_back()
    for done in store.history.log(grep=[f"Page: {name}"]):
        if done.id in back or done.trailer("Page") != name:
            continue
        if done.trailer("Memory-Op") == "refresh":
            return Last(done.id, done.trailer("Recipe"), done.trailer("By"), *map(_read, _both(done)))
        if done.trailer("Memory-Op") in ("page create", "page delete"):
            return None
    return None


def _both(done: Revision) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return done.trailers.get("Seen", ()), done.trailers.get("Passed", ())


def _read(lines: Sequence[str]) -> dict[str, str]:
    seen: dict[str, str] = {}
    for line in lines:
        if ".md#" in line:
            seen[line] = ""
            continue
        seen |= {f"^{name}": said for name, _, said in (each.partition(".") for each in line.split())}
    return seen


def seen_lines(seen: Mapping[str, str]) -> list[str]:
    """The `Seen:` trailers that say this: `id.hash` of what has an id, else `path#texthash`."""
    named = [f"{name[1:]}.{said}" for name, said in seen.items() if name.startswith("^")]
    rows = [" ".join(named[at : at + IN_A_LINE]) for at in range(0, len(named), IN_A_LINE)]
    return rows + [name for name in seen if not name.startswith("^")]


def stale(
    page: Page, last: Last | None, evidence: Sequence[Evidence], cited: Iterable[str],
    alive: Callable[[str], bool], yours: int,
) -> Stale:  # fmt: skip
    """What has changed for a page since its last refresh. `cited` are the ids it cites, `alive` tells of a
    name whether it still stands somewhere."""
    if last is None:
        return Stale(never=True, yours=yours)
    now: dict[str, Evidence] = {each.name: each for each in evidence}
    new, edited, met = [], [], set()
    for name, each in now.items():
        nameless = f"{each.record.place.path}#{markdown.texthash(each.record.text)}"
        if name not in last.seen and nameless in last.seen:  # it was given an id since, which is no edit
            met.add(nameless)
        elif name not in last.seen:
            known = last.passed.get(name, last.passed.get(nameless)) in ("", each.digest)
            new += [name] if each.recalled and not known else []
        elif last.seen[name] not in ("", each.digest):
            edited.append(name)
    wanted = {*last.seen, *(f"^{block}" for block in cited)} - set(now) - met
    gone = [name for name in sorted(wanted) if not alive(name)]
    return Stale(
        False, last.recipe != pages.recipe(page), tuple(new), tuple(edited), tuple(gone), yours,
        last.by == EXTRACT,
    )  # fmt: skip


def nameless_alive(store: Store, name: str) -> bool:
    """Whether `path#texthash` still stands in its file."""
    path, _, said = name.rpartition("#")
    try:
        facts = markdown.parse(store.truth(path), path).of(Fact)
    except NotFound:
        return False
    return any(markdown.texthash(fact.text) == said and not fact.retired for fact in facts)


# -- who wrote what ------------------------------------------------------------------------------------


def owners(store: Store, path: str, data: bytes) -> list[Owner]:
    """Who wrote each line of a page. What only brought a line back, as an undo does, has not written it."""

    def owner(line: BlameLine) -> Owner:
        if line.author != MACHINE[0]:
            return "person"
        return "ours" if line.subject.startswith("refresh: ") else "other"

    return [owner(line) for line in store.history.blame(path, data)]
