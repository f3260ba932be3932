"""What goes into the trail and what is read out of it, as values; and git's notations for them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

MACHINE = ("ua-memory", "ua-memory@localhost")
SOMEBODY = ("person", "person@localhost")
"""The author of hand edits where git knows no name for the person."""
NOBODY = "0" * 40
"""The revision of a line that none has yet."""
EPOCH, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
"""Between these a commit's time is. git knows none before 1970 (it calls one an overflow, and says nothing of
when it was); and a time that is shown in a zone of its own must not leave the calendar."""
WIDEST = 1400
"""git's widest offset of a zone, as the number that it writes."""


def moment(seconds: str) -> datetime:
    """A commit's time as git says it; the first there can be where it says none."""
    try:
        return min(max(datetime.fromtimestamp(int(seconds), UTC), EPOCH), LATEST)
    except (ValueError, OverflowError, OSError):
        return LATEST if seconds.isdigit() and len(seconds) < 16 else EPOCH


def _stamp(when: datetime) -> str:
    """A time as git takes it."""
    offset = when.strftime("%z")[:5] or "+0000"
    if abs(int(offset)) > WIDEST or when < EPOCH + timedelta(days=1):  # nor is it to be before 1970 there
        offset = "+0000"
    return f"{int(min(max(when, EPOCH), LATEST).timestamp())} {offset}"


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit to be written: whole files by bank-relative path, None for a file that goes."""

    author: tuple[str, str]
    when: datetime
    message: str
    files: Mapping[str, bytes | None]
    blobs: tuple[bytes, ...] = ()
    """Contents to be kept for a while though no file of the commit has them."""
    joins: str = ""
    """Another history that this commit brings in. Where it adds nothing to that one, that one it is."""


@dataclass(frozen=True, slots=True)
class Revision:
    """One commit of the trail as it is read back. `author` is a name; `paths` are those it changed."""

    id: str
    when: datetime
    author: str
    subject: str
    trailers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    paths: tuple[str, ...] = ()

    def trailer(self, name: str) -> str:
        """The trailer's first value, or an empty string."""
        return (self.trailers.get(name) or ("",))[0]


@dataclass(frozen=True, slots=True)
class BlameLine:
    """A line of a file with the revision that its words are from; `revision` is all zeros where none has it.
    There it was line `was` of the file `path`."""

    line: int
    revision: str
    author: str
    when: datetime
    subject: str
    text: str
    path: str = ""
    was: int = 0


def blob_id(data: bytes) -> str:
    """git's name for a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def plain_files(out: bytes) -> dict[str, str]:
    """{path: blob id} of what `ls-tree -r -z` lists."""
    rows = (entry.split("\t", 1) for entry in out.decode("utf-8", "surrogateescape").split("\0") if entry)
    # Links (120000) and submodules (160000) of a bank's own repository are nobody's text.
    return {path: meta.split()[2] for meta, path in rows if meta.startswith("100")}


def plain(text: str) -> str:
    """A name or address without what would end it in a commit's header."""
    return "".join(c for c in text.strip() if c not in "<>\n\0")


def fast_import(ref: str, commits: Sequence[Commit], parent: str | None) -> bytes:
    """The stream that writes commits on top of each other and prints their ids."""
    blobs = [b"blob\ndata %d\n%b\n" % (len(blob), blob) for commit in commits for blob in commit.blobs]
    parts = [_commit(ref, n, c, parent if n == 1 else None) for n, c in enumerate(commits, 1)]
    asked = [b"get-mark :%d\n" % n for n in range(1, len(commits) + 1)]
    return b"".join([*blobs, *parts, *asked, b"done\n"])


def _commit(ref: str, mark: int, commit: Commit, parent: str | None) -> bytes:
    stamp = _stamp(commit.when)
    name, address = (plain(part) for part in commit.author)
    head = [f"commit {ref}", f"mark :{mark}", f"author {name} <{address}> {stamp}"]
    head += [f"committer {MACHINE[0]} <{MACHINE[1]}> {stamp}"]
    message = commit.message.replace("\0", "").encode("utf-8", "replace")
    out = ["\n".join(head).encode("utf-8", "replace") + b"\ndata %d\n%b\n" % (len(message), message)]
    if parent:
        out.append(f"from {parent}\n".encode())
    if commit.joins:
        out.append(f"merge {commit.joins}\n".encode())
    for path, data in commit.files.items():
        raw = path.encode("utf-8", "surrogateescape").replace(b"\\", b"\\\\")
        name_ = b'"' + raw.replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
        out.append(
            b"D %b\n" % name_
            if data is None
            else b"M 100644 inline %b\ndata %d\n%b\n" % (name_, len(data), data)
        )
    return b"".join(out)


def log_format(mark: str) -> str:
    """The `--format` that `revisions` reads; NUL and a mark made for this call cannot stand in a message."""
    return "%x00" + "%x00".join([mark, "%H", "%ct", "%an", "%s", "%(trailers:only,unfold)", ""])


def revisions(out: bytes, mark: str) -> Iterator[Revision]:
    """The revisions in the output of `git log -z --name-only` with `log_format(mark)`."""
    words = out.split(b"\0")
    starts = [n for n, word in enumerate(words) if word == mark.encode()]
    for start, end in zip(starts, [*starts[1:], len(words)], strict=False):
        sha, when, author, subject, trailers = (
            w.decode("utf-8", "replace") for w in words[start + 1 : start + 6]
        )
        paths = (w.decode("utf-8", "surrogateescape").strip("\n") for w in words[start + 6 : end])
        yield Revision(
            sha, moment(when), author, subject, parse_trailers(trailers), tuple(p for p in paths if p)
        )


def parse_trailers(text: str) -> dict[str, tuple[str, ...]]:
    """`Key: value` lines as a mapping; a key that stands several times has several values."""
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(": ")
        if colon:
            found[key] = (*found.get(key, ()), value)
    return found


def blame_lines(out: str) -> Iterator[BlameLine]:
    """The lines in the output of `git blame --porcelain`."""
    known: dict[str, dict[str, str]] = {}
    sha, was, number = "", 0, 0
    for row in out.split("\n"):
        if row.startswith("\t"):
            facts = known[sha]
            when = moment(facts.get("author-time", ""))
            who, path = facts.get("author", ""), facts.get("filename", "")
            yield BlameLine(number, sha, who, when, facts.get("summary", ""), row[1:], path, was)
            continue
        words = row.split(" ")
        if len(words) >= 3 and len(words[0]) == 40 and words[1].isdigit():
            sha, was, number = words[0], int(words[1]), int(words[2])
            known.setdefault(sha, {})
        elif sha and " " in row:
            key, _, value = row.partition(" ")
            known[sha][key] = value
