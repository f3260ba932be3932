"""Records of a database into a bank's files: facts into the log of the day they were said, under block ids
that are made from their ids there; observations beside ours, with their proofs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from ua_memory import facts, markdown, redaction, tombstones
from ua_memory.adopting.copies import FOLDER, FROM, slug
from ua_memory.adopting.taken import Taken
from ua_memory.importers import Found, Item
from ua_memory.markdown.blocks import scan
from ua_memory.paths import LOGS
from ua_memory.records import Fact, Observation, Opinion, Proof
from ua_memory.statements import Statement, texts
from ua_memory.store import Draft, Store

_ID = re.compile(rb"\^([a-z2-7]{10})(?![A-Za-z0-9-])")
_NOBODY = re.compile(r"[^\w.:/@+-]+")


class Records:
    """The items of a source, put where they belong."""

    def __init__(self, store: Store, draft: Draft, found: Found) -> None:
        self.store, self.draft, self.found = store, draft, found
        self.known: dict[str, Statement] = {}
        self.stones = tombstones.read(store)
        self.files: dict[str, str] = {}
        self.logs: dict[str, str] = {}

    def take(self) -> Iterator[Taken]:
        """Write what is new, and tell of every item what became of it."""
        if not self.found.items:
            return
        self._look()
        fresh: dict[str, list[Item]] = defaultdict(list)
        told: dict[str, Taken] = {}
        for item in self.found.items:
            if there := self._there(item):
                told[item.id] = there
                continue
            path = self.files[item.id] = self._path(item)
            told[item.id] = Taken("item", f"^{item.id}", path, "new", day=item.day)
            fresh[path].append(item)
        for path in sorted(fresh):
            self._write(path, fresh[path])
        for item in self.found.items:
            one = told[item.id]
            fact = isinstance(item.record, Fact)
            yield replace(one, facts=1) if fact and one.state == "new" else one

    # -- what is there -----------------------------------------------------------------------------------

    def _look(self) -> None:
        """Which of the items the bank has, by their ids."""
        wanted = {item.id for item in self.found.items}
        for path, data in texts(self.store):
            if wanted.isdisjoint(found.decode() for found in _ID.findall(data)):
                continue
            for record in markdown.parse(data, path).records:
                if isinstance(record, Statement) and record.id in wanted:
                    self.known[record.id] = record
                    self.files[record.id] = path

    def _there(self, item: Item) -> Taken | None:
        """What is to be told of an item that is not written."""
        if item.id in self.stones or (item.id not in self.known and self.stones.forbid(item.record)):
            return Taken("item", f"^{item.id}", "", "left", "it was forgotten here", item.day)
        ours = self.known.get(item.id)
        if ours is None:
            return None
        told = Taken("item", f"^{item.id}", ours.place.path, "same", day=item.day)
        said = item.record.text
        if ours.text == said or ours.text == redaction.redact(said, self.draft.patterns).text:
            return told
        return replace(told, state="left", why="it reads otherwise here; what is here stays")

    # -- where it goes -----------------------------------------------------------------------------------

    def _path(self, item: Item) -> str:
        if isinstance(item.record, Observation):
            return f"{LOGS}/observations/{slug(self.found.name)}.md"
        if isinstance(item.record, Opinion):
            return f"{LOGS}/opinions.md"
        day, _ = self._moment(item)
        if not day:
            return f"{FOLDER}/{slug(self.found.name)}/undated.md"
        if day not in self.logs:
            self.logs[day] = self._log(day)
        return self.logs[day]

    def _log(self, day: str) -> str:
        """The log of a day, or another of it while somebody is writing there (a code fence is still open)."""
        path = facts.log_path(day)
        document = markdown.parse(self.draft.read(path), path)
        is_open = any(block.unclosed for block in scan(document.lines, document.front_end))
        return facts.log_path(f"{day}-import") if is_open else path

    def _moment(self, item: Item) -> tuple[str | None, str]:
        """Day and time at which an item was said, by the bank's clock."""
        if not item.said:
            return None, ""
        try:
            at = datetime.fromisoformat(item.said)
        except ValueError:
            return item.day, "00:00"
        if at.tzinfo and len(item.said) > len("2026-02-03"):
            at = at.astimezone(self.store.now().tzinfo)
        return at.date().isoformat(), f"{at:%H:%M}"

    def _write(self, path: str, items: list[Item]) -> None:
        data = self.draft.read(path)
        if path.startswith(FOLDER) and not data:
            data = markdown.set_front(b"", {FROM: f"{self.found.source}:{self.found.name}"})
        lines: list[str] = []
        if isinstance(items[0].record, Fact):
            for heading, under in self._headed(path, items).items():
                lines += [*([heading, ""] if heading else []), *self._facts(path, under), ""]
        else:
            for item in items:
                lines += markdown.show(self._belief(item)).split("\n")
        while lines and not lines[-1]:
            lines.pop()
        if data and lines[0].startswith("- ") and data.rstrip(b"\n").split(b"\n")[-1][:1] not in b"- ":
            lines.insert(0, "")
        if not data and path == facts.log_path(markdown.day_of(path) or ""):
            lines = [f"# {markdown.day_of(path)}", "", *lines]
        self.draft.write(path, markdown.append(data, lines))

    def _headed(self, path: str, items: list[Item]) -> dict[str, list[Item]]:
        """The items under the headings of ours that say when and from where each came; none in a file that
        says it for all."""
        headed: dict[str, list[Item]] = defaultdict(list)
        for item in sorted(items, key=lambda each: self._moment(each)[1]):
            session = _NOBODY.sub("-", item.session or "")[:80].strip("-") or None
            line = markdown.heading_line(self._moment(item)[1], self.found.source, session, "import")
            headed["" if path.startswith(FOLDER) else line].append(item)
        return headed

    def _facts(self, path: str, items: list[Item]) -> Iterator[str]:
        day = markdown.day_of(path)
        for item in items:
            fact = item.record
            assert isinstance(fact, Fact)
            yield from facts.lines_of(replace(fact, when=None if fact.when == day else fact.when), self.draft)

    def _belief(self, item: Item) -> Observation | Opinion:
        record = item.record
        stems = {id: self.draft.link_name(path) for id, path in self.files.items()}
        if isinstance(record, Observation):
            return replace(record, proofs=_placed(record.proofs, stems))
        assert isinstance(record, Opinion)
        return replace(record, because=_placed(record.because, stems))


def _placed(proofs: Sequence[Proof], stems: Mapping[str, str]) -> tuple[Proof, ...]:
    """The proofs with the files that their facts stand in; without those of facts that were not taken."""
    return tuple(replace(proof, file=stems[proof.id]) for proof in proofs if proof.id in stems)
