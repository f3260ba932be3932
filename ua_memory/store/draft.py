"""A revision while it is being written: what it read, what it wants, what it says about itself.

Everything a door adds passes through `Draft.write`, which takes out secrets and refuses text without
an origin or a change that would lose a record. No door can forget these, since no other way leads to a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import unified_diff

from ua_memory import markdown, redaction
from ua_memory.errors import Malformed
from ua_memory.history import Revision
from ua_memory.records import Fact, Passage, Record
from ua_memory.store.saves import Line
from ua_memory.store.threeway import changes


@dataclass(frozen=True, slots=True)
class Touched:
    """A file a revision looked at: bytes on disk, in the trail, and where the revision starts from.

    `start` differs from `disk` only where a stale buffer was merged. A `held` file's trail is not what
    is on disk, and stays so.
    """

    path: str
    disk: bytes | None
    trail: bytes | None
    start: bytes | None
    held: bool = False
    back: tuple[Line, ...] = ()
    theirs: bytes | None = None
    """Where something was put back: the save with the person's own lines among it."""
    left: tuple[str, ...] = ()
    """The ids of what was forgotten that a save has again: it is left out of the file, and of the trail."""
    hand: bytes | None = None
    """The save without it."""
    branch: str = ""
    """Another branch, of which the file is at the moment: nobody has edited it; it starts from the trail."""

    @property
    def put_back(self) -> bool:
        """Whether an old buffer lacked something that is put back: `back` tells what."""
        return self.start != self.saved

    @property
    def saved(self) -> bytes | None:
        """What the trail gets of the person's save."""
        return self.trail if self.branch else self.hand if self.left else self.disk


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a revision: its commit (None while that is owed), what to tell, what was redacted."""

    revision: str | None
    paths: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Draft:
    """The open revision that `Store.revision` yields. Paths are bank-relative; bytes are whole files."""

    op: str
    door: str
    touch: Callable[[str], Touched]
    patterns: Mapping[str, str]
    typed: Callable[[str, bytes, int], bool] = lambda path, data, line: False
    """Whether a person typed this line of a file as the trail has it, whatever it was given since."""
    link_name: Callable[[str], str] = lambda path: path.rpartition("/")[2].removesuffix(".md")
    """What a file is called in a link; see `paths.LinkNames`."""
    subject: str = ""
    body: str = ""
    facts: list[str] = field(default_factory=list)
    trailers: dict[str, list[str]] = field(default_factory=dict)
    trial: bool = False
    """Nothing of it is to be written: it only shows what would change."""
    even_if_empty: bool = False
    """Commit also when no file changes: a run that found nothing must not be repeated."""
    by_person: bool = False
    """A person gave these words through a door: the commit has their name."""
    joins: str = ""
    """The history of another machine that the commit brings in."""
    carried: dict[str, bytes | None] = field(default_factory=dict)
    """Files of that history that are no memory: they go into the commit, and no file here is touched."""
    answered: Revision | None = None
    """The revision that carried out this request id already: leave the block, nothing will be written."""
    files: dict[str, bytes | None] = field(default_factory=dict)
    touched: dict[str, Touched] = field(default_factory=dict)
    redacted: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    result: Result = Result(None)

    def read(self, path: str) -> bytes:
        """A file as this revision would leave it; empty where there is none."""
        if path not in self.files:
            if path not in self.touched:
                self.touched[path] = self.touch(path)
            return self.touched[path].start or b""
        return self.files[path] or b""

    def exists(self, path: str) -> bool:
        self.read(path)
        return (self.files[path] if path in self.files else self.touched[path].start) is not None

    def redact(self, text: str) -> str:
        """The text without its secrets; what was taken is counted in the result."""
        clean = redaction.redact(text, self.patterns)
        self.redacted.update(clean.taken)
        return clean.text

    def write(
        self, path: str, data: bytes, *, removes: Iterable[Record] = (), restored: bool = False
    ) -> None:
        """Set a file's new bytes.

        `removes` names the records that are meant to go. `restored` marks bytes that the bank had before
        (undo, merge): nobody's old words are redacted or stamped anew. Malformed stops a change that would
        lose any other record, the file untouched.
        """
        before = self.read(path)
        if not restored:
            data = self._cleansed(before, data)
            self._refuse_loss(path, before, data, removes)
        self.files[path] = data

    def delete(self, path: str) -> None:
        """Let a file go."""
        self.read(path)
        self.files[path] = None

    def changed(self) -> dict[str, bytes | None]:
        """The files whose bytes this revision really changes."""
        return {path: data for path, data in self.files.items() if data != self.touched[path].start}

    def diff(self, first: str = "", context: int = 3) -> str:
        """What this revision changes, in all files, as a unified diff; the file `first` comes first."""
        return "".join(
            difference(path, self.touched[path].start or b"", data or b"", context)
            for path, data in sorted(self.changed().items(), key=lambda file: (file[0] != first, file[0]))
        )

    def _cleansed(self, before: bytes, after: bytes) -> bytes:
        """`after` with secrets taken out of what `before` does not have; their own lines stay as they are."""
        pieces: list[bytes] = []
        for old, new, same in changes(before, after):
            pieces += new if same else self._cleansed_hunk(old, new)
        return b"".join(pieces)

    def _cleansed_hunk(self, old: list[bytes], new: list[bytes]) -> list[bytes]:
        if len(old) == len(new) and all(
            n.startswith(o.rstrip(b"\r\n")) for o, n in zip(old, new, strict=True)
        ):
            # Lines that were only added to, as by a block id: what stood there is not ours to change.
            kept = [o.rstrip(b"\r\n") for o in old]
            return [k + self._cleansed_bytes(n[len(k) :]) for k, n in zip(kept, new, strict=True)]
        return [self._cleansed_bytes(b"".join(new))]

    def _cleansed_bytes(self, data: bytes) -> bytes:
        text = data.decode("utf-8", "surrogateescape")
        clean = self.redact(text)
        return data if clean == text else clean.encode("utf-8", "surrogateescape")

    def _refuse_loss(self, path: str, before: bytes, after: bytes, removes: Iterable[Record]) -> None:
        then = Counter(r for r in markdown.parse(before, path).records if not isinstance(r, Passage))
        parsed = markdown.parse(after, path).records
        now = Counter(r for r in parsed if not isinstance(r, Passage))
        lost = then - now - Counter(r for r in removes if not isinstance(r, Passage))
        if lost:
            gone = next(iter(lost))
            raise Malformed(
                f"the change would lose {len(lost)} record(s) it was not asked to touch",
                where=_where(gone, path),
                mend="ua-memory verify",
            )
        nameless = {r for r in then if isinstance(r, Fact) and r.id is None}
        for record in now - then:
            if not isinstance(record, Fact) or record.origin or replace(record, id=None) in nameless:
                continue  # a person's line that is given an id stays theirs
            if not _under_our_heading(record, parsed):
                raise Malformed(
                    "a fact without an origin was about to be written",
                    where=path,
                    mend="report this as a bug",
                )


def difference(path: str, old: bytes, new: bytes, context: int = 3) -> str:
    """A unified diff of a file's bytes."""
    one, other = (data.decode("utf-8", "replace").splitlines(keepends=True) for data in (old, new))
    rows = unified_diff(one, other, f"a/{path}", f"b/{path}", n=context)
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)


def _under_our_heading(record: Fact, parsed: tuple[Record, ...]) -> bool:
    """Whether some equal fact of the file stands under a heading that names who said it."""
    same = (r for r in parsed if r == record)
    return any(isinstance(r, Fact) and (r.heading.client or r.heading.origin) for r in same)


def _where(record: Record, path: str) -> str:
    place = record.place
    return f"{path}:{place.line}"
