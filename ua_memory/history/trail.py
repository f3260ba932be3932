"""Reading the trail, and writing it: every revision a commit, with exactly its bytes.

Commits are written by `git fast-import`: it takes the bytes of a revision instead of whatever lies on
disk at that moment, needs no index and no lock on one, asks for no identity, and is one process
(docs/decisions/0001). Nothing here goes through the attributes of the work tree: a filter or an
`eol=crlf` of the user's would show or store other bytes than the file has.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from difflib import SequenceMatcher, unified_diff
from pathlib import Path

from ua_memory.errors import GitFailed, NotFound
from ua_memory.history import revisions as notation
from ua_memory.history import switching
from ua_memory.history.authors import Authors
from ua_memory.history.locks import SECONDS, filesystem_now
from ua_memory.history.process import NO_FSYNC, PLAIN_PACK
from ua_memory.history.remotes import Remotes
from ua_memory.history.revisions import NOBODY, BlameLine, Commit, Revision, blob_id

BEHIND = "ua-memory/index-behind"
"""In the bank's own git directory: paths whose index entries could not be brought along yet."""
NOT_YET = "not committed yet"
STALE_NS = SECONDS * 10**9
FEW = 10
"""Files of a commit, with which it is less than a hundred objects: git keeps those loose, not in a pack."""


class History(Remotes):
    """The git directory of one bank's trail, with the bank's root as its work tree."""

    known: tuple[str, Mapping[str, str]] | None = None
    """A revision's id and all its plain files, as `blobs` has them, where they need not be asked for."""

    # -- reading -----------------------------------------------------------------------------------

    def resolve(self, revision: str) -> str:
        """The full id of a revision by any of git's names for it."""
        if not self.exists or revision.startswith("-"):
            raise NotFound("no such revision", where=revision, mend="ua-memory log")
        found = self.run("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", ok=(0, 1))
        if not found:
            raise NotFound("no such revision", where=revision, mend="ua-memory log")
        return found.decode().strip()

    def blobs(self, paths: Sequence[str] = (), rev: str = "HEAD") -> dict[str, str]:
        """{path: blob id} of a revision's plain files; of all, or of those named."""
        head = self.head() if rev == "HEAD" else rev
        if head is None:
            return {}
        known = self.known  # another thread may look meanwhile
        if known and known[0] == head:
            every = known[1]
            return {path: every[path] for path in paths or every if path in every}
        return notation.plain_files(self.run("ls-tree", "-r", "-z", rev, "--", *paths))

    def moved(self, old: str, new: str) -> dict[str, str | None]:
        """{path: blob id, None where there is no plain file now} of all in which two revisions differ."""
        words = self.run("diff-tree", "-r", "-z", "--no-renames", old, new).split(b"\0")
        return {
            os.fsdecode(path): meta.split()[3].decode() if meta.split()[1].startswith(b"100") else None
            for meta, path in zip(words[::2], words[1::2], strict=False)
        }

    def read(self, rev: str, path: str) -> bytes | None:
        """A file's bytes as a revision has them, or None."""
        if rev == "HEAD" and self.head() is None:
            return None
        return self.read_all([(rev, path)])[0]

    def read_all(self, wanted: Sequence[tuple[str, str]]) -> list[bytes | None]:
        """The bytes of (revision, path) each, or of (blob id, ""), None where there are none; one process.
        GitFailed where it ends before it has told of all."""
        asked = "".join(f"{rev}:{path}\n" if path else f"{rev}\n" for rev, path in wanted).encode(
            "utf-8", "surrogateescape"
        )
        out, at, found = self.run("cat-file", "--batch", stdin=asked), 0, list[bytes | None]()
        for _ in wanted:
            end = out.find(b"\n", at)
            words = out[at:end].split(b" ")
            there = len(words) == 3 and words[2].isdigit()
            last = end + 1 + int(words[2]) if there else end
            if out[last : last + 1] != b"\n":
                raise GitFailed("git's answer breaks off", where=str(self.git_dir), mend="ua-memory verify")
            found.append(out[end + 1 : last] if there and words[1] == b"blob" else None)
            at = last + 1
        return found

    def blob(self, name: str) -> bytes:
        """The content git keeps under a blob id."""
        return self.run("cat-file", "blob", name)

    def log(
        self,
        paths: Sequence[str] = (),
        *,
        limit: int | None = None,
        grep: Sequence[str] = (),
        rev: str = "HEAD",
    ) -> list[Revision]:
        """Revisions, newest first: those that touched the paths and have all fixed strings of `grep`."""
        if self.head() is None:
            return []
        mark = secrets.token_hex(8)
        words = ["log", "-z", "--name-only", "--no-renames", "--diff-merges=first-parent", "--no-color"]
        words += [f"--format={notation.log_format(mark)}"]
        words += [f"-n{limit}"] if limit else []
        words += ["-F", "--all-match", *(f"--grep={text}" for text in grep)] if grep else []
        try:
            return list(notation.revisions(self.run(*words, rev, "--", *paths), mark))
        except GitFailed:
            self.require_born()  # says more than git does
            raise

    def taken_back(self) -> set[str]:
        """The ids of the revisions that an undo took back: those of undos where a redo did, too."""
        gone: set[str] = set()
        for done in self.log(grep=["Undoes: "]):
            # A redo takes back the undo, and what that had taken back counts again.
            if done.id not in gone:
                gone |= {*done.trailers.get("Undoes", ())}
        return gone

    def show(self, revision: str) -> Revision:
        """One revision. NotFound if there is none."""
        return self.log(rev=self.resolve(revision), limit=1)[0]

    def diff(self, old: str | None, new: str | None, paths: Sequence[str] = (), *, context: int = 3) -> str:
        """A unified diff between two revisions; None is the empty tree as `old`, the disk as `new`."""
        if new is None:
            return "".join(
                self._diff_to_disk(old, path, context) for path in paths or self.blobs(rev=old or "HEAD")
            )
        first = old or self.run("hash-object", "-t", "tree", "--stdin", stdin=b"").decode().strip()
        words = [
            "diff",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
            "--text",
            f"-U{context}",
        ]
        return self.run(*words, first, new, "--", *paths).decode("utf-8", "replace")

    def _diff_to_disk(self, old: str | None, path: str, context: int) -> str:
        file = self.root / path
        now = file.read_bytes() if file.is_file() and not file.is_symlink() else None
        then = self.read(old, path) if old else None
        names = ("/dev/null" if then is None else f"a/{path}", "/dev/null" if now is None else f"b/{path}")
        sides = ((data or b"").decode("utf-8", "replace").split("\n") for data in (then, now))
        one, other = (
            [*(f"{line}\n" for line in lines[:-1]), *(lines[-1:] if lines[-1] else [])] for lines in sides
        )
        rows = list(unified_diff(one, other, *names, n=context))
        shown = [row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows]
        return "".join([f"diff --git a/{path} b/{path}\n", *shown]) if shown else ""

    def blame(
        self, path: str, contents: bytes, *, lines: tuple[int, int] | None = None, rev: str = "HEAD"
    ) -> list[BlameLine]:  # fmt: skip
        """Who wrote each line of `contents`, the file's present bytes (`authors`); NOBODY where no one has
        yet."""
        known = Authors(self, self.read_all).written(rev, path) if self.blobs([path], rev) else []
        rows = contents.decode("utf-8", "surrogateescape").split("\n")
        rows = rows if rows[-1] else rows[:-1]
        epoch = datetime.fromtimestamp(0, UTC)
        found = [BlameLine(n, NOBODY, NOT_YET, epoch, "", row) for n, row in enumerate(rows, 1)]
        for i, j, size in SequenceMatcher(
            None, [k.text for k in known], rows, autojunk=False
        ).get_matching_blocks():
            for n in range(size):
                found[j + n] = replace(known[i + n], line=j + n + 1)
        chosen = found[lines[0] - 1 : lines[1]] if lines else found
        return [
            replace(b, text=b.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
            for b in chosen
        ]

    # -- writing -----------------------------------------------------------------------------------

    def standing(self, branch: str) -> str:
        """The name under which a branch is reached: `HEAD` where that names it, or it is gone."""
        here = not self.own or not branch or branch == switching.branch(self)
        return "HEAD" if here or self.tip(branch) is None else branch

    def tip(self, rev: str) -> str | None:
        """The newest revision of what `standing` tells."""
        if rev == "HEAD":
            return self.head()
        words = ("rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}")
        return self.run(*words, ok=(0, 1, 128)).decode().strip() or None

    def commit(self, commits: Sequence[Commit], rev: str = "HEAD") -> list[str]:
        """Write commits on top of the branch, or of another one, durably (`core.fsync=all`); their ids.

        GitFailed also where the branch moved meanwhile: nothing is committed then.
        """
        self._clear_locks()
        if rev == "HEAD" and (joined := self.joined(commits)):
            return joined
        stream = notation.fast_import(self.ref() if rev == "HEAD" else rev, commits, self.tip(rev))
        try:
            env = PLAIN_PACK if sum(len(c.files) for c in commits) <= FEW else {}
            out = self.run("fast-import", "--quiet", "--done", "--date-format=raw", stdin=stream, env=env)
        except GitFailed:
            for report in self.git_dir.glob("fast_import_crash_*"):
                report.unlink(missing_ok=True)
            raise
        if rev != "HEAD":  # the index is another branch's
            return out.decode().split()
        final = {path: data for c in commits for path, data in c.files.items()}
        self._follow({path: None if data is None else blob_id(data) for path, data in final.items()})
        return out.decode().split()

    def not_loose(self, contents: Iterable[bytes | None]) -> tuple[bytes, ...]:
        """Those that are no loose object. In a commit's stream they come to nothing where a pack has them;
        where none has, the trail lacks them, and the files hold them for the last time."""
        objects = self.shared / "objects"
        named = {blob_id(data): data for data in contents if data is not None}
        return tuple(data for name, data in named.items() if not (objects / name[:2] / name[2:]).exists())

    def _clear_locks(self) -> None:
        """Remove ref locks that a killed git left: nothing but us writes a trail kept beside, and in a bank
        of its own no git holds one for ten seconds. GitFailed names one that may be alive."""
        for lock in (self.git_dir / "HEAD.lock", self.shared / f"{self.ref()}.lock"):
            if not lock.exists():
                continue
            try:
                if self.own and filesystem_now(self.git_dir) - lock.stat().st_mtime_ns < STALE_NS:
                    raise GitFailed(
                        "git is at work there", where=str(lock), mend=f"try again; else rm {lock}"
                    )
                lock.unlink(missing_ok=True)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise GitFailed(f"{error.strerror}: {lock}", mend=f"rm {lock}") from error

    def mend_index(self, paths: Sequence[str] = ()) -> None:
        """Bring the index along for these paths and those that an earlier commit could not."""
        if self.own and (late := {*paths, *self.behind()}):
            there = self.blobs(sorted(late))
            self._follow({path: there.get(path) for path in late})

    def _follow(self, ids: dict[str, str | None]) -> None:
        """Set index entries of the bank's own repository, so that `git status` shows what a person did.

        Where the index is locked nothing fails: the commit stands, and the paths wait for the next call.
        """
        if not self.own:
            return
        late = [path for path in self.behind() if path not in ids]
        try:
            there = self.blobs(late) if late else {}
            ids |= {path: there.get(path) for path in late}
            rows = [f"100644 {name}\t{path}" if name else f"0 {NOBODY}\t{path}" for path, name in ids.items()]
            if rows:
                stdin = "".join(f"{row}\0" for row in rows).encode("utf-8", "surrogateescape")
                self.run("update-index", "-z", "--index-info", stdin=stdin, env=NO_FSYNC)
            self._note_behind([])
        except GitFailed:
            self._note_behind(sorted(ids))

    def behind(self) -> list[str]:
        """Paths whose index entries lag behind the last commit, as a locked index has left them."""
        try:
            raw = (self.git_dir / BEHIND).read_bytes()
        except OSError:
            return []
        return [path for path in raw.decode("utf-8", "surrogateescape").split("\0") if path]

    def _note_behind(self, paths: Sequence[str]) -> None:
        note = self.git_dir / BEHIND
        with contextlib.suppress(OSError):  # only about how `git status` looks
            if paths:
                note.touch(mode=0o600)
                note.write_bytes("\0".join(paths).encode("utf-8", "surrogateescape"))
            else:
                note.unlink(missing_ok=True)

    def repack(self, *, full: bool = False) -> None:
        """Fold loose objects into packs, geometrically, so that the work stays in step with what was added.

        Nothing is dropped: in a bank of its own, what no branch leads to may be somebody's stash.
        """
        how = ["-a", "-k", "-f", "--depth=200", "--window=50"] if full else ["--geometric=2"]
        self.run("repack", "-d", "-q", "-l", *how)

    def outgrown(self) -> bool:
        """Whether loose objects take more than a megabyte and an eighth of what is packed: time to repack.

        All 256 folders are looked at. One of them, as git itself does, would tell little: the tree of ten
        years of logs is a single large object.
        """
        objects = self.shared / "objects"
        loose = sum(_bytes_in(objects / f"{n:02x}") for n in range(256))
        return loose > max(1 << 20, _bytes_in(objects / "pack") // 8)


def _bytes_in(folder: Path) -> int:
    total = 0
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            with contextlib.suppress(OSError):
                total += entry.stat().st_size
    return total
