"""Core memory: the blocks of MEMORY.md, their budgets, and what a conversation may put there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as change

from ua_memory.discovery import CORE_NAMES
from ua_memory.errors import ChangedOnDisk, Malformed, NotFound, TooLarge, Usage
from ua_memory.knowledge import trust
from ua_memory.markdown import document, printer
from ua_memory.markdown import lines as markdown_lines
from ua_memory.markdown.blocks import BlockShape, scan
from ua_memory.markdown.lines import heading_level, readable
from ua_memory.markdown.printer import strip_blank
from ua_memory.records import CoreBlock
from ua_memory.store.draft import Draft, Result
from ua_memory.store.store import Store
from ua_memory.text import grounding, tokens
from ua_memory.text.wording import CORE_INTRO
from ua_memory.transcripts.turns import Turn

# -- core --------------------------------------------------------------------------------------------------
# Core memory: the blocks of MEMORY.md, which every session begins with, and their budgets in tokens.


TITLE = b"# Memory\n"
LONGEST_NAME = 200
WARN_AT = 0.8
"""Part of a budget from which a warning is given, while there is still room to tidy up."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens used by one block, or by all of MEMORY.md (`name` empty), and the limit."""

    name: str
    used: int
    limit: int

    @property
    def warning(self) -> str:
        """The warning, or ''."""
        what = f"core block {self.name!r}" if self.name else "MEMORY.md"
        if self.used > self.limit:
            return f"{what} has {self.used} tokens, over its budget of {self.limit}"
        if self.used >= WARN_AT * self.limit:
            return f"{what} has {self.used} of {self.limit} tokens: room for {self.limit - self.used} more"
        return ""


@dataclass(frozen=True, slots=True)
class BlockChange:
    """What a replace did: the block before (None: it is new) and after.

    `repeated`: the request was answered before and nothing was done; `after` is the block as it is now.
    """

    before: CoreBlock | None
    after: CoreBlock
    result: Result
    warnings: tuple[str, ...] = ()
    repeated: bool = False


def core_path(store: Store) -> str:
    """`MEMORY.md`, or `memory.md` where only that exists."""
    names = {f.path for f in store.survey().files}
    return next((name for name in CORE_NAMES if name in names), CORE_NAMES[0])


def blocks(store: Store) -> list[CoreBlock]:
    """All blocks in file order; none where there is no MEMORY.md."""
    path = core_path(store)
    return _parse_blocks(_read_core(store, path), path)


def block(store: Store, name: str) -> CoreBlock:
    """One block by name, ignoring case and brackets. NotFound lists the names."""
    there = blocks(store)
    found = find_block(there, bare_name(name))
    if found is None:
        known = ", ".join(b.name for b in there) or "none"
        raise NotFound(
            f"no core block {name!r} (there are: {known})", where=core_path(store), hint="ua-memory core list"
        )
    return found


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
    trailers: Mapping[str, str] | None = None,
) -> BlockChange:
    """Replace one block's value, or add the block at the end; nothing else of the file changes.

    Blank lines around the value are left out, as they are when it is read. `[NAME]` makes a new block
    labelled. `expect` is the value the caller read: ChangedOnDisk if it is another one now. TooLarge
    where the new value would pass a budget that the old one did not. Usage for a value that would end
    the block or open another. `trailers` are added to the commit.
    """
    with store.revision("core replace", door=door, request=request, session=session) as draft:
        if draft.already_done is None:
            draft.by_person = by_person
            draft.even_if_empty = request is not None
            done = put(store, draft, name, value, expect=expect)
            draft.trailers |= {key: [said] for key, said in (trailers or {}).items()}
    if draft.already_done is not None:
        return _repeated_change(store, draft, _new_block(name))
    return change(done, result=draft.result)


def put(store: Store, draft: Draft, name: str, value: str, *, expect: str | None = None) -> BlockChange:
    """Replace a block's value, or add the block, in an open revision. Raises what `replace` raises; then
    the draft is as it was."""
    value = _check_value(value)
    new_block = _new_block(name)
    path = core_path(store)
    data, value = draft.read(path), strip_blank(draft.redact(value))
    before = find_block(_parse_blocks(data, path), new_block.name)
    _check_expected(before, expect, path)
    if not draft.by_person and draft.op != "import":
        trust.require_trusted(store, value, before.value if before else "")
    new = _replace_value(data, path, before, change(new_block, value=value))
    warnings = _check_block_budget(store, path, data, new, before, new_block.name)
    draft.write(path, new, removes=[before] if before else [])
    draft.subject = f"core: {'replace' if before else 'add'} {new_block.name}"
    after = find_block(_parse_blocks(draft.read(path), path), new_block.name) or new_block
    return BlockChange(before, after, draft.result, warnings)


def check_values(store: Store, values: Mapping[str, str]) -> None:
    """Raises what `put` would raise if these blocks got these values together."""
    path = core_path(store)
    data = _read_core(store, path)
    for name, value in values.items():
        block = change(_new_block(name), value=strip_blank(_check_value(value)))
        before = find_block(_parse_blocks(data, path), block.name)
        trust.require_trusted(store, block.value, before.value if before else "")
        new = _replace_value(data, path, before, block)
        _check_block_budget(store, path, data, new, before, block.name)
        data = new


def check_budgets(store: Store, path: str, old: bytes, new: bytes) -> tuple[str, ...]:
    """What to tell of the budgets if MEMORY.md has these bytes after those. TooLarge where one is passed that
    was not, or was by less."""
    warnings = dict[str, None]()
    for block in _parse_blocks(new, path):
        before = find_block(_parse_blocks(old, path), block.name)
        warnings.update(dict.fromkeys(_check_block_budget(store, path, old, new, before, block.name)))
    return tuple(warnings)


class CoreMemory:
    """Core memory of one bank; `door` names the caller."""

    def __init__(self, store: Store, door: str) -> None:
        self._store, self._door = store, door
        self._counted: tuple[bytes, Sequence[Budget]] | None = None

    def list(self) -> Sequence[CoreBlock]:
        """The blocks of MEMORY.md, in file order."""
        return blocks(self._store)

    def get(self, name: str) -> CoreBlock:
        """One block. NotFound lists those there are."""
        return block(self._store, name)

    def replace(
        self, name: str, value: str, *, expect: str | None = None, request: str | None = None,
        session: str | None = None, by_person: bool = False,
    ) -> BlockChange:  # fmt: skip
        """Replace a block, or add it. `expect` is the value that was read. Raises what `replace` raises."""
        return replace(
            self._store, name, value, door=self._door, expect=expect, request=request, session=session,
            by_person=by_person,
        )  # fmt: skip

    def budgets(self) -> Sequence[Budget]:
        """Tokens against budgets: MEMORY.md first, then its blocks. Counted once for as long as it stays."""
        path, config = core_path(self._store), self._store.config
        data = _read_core(self._store, path)
        if self._counted is None or self._counted[0] != data:
            each = [
                Budget(b.name, tokens.count(b.value), config.core_block_tokens)
                for b in _parse_blocks(data, path)
            ]
            self._counted = data, [Budget("", _count_tokens(data), config.core_tokens), *each]
        return self._counted[1]


def _repeated_change(store: Store, draft: Draft, asked: CoreBlock) -> BlockChange:
    done = draft.already_done
    if done and done.trailer("Memory-Op") != "core replace":
        raise Usage("this request id was already used for something else", where=done.subject)
    there = find_block(blocks(store), asked.name)  # None: undone or deleted since
    return BlockChange(there, there or asked, draft.result, repeated=True)


def _read_core(store: Store, path: str) -> bytes:
    try:
        return store.truth(path)
    except NotFound:
        return b""


def _parse_blocks(data: bytes, path: str) -> list[CoreBlock]:
    return list(document.parse(data, path).of(CoreBlock))


def bare_name(name: str) -> str:
    name = name.strip().removeprefix("##").strip()
    return name[1:-1].strip() if name.startswith("[") and name.endswith("]") else name


def _new_block(name: str) -> CoreBlock:
    """An empty block of this name. Usage if a heading cannot say it."""
    bare = bare_name(name)
    made = CoreBlock(bare, "", labelled=name.strip().removeprefix("##").strip() != bare)
    try:
        shown = printer.show(made)
    except Malformed as error:
        raise Usage(f"{name!r} cannot be the name of a core block") from error
    if not bare or len(bare) > LONGEST_NAME or "\n" in shown:
        raise Usage(f"a core block needs a name of one line, at most {LONGEST_NAME} characters")
    return made


def _check_value(value: str) -> str:
    """The value as a block can hold it. Usage where what follows in the file would not be what it was."""
    lines = strip_blank(readable(value.replace("\r\n", "\n"))).split("\n")
    for found in scan(lines):
        words = lines[found.start].strip()
        if found.shape is BlockShape.HEADING and heading_level(words) <= 2:
            raise Usage(f"the value has a heading ({words[:40]!r})", hint="use ### inside a block")
        if found.unclosed:
            raise Usage("the value has a code fence or comment that is not closed", hint="close it")
    return "\n".join(lines)


def find_block(there: Sequence[CoreBlock], name: str) -> CoreBlock | None:
    """The block of a name, in other letters if need be."""
    exact = [b for b in there if b.name == name]
    loose = [b for b in there if b.name.casefold() == name.casefold()]
    return next(iter(exact or loose), None)


def _check_expected(before: CoreBlock | None, expect: str | None, path: str) -> None:
    now = before.value if before else ""
    if expect is not None and now != strip_blank(expect.replace("\r\n", "\n")):
        raise ChangedOnDisk("the block has changed", where=path, hint="ua-memory core get")


def _replace_value(data: bytes, path: str, before: CoreBlock | None, block: CoreBlock) -> bytes:
    """The file's bytes with the block's value; Malformed if they would then parse as anything else."""
    known = _parse_blocks(data, path)
    there = [(b.name, b.value) for b in known]
    at = [b.place for b in known].index(before.place) if before else len(known)
    here = [((before or block).name, block.value)]
    if before is None:
        new = document.append(data or TITLE, printer.show(block).split("\n"))
    elif before.top:
        here = here if any(map(str.isalnum, block.value)) else []  # it is no block any more
        inner = printer.encode_core(block.value)
        new = markdown_lines.replace_lines(data, before.place, inner.split("\n") if inner else [])
    else:
        lines = document.parse(data, path).lines
        head, *body = lines[before.place.line - 1], *printer.show(block).split("\n")[1:]
        last = before.place.end
        gap = [""] if last < len(lines) and lines[last].strip() else []
        new = markdown_lines.replace_lines(data, before.place, [head, *body, *gap])
    wanted = [*there[:at], *here, *there[at + 1 :]]
    if [(b.name, b.value) for b in _parse_blocks(new, path)] != wanted:
        raise Malformed(
            "the block cannot be written so that all others stay as they are", where=path,
            hint="close what is open in it: a code fence, a comment",
        )  # fmt: skip
    return new


def _check_block_budget(
    store: Store, path: str, old: bytes, new: bytes, before: CoreBlock | None, name: str
) -> tuple[str, ...]:
    limits, after = store.config, find_block(_parse_blocks(new, path), name)
    block = Budget(name, tokens.count(after.value if after else ""), limits.core_block_tokens)
    now = [block, Budget("", _count_tokens(new), limits.core_tokens)]
    then = [tokens.count(before.value) if before else 0, _count_tokens(old)]
    for budget, was in zip(now, then, strict=True):
        if budget.used > budget.limit and budget.used > was:
            raise TooLarge(
                budget.warning,
                where=path,
                hint="shorten it, or move details to archival memory: ua-memory insert",
            )
    return tuple(budget.warning for budget in now if budget.warning)


def _count_tokens(data: bytes) -> int:
    """Tokens of the file, less the sentence that a new one begins with."""
    lines = data.decode("utf-8", "replace").split("\n")
    return tokens.count("\n".join(line for line in lines if line.strip() != CORE_INTRO))


# -- borne -------------------------------------------------------------------------------------------------
# What core memory may take from a conversation: what its person said.
#
# Every session begins with core memory, so an order that a page or a tool put into the assistant's mouth
# would be obeyed for ever. What only an assistant's or a tool's turn says, or a search showed, may become a
# fact that says whose it is. A sentence is a person's if its words are, in the main: stems are compared, so
# a translation is not recognised, and a "yes" to the assistant's words does not make them the person's.


_ORDERS = "always never must ignore instead without skip bypass disable force trust obey forbid allow permit"
ORDERS = grounding.tokenize(_ORDERS)
"""Words that make an order of a statement, or turn it around: a person has said them, or they stay out."""
_SPEAKERS = frozenset({"user", "person", "assistant", "agent"})
_SHORT = re.compile(r"(\w{3,})\.[a-z]{2,3}")
_CAPITAL = re.compile(r"\b[A-Z]\w*")


def is_persons(turn: Turn) -> bool:
    """Whether a turn is in a person's own words, not a sub-agent's or a compaction's summary."""
    return turn.role == "person" and not turn.agent and not turn.summary


def find_ungrounded(value: str, kept: Sequence[str], said: Sequence[str], others: Sequence[str]) -> str:
    """Why a sentence of `value` is not the person's, in words for the model; '' where all are.

    `kept` is what stood there, `said` the persons' turns, `others` all else that the model was shown.
    """
    ours = "\n".join((*kept, *said))
    was, here = grounding.words_only("\n".join(kept)), grounding.words_only(ours)
    words = grounding.tokenize(ours)
    plain, theirs = grounding.plain_text(ours), grounding.tokenize("\n".join(others)) - words
    for one in grounding.sentences(value):
        if grounding.occurs_in(grounding.words_only(one), was):
            continue
        if why := _ungrounded_reason(one, here, plain, words, theirs):
            return f"“{one.strip()[:80]}”: {why}"
    return ""


def _ungrounded_reason(one: str, here: str, plain: str, words: frozenset[str], theirs: frozenset[str]) -> str:
    units = grounding.tokenize(one) - _SPEAKERS
    if things := [each for each in grounding.distinctive_tokens(one) if not _is_named(plain, each)]:
        return f"no person said {', '.join(sorted(things))}"
    if orders := (units & ORDERS) - words:
        return f"no person said {', '.join(w for w in one.split() if grounding.tokenize(w) & orders)}"
    capitals = grounding.tokenize(" ".join(_CAPITAL.findall(one)))
    mine, strange = units & words, (units & theirs) - capitals
    if not units and not grounding.occurs_in(grounding.words_only(one), here):
        return "no person said it"
    if 2 * len(strange) > len(mine) or 2 * len(mine) < len(units):
        return "no person said so in such words"
    return ""


def _is_named(plain: str, thing: str) -> bool:
    """Whether a thing is named there: `fly.io` also by who says Fly."""
    short = _SHORT.fullmatch(thing)
    return grounding.has_token(plain, thing) or (short is not None and grounding.has_token(plain, short[1]))


# -- words of a tool ---------------------------------------------------------------------------------------
# Whether an agent's edit repeats what a tool printed in its session.
#
# A page that an agent reads may tell it what to write into core memory. What the person said as well is the
# person's. Words are compared, not meanings: what an agent puts in other words is the agent's.


def find_repeated(value: str, kept: str, said: Iterable[str], outputs: Iterable[str]) -> str:
    """What of `value` a tool printed and no person said: a sentence that shares a run of words with an
    output, or an address, path, file or flag; '' where there is nothing. `kept` is what the block had."""
    persons = "\n".join((kept, *said))
    flat, plain = grounding.words_only(persons), grounding.plain_text(persons)
    runs = [(one, run) for one in grounding.sentences(value) for run in grounding.word_runs(one)]
    runs = [(one, run) for one, run in runs if run not in flat]
    things = [each for each in sorted(grounding.distinctive_tokens(value)) if not _is_named(plain, each)]
    for output in outputs if runs or things else ():
        theirs = grounding.words_only(output)
        if found := next((one for one, run in runs if run in theirs), ""):
            return found.strip()
        seen = grounding.plain_text(output) if things else ""
        if found := next((each for each in things if grounding.has_token(seen, each)), ""):
            return found
    return ""
