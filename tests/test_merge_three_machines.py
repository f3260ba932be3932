"""Three machines and what stands between them, each at work for weeks without the others: random work of
people and machines on all kinds of memory, then synced in any order. Bytes in, bytes out, no git.

What everybody must find in the end, whatever was done where: the same to the byte; each word that nobody took
out; nothing that was taken out or forgotten; no belief on what is gone; and no mark of a conflict.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ua_memory.knowledge.tombstones import PATH, Tombstones, normalize, parse, salted_hash
from ua_memory.markdown import document as markdown
from ua_memory.markdown import lines as markdown_lines
from ua_memory.records import CoreBlock, Entity, Fact, Observation, Opinion, Record, Tombstone
from ua_memory.upkeep.merge import ForgottenPlans, merge_sides, plan_by_tombstones

TODAY, SALT = date(2026, 11, 22), "0" * 8
DAYS = ("memory/2026-11-21.md", "memory/2026-11-22.md")
MOVED = ("memory/2026-11-21-trip.md", "memory/2026-11-22-trip.md")
CORE, NOTES, NAMES = "MEMORY.md", "memory/notes.md", "memory/entities.md"
BELIEFS, OPINIONS = "memory/observations/Alice.md", "memory/opinions.md"
Files = dict[str, bytes]
START: Files = {
    CORE: b"# Memory\n\nKept short.\n\n## Who\n\n- Alice\n- Bob\n\n## Where\n\nLisbon\n",
    DAYS[0]: b"# 2026-11-21\n\n## 09:00 \xc2\xb7 codex\n\n- said 1 here ^aaaaaaaaa1\n"
    b"- said 2 here ^aaaaaaaaa2\n\n"
    b"## 10:00 \xc2\xb7 cli \xc2\xb7 person\n\n- said 3 here ^aaaaaaaaa3\n\nProse of Ann.\n",
    DAYS[1]: b"# 2026-11-22\n\n## 09:00 \xc2\xb7 codex\n\n- said 4 here ^aaaaaaaaa4\n",
    NOTES: b"# Notes\n\nA first thought.\n\n## Later\n\nA second one,\non two lines.\n",
    NAMES: b"- [[Alice]]\n  - alias: Ali\n- [[Bob]]\n",
    BELIEFS: b"# Alice\n\n- believes 1 ^bbbbbbbbb1\n  - proofs: 2\n  - proof: [[2026-11-21#^aaaaaaaaa1]]\n"
    b"  - proof: [[2026-11-21#^aaaaaaaaa2]]\n  - since: 2026-11-21\n  - last: 2026-11-21\n"
    b"  - trend: stable\n",
}  # fmt: skip


@dataclass
class World:
    """What all machines did, as far as it can be said what must come of it. Each thing that somebody writes
    has a word of its own."""

    number: int = 0
    there: dict[str, str] = field(default_factory=dict)
    """{word: the id it stands under, '' for none} of what nobody has taken out."""
    gone: set[str] = field(default_factory=set)
    stones: set[str] = field(default_factory=set)

    def word(self, block: str = "") -> str:
        self.number += 1
        word = f"w{self.number}w"
        self.there[word] = block
        return word

    def took(self, text: str, *, out: bool = False) -> None:
        """Somebody changed or took out a text that they saw."""
        for word in [word for word in self.there if word in text]:
            del self.there[word]
            if out:
                self.gone.add(word)


@dataclass
class Machine:
    """One copy of the bank, and what stood between the machines when it last synced."""

    world: World
    files: Files = field(default_factory=lambda: dict(START))
    met: Files = field(default_factory=lambda: dict(START))

    def sync(self, hub: Files) -> Files:
        """What `sync` does, but for git: who has nothing of their own goes on to what is there."""
        base, mine = self.met, self.files
        known, here, there = (parse(side.get(PATH)) for side in (base, mine, hub))
        sides = {}
        for name, side, own, others in (("ours", mine, here, there), ("theirs", hub, there, here)):
            new = {block: s for block, s in others.items() if block not in own and block not in known}
            fresh = {path for path, data in side.items() if base.get(path) != data}
            if new and fresh:
                texts = {path: data for path, data in side.items() if path.endswith(".md")}
                sides[name] = plan_by_tombstones(texts, Tombstones(new), fresh, lambda *_: True, TODAY)
        went = ForgottenPlans(**sides)
        done = merge_sides(base, mine, hub, went)
        self.files = {path: data for path, data in done.files.items() if data is not None}
        for plan in sides.values():
            self.bury([(one.id, one.text) for one in plan.removals if one.id in went.ids(self.files)])
        self.met = dict(self.files)
        return dict(self.files)

    def bury(self, gone: list[tuple[str, str]]) -> None:
        known = parse(self.files.get(PATH))
        for block, text in dict(gone).items():
            self.world.stones.add(block)
            if block not in known:
                row = (
                    f"- ^{block}\n  - hash: {SALT}:{salted_hash(SALT, normalize(text))}\n  - on: 2026-11-22\n"
                )
                self.files[PATH] = self.files.get(PATH, b"# Forgotten\n\n") + row.encode()

    # -- what people and machines do -----------------------------------------------------------------------

    def of(self, *kinds: type[Record]) -> list[Record]:
        found = (markdown.parse(data, path).records for path, data in sorted(self.files.items()))
        return [record for records in found for record in records if isinstance(record, kinds)]

    def lines(self, record: Record) -> str:
        rows = self.files[record.place.path].decode().split("\n")
        return "\n".join(rows[record.place.line - 1 : record.place.end])

    def put(self, record: Record, text: str | None) -> None:
        """Other lines for a record's."""
        rows = [] if text is None else text.split("\n")
        self.files[record.place.path] = markdown_lines.replace_lines(
            self.files[record.place.path], record.place, rows
        )

    def add(self, path: str, text: str) -> None:
        data = self.files.get(path) or f"# {path[7:-3]}\n\n".encode()
        self.files[path] = data + text.encode()

    def do(self, what: str, at: int) -> None:
        getattr(self, what)(at)

    def insert(self, at: int) -> None:
        block = self.block()
        text = f"- said {self.world.word(block)} ^{block}\n"
        self.add(DAYS[at % 2], f"\n## 1{at}:00 · cli\n\n{text}" if at % 3 else text)

    def block(self) -> str:
        self.world.number += 1
        digits = "234567abcd"
        return "".join(digits[int(d)] for d in f"{self.world.number:010d}")

    def change(self, at: int) -> None:
        if facts := self.of(Fact):
            fact = facts[at % len(facts)]
            old = self.lines(fact)
            self.world.took(old)
            _, _, tail = old.partition(" ^")
            self.put(fact, f"- said {self.world.word(fact.id or '')}" + (f" ^{tail}" if tail else ""))

    def drop(self, at: int) -> None:
        if facts := self.of(Fact):
            fact = facts[at % len(facts)]
            self.world.took(self.lines(fact), out=True)
            self.put(fact, None)

    def move(self, at: int) -> None:
        if facts := [fact for fact in self.of(Fact) if fact.id]:
            fact = facts[at % len(facts)]
            text = self.lines(fact)
            self.put(fact, None)
            self.add(DAYS[at % 2], f"{text}\n")

    def rename(self, at: int) -> None:
        if (path := DAYS[at % 2]) in self.files and MOVED[at % 2] not in self.files:
            self.files[MOVED[at % 2]] = self.files.pop(path)

    def see(self, at: int) -> None:
        if facts := [fact for fact in self.of(Fact) if fact.id and not fact.seen]:
            fact = facts[at % len(facts)]
            self.put(fact, f"{self.lines(fact)}\n  - seen: 2026-11-2{at}")

    def forget(self, at: int) -> None:
        if facts := [fact for fact in self.of(Fact, Observation) if fact.id]:
            fact = facts[at % len(facts)]
            stone = {str(fact.id): Tombstone(str(fact.id), "", "2026-11-22")}
            plan = plan_by_tombstones(self.files, Tombstones(stone), (), lambda *_: True, TODAY)
            self.files = plan.apply(self.files)
            self.bury([(str(fact.id), fact.text), *((b.id, b.text) for b in plan.removals if b.id)])

    def write(self, at: int) -> None:
        self.add((NOTES, DAYS[0])[at % 2], f"\nThought {self.world.word()}.\n")

    def rewrite(self, at: int) -> None:
        self._prose(at, f"Thought again {self.world.word()}.")

    def strike(self, at: int) -> None:
        self._prose(at, None)

    def erase(self, at: int) -> None:
        """Delete a file that has prose."""
        path = (NOTES, DAYS[0], CORE)[at % 3]
        self.world.took(self.files.pop(path, b"").decode())

    def _prose(self, at: int, new: str | None) -> None:
        parts = self.files.get(NOTES, b"").decode().split("\n\n")
        there = [n for n, part in enumerate(parts) if part.strip() and not part.startswith("#")]
        if not there:
            return self.add(NOTES, f"\n{new}\n") if new else None
        n = there[at % len(there)]
        self.world.took(parts[n], out=new is None)
        parts[n] = new if new is not None else ""
        text = "\n\n".join(part for part in parts if part.strip()).strip("\n")
        self.files[NOTES] = f"{text}\n".encode()

    def core_line(self, at: int) -> None:
        if blocks := self.of(CoreBlock):
            block = blocks[at % len(blocks)]
            self.put(block, f"{self.lines(block).rstrip()}\n- {self.world.word()}\n")

    def core_replace(self, at: int) -> None:
        if blocks := self.of(CoreBlock):
            block = blocks[at % len(blocks)]
            self.world.took(self.lines(block))
            self.put(block, f"## {block.name}\n\n{self.world.word()}\n")

    def core_new(self, at: int) -> None:
        self.add(CORE, f"\n## {self.world.word()}\n\nNew.\n")

    def core_drop(self, at: int) -> None:
        if blocks := self.of(CoreBlock):
            block = blocks[at % len(blocks)]
            self.world.took(self.lines(block), out=True)
            self.put(block, None)

    def alias(self, at: int) -> None:
        if names := self.of(Entity):
            name = names[at % len(names)]
            self.put(name, f"{self.lines(name)}\n  - alias: {self.world.word()}")

    def name(self, at: int) -> None:
        self.add(NAMES, f"- [[Name {self.world.word()}]]\n")

    def believe(self, at: int) -> None:
        if facts := [fact for fact in self.of(Fact) if fact.id]:
            block, fact = self.block(), facts[at % len(facts)]
            rows = [f"- believes {self.world.number}n ^{block}", "  - proofs: 1"]
            rows += [f"  - proof: [[{fact.place.path[7:-3]}#^{fact.id}]]", "  - since: 2026-11-21"]
            self.add(BELIEFS, "\n".join([*rows, "  - last: 2026-11-21", "  - trend: new", ""]))

    def strengthen(self, at: int) -> None:
        facts, beliefs = [f for f in self.of(Fact) if f.id], self.of(Observation)
        if facts and beliefs:
            belief, fact = beliefs[at % len(beliefs)], facts[(at * 3) % len(facts)]
            if fact.id not in [proof.id for proof in belief.proofs]:
                number = len(belief.proofs)
                rows = self.lines(belief).split("\n")
                link = f"  - proof: [[{fact.place.path[7:-3]}#^{fact.id}]]"
                rows = [f"  - proofs: {number + 1}" if row.startswith("  - proofs:") else row for row in rows]
                last = max(n for n, row in enumerate(rows) if "- proof:" in row)
                self.put(belief, "\n".join([*rows[: last + 1], link, *rows[last + 1 :]]))

    def opine(self, at: int) -> None:
        if there := [each for each in self.of(Fact, Observation) if each.id]:
            ground, block = there[at % len(there)], self.block()
            link = f"[[{ground.place.path[7:-3]}#^{ground.id}]]"
            rows = [f"- thinks {self.world.number}n ^{block}", "  - confidence: 0.5", f"  - because: {link}"]
            self.add(OPINIONS, "\n".join([*rows, "  - when: 2026-11-22", ""]))

    def page(self, at: int) -> None:
        if facts := [fact for fact in self.of(Fact) if fact.id]:
            link = f"[[{facts[at % len(facts)].place.path[7:-3]}#^{facts[at % len(facts)].id}]]"
            self.add("memory/pages/a.md", f"\nA sentence. {link}\n")


WORK = [
    "insert", "change", "drop", "move", "rename", "see", "forget", "write", "rewrite", "strike", "core_line",
    "core_replace", "core_new", "core_drop", "alias", "name", "believe", "strengthen", "opine", "page",
    "erase",
]  # fmt: skip
STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([*WORK, "sync", "sync"]), st.integers(0, 6)), max_size=24
)


@pytest.mark.hypothesis
@given(STEPS)
def test_three_machines_end_alike_with_all_that_nobody_took_out(steps: list[tuple[int, str, int]]) -> None:
    world = World()
    machines, hub = [Machine(world) for _ in range(3)], dict(START)
    for who, what, at in steps:
        if what == "sync":
            hub = machines[who].sync(hub)
        else:
            machines[who].do(what, at)
    for who in (0, 1, 2, 0, 1, 2):
        hub = machines[who].sync(hub)
    for machine in machines[:2]:
        assert machine.files == machines[2].files
    one = machines[0]
    whole = b"\n".join(data for path, data in one.files.items() if path != PATH).decode()
    assert not any(line[:4] in ("<<<<", "====", ">>>>") for line in whole.split("\n"))
    assert {stone.id for stone in one.of(Tombstone)} == world.stones
    statements = [each for each in one.of(Fact, Observation, Opinion) if each.id]
    ids = [each.id for each in statements]
    assert len(ids) == len({*ids}) and not world.stones & {*ids}
    for word, block in world.there.items():
        assert word in whole or block in world.stones, f"{word} is lost"
    assert not [word for word in world.gone if word in whole], "it was taken out"
    for each in statements:
        rests = each.proofs if isinstance(each, Observation) else getattr(each, "because", None)
        assert rests is None or (rests and not world.stones & {proof.id for proof in rests}), each
    assert not any(f"^{block}" in whole for block in world.stones), "cited by a machine's page"
