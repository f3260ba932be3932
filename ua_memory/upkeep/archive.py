"""A whole bank as one tar file: its memory, its history and a manifest."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ua_memory import discovery
from ua_memory.errors import CannotWrite, Malformed, NotFound, TooLarge, Usage, checked, writing
from ua_memory.git.process import is_alive
from ua_memory.git.repository import blob_id
from ua_memory.knowledge import tombstones
from ua_memory.knowledge.sessions import MEMBER, SessionFile, SessionFiles, parse, show
from ua_memory.knowledge.statements import Progress
from ua_memory.paths import is_memory_file, sync_path
from ua_memory.retain.queue import Jobs
from ua_memory.store.files import MAX_FILE
from ua_memory.store.lock import work_folder
from ua_memory.store.store import Store
from ua_memory.text.wording import counted
from ua_memory.upkeep.merge import Merge, parse_settings, prepare
from ua_memory.upkeep.purge import require_outside
from ua_memory.upkeep.sync import RemoteTombstones, SyncResult, join_and_clean, sync

if TYPE_CHECKING:
    from ua_memory.index.sync import Index


# -- tar headers -------------------------------------------------------------------------------------------
# All headers of an archive, and the padding between files, are checked before `tarfile` reads it.
#
# Python's tarfile reads a header of any length into memory, and follows chains of headers without an end. Our
# archives have regular files only, each with at most one extended header (path or size), and zero padding.


BLOCK = tarfile.BLOCKSIZE
MOST_HEADER = 1 << 16
"""Bytes of an extended header: more than the longest path of any system needs."""
_ZEROS_CHUNK = 1 << 20
_PAX_KEYS = frozenset((b"path", b"size"))


class InvalidArchive(tarfile.TarError):
    """The tar file is not one of our archives; the message says why."""


def check_tar(raw: IO[bytes], most: int) -> None:
    """Raise TarError unless a file is such an archive of at most `most` members."""
    at, said, number = 0, dict[bytes, bytes](), 0
    while True:
        raw.seek(at)
        block = raw.read(BLOCK)
        if not block.strip(b"\0"):
            break
        member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        if block[148:156] != b"%06o\0 " % member.chksum:  # numbers may be written in several ways
            raise InvalidArchive(f"a header is damaged at byte {at}")
        size = member.size
        if member.type == tarfile.XHDTYPE and not said and 0 < size <= MOST_HEADER:
            said = _parse_pax_header(raw.read(size))
        elif member.type == tarfile.REGTYPE:
            size = _parse_number(said.get(b"size", b"%d" % size))
            said, number = {}, number + 1
        else:
            raise InvalidArchive(f"it contains something other than files, at byte {at}")
        if size < 0 or number > most:
            raise InvalidArchive("it contains too many files, or one without a size")
        end = at + BLOCK + size
        at = end + -size % BLOCK
        raw.seek(end)
        if raw.read(at - end).strip(b"\0"):
            raise InvalidArchive(f"unexpected data between its files, at byte {end}")
    raw.seek(at)
    while piece := raw.read(_ZEROS_CHUNK):
        if piece.strip(b"\0"):
            raise InvalidArchive(f"unexpected data after its files, at byte {at}")
    raw.seek(0)


def _parse_pax_header(data: bytes) -> dict[bytes, bytes]:
    """{key: value} of an extended header: lines of `LENGTH KEY=VALUE`."""
    said: dict[bytes, bytes] = {}
    while data:
        length = _parse_number(data.partition(b" ")[0])
        row, data = data[:length], data[max(length, 1) :]
        key, has, value = row.partition(b" ")[2].removesuffix(b"\n").partition(b"=")
        if len(row) != length or not row.endswith(b"\n") or not has or key not in _PAX_KEYS or key in said:
            raise InvalidArchive("one of its headers cannot be read")
        said[key] = value
    return said


def _parse_number(text: bytes) -> int:
    if not text.isdigit() or len(text) > 20:
        raise InvalidArchive("one of its headers cannot be read")
    return int(text)


# -- archive -----------------------------------------------------------------------------------------------
# A bank as one file: a tar with a manifest of all hashes, the memory files, and the history as a git bundle.
#
# Of the state folder only sessions are included, on request. On import, the whole archive is verified before
# anything is written.


MANIFEST, BUNDLE, FILES = "manifest.json", "trail.bundle", "files/"
FORMAT = "ua-memory archive 1"
COMPRESSED_SUFFIXES = frozenset(".zip .gz .tgz .bz2 .xz .zst .7z .rar".split())  # noqa: SIM905
"""Suffixes that would make other programs take the archive for a compressed one."""
MOST_FILES = 200_000
MOST_MANIFEST = 64 << 20
MOST_BUNDLE = 16 << 30
CHUNK = 1 << 20
TIME_FORMAT = "%Y-%m-%dT%H:%M:%S%z"


@dataclass(frozen=True, slots=True)
class ArchiveResult:
    """An archive that was written. `revision` is its newest, `bytes` its size."""

    file: str
    bank: str
    revision: str
    revisions: int
    files: int
    bytes: int
    sessions: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """An archive that was verified and imported."""

    file: str
    bank: str
    made: str
    files: int
    received: int
    sessions: int
    merge: Merge
    revision: str | None
    notes: tuple[str, ...] = ()
    trial: bool = False
    forgotten: RemoteTombstones | None = None
    """What was forgotten there, now forgotten here too."""


# -- export ----------------------------------------------------------------------------------------------


def export(
    store: Store, file: Path, *, sessions: bool = False, trial: bool = False, tell: Progress | None = None
) -> ArchiveResult:
    """Write the bank's archive, on request with its `sessions`. The file appears only when it is complete.

    Usage for a file inside the bank or with a compressed file's suffix, CannotWrite if the file exists.
    """
    _require_new_file(store, file)
    notes = prepare(store, dry_run=trial)
    history, head = store.history, store.history.head()
    if head is None:
        raise NotFound("there is no history yet", where=str(store.bank.root), hint="ua-memory init")
    blobs = {path: blob for path, blob in history.blobs(rev=head).items() if is_memory_file(path)}
    whole = history.contents(blobs.values())
    contents = {FILES + path: whole[blob] for path, blob in blobs.items()}
    words = SessionFiles(store)
    here = (one for one in words.all() if sessions and not words.in_bank(one))
    said = {f"sessions/{one.path.name}": show(one) for one in here}
    contents |= said
    result = ArchiveResult(
        str(file), store.config.id, head, history.number(None, head), len(blobs),
        sum(map(len, contents.values())), len(said), notes,
    )  # fmt: skip
    if trial:
        return result
    with work_folder(store.bank.state, store.config.lock_seconds) as folder:
        bundle = folder / BUNDLE
        history.bundle(bundle)
        made = f"{store.now():{TIME_FORMAT}}"
        manifest = _manifest(store.config.id, made, head, contents, bundle)
        size = _write(file, manifest, contents, bundle, int(store.now().timestamp()), tell)
    return replace(result, bytes=size)


def _require_new_file(store: Store, file: Path) -> None:
    if file.suffix.lower() in COMPRESSED_SUFFIXES:
        name = f"{file.stem.removesuffix('.tar')}.tar"
        hint = f"ua-memory export {name}, and compress that file"
        raise Usage("an archive is a .tar that is not compressed", where=str(file), hint=hint)
    require_outside(store, file, "the archive cannot be inside the bank", "give a file outside the bank")
    if file.exists() or file.is_symlink():
        raise CannotWrite("this file already exists", where=str(file), hint="choose another name")


def _manifest(bank: str, made: str, head: str, contents: Mapping[str, bytes], bundle: Path) -> bytes:
    members = {name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in contents.items()}
    with bundle.open("rb") as whole:
        members[BUNDLE] = (bundle.stat().st_size, hashlib.file_digest(whole, "sha256").hexdigest())
    rows = [{"name": name, "bytes": size, "sha256": digest} for name, (size, digest) in members.items()]
    said = {"format": FORMAT, "bank": bank, "made": made, "revision": head, "members": rows}
    return json.dumps(said, indent=1, ensure_ascii=False).encode("utf-8", "surrogateescape")


def _write(
    file: Path, manifest: bytes, contents: Mapping[str, bytes], bundle: Path, when: int, tell: Progress | None
) -> int:
    with writing(file, "name another file"):
        with _open_unnamed(file) as (fd, named):
            with os.fdopen(fd, "wb", closefd=False) as out:
                with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
                    _add(tar, MANIFEST, io.BytesIO(manifest), len(manifest), when)
                    for number, (name, data) in enumerate(contents.items()):
                        if tell:
                            tell(number, len(contents))
                        _add(tar, name, io.BytesIO(data), len(data), when)
                    with bundle.open("rb") as whole:
                        _add(tar, BUNDLE, whole, bundle.stat().st_size, when)
                out.flush()
                os.fsync(fd)
            named()
        sync_path(file.parent)
        return file.stat().st_size


@contextlib.contextmanager
def _open_unnamed(file: Path) -> Iterator[tuple[int, Callable[[], None]]]:
    """(a descriptor to write to, a function that gives the file its name and replaces nothing).

    The file has no name until then, so that a killed process leaves nothing behind. On file systems without
    unnamed files it has a hidden name, and leftovers of killed processes are removed.
    """
    flags = os.O_WRONLY | os.O_CLOEXEC
    start, fresh = f".{file.name[:200]}.", file.with_name(f".{file.name[:200]}.{os.getpid()}.part")
    for left in file.parent.glob(f"{glob.escape(start)}*.part"):
        pid = left.name[len(start) : -len(".part")]
        if pid.isdecimal() and left.is_file() and not is_alive(int(pid)):
            left.unlink(missing_ok=True)
    folder = os.open(file.parent, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        try:
            fd = os.open(file.parent, flags | os.O_TMPFILE, 0o600)
        except (AttributeError, OSError):
            fd = os.open(fresh, flags | os.O_CREAT | os.O_EXCL, 0o600)
            source = str(fresh)
        else:
            source = f"/proc/self/fd/{fd}"
        # Given `src_dir_fd`, `link` follows the symbolic link in /proc.
        try:
            yield fd, lambda: os.link(source, file.name, src_dir_fd=folder, dst_dir_fd=folder)
        finally:
            os.close(fd)
    finally:
        fresh.unlink(missing_ok=True)
        os.close(folder)


def _add(tar: tarfile.TarFile, name: str, data: IO[bytes], size: int, when: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = size, when, 0o600
    tar.addfile(member, data)


# -- import ----------------------------------------------------------------------------------------------


def restore(
    store: Store, file: Path, *, door: str, index: Callable[[], Index], trial: bool = False
) -> RestoreResult:  # fmt: skip
    """Verify an archive completely, then join its history as `sync` does.

    Malformed if it is incomplete, was changed or has unexpected files, Conflict if it is of another bank.
    """
    notes = prepare(store, dry_run=trial)
    store.make_state()
    with work_folder(store.bank.state, store.config.lock_seconds) as folder:
        bundle = folder / BUNDLE
        manifest, files, said = _verify_archive(file, bundle)
        heads = store.history.bundled(bundle)
        wanted = manifest["revision"]
        ref = next((ref for ref, sha in heads.items() if sha == wanted), None)
        if ref is None:
            raise _invalid(file, "its history does not end at the revision in the manifest")
        with store.history.fetched(str(bundle), ref) as other:
            there = {p: blob for p, blob in store.history.blobs(rev=other).items() if is_memory_file(p)}
            known = parse_settings(store.history.read(other, discovery.SETTINGS)) or {}
            if other != wanted or there != files or known.get("id", manifest["bank"]) != manifest["bank"]:
                raise _invalid(file, "its files differ from its history")
            done, newly_forgotten = join_and_clean(
                store, other, index, door=door, subject=f"import: {file.name}", dry_run=trial
            )
    forgotten = tombstones.read(store)
    merged = [one for one in said if trial or SessionFiles(store).merge(one, forgotten.has_sentence_of)]
    result = done.result
    notes = (*notes, *done.notes, *(result.notes if result else ()))
    return RestoreResult(
        str(file), str(manifest["bank"]), str(manifest["made"]), len(files), done.revisions, len(merged),
        done.merge, result.revision if result else None, notes, trial, newly_forgotten,
    )  # fmt: skip


def _verify_archive(file: Path, bundle: Path) -> tuple[dict[str, Any], dict[str, str], list[SessionFile]]:
    """(manifest, {path: blob id}, sessions) of an archive that was verified completely; its git bundle is
    written to `bundle`."""
    try:
        with discovery.open_regular(file) as raw, _open_tar(raw) as tar:
            members = iter(tar)
            manifest = _read_manifest(file, tar, next(members, None))
            files, said = dict[str, str](), list[SessionFile]()
            left = {row["name"]: (row["bytes"], row["sha256"]) for row in manifest["members"]}
            for member in members:
                size, digest = left.pop(member.name, (None, None))
                if digest is None or not member.isreg() or member.size != size:
                    raise _invalid(file, f"{member.name[:200]!r} does not match the manifest")
                found, data = _extract(tar, member, bundle)
                if found != digest:
                    raise _invalid(file, f"{member.name[:200]!r} does not match its checksum")
                if member.name.startswith(FILES):
                    files[member.name.removeprefix(FILES)] = blob_id(data)
                elif one := parse(data, Path(member.name)):
                    said.append(one)
            if left or os.fstat(raw.fileno()).st_size % tarfile.RECORDSIZE:
                raise _invalid(file, f"it is incomplete: its end is missing, or {len(left)} of its files")
            return manifest, files, said
    except FileNotFoundError as error:
        hint = "give the path of the archive"
        raise NotFound("no such file or folder", where=str(file), hint=hint) from error
    except (tarfile.TarError, UnicodeError) as error:
        raise _invalid(file, f"it cannot be read: {error}") from error
    except (IsADirectoryError, discovery.Irregular) as error:
        raise _invalid(file, error.strerror or "not a file") from error
    except OSError as error:
        raise CannotWrite(error.strerror or str(error), where=str(file)) from error


def _open_tar(raw: IO[bytes]) -> tarfile.TarFile:
    check_tar(raw, MOST_FILES + 2)
    return tarfile.open(fileobj=raw, mode="r:")


def _read_manifest(file: Path, tar: tarfile.TarFile, member: tarfile.TarInfo | None) -> dict[str, Any]:
    if member is None or member.name != MANIFEST or not member.isreg() or member.size > MOST_MANIFEST:
        raise _invalid(file, "it is not an archive of a bank: it does not begin with a manifest")
    try:
        said = json.load(tar.extractfile(member) or io.BytesIO())
        if said["format"] != FORMAT:
            raise _invalid(file, f"it is {str(said['format'])[:80]!r}, which this version does not read")
        rows = said["members"]
        names = [row["name"] for row in rows]
        for row in rows:
            _check_row(file, row)
        str(said["bank"]), str(said["revision"])
        when = datetime.fromisoformat(said["made"])
        if when.timestamp() != member.mtime or f"{when:{TIME_FORMAT}}" != said["made"]:
            raise _invalid(file, "its time is not valid")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _invalid(file, "its manifest cannot be read") from error
    if len(set(names)) != len(names) or BUNDLE not in names or len(names) > MOST_FILES:
        raise _invalid(file, "its manifest lists a file twice, no history, or too many files")
    return dict(said)


def _check_row(file: Path, row: Mapping[str, Any]) -> None:
    name, size = row["name"], row["bytes"]
    in_bank = name.startswith(FILES) and is_memory_file(name.removeprefix(FILES))
    if not (name == BUNDLE or in_bank or MEMBER.fullmatch(name)):
        raise _invalid(file, f"{name[:200]!r} is not a file of a bank")
    if type(size) is not int or size < 0 or not isinstance(row["sha256"], str):
        raise _invalid(file, "its manifest cannot be read")
    if size > (most := MOST_BUNDLE if name == BUNDLE else MAX_FILE):
        raise TooLarge(f"{name[:200]!r} is larger than {most >> 20} MB", where=str(file))


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, bundle: Path) -> tuple[str, bytes]:
    """(SHA-256, content) of a member. The git bundle is written to a file instead, and has none."""
    source = tar.extractfile(member) or io.BytesIO()
    if member.name != BUNDLE:
        data = source.read()
        return hashlib.sha256(data).hexdigest(), data
    with bundle.open("x+b") as out:
        shutil.copyfileobj(source, out, CHUNK)
        out.seek(0)
        return hashlib.file_digest(out, "sha256").hexdigest(), b""


def _invalid(file: Path, why: str) -> Malformed:
    return Malformed(f"the archive was not imported: {why}", where=str(file), hint="export it again")


# -- interface ---------------------------------------------------------------------------------------------


@checked
class Remote:
    """`memory.remote`: sharing one bank between machines, by a git remote or an archive file."""

    def __init__(self, store: Store, door: str, index: Callable[[], Index]) -> None:
        self._store, self._door, self._index = store, door, index

    def sync(
        self, remote: str | None = None, *, dry_run: bool = False, backup: Path | None = None
    ) -> SyncResult:  # fmt: skip
        """Fetch, merge and push the history. `remote` is its address, given once.

        `backup` is a new file outside the bank. If another machine has purged its history, ours is saved
        there before it is rewritten; Conflict if it is needed and missing.
        """
        with Jobs(self._store).record_run("sync", trial=dry_run) as note:
            done = sync(self._store, remote, door=self._door, index=self._index, trial=dry_run, backup=backup)
            note.result = f"{counted(done.received, 'revision')} received, {done.sent} sent"
        return done

    def export(
        self, file: Path | str, *, sessions: bool = False, dry_run: bool = False, tell: Progress | None = None
    ) -> ArchiveResult:
        """Write the bank and its history into one archive, on request with its `sessions`.

        `tell(done, total)` reports the files written.
        """
        return export(self._store, Path(file), sessions=sessions, trial=dry_run, tell=tell)

    def restore(self, file: Path | str, *, dry_run: bool = False) -> RestoreResult:
        """Take an archive of this bank in; a new bank becomes what it holds."""
        return restore(self._store, Path(file), door=self._door, index=self._index, trial=dry_run)
