"""Core memory: the blocks of MEMORY.md, which every session begins with, and their budgets in tokens."""

from __future__ import annotations

from dataclasses import dataclass

from ua_memory import markdown, tokens
from ua_memory.errors import ChangedOnDisk, NotFound, TooLarge, Usage
from ua_memory.paths import CORE_NAMES
from ua_memory.records import CoreBlock
from ua_memory.store import Store
from ua_memory.store.draft import Result

WARN_AT = 0.8
"""Part of a budget from which a warning is given, while there is still room to tidy up."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens of one block, or of all of MEMORY.md (`name` empty), against what they may take."""

    name: str
    used: int
    limit: int

    @property
    def warning(self) -> str:
        """What to say about it, or nothing."""
        what = f"core block {self.name!r}" if self.name else "MEMORY.md"
        if self.used > self.limit:
            return f"{what} has {self.used} tokens, over its budget of {self.limit}"
        if self.used >= WARN_AT * self.limit:
            return f"{what} has {self.used} of {self.limit} tokens: room for {self.limit - self.used} more"
        return ""


@dataclass(frozen=True, slots=True)
class Replaced:
    """What a replace did: the block before (None: it is new) and after."""

    before: CoreBlock | None
    after: CoreBlock
    result: Result
    warnings: tuple[str, ...] = ()


def core_path(store: Store) -> str:
    """`MEMORY.md`, or `memory.md` where only that exists."""
    names = {f.path for f in store.survey().files}
    return next((name for name in CORE_NAMES if name in names), CORE_NAMES[0])


def blocks(store: Store) -> list[CoreBlock]:
    """All blocks in file order; none where there is no MEMORY.md."""
    path = core_path(store)
    try:
        return list(markdown.parse(store.truth(path), path).of(CoreBlock))
    except NotFound:
        return []


def block(store: Store, name: str) -> CoreBlock:
    """One block by its name, its letter case aside. NotFound lists the names there are."""
    there = blocks(store)
    found = _named(there, name)
    if found is None:
        known = ", ".join(b.name for b in there) or "none"
        raise NotFound(
            f"no core block {name!r} (there are: {known})", where=core_path(store), mend="ua-memory core list"
        )
    return found


def budgets(store: Store) -> list[Budget]:
    """The whole of MEMORY.md first, then each block."""
    there = blocks(store)
    path = core_path(store)
    try:
        whole = tokens.count(store.truth(path).decode("utf-8", "replace"))
    except NotFound:
        whole = 0
    limit = store.config.core_block_tokens
    return [
        Budget("", whole, store.config.core_tokens),
        *(Budget(b.name, tokens.count(b.value), limit) for b in there),
    ]


def replace(
    store: Store,
    name: str,
    value: str,
    *,
    door: str,
    expect: str | None = None,
    request: str | None = None,
    session: str | None = None,
    by_person: bool = False,
) -> Replaced:
    """Replace one block's value, or add the block at the end; nothing else of the file changes.

    `expect` is the value the caller read: ChangedOnDisk if it is another one now. TooLarge where the new
    value would pass a budget that the old one did not. Usage for a value that would open another block.
    """
    name, path = _clean_name(name), core_path(store)
    if request and store.known_request(request):
        there = block(store, name)
        return Replaced(there, there, Result(store.known_request(request)))
    with store.revision("core replace", door=door, request=request, session=session) as draft:
        draft.by_person = by_person
        value = draft.redact(value.strip("\n"))
        data = draft.read(path)
        before = _named(list(markdown.parse(data, path).of(CoreBlock)), name)
        _expected(before, expect, path)
        new = _with_value(data, path, before, name, value)
        warnings = _within_budget(store, data, new, before, name, value)
        draft.write(path, new, removes=[before] if before else [])
        draft.subject = f"core: {'replace' if before else 'add'} {name}"
    after = _named(list(markdown.parse(new, path).of(CoreBlock)), name)
    assert after is not None
    return Replaced(before, after, draft.result, warnings)


def _clean_name(name: str) -> str:
    name = name.strip().removeprefix("##").strip()
    name = name[1:-1] if name.startswith("[") and name.endswith("]") else name
    if not name or "\n" in name or "\r" in name or len(name) > 200:
        raise Usage("a core block needs a name of one line")
    return name


def _named(there: list[CoreBlock], name: str) -> CoreBlock | None:
    exact = [b for b in there if b.name == name]
    loose = [b for b in there if b.name.casefold() == name.casefold()]
    return (exact or loose or [None])[0]


def _expected(before: CoreBlock | None, expect: str | None, path: str) -> None:
    if expect is not None and (before.value if before else "") != expect.strip("\n"):
        raise ChangedOnDisk(
            "the block is not what was read", where=path, mend="read it again: ua-memory core get"
        )


def _with_value(data: bytes, path: str, before: CoreBlock | None, name: str, value: str) -> bytes:
    """The file's bytes with the block's lines replaced; Usage if it would then parse as anything else."""
    if before is None:
        new = markdown.append(data or b"# Memory\n", [f"## {name}", "", *value.split("\n")])
    else:
        first, last = before.place.line, before.place.end
        heading = markdown.parse(data, path).lines[first - 1]
        rest = markdown.parse(data, path).lines[last:]
        lines = [heading, "", *value.split("\n"), *([""] if rest and rest[0].strip() else [])]
        new = markdown.replace_lines(data, before.place, lines)
    there = {b.name: b.value for b in markdown.parse(data, path).of(CoreBlock)}
    wanted = {**there, (before.name if before else name): value.strip("\n")}
    if {b.name: b.value for b in markdown.parse(new, path).of(CoreBlock)} != wanted:
        raise Usage(
            "the value has a heading or an open code fence that would change other blocks",
            mend="use ### headings inside a block",
        )
    return new


def _within_budget(
    store: Store, old: bytes, new: bytes, before: CoreBlock | None, name: str, value: str
) -> tuple[str, ...]:
    limits = store.config
    now = [
        Budget(name, tokens.count(value), limits.core_block_tokens),
        Budget("", _size(new), limits.core_tokens),
    ]
    then = [tokens.count(before.value) if before else 0, _size(old)]
    for budget, was in zip(now, then, strict=True):
        if budget.used > budget.limit and budget.used > was:
            raise TooLarge(
                budget.warning,
                where=core_path(store),
                mend="shorten it, or move details to archival memory: ua-memory insert",
            )
    return tuple(budget.warning for budget in now if budget.warning)


def _size(data: bytes) -> int:
    return tokens.count(data.decode("utf-8", "replace"))
