"""A branch that is gone while its history is there: nothing of it is lost, and none may begin in its place.

Revisions of ours that no branch leads to are sought among git's objects, where HEAD names a branch without
one. The newest of them that the files agree with is where the branch stood.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.history.revisions import blob_id, moment, plain_files
from ua_memory.paths import CORE_NAMES, LOGS, SETTINGS, is_truth

if TYPE_CHECKING:
    from ua_memory.history.process import Process

BACK = 50
"""Revisions that are held against the files: what a sync only looked at may have come on top of the last."""
ENDS = 5
"""Revisions that nothing follows on and that are held so: an amended one is left lying by git."""
_SEEN = "%H%x00%ct%x00%P%x00%(trailers:key=Memory-Op,valueonly,separator=%x20)%x00%s%x01"


@dataclass(frozen=True, slots=True)
class Lost:
    """Where a branch stood. `sure` where nothing follows on it and the files are as they are there."""

    branch: str
    revision: str
    subject: str
    sure: bool

    @property
    def told(self) -> str:
        """What is wrong, in one line."""
        name = self.branch.removeprefix("refs/heads/")
        return f"the branch {name} is gone; its last revision is {self.revision[:10]} ({self.subject})"

    @property
    def mend(self) -> str:
        """The command that brings it back."""
        by_hand = f"ua-memory git update-ref {self.branch} {self.revision[:10]}"
        return "ua-memory doctor --mend" if self.sure else f"if that is the last you know of: {by_hand}"


def find(trail: Process, branch: str) -> Lost | None:
    """The last revision of a branch that is gone; None where there never was one, or other branches have
    all of it. GitFailed."""
    if not _has_commits(trail.shared / "objects"):
        return None
    commits = trail.run("cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)")
    names = [line[7:] for line in commits.decode().splitlines() if line.startswith("commit ")]
    if not names:
        return None
    seen = ["log", "--no-walk=unsorted", "--stdin", f"--format={_SEEN}", "--no-color"]
    out = trail.run(*seen, stdin="\n".join(names).encode()).decode("utf-8", "replace")
    rows = [row.lstrip("\n").split("\0") for row in out.split("\x01") if row.strip()]
    followed = {parent for row in rows for parent in row[2].split()}
    within = set(trail.run("rev-list", "--branches").decode().split())
    known = followed | within
    ends = [row for row in rows if row[3].strip() and row[0] not in known]
    ends.sort(key=lambda row: moment(row[1]), reverse=True)
    subjects = {row[0]: row[4] for row in rows}
    here = _on_disk(trail.root)
    for end in ends[:ENDS] if here else ():
        for name in trail.run("rev-list", "--first-parent", f"-n{BACK}", end[0]).decode().split():
            if _truth(trail, name) == here:
                return Lost(branch, name, subjects[name], name == end[0])
    return Lost(branch, ends[0][0], ends[0][4], False) if ends else None


def _has_commits(objects: Path) -> bool:
    """Whether a git directory has a commit, or a pack that may; no process is started."""
    if any(objects.glob("pack/*.pack")):
        return True
    return any(map(_is_commit, objects.glob("[0-9a-f][0-9a-f]/*")))


def _is_commit(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return zlib.decompressobj().decompress(opened.read(64), 7) == b"commit "
    except (OSError, zlib.error):
        return False


def _truth(trail: Process, revision: str) -> dict[str, str]:
    """{path: blob id} of a revision's files of memory."""
    every = plain_files(trail.run("ls-tree", "-r", "-z", revision))
    return {path: blob for path, blob in every.items() if is_truth(path)}


def _on_disk(root: Path) -> dict[str, str]:
    """The same of the disk; nothing where that cannot be read."""
    files = [*(root / name for name in (*CORE_NAMES, SETTINGS)), *(root / LOGS).rglob("*.md")]
    named = {file.relative_to(root).as_posix(): file for file in files if not file.is_symlink()}
    try:
        return {
            path: blob_id(file.read_bytes())
            for path, file in named.items()
            if is_truth(path) and file.is_file()
        }
    except OSError:
        return {}
