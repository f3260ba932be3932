"""Core memory: the blocks of MEMORY.md, their token budgets, and checks of what a conversation may add."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ua_memory.discovery import CORE_NAMES
from ua_memory.errors import ChangedOnDisk, Malformed, NotFound, TooLarge, Usage, checked
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
from ua_memory.text.sentences import main_clauses
from ua_memory.text.wording import CORE_INTRO
from ua_memory.transcripts.turns import Turn

# -- blocks ------------------------------------------------------------------------------------------------
# The blocks of MEMORY.md, which are shown at the start of every session, and their budgets in tokens.


TITLE = b"# Memory\n"
LONGEST_NAME = 200
WARN_AT = 0.8
"""Share of a budget from which a warning is given."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens used by one block, or by all of MEMORY.md (`name` empty), and the limit."""

    name: str
    used: int
    limit: int

    @property
    def warning(self) -> str:
        """A warning from 80 % of the limit, else ''."""
        what = f"core block {self.name!r}" if self.name else "MEMORY.md"
        if self.used > self.limit:
            return f"{what} has {self.used} tokens, over its budget of {self.limit}"
        if self.used >= WARN_AT * self.limit:
            return f"{what} has {self.used} of {self.limit} tokens: room for {self.limit - self.used} more"
        return ""


@dataclass(frozen=True, slots=True)
class BlockChange:
    """The result of a replace: the block before (None if it is new) and after.

    `repeated`: the request id was used before and nothing was written; `after` is the block as it is now.
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
    """All blocks in file order; empty without a MEMORY.md."""
    path = core_path(store)
    return _parse_blocks(_read_core(store, path), path)


def put(store: Store, draft: Draft, name: str, value: str, *, expect: str | None = None) -> BlockChange:
    """Replace a block's value, or add the block, in an open revision. Raises what `CoreMemory.replace`
    raises, and leaves the draft unchanged then."""
    value = _check_value(value)
    new_block = _new_block(name)
    path = core_path(store)
    data, value = draft.read(path), strip_blank(draft.redact(value))
    before = find_block(_parse_blocks(data, path), new_block.name)
    now = before.value if before else ""
    if expect is not None and now != strip_blank(expect.replace("\r\n", "\n")):
        raise ChangedOnDisk("the block has changed", where=path, hint="ua-memory core get")
    if not draft.by_person and draft.op != "import":
        trust.require_trusted(store, value, now)
    new = _replace_value(data, path, before, replace(new_block, value=value))
    warnings = _check_block_budget(store, path, data, new, before, new_block.name)
    draft.write(path, new, removes=[before] if before else [])
    draft.subject = f"core: {'replace' if before else 'add'} {new_block.name}"
    after = find_block(_parse_blocks(draft.read(path), path), new_block.name) or new_block
    return BlockChange(before, after, draft.result, warnings)


def check_values(store: Store, values: Mapping[str, str]) -> None:
    """Check that values ({block name: value}) can be written together. Raises what `put` would
    raise."""
    path = core_path(store)
    data = _read_core(store, path)
    for name, value in values.items():
        block = replace(_new_block(name), value=strip_blank(_check_value(value)))
        before = find_block(_parse_blocks(data, path), block.name)
        trust.require_trusted(store, block.value, before.value if before else "")
        new = _replace_value(data, path, before, block)
        _check_block_budget(store, path, data, new, before, block.name)
        data = new


def check_budgets(store: Store, path: str, old: bytes, new: bytes) -> tuple[str, ...]:
    """Check the budgets of MEMORY.md after a change from `old` to `new`; returns warnings. TooLarge if a
    budget is exceeded, and by more than before."""
    warnings = dict[str, None]()
    for block in _parse_blocks(new, path):
        before = find_block(_parse_blocks(old, path), block.name)
        warnings.update(dict.fromkeys(_check_block_budget(store, path, old, new, before, block.name)))
    return tuple(warnings)


@checked
class CoreMemory:
    """Core memory of one bank; `door` names the caller."""

    def __init__(self, store: Store, door: str) -> None:
        self._store, self._door = store, door

    def list(self) -> Sequence[CoreBlock]:
        """The blocks of MEMORY.md, in file order."""
        return blocks(self._store)

    def get(self, name: str) -> CoreBlock:
        """One block by name, ignoring case and brackets. NotFound lists the names."""
        there, where = blocks(self._store), core_path(self._store)
        if (found := find_block(there, bare_name(name))) is None:
            known = ", ".join(b.name for b in there) or "none"
            what = f"no core block {name!r} (there are: {known})"
            raise NotFound(what, where=where, hint="ua-memory core list")
        return found

    def replace(
        self, name: str, value: str, *, expect: str | None = None, request: str | None = None,
        session: str | None = None, by_person: bool = False, trailers: Mapping[str, str] | None = None,
    ) -> BlockChange:  # fmt: skip
        """Replace one block's value, or add the block at the end of the file. The rest of the file is
        unchanged.

        Blank lines around the value are dropped. `[NAME]` makes a new block labelled. `trailers` are added to
        the commit. ChangedOnDisk if the value is not `expect`, the one that the caller read. TooLarge if a
        budget is exceeded, and by more than before. Usage for a value that would end the block or start
        another.
        """
        store = self._store
        with store.revision("core replace", door=self._door, request=request, session=session) as draft:
            if draft.already_done is None:
                draft.by_person = by_person
                draft.even_if_empty = request is not None
                done = put(store, draft, name, value, expect=expect)
                draft.trailers |= {key: [said] for key, said in (trailers or {}).items()}
        if draft.already_done is not None:
            return _repeated_replace(store, draft, _new_block(name))
        return replace(done, result=draft.result)

    def budgets(self) -> Sequence[Budget]:
        """Token counts and limits: MEMORY.md first, then its blocks."""
        path, config = core_path(self._store), self._store.config
        data, limit = _read_core(self._store, path), config.core_block_tokens
        each = [Budget(b.name, tokens.count(b.value), limit) for b in _parse_blocks(data, path)]
        return [Budget("", _count_tokens(data), config.core_tokens), *each]


def _repeated_replace(store: Store, draft: Draft, asked: CoreBlock) -> BlockChange:
    done = draft.already_done
    if done and done.trailer("Memory-Op") != "core replace":
        raise Usage("this request id was already used for something else", where=done.subject)
    there = find_block(blocks(store), asked.name)  # None: undone or deleted since
    return BlockChange(there, there or asked, draft.result, repeated=True)


def _read_core(store: Store, path: str) -> bytes:
    try:
        return store.accepted_bytes(path)
    except NotFound:
        return b""


def _parse_blocks(data: bytes, path: str) -> list[CoreBlock]:
    return list(document.parse(data, path).of(CoreBlock))


def bare_name(name: str) -> str:
    name = name.strip().removeprefix("##").strip()
    return name[1:-1].strip() if name.startswith("[") and name.endswith("]") else name


def _new_block(name: str) -> CoreBlock:
    """An empty block of this name. Usage if it cannot be written as a heading."""
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
    """Normalize a block's value. Usage if it would change how the rest of the file is parsed."""
    lines = strip_blank(readable(value.replace("\r\n", "\n"))).split("\n")
    for found in scan(lines):
        words = lines[found.start].strip()
        if found.shape is BlockShape.HEADING and heading_level(words) <= 2:
            raise Usage(f"the value has a heading ({words[:40]!r})", hint="use ### inside a block")
        if found.unclosed:
            raise Usage("the value has a code fence or comment that is not closed", hint="close it")
    return "\n".join(lines)


def find_block(there: Sequence[CoreBlock], name: str) -> CoreBlock | None:
    """The block of this name; an exact match is preferred to one in another letter case."""
    exact = [b for b in there if b.name == name]
    loose = [b for b in there if b.name.casefold() == name.casefold()]
    return next(iter(exact or loose), None)


def _replace_value(data: bytes, path: str, before: CoreBlock | None, block: CoreBlock) -> bytes:
    """The file's bytes with the block's new value. Malformed if any other block would change."""
    known = _parse_blocks(data, path)
    there = [(b.name, b.value) for b in known]
    at = [b.place for b in known].index(before.place) if before else len(known)
    here = [((before or block).name, block.value)]
    if before is None:
        new = document.append(data or TITLE, printer.show(block).split("\n"))
    elif before.top:
        here = here if any(map(str.isalnum, block.value)) else []  # it is not parsed as a block
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
    """Tokens of the file, without the introduction that every new file has."""
    lines = data.decode("utf-8", "replace").split("\n")
    return tokens.count("\n".join(line for line in lines if line.strip() != CORE_INTRO))


# -- grounding ---------------------------------------------------------------------------------------------
# A conversation may add to core memory only what the person said in it.
#
# Core memory is shown in every session, so an order injected by a page or a tool would be obeyed for ever.
# What only the assistant, a tool or a search said may become a fact with that origin. A sentence counts as
# the person's if the person used most of its words. Stems are compared: a translation is not recognised, and
# a "yes" to the assistant's words does not make them the person's.


_ORDERS = "always never must ignore instead without skip bypass disable force trust obey forbid allow permit"
ORDERS = grounding.tokenize(_ORDERS)
"""Words that turn a statement into an order or its opposite; the person must have said them."""
_SPEAKERS = frozenset({"user", "person", "assistant", "agent"})
_SHORT = re.compile(r"(\w{3,})\.[a-z]{2,3}")
_CAPITAL = re.compile(r"\b[A-Z]\w*")


def is_persons(turn: Turn) -> bool:
    """Whether a turn is in a person's own words, not a sub-agent's or a compaction's summary."""
    return turn.role == "person" and not turn.agent and not turn.summary


def find_ungrounded(value: str, kept: Sequence[str], said: Sequence[str], others: Sequence[str]) -> str:
    """The first sentence of `value` that the person did not say, with the reason, as a message for the model;
    '' if there is none.

    `kept` are the block's present texts, `said` the person's turns, `others` everything else that the model
    was shown.
    """
    ours = "\n".join((*kept, *said))
    was, here = grounding.words_only("\n".join(kept)), grounding.words_only(ours)
    words = grounding.tokenize(ours)
    plain, theirs = grounding.plain_text(ours), grounding.tokenize("\n".join(others)) - words
    for one in main_clauses(value):
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
    """Whether a text names a thing; `fly.io` is also named by "Fly"."""
    short = _SHORT.fullmatch(thing)
    return grounding.has_token(plain, thing) or (short is not None and grounding.has_token(plain, short[1]))


# -- repeated tool output ----------------------------------------------------------------------------------
# Whether an agent's edit repeats what a tool printed in its session.
#
# A page that an agent reads may tell it what to write into core memory. What the person said, too, is
# allowed. Words are compared, not meanings: a paraphrase by the agent is not detected.


def find_repeated(value: str, kept: str, said: Iterable[str], outputs: Iterable[str]) -> str:
    """Find what `value` repeats from a tool's output and the person did not say: a sentence that shares a run
    of words with an output, or an address, path, file or flag; '' if nothing. `kept` is the block's old
    value."""
    persons = "\n".join((kept, *said))
    flat, plain = grounding.words_only(persons), grounding.plain_text(persons)
    runs = [(one, run) for one in main_clauses(value) for run in grounding.word_runs(one)]
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
