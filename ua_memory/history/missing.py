"""Objects that are missing from a trail, or that came to be noise: found, and written again from what the
files hold. A blob is its content and a tree is a listing of blobs; what a commit said stands nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING

from ua_memory.errors import GitFailed

if TYPE_CHECKING:
    from ua_memory.history.process import Process

Listing = Mapping[str, tuple[str, str]]
"""{path: (mode, blob id)} of all files of a revision."""
_ID = r"([0-9a-f]{40})"
_NAMED = re.compile(
    rf"missing (\w+) {_ID}|(invalid) sha1 pointer {_ID}|{_ID}: object (corrupt) or missing"
    rf"|(?:mismatch, found at:|unable to unpack \w+ of) \S*?([0-9a-f]{{2}})/([0-9a-f]{{38}})"
)
ASIDE = "ua-memory-broken"
"""A folder in the git directory for files of git's that are noise."""
RECENT = 1000
"""Of so many of the newest revisions a quick look tells whether each object is there."""
DOUBTS = 6
"""Files of which it is not known how a revision had them, whose ways together are tried out."""
KINDS = {"invalid": "commit"}


def find(trail: Process) -> dict[str, str]:
    """{id: kind} of every object that something leads to and that is not there, or not what it should be; the
    kind is "object" where nobody can tell. All of the history is read."""
    out, said = trail.ask("fsck", "--full", "--no-dangling", "--no-progress", ok=range(256))
    found: dict[str, str] = {}
    for row in _NAMED.finditer(f"{out.decode('utf-8', 'replace')}\n{said}"):
        kind, name = next(
            pair
            for pair in ((row[1], row[2]), (row[3], row[4]), (row[6], row[5]), ("", f"{row[7]}{row[8]}"))
            if pair[1] and pair[1] != "NoneNone"
        )
        if name.strip("0") and found.get(name, "object") == "object":
            found[name] = KINDS.get(kind, kind if kind in ("blob", "tree", "commit") else "object")
    return found


def of_head(trail: Process) -> str:
    """What is missing of the newest revisions, or of the line of revisions to them, in words; empty if
    nothing is. Fast: whether an object is what it should be is not looked at, nor are older files."""
    try:
        trail.run("rev-list", "--count", "HEAD")
        words = ("rev-list", "--objects", f"--max-count={RECENT}", "--missing=print", "HEAD")
        out = trail.run(*words).decode("utf-8", "replace")
    except GitFailed as error:
        return error.what
    gone = [row[1:] for row in out.splitlines() if row.startswith("?")]
    return told(dict.fromkeys(gone, "object")) if gone else ""


def told(gone: Mapping[str, str]) -> str:
    """`2 objects are missing: tree 1a2b3c4d5e, …`."""
    first = ", ".join(f"{kind} {name[:10]}" for name, kind in list(gone.items())[:3])
    more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
    return f"{'an object is' if len(gone) == 1 else f'{len(gone)} objects are'} missing: {first}{more}"


def write_again(trail: Process, contents: Mapping[str, bytes], listings: Iterable[Listing]) -> dict[str, str]:
    """Write what is missing again, as far as these contents of blobs and listings of files have it; what is
    missing still."""
    held = {name: ("tree", data) for listing in listings for name, data in trees(listing).items()}
    held |= {name: ("blob", data) for name, data in contents.items()}
    gone = _noise_aside(trail, find(trail))
    while there := [name for name in gone if name in held]:
        for name in there:
            kind, data = held.pop(name)
            with suppress(
                OSError
            ):  # where it is noise git would not write it: it looks whether there is a file
                (trail.shared / "objects" / name[:2] / name[2:]).unlink(missing_ok=True)
            trail.run("hash-object", "-w", "-t", kind, "--stdin", stdin=data)
        gone = _noise_aside(trail, find(trail))  # below a tree that was missing nobody could look
    return gone


def _noise_aside(trail: Process, gone: dict[str, str]) -> dict[str, str]:
    """Move files away that are no objects, since git would not write one where a file is; what is missing
    then: a pack may have had it, too."""
    files = [trail.shared / "objects" / name[:2] / name[2:] for name in gone]
    if not any(file.exists() for file in files):
        return gone
    (trail.git_dir / ASIDE).mkdir(exist_ok=True)
    for file in files:
        with suppress(FileNotFoundError):
            file.replace(trail.git_dir / ASIDE / f"{file.parent.name}{file.name}")
    return find(trail)


def guesses(index: Listing, disk: Listing, earlier: Listing, changed: Iterable[str]) -> Iterator[Listing]:
    """What the newest revision may have listed: git's index, or the files, where of each that was changed by
    hand, or since the revision before, it may be what it is, what it was, or not there at all."""
    yield index
    doubted = {path for path in {*disk, *earlier} if earlier and disk.get(path) != earlier.get(path)}
    order = sorted({*doubted, *changed})[:DOUBTS]
    choices = [dict.fromkeys((disk.get(path), earlier.get(path), None)) for path in order]
    for chosen in product(*choices):
        sides = dict(zip(order, chosen, strict=True))
        listing = {path: sides.get(path, entry) for path, entry in {**disk, **sides}.items()}
        yield {path: entry for path, entry in listing.items() if entry}


def trees(listing: Listing) -> dict[str, bytes]:
    """{id: content} of the trees that a listing makes, as git writes them."""
    from hashlib import sha1

    found: dict[str, bytes] = {}

    def made(folder: Listing) -> str:
        rows: dict[str, tuple[str, str]] = {}
        inner: dict[str, dict[str, tuple[str, str]]] = {}
        for path, entry in folder.items():
            name, slash, rest = path.partition("/")
            if slash:
                inner.setdefault(name, {})[rest] = entry
            else:
                rows[name] = (entry[0], entry[1])
        rows |= {name: ("40000", made(entries)) for name, entries in inner.items()}
        order = sorted(rows.items(), key=lambda row: _raw(row[0]) + (b"/" if row[1][0] == "40000" else b""))
        data = b"".join(
            b"%b %b\0%b" % (mode.encode(), _raw(name), bytes.fromhex(of)) for name, (mode, of) in order
        )
        name = sha1(b"tree %d\0%b" % (len(data), data), usedforsecurity=False).hexdigest()
        found[name] = data
        return name

    if listing:
        made(listing)
    return found


def _raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
