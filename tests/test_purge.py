"""Purging: out of the history, too, with a backup that is finished with only when its owner deletes it."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest
from banks import DAY, NOON, Bank, git, new_bank, repository
from terminal import new_shell
from test_forget import CARD, SAID, believe, by_machine, link

from ua_memory.errors import Conflict, GitFailed, StillThere, Usage
from ua_memory.git import process as locks
from ua_memory.git import rewrite as kept
from ua_memory.git import rewrite as rewriting
from ua_memory.memory import Memory
from ua_memory.records import Fact
from ua_memory.upkeep import audit
from ua_memory.upkeep import init as banks
from ua_memory.upkeep import purge as purging
from ua_memory.upkeep.purge import PurgeResult
from ua_memory.upkeep.undo import BankHistory

OFFICE = "The office closes at six."


@pytest.fixture
def there(tmp_path: Path) -> Bank:
    return new_bank(tmp_path / "bank")


def purge(bank: Bank, *ids: str, backup: str = "old.bundle") -> PurgeResult:
    memory = Memory(bank.store)
    return memory.purges.run(memory.purges.plan(*ids), bank.root.parent / "backups" / backup)


def objects(bank: Bank) -> bytes:
    return b"\n".join(data for _, _, data in rewriting.all_objects(bank.store.history))


def lived(bank: Bank) -> tuple[Fact, Fact]:
    """A bank with a life: the fact was edited by hand, cited, and something was undone."""
    gone, card = bank.insert(SAID).fact, bank.insert(CARD).fact
    bank.insert(OFFICE)
    bank.edit("doubled.", "doubled twice.")
    bank.store.adopt()
    believe(bank, "Alice left Heroku.", (bank.find(gone.id), "Alice moved the API"))
    by_machine(bank, f"The API moved away. {link(gone)} By card. {link(card)}\n")
    undone = BankHistory(bank.store, "test").undo()
    assert undone.result.revision
    return gone, card


def test_no_object_has_it_and_all_else_stands(there: Bank, tmp_path: Path) -> None:
    gone, card = lived(there)
    git(there.root, "tag", "v1")
    git(there.root, "branch", "old", "HEAD~2")
    (there.root / ".git/COMMIT_EDITMSG").write_text(f"by hand: {SAID}\n")
    before = git(there.root, "log", "--format=%s%n%an%n%at", "main").replace(str(gone.id), "")
    Memory(there.store).forget(f"^{gone.id}")
    tree, files = git(there.root, "rev-parse", "HEAD^{tree}"), there.bytes()
    done = purge(there)

    assert set(done.rewrote) == {"refs/heads/main", "refs/heads/old", "refs/tags/v1"} and done.proof.is_clean
    left = objects(there)
    for text in (SAID, SAID.replace("doubled", "doubled twice"), "Alice left Heroku", "The API moved away"):
        assert text.encode() not in left, text
    assert CARD.encode() in left and OFFICE.encode() in left and b"By card." in left
    assert git(there.root, "rev-parse", "HEAD~1^{tree}") == tree and there.bytes() == files and there.clean()
    assert git(there.root, "log", "--format=%s%n%an%n%at", "main~2") == before
    assert git(there.root, "status", "--short") == "" and Memory(there.store).health.verify() == []
    newest, *_, undone = (r for r in there.store.history.log() if r.trailer("Memory-Op") in ("purge", "undo"))
    assert f"^{gone.id}" in newest.trailers["Purged"] and card.id
    assert there.store.history.show(undone.trailer("Undoes")).subject == "test"  # the new history's own id
    rewrote = dict(row.split(" ", 1) for row in newest.trailers["Rewrote"])
    assert rewrote["refs/heads/main"].split()[1] == git(there.root, "rev-parse", "HEAD~1").strip()

    backup = Path(done.backup)
    assert backup.stat().st_mode & 0o777 == 0o600
    repository(tmp_path / "again")
    git(tmp_path / "again", "fetch", "--quiet", str(backup), "main")
    assert SAID in git(tmp_path / "again", "log", "-p", "FETCH_HEAD")
    (unfinished,) = Memory(there.store).purges.unfinished()
    assert (unfinished.backup, unfinished.done) == (str(backup), True)
    backup.unlink()
    assert Memory(there.store).purges.unfinished() == []
    forgetting = next(r for r in there.store.history.log() if r.trailer("Memory-Op") == "forget")
    with pytest.raises(Conflict, match="purged"):
        BankHistory(there.store, "test").undo(forgetting.id)


def test_a_mark_that_a_killed_git_left_keeps_no_pack_and_somebodys_mark_is_refused(
    there: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`git fast-import` killed between its pack and the ref leaves one; a repack would leave the pack."""
    gone = there.insert(SAID).fact
    there.insert(CARD)
    Memory(there.store).forget(f"^{gone.id}")
    git(there.root, "repack", "-a", "-d", "-q")
    (pack,) = (there.root / ".git/objects/pack").glob("*.pack")
    mark, lent = pack.with_suffix(".keep"), there.root / ".git/objects/info/alternates"
    monkeypatch.setattr(kept, "IMPORT_CHECKS", 1)
    here = socket.gethostname()
    for said in ("", "mine\n", f"fetch-pack {os.getpid()} on {here}", "fetch-pack 1 on elsewhere"):
        mark.write_text(said)
        with pytest.raises(Conflict, match=r"\.keep file"):
            purge(there, backup=f"{len(said)}.bundle")
        assert mark.exists() and not there.root.parent.joinpath("backups").exists()
    mark.write_text("fast-import")
    with subprocess.Popen(["git", "fast-import", "--quiet"], cwd=there.root, stdin=subprocess.PIPE) as alive:
        with pytest.raises(Conflict, match=r"\.keep file"):
            purge(there)
        assert alive.stdin
        alive.stdin.close()
    lent.write_text("/elsewhere/objects\n")
    with pytest.raises(Conflict, match="another repository"):
        purge(there)
    lent.unlink()
    done = purge(there)
    assert (
        done.proof.is_clean
        and not mark.exists()
        and not pack.exists()
        and SAID.encode() not in objects(there)
    )


def test_in_somebodys_repository_theirs_is_not_touched(tmp_path: Path) -> None:
    outer = repository(tmp_path / "code", {"main.py": f"# {SAID}\n"})
    banks.init(outer / "notes", lambda: NOON, timezone="UTC", door="test")
    there = Bank(outer / "notes")
    gone = there.insert(SAID).fact

    def theirs() -> tuple[str, str, list[str]]:
        names = sorted(entry.name for entry in (outer / ".git").iterdir())
        return git(outer, "for-each-ref"), git(outer, "rev-parse", "HEAD"), names

    before = theirs()
    Memory(there.store).forget(f"^{gone.id}")
    assert purge(there).proof.is_clean and SAID.encode() not in objects(there)
    assert theirs() == before
    assert SAID in git(outer, "show", "HEAD:main.py")


def test_what_somebodys_repository_has_committed_of_the_bank_is_said(tmp_path: Path) -> None:
    outer = repository(tmp_path / "code", {"main.py": ""})
    banks.init(outer / "notes", lambda: NOON, timezone="UTC", door="test")
    there, shell = Bank(outer / "notes"), new_shell(tmp_path / "new")
    gone = there.insert(SAID).fact
    memory = Memory(there.store)
    memory.forget(f"^{there.insert(CARD).fact.id}")
    assert not memory.purges.plan().around
    git(outer, "add", "notes")
    git(outer, "commit", "-q", "-m", "all of it")
    memory.forget(f"^{gone.id}")
    assert memory.purges.plan().around == str(outer)
    told = shell("--bank", str(outer / "notes"), "forget", "--purge", "--yes", "--backup", "../old.bundle")
    assert told.code == 0 and f"{outer} has committed files of this bank" in " ".join(told.err.split())
    assert f"Not rewritten: {outer}" in " ".join(told.out.split())


def test_only_what_is_named_leaves_the_history(there: Bank) -> None:
    first, second = there.insert(SAID).fact, there.insert(CARD).fact
    Memory(there.store).forget(f"^{first.id}")
    Memory(there.store).forget(f"^{second.id}")
    assert Memory(there.store).purges.plan(f"^{first.id}").others == (second.id,)
    done = purge(there, f"^{first.id}")
    assert Memory(there.store).purges.plan(f"^{second.id}").others == ()
    assert done.ids == (first.id,) and SAID.encode() not in objects(there) and CARD.encode() in objects(there)
    with pytest.raises(Usage, match="not forgotten"):
        purge(there, "^aaaaaaaaaa")


def test_a_secret_in_a_line_that_has_no_id(there: Bank) -> None:
    token = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
    there.write(
        f"# Notes\n\n- The token is {token} for now.\n- other\n\nLater: curl -H {token} x\n", "memory/n.md"
    )
    there.store.adopt()
    memory = Memory(there.store)
    (path, line, _), _ = audit.find_secrets(memory.store)
    first = memory.forget(f"{path}:{line}")
    assert [each.where for each in first.proof.found] == ["memory/n.md:5"]  # the other line has it, too
    with pytest.raises(StillThere):
        memory.purges.plan()
    assert memory.forget("memory/n.md:5").proof.is_clean and audit.find_secrets(memory.store) == []
    planned = memory.purges.plan()  # by the hashes alone: these lines never had an id
    assert not planned.unknown and len(planned.ids) == 2
    assert memory.purges.run(planned, there.root.parent / "old.bundle").proof.is_clean
    assert token.encode() not in objects(there) and b"- other" in objects(there)
    assert set(memory.purges.plan().unknown) == set(planned.ids)


def test_a_persons_line_that_only_cites_it_stays_as_it_is(there: Bank) -> None:
    gone = there.insert(SAID).fact
    there.write(f"# Notes\n\nAsk Ann before, see [[2026-11-21#^{gone.id}]].\n", "memory/notes.md")
    (there.root / "todo.txt").write_text(f"{SAID}\n")
    git(there.root, "add", "-A")
    git(there.root, "commit", "--quiet", "-m", "notes")
    Memory(there.store).forget(f"^{gone.id}")
    with pytest.raises(StillThere, match=r"todo\.txt"):
        Memory(there.store).purges.plan()
    git(there.root, "rm", "--quiet", "todo.txt")
    git(there.root, "commit", "--quiet", "-m", "done")
    before = there.text("memory/notes.md")
    assert Memory(there.store).purges.plan().citing == ("memory/notes.md",)
    assert purge(there).proof.is_clean
    assert there.text("memory/notes.md") == before and there.clean()
    assert before == git(there.root, "show", "HEAD:memory/notes.md")


def test_what_it_refuses(there: Bank) -> None:
    gone = there.insert(SAID).fact
    there.insert(OFFICE)
    Memory(there.store).forget(f"^{gone.id}")
    head = there.store.history.head()
    memory = Memory(there.store)
    planned = memory.purges.plan()
    for inside in (there.root / "x.bundle", there.root / ".git" / "x.bundle"):
        with pytest.raises(Usage, match="inside the bank"):
            memory.purges.run(planned, inside)
    there.write(f"{there.text()}\nMine: {SAID}\n")
    there.store.adopt()
    with pytest.raises(StillThere, match="the files still have it"):
        memory.purges.plan()
    BankHistory(there.store, "test").undo(there.store.history.head())
    git(there.root, "worktree", "add", "--quiet", "--detach", str(there.root.parent / "tree"))
    with pytest.raises(Conflict, match="work trees"):
        memory.purges.plan()
    git(there.root, "worktree", "remove", str(there.root.parent / "tree"))
    there.edit(OFFICE, "Another.")
    git(there.root, "stash", "--quiet")
    with pytest.raises(Conflict, match="stashes"):
        memory.purges.plan()
    git(there.root, "stash", "drop", "--quiet")
    assert git(there.root, "merge-base", "--is-ancestor", str(head), "HEAD") == ""


@pytest.mark.few(2)
@pytest.mark.parametrize("step", ["back_up", "_run_filter_repo", "rewrite_history", "delete_unreachable"])
def test_a_purge_that_is_cut_short_is_done_again(
    there: Bank, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    gone, _ = lived(there)
    Memory(there.store).forget(f"^{gone.id}")
    head, real = there.store.history.head(), getattr(rewriting, step)

    def fails(*words: object) -> object:
        if step == "rewrite_history":
            real(*words)  # the refs are moved, and nothing comes after it
        raise GitFailed("killed")

    with monkeypatch.context() as patch, pytest.raises(GitFailed):
        patch.setattr(rewriting, step, fails)
        purge(there)
    assert (there.store.history.head() == head) == (step in ("back_up", "_run_filter_repo"))
    assert [one.done for one in purging.open_purges(there.store)] == ([] if step == "back_up" else [False])
    assert Memory(there.store).health.verify() == []
    done = purge(there, backup="second.bundle")
    assert done.proof.is_clean and SAID.encode() not in objects(there)
    assert not (there.store.bank.state / purging.WORK_FOLDER).exists() and there.text(DAY).count(CARD) == 1
    assert all(one.done for one in purging.open_purges(there.store))
    if step in ("rewrite_history", "delete_unreachable"):  # only the first has the old history
        (only,) = (there.root.parent / "backups").iterdir()
        assert only.name == "old.bundle" and done.backup == str(only)


def test_an_index_that_a_killed_process_left_locked(there: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, _ = lived(there)
    lock = there.store.history.git_dir / "index.lock"
    lock.touch()
    Memory(there.store).forget(f"^{gone.id}")
    with monkeypatch.context() as patch, pytest.raises(GitFailed, match="index is locked") as told:
        patch.setattr(rewriting, "STALE_SECONDS", -2)  # not waited for
        purge(there)
    assert told.value.where == str(lock) and told.value.hint.endswith(f"no git is running there: rm {lock}")
    monkeypatch.setattr(locks, "STALE_SECONDS", 1)
    done = purge(there, backup="second.bundle")
    assert done.proof.is_clean and SAID.encode() not in objects(there) and not lock.exists()


def test_from_the_command_line(tmp_path: Path) -> None:
    shell = new_shell(tmp_path)
    block = shell.ok("insert", SAID, "--json").json["id"]
    assert shell("forget", f"^{block}", "--purge").code == 2  # it is forgotten, and nobody could be asked
    planned = shell.ok("undo"), shell.ok("forget", f"^{block}", "--purge", "--dry-run")
    assert "will be rewritten" in planned[1].out and "keeps" not in planned[1].out
    shell.ok("forget", f"^{block}")
    shown = shell.ok("forget", "--purge", "--dry-run")
    assert "~ main" in shown.out and "1 forgotten statement" in shown.out
    done = shell.ok(
        "forget", f"^{block}", "--purge", "--yes", "--backup", str(tmp_path / "the old.bundle"), "--json"
    ).json
    assert done["purge"]["backup"] == str(tmp_path / "the old.bundle") and done["purge"]["found"] == []
    assert f"rm '{tmp_path / 'the old.bundle'}'" in shell.ok("status").out
    assert shell.ok("status", "--json").json["purges"][0]["done"] is True
    (tmp_path / "the old.bundle").unlink()
    assert "old.bundle" not in shell.ok("status").out
