"""The trail: exact bytes in and out, whatever stands in paths, messages and settings (I10, I41)."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
import zlib
from datetime import UTC, datetime, timedelta, timezone
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from store_banks import DAY, NOW, git, in_trail, insert, make, open_again, write

from ua_memory import Memory
from ua_memory.errors import GitFailed, NotFound, Usage
from ua_memory.git import repository
from ua_memory.git.history import History
from ua_memory.git.process import SMALL_TREE, BatchEnded, ObjectReader, Process, set_entries
from ua_memory.git.repository import MACHINE, NOBODY, SOMEBODY, Commit, blob_id
from ua_memory.store import commit as flight
from ua_memory.store.store import Store


@pytest.fixture
def trail(tmp_path: Path) -> History:
    root = tmp_path / "b"
    root.mkdir()
    history = History(root / ".git", root, own=True)
    history.create()
    return history


def commit(trail: History, files: dict[str, bytes | None], message: str = "say\n\nMemory-Op: test\n") -> str:
    return trail.commit([Commit(MACHINE, NOW, message, files)])[0]


def gecos() -> str:
    """The account's name, from which git guesses the person's; '' where it has none."""
    with contextlib.suppress(KeyError):
        account = pwd.getpwuid(os.getuid())
        return account.pw_gecos.partition(",")[0].replace("&", account.pw_name.capitalize())
    return ""


GECOS = gecos()
NASTY = [
    "a b.md",
    'quo"te.md',
    "back\\slash.md",
    "tab\t.md",
    "ünï.md",
    "日本.md",
    "*.md",
    ":(top)x.md",
    "-x.md",
    "#a.md",
]


def test_paths_of_all_kinds(trail: History) -> None:
    files: dict[str, bytes | None] = {f"memory/{name}": name.encode() for name in NASTY}
    made = commit(trail, files)
    assert trail.read_all([(made, path) for path in files]) == list(files.values())
    assert set(trail.blobs()) == set(files) == set(trail.log()[0].paths)
    for path, data in files.items():
        assert trail.read("HEAD", path) == data
        assert trail.blobs([path]) == {path: blob_id(data or b"")}
        assert [r.id for r in trail.log([path])] == [made]
    assert git(trail.root, "status", "--porcelain", "--untracked-files=no").count("\n") == len(files), (
        "no work tree"
    )
    commit(trail, dict.fromkeys(files))
    assert trail.blobs() == {}


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"no newline", b"\r\n\0\xff", b"data 5\nM 100644", b"x" * 300_000]
)
def test_bytes_of_all_kinds(trail: History, data: bytes) -> None:
    made = commit(trail, {"MEMORY.md": data, "memory/a.md": b"next"})
    assert trail.read(made, "MEMORY.md") == data
    assert trail.read(made, "memory/a.md") == b"next"
    assert trail.blob(trail.blobs()["MEMORY.md"]) == data


def test_what_is_not_there(trail: History) -> None:
    assert (
        trail.head() is None and trail.log() == [] and trail.blobs() == {} and trail.read("HEAD", "x") is None
    )
    commit(trail, {"memory/a.md": b"1"})
    assert trail.read_all([("HEAD", "memory"), ("HEAD", "x"), ("0" * 40, ""), ("HEAD", "memory/a.md")]) == [
        None,
        None,
        None,
        b"1",
    ]
    for name in ("nonsense", "HEAD~5", "-x", "--all"):
        with pytest.raises(NotFound):
            trail.resolve(name)


def test_an_empty_commit_with_its_trailer(trail: History) -> None:
    commit(trail, {"a.md": b"1"})
    made = commit(trail, {}, "consolidate\n\nMemory-Op: consolidate\nConsidered: ^a\nConsidered: ^b\n")
    assert trail.head() == made
    assert trail.show(made).trailers == {"Memory-Op": ("consolidate",), "Considered": ("^a", "^b")}
    assert trail.show(made).paths == ()


@pytest.mark.parametrize(
    "subject",
    ["plain", "ünï 日本", "with \x1f and \x1e and \x01", "x" * 5000, "'\"$(x)", "Memory-Op: fake", "%H %x00"],
)
def test_messages_of_all_kinds(trail: History, subject: str) -> None:
    commit(trail, {"a.md": b"1"})
    text = flight.format_message(
        subject, "a body\n\nMemory-Op: fake\n\nend", {"Memory-Op": ["test"], "Facts": ["^a", "^b\nX: y"]}
    )
    made = commit(trail, {"a.md": b"2"}, text)
    found = trail.show(made)
    assert found.subject == " ".join(subject.split())
    assert found.trailers == {"Memory-Op": ("test",), "Facts": ("^a", "^b X: y")}
    assert len(trail.log()) == 2


def test_authors_and_times(trail: History) -> None:
    when = datetime(2026, 11, 21, 23, 59, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    for name in ("Ann <x> \n Lee", "Ünï", ""):
        trail.commit([Commit((name, "a@b>c"), when, "x\n", {"a.md": name.encode()})])
    assert [r.when == when for r in trail.log()] == [True] * 3
    assert trail.log()[1].author == "Ünï"
    assert "+0545" in trail.run("log", "-1", "--format=%ad").decode()


@pytest.mark.parametrize(
    ("settings", "email", "wanted"),
    [
        ("[user]\n\tuseConfigOnly = true\n", "noor@example.org", SOMEBODY),
        ("", "", None),
        ("", "noor@example.org", (GECOS or SOMEBODY[0], "noor@example.org" if GECOS else SOMEBODY[1])),
        ("[user]\n\tname = Noor\n\temail = noor@example.org\n", "", ("Noor", "noor@example.org")),
    ],
    ids=["none", "whatever is here", "guessed", "set"],
)
def test_whose_name_hand_edits_have(
    trail: History, monkeypatch: pytest.MonkeyPatch, settings: str, email: str, wanted: tuple[str, str] | None
) -> None:
    """Git's name for the person: the one that is set, else what it guesses as for its own commits, else a
    stand-in. Nothing fails where it can guess none."""
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    Path(os.environ["GIT_CONFIG_GLOBAL"]).write_text(settings)
    if email:
        monkeypatch.setenv("EMAIL", email)
    if wanted is None:  # with /etc/mailname, or a host name with dots, there is a name to guess
        words = ["git", "-C", str(trail.root), "var", "GIT_AUTHOR_IDENT"]
        said = subprocess.run(words, capture_output=True, text=True, check=False)
        name, _, rest = said.stdout.partition(" <")
        wanted = SOMEBODY if said.returncode else (name, rest.partition(">")[0])
    assert trail.person() == wanted


def written_at(trail: History, seconds: str) -> str:
    """A commit with a time that git itself would not write, as older programs have left some."""
    who = f"{MACHINE[0]} <{MACHINE[1]}> {seconds}"
    head, message = trail.head(), "insert: 1 fact\n\nMemory-Op: insert\n"
    tree = trail.run("rev-parse", "HEAD^{tree}").decode().strip()
    raw = f"tree {tree}\nparent {head}\nauthor {who}\ncommitter {who}\n\n{message}".encode()
    made = (
        trail.run("hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=raw).decode().strip()
    )
    trail.run("update-ref", trail.ref(), made)
    return made


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("clock", "kept"),
    [
        (datetime(1969, 12, 31, 23, tzinfo=UTC), EPOCH),
        (datetime(1901, 1, 1, tzinfo=UTC), EPOCH),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), EPOCH),
        (datetime(1969, 12, 31, 23, tzinfo=timezone(timedelta(hours=-8))), EPOCH.replace(hour=7)),
        (datetime(1890, 1, 1, tzinfo=ZoneInfo("Africa/Monrovia")), EPOCH),  # 44 minutes behind, and 30 s
        (datetime(2150, 5, 5, tzinfo=UTC), datetime(2150, 5, 5, tzinfo=UTC)),
        (datetime(9999, 12, 31, 23, 59, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)),
        (NOW.replace(tzinfo=timezone(timedelta(hours=-23, minutes=-59))), None),
    ],
)
def test_no_clock_makes_a_commit_that_git_cannot_read(
    trail: History, clock: datetime, kept: datetime | None
) -> None:
    trail.commit([Commit(MACHINE, clock, "say\n\nMemory-Op: test\n", {"memory/a.md": b"a\n"})])
    assert [each.when for each in trail.log()] == [kept or clock]
    assert trail.blame("memory/a.md", b"a\n")[0].when == (kept or clock)
    for zone in (timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))):
        assert trail.log()[0].when.astimezone(zone)  # a time that is shown stays within the calendar
    trail.run("log", "--format=%cI")
    trail.run("fsck", "--strict")


@pytest.mark.parametrize(
    "seconds", ["-3600 +0000", "18446744073709548016 +0000", "0 -0800", "99999999999999 +0000", "soon +0000"]
)
def test_a_commit_whose_time_git_cannot_read_stops_nothing(tmp_path: Path, seconds: str) -> None:
    store = make(tmp_path / "bank")
    insert(store, "one")
    odd = written_at(store.history, seconds)
    insert(store, "two")
    revisions = store.history.log()
    assert [each.id for each in revisions][1] == odd and revisions[1].subject == "insert: 1 fact"
    assert revisions[1].when >= EPOCH
    assert store.history.show(odd).trailer("Memory-Op") == "insert"
    with Memory.open(tmp_path / "bank") as memory:
        assert memory.status().head and memory.history.undo().revision.id == revisions[0].id


def test_several_commits_at_once_follow_each_other(trail: History) -> None:
    ids = trail.commit([Commit(MACHINE, NOW, f"{n}\n", {"a.md": str(n).encode()}) for n in range(3)])
    assert [r.id for r in trail.log()] == ids[::-1]
    assert trail.run("rev-list", "--count", "HEAD").strip() == b"3"


def test_a_rename_by_hand_names_both_paths_and_a_merge_its_files(trail: History) -> None:
    commit(trail, {"memory/a.md": b"x\n" * 50})
    commit(trail, {"memory/a.md": None, "memory/b.md": b"x\n" * 50})
    assert set(trail.log(limit=1)[0].paths) == {"memory/a.md", "memory/b.md"}
    git(trail.root, "reset", "--quiet", "--hard")
    git(trail.root, "checkout", "--quiet", "-b", "side")
    (trail.root / "memory" / "c.md").write_text("c")
    git(trail.root, "add", ".")
    git(trail.root, "commit", "--quiet", "-m", "side")
    git(trail.root, "checkout", "--quiet", "main")
    git(trail.root, "merge", "--quiet", "--no-ff", "-m", "both", "side")
    assert trail.log(limit=1)[0].paths == ("memory/c.md",)


def test_links_and_submodules_of_a_person_are_no_text(trail: History) -> None:
    commit(trail, {"memory/a.md": b"1"})
    git(trail.root, "reset", "--quiet", "--hard")
    (trail.root / "memory" / "l.md").symlink_to("a.md")
    git(trail.root, "add", ".")
    git(trail.root, "commit", "--quiet", "-m", "link")
    assert set(trail.blobs()) == {"memory/a.md"}


def test_diff_and_blame(trail: History) -> None:
    commit(trail, {"a.md": b"one\r\ntwo\r\n"})
    trail.commit([Commit(("Ann", "a@b"), NOW, "more\n", {"a.md": b"one\r\nTWO\r\n\xff\n"})])
    assert "-two\r\n+TWO\r\n" in trail.diff("HEAD~1", "HEAD")
    assert "+one" in trail.diff(None, "HEAD~1") and "a.md" in trail.diff(None, "HEAD~1")
    now = b"zero\none\r\nTWO\r\n\xff\nlast"
    (trail.root / "a.md").write_bytes(now)
    shown = trail.diff("HEAD", None, ["a.md"])
    assert "+zero\n" in shown and "+last\n\\ No newline" in shown and "\n-" not in shown.replace("\n---", "")
    lines = trail.blame("a.md", now)
    assert [b.author for b in lines] == ["not committed yet", "ua-memory", "Ann", "Ann", "not committed yet"]
    assert [b.line for b in lines] == [1, 2, 3, 4, 5] and lines[0].revision == NOBODY
    assert [b.text for b in trail.blame("a.md", now, lines=(2, 3))] == ["one\r", "TWO\r"]
    assert [b.author for b in trail.blame("new.md", b"x\n")] == ["not committed yet"]


def test_blame_of_half_a_history(trail: History, tmp_path: Path) -> None:
    """Of a shallow clone, and of one that has lost a content: then nobody is taken for a line's author."""
    trail.commit([Commit(("Ann", "a@b"), NOW, "hers\n", {"a.md": b"one\n"})])
    commit(trail, {"a.md": b"one\ntwo\n"})
    commit(trail, {"a.md": b"one\ntwo\nthree\n"})
    git(tmp_path, "clone", "--quiet", "--depth=2", trail.root.as_uri(), "half")
    half = History(tmp_path / "half" / ".git", tmp_path / "half", own=True)
    assert [b.revision for b in half.blame("a.md", b"one\ntwo\nthree\n")] == [
        str(half.resolve("HEAD^")), str(half.resolve("HEAD^")), str(half.head())
    ]  # fmt: skip
    assert trail.blame("a.md", b"one\n")[0].author == "Ann"
    lost = blob_id(b"one\n")
    (trail.git_dir / "objects" / lost[:2] / lost[2:]).unlink()
    with pytest.raises(GitFailed):
        trail.blame("a.md", b"one\ntwo\n")


def test_attributes_and_filters_of_the_person_change_nothing(trail: History) -> None:
    (trail.root / ".gitattributes").write_text("* text=auto eol=crlf filter=up diff=odd\n")
    config = Path(os.environ["GIT_CONFIG_GLOBAL"])
    config.write_text('[filter "up"]\n\tclean = tr a-z A-Z\n\trequired\n[diff "odd"]\n\ttextconv = false\n')
    commit(trail, {"a.md": b"one\ntwo\n"})
    (trail.root / "a.md").write_bytes(b"one\ntwo\n")
    assert trail.read("HEAD", "a.md") == b"one\ntwo\n"
    assert trail.diff("HEAD", None, ["a.md"]) == ""
    assert "+one" in trail.diff(None, "HEAD", ["a.md"])
    assert {b.author for b in trail.blame("a.md", b"one\ntwo\n")} == {"ua-memory"}


def test_settings_and_hooks_of_the_person_change_nothing(trail: History, tmp_path: Path) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("pre-commit", "commit-msg", "reference-transaction", "post-commit", "post-index-change"):
        (hooks / name).write_text("#!/bin/sh\nexit 1\n")
        (hooks / name).chmod(0o755)
    Path(os.environ["GIT_CONFIG_GLOBAL"]).write_text(
        f"[core]\n\thooksPath = {hooks}\n\tautocrlf = true\n\tsafecrlf = true\n\tfsmonitor = true\n"
        "[commit]\n\tgpgsign = true\n[user]\n\tuseConfigOnly = true\n[log]\n\tshowSignature = true\n"
        "[i18n]\n\tlogOutputEncoding = latin1\n[color]\n\tui = always\n[diff]\n\tnoprefix = true\n"
        "\trenames = copies\n"
        "[init]\n\tdefaultBranch = trunk\n\tdefaultObjectFormat = sha256\n[pack]\n\tpackSizeLimit = 1\n"
        "[fetch]\n\tfsckObjects = true\n[format]\n\tpretty = oneline\n[grep]\n\tpatternType = perl\n"
    )
    made = commit(trail, {"a.md": b"caf\xc3\xa9\r\n"}, "caf\u00e9\n\nMemory-Op: test\n")
    assert trail.with_trailer("Memory-Op", "test")[0].subject == "café"
    assert trail.read(made, "a.md") == b"caf\xc3\xa9\r\n"
    assert "a/a.md" in trail.diff(None, made) or "b/a.md" in trail.diff(None, made)
    assert "\x1b" not in trail.diff(None, made)
    assert trail.person() == SOMEBODY


@pytest.mark.few(1)
@pytest.mark.parametrize("broken", ["[user\nname = x\n", "[core]\n\tcompression = 77\n", "\0"])
def test_settings_of_the_person_that_git_cannot_read_end_nothing(
    tmp_path: Path, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make(tmp_path / "bank")
    insert(store, "before")
    (tmp_path / "broken").write_text(broken)
    code = (
        "import sys\nfrom ua_memory import Memory\nm = Memory.open(sys.argv[1])\n"
        "done, log = m.insert('while they are broken'), m.history.log()\n"
        "print(done.result.revision, log[0].id, m.history.undo().revision.id)\n"
        "print([c.seen for c in m.health.doctor() if c.name == 'git'], len(m.health.verify()))"
    )
    env = {**os.environ, "GIT_CONFIG_GLOBAL": str(tmp_path / "broken")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, tmp_path / "bank"],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    ids, checked = done.stdout.splitlines()
    assert len(set(ids.split())) == 1 and checked.endswith(" 0")
    if "core" not in broken:
        assert "cannot read your settings" in checked and str(tmp_path / "broken") in checked
    assert "not installed" not in done.stdout


def test_a_git_that_does_not_run_says_why(tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "git"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho 'fatal: libfancy.so is missing' >&2\nexit 127\n")
    tool.chmod(0o755)
    code = (
        "import sys\nfrom pathlib import Path\nfrom ua_memory.git.process import Process\n"
        "from ua_memory.errors import GitFailed\n"
        "try: Process(Path(sys.argv[1]), Path(sys.argv[1]), own=True).run('version')\n"
        "except GitFailed as error: print(error)"
    )
    env = {**os.environ, "PATH": str(tool.parent)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, tmp_path], env=env, capture_output=True, text=True, check=True
    )
    assert "libfancy.so is missing" in done.stdout and "not installed" not in done.stdout


def test_variables_that_a_hook_leaves_change_nothing(
    trail: History, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in {
        "GIT_DIR": tmp_path / "other",
        "GIT_INDEX_FILE": tmp_path / "index",
        "GIT_OBJECT_DIRECTORY": tmp_path / "objects",
        "GIT_WORK_TREE": tmp_path,
        "GIT_NAMESPACE": "x",
        "GIT_ICASE_PATHSPECS": "1",
        "GIT_CONFIG_PARAMETERS": "'core.bare=true'",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.bare",
        "GIT_CONFIG_VALUE_0": "true",
        "GIT_PREFIX": "sub/",
    }.items():
        monkeypatch.setenv(name, str(value))
    fresh = History(trail.git_dir, trail.root, own=True)
    made = commit(fresh, {"a.md": b"1"})
    assert fresh.head() == made and fresh.blobs() == {"a.md": blob_id(b"1")}
    assert not (tmp_path / "objects").exists() and not (tmp_path / "other").exists()


def test_head_is_found_wherever_git_keeps_it(trail: History) -> None:
    made = commit(trail, {"a.md": b"1"})
    git(trail.root, "pack-refs", "--all")
    assert not (trail.git_dir / "refs/heads/main").exists() and trail.head() == made
    git(trail.root, "update-ref", "refs/heads/new", made)
    git(trail.root, "symbolic-ref", "refs/heads/other", "refs/heads/new")
    git(trail.root, "symbolic-ref", "HEAD", "refs/heads/other")
    assert trail.head() == made
    git(trail.root, "checkout", "--quiet", "--detach")
    assert trail.head() == made
    with pytest.raises(GitFailed, match="detached"):
        commit(trail, {"a.md": b"2"})


def test_refs_that_are_kept_in_a_table(tmp_path: Path) -> None:
    root = tmp_path / "b"
    root.mkdir()
    if (
        "reftable" not in git(root, "init", "--quiet", "--ref-format=reftable", ".", ok=False)
        and not (root / ".git/reftable").exists()
    ):
        pytest.skip("this git knows no reftable")
    trail = History(root / ".git", root, own=True)
    made = commit(trail, {"a.md": b"1"})
    assert trail.head() == made and trail.ref().startswith("refs/heads/")


def test_a_making_that_was_cut_short_is_made_again(tmp_path: Path) -> None:
    trail = History(tmp_path / "t.git", tmp_path, own=False)
    trail.git_dir.mkdir()
    (trail.git_dir / "HEAD").write_text("ref: refs/heads/main\n")
    assert not trail.exists and trail.head() is None
    trail.create()
    commit(trail, {"a.md": b"1"})
    assert trail.run("fsck", "--strict") == b""


def test_repacking_keeps_everything(trail: History) -> None:
    ids = [commit(trail, {"a.md": bytes([65 + n]) * 100 * n}) for n in range(30)]
    git(trail.root, "reset", "--quiet", "--hard")
    (trail.root / "a.md").write_text("stashed")
    git(trail.root, "stash", "--quiet")
    lost = git(trail.root, "stash", "drop").split("(")[-1].rstrip(")\n")
    for _ in range(3):
        trail.repack()
        assert [r.id for r in trail.log()] == ids[::-1]
        assert [trail.read(i, "a.md") for i in ids] == [bytes([65 + n]) * 100 * n for n in range(30)]
    assert git(trail.root, "cat-file", "-t", lost) == "commit\n", (
        "what no branch leads to is not ours to drop"
    )


def test_a_failing_commit_leaves_no_report(trail: History) -> None:
    commit(trail, {"a.md": b"1"})
    (trail.git_dir / "refs/heads/main.lock").touch()
    with pytest.raises(GitFailed):
        commit(trail, {"a.md": b"2"})
    assert not list(trail.git_dir.glob("fast_import_crash*"))
    (trail.git_dir / "refs/heads/main.lock").unlink()
    with pytest.raises(GitFailed):
        trail.run("fast-import", stdin=b"nonsense\n")


def test_git_that_goes_away(trail: History, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(trail, {"a.md": b"1"})
    trail.run("repack", "-a", "-d", "-k", "-q")
    trail.close()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(GitFailed, match="not installed"):
        trail.read("HEAD", "a.md")
    assert trail.person() == SOMEBODY
    assert trail.head() is not None


SECRETIVE = "the wording of this fact must not stand in a message"


def test_a_git_that_cannot_say_what_there_is_does_not_say_no(
    trail: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sync that took it for a no joined what a purge had let go of (I68)."""
    old, new = commit(trail, {"a.md": b"1"}), commit(trail, {"a.md": b"2"})
    assert trail.is_within(old, new) and not trail.is_within(new, old)
    for gone in ("1" * 40, "no such thing"):
        assert not trail.has(gone) and not trail.is_within(gone, new) and not trail.is_within(new, gone)
    real, calls = Process.run, count()

    def run(self: Process, *words: str, **more: Any) -> bytes:
        if next(calls) == 0:
            raise GitFailed("git did not start")
        return real(self, *words, **more)

    monkeypatch.setattr(Process, "run", run)
    for ask in (lambda: trail.has(old), lambda: trail.is_within(old, new), lambda: trail.holds(old)):
        calls = count()
        with pytest.raises(GitFailed):
            ask()


def test_no_message_has_the_text_of_a_fact(tmp_path: Path) -> None:
    store = make(tmp_path / "b")
    insert(store, SECRETIVE)
    old = store.read(DAY).decode()
    insert(store, f"{SECRETIVE} either")
    write(store, DAY, old + f"- {SECRETIVE} by hand\n")
    store.adopt()
    write(store, "memory/note.md", f"- {SECRETIVE}\n\nprose {SECRETIVE}\n")
    (store.bank.root / DAY).unlink()
    store.adopt(accept=True)
    assert SECRETIVE not in store.history.run("log", "--format=%B%an%ae").decode()
    assert len(store.history.log()) > 4


@pytest.mark.parametrize("request_id", ["", " ", "a\nFacts: ^x", "a  b", "x" * 201, "a\x1f"])
def test_a_request_id_that_would_not_be_found_again(tmp_path: Path, request_id: str) -> None:
    store = make(tmp_path / "b")
    with pytest.raises(Usage), store.revision("x", door="test", request=request_id):
        pass


def test_requests_are_found_among_others_that_look_like_them(tmp_path: Path) -> None:
    store = make(tmp_path / "b")
    for request in ("r.1", "r11", "r.1 b", "Request: r.1"):
        insert(store, f"of {request}", request=request)
    found = store.find_request("r.1")
    assert found and found.id == store.history.log()[3].id
    assert store.find_request("r.2") is None and store.find_request("r") is None
    assert len(in_trail(store)) == 4


def test_few_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An insert commits: one process. It brings the index along itself, and reads the trail through the one
    that stays open."""
    make(tmp_path / "b")
    store: Store = open_again(tmp_path / "b")
    insert(store, "first")
    asked: list[str] = []
    run = store.history.run
    monkeypatch.setattr(
        store.history, "run", lambda *words, **more: (asked.append(words[0]), run(*words, **more))[1]
    )
    insert(store, "second")
    assert asked == ["fast-import"]


# -- index ---------------------------------------------------------------------------------------------


@pytest.fixture
def staged(trail: History) -> History:
    """With an index that has files in folders, one that runs, and one of a merge that is not settled."""
    commit(trail, {"a.md": b"1", "sub/b.md": b"2", "sub/deep/c.md": b"3", "z.md": b"4"})
    one, other = (
        trail.run("hash-object", "-w", "--stdin", stdin=data).decode().strip() for data in (b"x", b"y")
    )
    rows = f"100755 {one} 0\trun.sh\0100644 {one} 1\tm.md\0100644 {one} 2\tm.md\0100644 {other} 3\tm.md\0"
    trail.run("update-index", "-z", "--index-info", stdin=rows.encode())
    return trail


PATHS = [
    "a.md",
    "a.md/x.md",
    "sub",
    "sub/b.md",
    "sub/deep",
    "sub.md",
    "m.md",
    "run.sh",
    "ö" * 90,
    f"{'p' * 2100}/q",
]


def test_index_entries_are_set_as_git_sets_them(staged: History) -> None:
    chosen, index = Random(7), staged.git_dir / "index"
    his, ours = staged.git_dir / "his", staged.git_dir / "ours"
    for _ in range(40):
        paths = chosen.sample(PATHS, chosen.randint(1, 4))
        ids = {path: chosen.choice([None, blob_id(b"new"), blob_id(b"1")]) for path in paths}
        for copy in (his, ours):
            shutil.copy2(index, copy)
        assert set_entries(ours, ids) and not (staged.git_dir / "index.lock").exists()
        rows = [f"100644 {id}\t{path}\0" if id else f"0 {NOBODY}\t{path}\0" for path, id in ids.items()]
        where = [{"GIT_INDEX_FILE": str(file)} for file in (his, ours)]
        staged.run("update-index", "-z", "--index-info", stdin="".join(rows).encode(), env=where[0])
        shown = [staged.run("ls-files", "--stage", "-z", env=env) for env in where]
        assert shown[0] == shown[1], ids


@pytest.mark.parametrize(
    "how", ["version 4", "split", "locked", "missing", "noise", "cut short", "a link", "large", "sha256"]
)
def test_an_index_of_another_kind_is_gits_to_change(staged: History, how: str) -> None:
    index = staged.git_dir / "index"
    match how:
        case "version 4":
            staged.run("update-index", "--index-version", "4")
        case "split":
            staged.run("update-index", "--split-index")
        case "locked":
            index.with_name("index.lock").touch()
        case "missing":
            index.unlink()
        case "noise":
            index.write_bytes(index.read_bytes().replace(b"a.md", b"b.md"))
        case "cut short":
            index.write_bytes(index.read_bytes()[:-30])
        case "a link":
            index.symlink_to(index.replace(index.with_name("elsewhere")))
        case "large":
            rows = "".join(f"100644 {blob_id(b'x')}\tmany/{n:050}\0" for n in range(600))
            staged.run("update-index", "-z", "--index-info", stdin=rows.encode())
        case "sha256":
            raw = index.read_bytes()[:-20]
            index.write_bytes(raw + hashlib.sha256(raw).digest())
    before = {file.name: file.read_bytes() for file in staged.git_dir.glob("*index*")}
    assert not set_entries(index, {"a.md": blob_id(b"new")})
    assert {file.name: file.read_bytes() for file in staged.git_dir.glob("*index*")} == before


def test_a_file_that_was_changed_again_in_the_second_of_its_index_is_seen_to_be(trail: History) -> None:
    """git reads a file that is no older than the index, and believes the time of others; ours is newer."""
    commit(trail, {"a.md": b"1"})
    file, index, second = trail.root / "b.md", trail.git_dir / "index", int(time.time()) - 60
    file.write_text("staged")
    os.utime(file, (second, second + 0.1))
    trail.run("add", "b.md")
    os.utime(index, (second, second + 0.2))
    file.write_text("edited")
    os.utime(file, (second, second + 0.3))
    assert not any(
        set_entries(index, {path: blob_id(b"2")}) for path in (".git/x", "../a.md", "a//b", ".GIT/x")
    )
    assert set_entries(index, {"a.md": blob_id(b"2")})
    words = ("-c", "core.trustctime=false", "-c", "core.checkStat=minimal")
    assert git(trail.root, *words, "status", "--porcelain", "b.md") == "AM b.md\n"


def test_few_processes_for_many_edits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a checkout each file asked for by itself kept a search waiting for seconds."""
    store, notes = make(tmp_path / "b"), [f"memory/note-{n}.md" for n in range(40)]
    for number, note in enumerate(notes):
        write(store, note, f"- told here, {number}\n" if number % 2 else "- told twice\n")
    store.adopt()
    for note in notes:
        write(store, note, (store.bank.root / note).read_text() + f"- {note} said more\n")
    asked: list[str] = []
    run = Process.run
    monkeypatch.setattr(
        Process, "run", lambda self, *words, **more: (asked.append(words[0]), run(self, *words, **more))[1]
    )
    assert len(store.survey().changed) == len(notes) and len(asked) < 5
    asked.clear()
    store.adopt()
    assert len(asked) < 10, asked
    assert not store.survey().changed
    assert all(store.history.read("HEAD", note) == store.read(note) for note in notes)


@pytest.mark.parametrize("cut", [0, 1, 20, 60, 61, -1])
def test_an_answer_that_breaks_off_is_no_answer(
    cut: int, trail: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was cut short was taken for the whole of a file, or ended in a bug."""
    revision = commit(trail, {"a.md": b"told\n", "b.md": b""})
    wanted = [(revision, "a.md"), (revision, "none.md"), (revision, "b.md"), (revision, "")]
    assert trail.read_all(wanted) == [b"told\n", None, b"", None]
    run = Process.run
    monkeypatch.setattr(Process, "run", lambda self, *words, **more: run(self, *words, **more)[:cut])
    monkeypatch.setattr(ObjectReader, "read", ended)
    with pytest.raises(GitFailed, match="ended early"):
        trail.read_all(wanted)


AUTHOR = {f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def ended(*_: object) -> None:
    raise BatchEnded


def reading(trail: History) -> int:
    """The process that reads objects; 0 if none runs."""
    batch = trail._objects._batch
    return batch.pid if batch and batch.poll() is None else 0


def test_objects_are_read_through_one_process(trail: History) -> None:
    made = [commit(trail, {"a.md": b"%d" % n}) for n in range(3)]
    trail.run("repack", "-a", "-d", "-k", "-q")
    assert trail.read(made[0], "a.md") == b"0"
    first = reading(trail)
    many = [(sha, "a.md") for sha in made * 200]  # more than a pipe holds
    assert trail.read_all(many) == [b"0", b"1", b"2"] * 200
    assert trail.read_all([(made[0], "no\nsuch.md"), (made[2], "a.md")]) == [None, b"2"]
    assert reading(trail) == first
    os.kill(first, signal.SIGKILL)
    assert trail.read(made[1], "a.md") == b"1", "killed, and started again"
    trail.close()
    assert not reading(trail) and trail.read(made[1], "a.md") == b"1", "closed, and opened again"
    last = reading(trail)
    trail.close()
    assert not Path(f"/proc/{last}").exists()


def test_an_object_in_a_file_of_its_own_is_read_without_a_process(trail: History) -> None:
    made = commit(trail, {"a.md": b"told", "sub/b.md": b""})
    names = trail.blobs()
    assert names == repository.parse_ls_tree(trail.run("ls-tree", "-r", "-z", made))
    tree = trail.run("rev-parse", f"{made}^{{tree}}").decode().strip()
    wanted = [made, f"{made}^{{commit}}", f"{made}^{{tree}}", tree, f"{tree}^{{tree}}", *names.values()]
    wanted += [f"{made}:{path}" for path in ("a.md", "sub", "sub/b.md")]
    loose = trail.read_objects(wanted)
    assert None not in loose and trail.read("HEAD", "sub/b.md") == b"" and not reading(trail)
    trail.run("repack", "-a", "-d", "-k", "-q")
    assert trail.read_objects(wanted) == loose and reading(trail), "packed"


@pytest.mark.parametrize(
    ("path", "asked"), [("no.md", False), ("sub/no.md", False), ("a.md/b.md", True), ("sub/", True)]
)
def test_a_path_that_does_not_stand_in_whole_trees_is_absent_and_an_odd_one_is_asked_of_git(
    trail: History, path: str, asked: bool
) -> None:
    made = commit(trail, {"a.md": b"told", "sub/b.md": b""})
    assert trail.read(made, path) is None and bool(reading(trail)) == asked
    assert trail.read_all([(made, path), (made, "a.md"), (made, path)]) == [None, b"told", None]
    trail.run("repack", "-a", "-d", "-k", "-q")
    assert trail.read(made, path) is None and reading(trail), "packed"


def test_a_parent_is_read_without_a_process(trail: History) -> None:
    one, two = commit(trail, {"a.md": b"1"}), commit(trail, {"a.md": b"2"})
    found, none = (trail.read_objects([f"{each}^^{{commit}}"])[0] for each in (two, one))
    assert found and (found.id, found.kind, none) == (one, "commit", None)
    trail.close()
    assert trail.read_objects([f"{two}^^{{commit}}"]) == [found] and not reading(trail)


def test_the_path_of_a_large_tree_is_asked_of_git(trail: History) -> None:
    made = commit(trail, {"b/a.md": b"told", **{f"{n:0100}.md": b"" for n in range(130)}})
    assert len(trail.read_objects([f"{made}^{{tree}}"])[0].data) > SMALL_TREE  # type: ignore[union-attr]
    assert not reading(trail)
    assert trail.read(made, "b/a.md") == b"told" and reading(trail)


@pytest.mark.parametrize("noise", [b"", b"noise", zlib.compress(b"blob 9\0told"), zlib.compress(b"told")])
def test_a_damaged_object_in_a_file_of_its_own_is_told(trail: History, noise: bytes) -> None:
    commit(trail, {"a.md": b"told"})
    blob = trail.blobs()["a.md"]
    file = trail.shared / "objects" / blob[:2] / blob[2:]
    file.chmod(0o644)
    file.write_bytes(noise)
    with pytest.raises(GitFailed):
        trail.blob(blob)


def test_no_object_is_replaced(trail: History) -> None:
    """`git replace` is for whoever looks: what was committed is what a bank has."""
    old, new = commit(trail, {"a.md": b"old"}), commit(trail, {"a.md": b"new"})
    before = trail.blobs()
    for shown, instead in ((new, old), (before["a.md"], trail.blobs(rev=old)["a.md"])):
        trail.run("replace", shown, instead)
    again = History(trail.git_dir, trail.root, own=True)
    assert again.blobs() == before and again.read("HEAD", "a.md") == again.blob(before["a.md"]) == b"new"
    trail.run("repack", "-a", "-d", "-k", "-q")
    assert again.blob(before["a.md"]) == b"new"


def test_an_object_that_was_deleted_with_its_pack_is_not_answered(trail: History) -> None:
    """The process that stays has the pack open; forget --purge must not be told that it is there."""
    old, new = commit(trail, {"a.md": b"gone"}), commit(trail, {"a.md": b"stays"})
    blob = trail.blobs(rev=old)["a.md"]
    trail.run("repack", "-a", "-d", "-k", "-q")
    assert trail.read_all([(blob, ""), (old, "a.md")]) == [b"gone", b"gone"]
    tree = trail.run("rev-parse", f"{new}^{{tree}}").decode().strip()
    alone = trail.run("commit-tree", tree, "-m", "alone", env=AUTHOR).decode().strip()
    trail.run("update-ref", trail.ref(), alone)
    trail.run("reflog", "expire", "--expire=now", "--all")
    trail.run("repack", "-a", "-d", "-q")
    trail.run("prune", "--expire=now")
    assert trail.read_all([(blob, ""), (old, "a.md"), (alone, "a.md")]) == [None, None, b"stays"]
    assert [one.id for one in trail.log()] == [alone]


def test_a_forked_process_reads_through_its_own(trail: History) -> None:
    made = commit(trail, {"a.md": b"told"})
    trail.run("repack", "-a", "-d", "-k", "-q")
    assert trail.read(made, "a.md") == b"told"
    first = reading(trail)
    if not (child := os.fork()):
        os._exit(0 if trail.read(made, "a.md") == b"told" and reading(trail) != first else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert reading(trail) == first and trail.read(made, "a.md") == b"told"


def test_the_process_that_reads_objects_ends_with_its_owner(trail: History) -> None:
    """Also where that is killed: what it reads from is closed then."""
    made = commit(trail, {"a.md": b"told"})
    trail.run("repack", "-a", "-d", "-k", "-q")
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom ua_memory.git.history import History\n"
        f"trail = History(Path({str(trail.git_dir)!r}), Path({str(trail.root)!r}), own=True)\n"
        f"trail.read({made!r}, 'a.md')\nprint(trail._objects._batch.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    left, until = Path(f"/proc/{int(done.stdout)}"), time.monotonic() + 10
    while left.exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert not left.exists()


def log_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    calls: list[tuple[str, ...]] = []
    run = Process.run

    def noting(self: Process, *words: str, **more: Any) -> bytes:
        calls.append(words)
        return run(self, *words, **more)

    monkeypatch.setattr(Process, "run", noting)
    return calls


def test_the_log_is_read_once_per_head(trail: History, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [commit(trail, {f"{n % 2}.md": b"%d" % n}, f"{n}\n\nNumber: {n}\n") for n in range(6)]
    calls = log_calls(monkeypatch)
    assert [one.id for one in trail.log()] == made[::-1]
    assert [one.id for one in trail.log(["1.md"], limit=2)] == [made[5], made[3]]
    assert [one.id for one in trail.with_trailer("Number", "3")] == [made[3]]
    assert trail.show(made[2]).paths == ("0.md",) and trail.undone_revisions() == set()
    assert len(calls) == 1
    made.append(commit(trail, {"1.md": b"new"}, f"x\n\nUndoes: {made[1]}\n"))
    calls.clear()
    assert [one.id for one in trail.log(["1.md"])] == [made[6], made[5], made[3], made[1]]
    assert trail.undone_revisions() == {made[1]}
    assert calls == [(*calls[0][:-1], f"{made[5]}..{made[6]}")], "only what is new is read"
    trail.run("update-ref", trail.ref(), made[2])
    assert [one.id for one in trail.log()] == made[2::-1], "a history that goes back is read anew"
    assert trail.undone_revisions() == set()


def test_a_long_log_is_read_as_far_as_it_is_asked_for(
    trail: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = [
        Commit(MACHINE, NOW, f"{n}\n\nNumber: {n}\n", {f"{n % 50}.md": b"%d" % n}) for n in range(1200)
    ]
    made = trail.commit(commits)
    said = git(trail.root, "log", "--format=%H", "--", "7.md").split()
    calls = log_calls(monkeypatch)
    assert trail.log(limit=1)[0].id == made[-1]
    assert trail.log(["49.md"], limit=1)[0].id == made[-1] and len(calls) == 1
    for _ in range(2):  # by git itself, then out of what was read
        assert [one.id for one in trail.log(["7.md"])] == said
    assert [one.id for one in trail.with_trailer("Number", "1199")] == [made[-1]]
    assert [one.paths for one in trail.with_paths(trail.with_trailer("Number", "77"))] == [
        *[(f"{n % 50}.md",) for n in range(779, 769, -1)], ("27.md",)
    ]  # fmt: skip
    calls.clear()
    assert [one.id for one in trail.log()] == made[::-1] and trail.show(made[3]).subject == "3"
    assert [one.id for one in trail.log(["7.md"])] == said and not calls


def test_a_merge_changed_what_no_parent_has(trail: History) -> None:
    first = commit(trail, {"a.md": b"1\n2\n3\n", "b.md": b"b"})
    git(trail.root, "reset", "--quiet", "--hard")
    git(trail.root, "checkout", "--quiet", "-b", "side")
    theirs = trail.commit([Commit(MACHINE, NOW, "theirs\n", {"a.md": b"1\n2\nx\n", "b.md": b"c"})])[0]
    git(trail.root, "checkout", "--quiet", "--force", "main")
    ours = commit(trail, {"a.md": b"y\n2\n3\n"})
    git(trail.root, "reset", "--quiet", "--hard")
    git(trail.root, "merge", "--quiet", "--no-edit", "side")
    merged = str(trail.head())
    assert {one.id for one in trail.log(["a.md"])} == {merged, ours, theirs, first}
    assert {one.id for one in trail.log(["b.md"])} == {theirs, first}, "the merge took what one side had"
    assert trail.show(merged).paths == ("a.md", "b.md")
