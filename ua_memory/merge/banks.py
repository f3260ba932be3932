"""Two machines' files made one: three-way by id, whatever file a thing stands in, and by parts between.

Pure: bytes in, bytes out. No conflict marks are ever written: where both sides say something else, both
stand side by side. What comes out is read again, and must say what was decided, nothing more or less.
"""

from __future__ import annotations

import contextlib
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ua_memory import markdown
from ua_memory.errors import Conflict
from ua_memory.merge.burying import Dropped
from ua_memory.merge.renamed import aligned
from ua_memory.merge.settling import Settled, merged_lines, parts, settle, with_origin
from ua_memory.merge.units import MARK, Key, Unit, joined, key_in, key_of, read, token
from ua_memory.paths import CORE_NAMES, SETTINGS
from ua_memory.records import CoreBlock, Fact, Record

Files = Mapping[str, bytes]
NAMED = {"id": "^{}", "CoreBlock": "## {}", "Entity": "[[{}]]", "Tombstone": "^{}"}
KEPT = "## Kept from another machine"


@dataclass(frozen=True, slots=True)
class Told:
    """Something that both machines changed. `why` is `kept` (one deleted it, the other changed it, and it
    stays), `both` (each changed it, and both readings stand) or `theirs` (of settings and of the header of a
    file one reading can hold); the texts are what each side has."""

    what: str
    path: str
    why: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Merge:
    """What all files become (None: goes), what there is to tell, and the ids that stay forgotten."""

    files: Mapping[str, bytes | None]
    told: tuple[Told, ...] = ()
    forgotten: tuple[str, ...] = ()
    came: int = 0
    changed: int = 0
    went: int = 0
    """Statements that this machine had not, had otherwise, and has no more."""
    dropped: tuple[Dropped, ...] = ()
    """What was written or changed on one machine and forgotten on the other."""


def merge(base: Files, ours: Files, theirs: Files, other: str = "") -> Merge:
    """Three sides of the same paths; `other` is the revision of the third. Conflict where a file cannot be
    merged without harm to what it says."""
    sides = aligned(base, ours, theirs)
    done = _Merging(sides.base, sides.ours, sides.theirs, other, sides.there).merged()
    named = tuple(Told("file name", there, "theirs", here, there) for here, there in sides.twice)
    files = {**dict.fromkeys(ours.keys() - sides.ours.keys()), **done.files}
    return replace(done, files=files, told=(*named, *done.told))


@dataclass
class _Merging:
    base: Files
    ours: Files
    theirs: Files
    revision: str = ""
    there: Mapping[str, str] = field(default_factory=dict)
    """What the other side calls a file that this one has renamed."""
    told: list[Told] = field(default_factory=list)
    settled: dict[Key, Settled] = field(default_factory=dict)
    units: dict[Key, Unit] = field(default_factory=dict)

    def merged(self) -> Merge:
        self.paths = sorted({*self.base, *self.ours, *self.theirs})
        sides = [read(files) for files in (self.base, self.ours, self.theirs)]
        if twice := frozenset[Key]().union(*(side.twice for side in sides)):
            # What stands twice has no identity, on no side.
            sides = [read(files, twice) for files in (self.base, self.ours, self.theirs)]
        self.old, self.mine, self.other = sides
        self._settle()
        dead = self._bury()
        files = {path: self._file(path, rows) for path, rows in self._placed().items()}
        mine = {key: unit for key, unit in self.mine.units.items() if key[0] == "id"}
        new = {key: unit for key, unit in self.units.items() if key[0] == "id"}
        changed = sum(key in mine and mine[key].lines != unit.lines for key, unit in new.items())
        figures = len(new.keys() - mine.keys()), changed, len(mine.keys() - new.keys())
        return Merge(files, tuple(self.told), tuple(dead), *figures)

    # -- units -------------------------------------------------------------------------------------

    def _settle(self) -> None:
        for key in dict.fromkeys((*self.other.units, *self.mine.units)):
            b, o, t = (side.units.get(key) for side in (self.old, self.mine, self.other))
            done = self.settled[key] = settle(b, o, t)
            if done.unit:
                self.units[key] = done.unit
            if done.beside and done.beside.key not in {**self.mine.units, **self.other.units}:
                self.units[done.beside.key] = done.beside
            if done.why:
                said = [_text(side) for side in (o, t)]
                what = NAMED.get(key[0], "{}'s " + key[0]).format(key[1])
                what = what.removeprefix("^") if "#^" in what else what
                self.told.append(Told(what, (done.unit or o or t).path, done.why, *said))  # type: ignore[union-attr]

    def _bury(self) -> list[str]:
        """Take out what has a tombstone; the ids that one of the machines still had."""
        stones = {name: None for kind, name in self.units if kind == "Tombstone"}
        for name in stones:
            self.units.pop(("id", name), None)
        self.told = [told for told in self.told if told.what.removeprefix("^") not in stones]
        for done in self.settled.values():
            if done.beside and done.unit and done.unit.key[1] in stones:
                self.units.pop(done.beside.key, None)
        return [
            name for name in stones if any(("id", name) in side.units for side in (self.mine, self.other))
        ]

    # -- places ------------------------------------------------------------------------------------

    def _placed(self) -> dict[str, list[bytes] | None]:
        """The parts of each file, where every unit that stays has one place."""
        rows = {path: self._rows(path) for path in self.paths}
        seen: set[Key] = set()
        for path, there in rows.items():
            kept = []
            for part in there or ():
                key = key_in(part)
                if key and (key not in self.units or self.units[key].path != path or key in seen):
                    continue
                seen |= {key} if key else set()
                kept.append(part)
            if there is not None:
                rows[path] = kept
        for key, unit in self.units.items():
            if key not in seen:
                rows[unit.path] = self._put(rows[unit.path] or [], key, unit)
        return rows

    def _rows(self, path: str) -> list[bytes] | None:
        old, mine, other = (side.parts.get(path) for side in (self.old, self.mine, self.other))
        if mine in (old, other) or other == old:
            return other if mine == old else mine
        both = parts(old, mine or [], other or [], lambda *sides: self._clash(path, *sides))
        if mine is not None and other is not None:
            return both
        return both if any(part.strip() for part in both) else None  # gone on one side, and nothing is new

    def _clash(self, path: str, old: list[bytes], mine: list[bytes], other: list[bytes]) -> None:
        """Tell of prose that both changed, each otherwise: both readings stand."""
        new = ([p for p in s if p.strip() and p not in (*old, *t)] for s, t in ((mine, other), (other, mine)))
        said = [
            b"".join(p for p in side if not p.startswith(MARK)).decode("utf-8", "replace") for side in new
        ]
        changed = any(p.strip() and p not in (*mine, *other) and not p.startswith(MARK) for p in old)
        if changed and path != SETTINGS and all(text.strip() for text in said):
            self.told.append(Told("text", path, "both", *(text.strip() for text in said)))

    def _put(self, rows: list[bytes], key: Key, unit: Unit) -> list[bytes]:
        """Give a unit a place: behind what stands before it on the side that has it, else at the end."""
        aside = next((k for k, s in self.settled.items() if s.beside and s.beside.key == key), key)
        if aside != key and token(aside) in rows:
            at = rows.index(token(aside)) + 1
            return [*rows[:at], token(key), *rows[at:]]
        for side in (self.other, self.mine):
            there = side.parts.get(unit.path) or []
            if token(key) in there:
                before = there[: there.index(token(key))]
                near = (rows.index(part) for part in reversed(before) if part.strip() and part in rows)
                at = next(near, len(rows) - 1) + 1
                return [*rows[:at], token(key), *rows[at:]]
        return [*rows, token(key)]

    # -- files -------------------------------------------------------------------------------------

    def _file(self, path: str, rows: list[bytes] | None) -> bytes | None:
        if rows is None:
            return None
        for side, files in ((self.other, self.theirs), (self.mine, self.ours)):
            if rows == side.parts.get(path) and all(
                self.units[key].lines == side.units[key].lines for part in rows if (key := key_in(part))
            ):
                return files[path]  # as it stands there, to the byte
        if not any(part.strip() for part in rows) and (path not in self.ours or path not in self.theirs):
            return None
        data = self._joined(rows)
        if path == SETTINGS:
            return self._settings()
        if self._restamp(path, data):
            data = self._joined(rows)
        if self._says(path, data):
            return data
        return self._apart(path)

    def _settings(self) -> bytes:
        """The settings by lines; where both changed the same, or nobody could read the outcome, theirs."""
        texts = [files.get(SETTINGS) for files in (self.base, self.ours, self.theirs)]
        data = merged_lines(texts[0], texts[1] or b"", texts[2] or b"")
        with contextlib.suppress(tomllib.TOMLDecodeError, UnicodeDecodeError):
            if data is not None and tomllib.loads(data.decode("utf-8-sig")) is not None:
                return data
        said = [(text or b"").decode("utf-8", "replace").strip() for text in texts[1:]]
        self.told.append(Told(SETTINGS, SETTINGS, "theirs", *said))
        return texts[2] or b""

    def _joined(self, rows: list[bytes]) -> bytes:
        return joined(rows, lambda key: self.units[key].lines)

    def _restamp(self, path: str, data: bytes) -> bool:
        """Say in a fact's own lines who said it, where the heading above it does not any more."""
        done = False
        for record in markdown.parse(data, path).of(Fact):
            key = key_of(record)
            unit = self.units.get(key) if key else None
            if key and unit and unit.path == path and (said := self._said(key)) and said != record.said_by:
                self.units[key] = with_origin(unit, said)
                done = True
        return done

    def _said(self, key: Key) -> str:
        sides = (side.units.get(key) for side in (self.other, self.mine))
        return next((unit.said for unit in sides if unit), self.units[key].said)

    def _says(self, path: str, data: bytes) -> bool:
        """Whether a file, read again, has the units it should and no words that neither side has."""
        wanted = {key: unit.record for key, unit in self.units.items() if unit.path == path and unit.record}
        rest: list[Record] = []
        found: dict[Key, Record] = {}
        for record in markdown.parse(data, path).records:
            key = key_of(record)
            if key in wanted:
                found[key] = record
            elif isinstance(record, Fact | CoreBlock):
                rest.append(record)
        known: Counter[Record] = Counter()
        for files in (self.ours, self.theirs):
            known |= Counter(markdown.parse(files.get(path, b""), path).records)
        return found == wanted and all(record in known for record in rest)

    def _apart(self, path: str) -> bytes:
        """The other machine's file as it stands but for what is settled, and below it what is only ours."""
        theirs = self.other.parts.get(path) or []
        rows = [part for part in theirs if not (key := key_in(part)) or self._is_here(key, path)]
        data = self._joined(rows)
        core = path in CORE_NAMES
        mine = list(self._only_ours(path, {*theirs}))
        for n, text in enumerate(mine):
            lines = text.decode("utf-8", "surrogateescape").rstrip("\n").split("\n")
            data = markdown.append(data, lines if core or n else [KEPT, "", *lines])
        if self._restamp(path, data):
            return self._apart(path)
        if not self._says(path, data):
            raise Conflict(
                "the two machines' versions do not go together", where=path,
                mend="change it by hand here until both say the same there, then sync; the other machine's is"
                f" shown by: ua-memory git show {self.revision[:10]}:{self.there.get(path, path)}",
            )  # fmt: skip
        return data

    def _is_here(self, key: Key, path: str) -> bool:
        return key in self.units and self.units[key].path == path

    def _only_ours(self, path: str, theirs: set[bytes]) -> Iterator[bytes]:
        old = set(self.old.parts.get(path) or ())
        for part in self.mine.parts.get(path) or ():
            key = key_in(part)
            if part in theirs or not part.strip():
                continue
            if key and self._is_here(key, path):
                yield self.units[key].lines
            elif not key and part not in old and not part.startswith(b"#"):
                yield part
        for key, unit in self.units.items():
            if unit.path == path and key not in self.mine.units and token(key) not in theirs:
                yield unit.lines


def _text(unit: Unit | None) -> str:
    return "" if unit is None else unit.lines.decode("utf-8", "replace").strip()
