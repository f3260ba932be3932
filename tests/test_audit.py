"""The audit trail read: log, blame, diff, and verify, which finds what is planted and nothing else."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from banks import DAY, Bank, everywhere, git, new_bank

from ua_memory.errors import NotFound, Usage
from ua_memory.git import repository as git_repository
from ua_memory.knowledge import statements as excerpts
from ua_memory.memory import Memory
from ua_memory.upkeep import audit
from ua_memory.upkeep import init as bank
from ua_memory.upkeep.undo import BankHistory

CLAWD = Path(os.environ.get("UA_SHARED") or Path(__file__).parents[2] / "shared") / "data" / "logs" / "clawd"
NOTES = "memory/notes.md"
TOKEN = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"


@pytest.fixture
def there(tmp_path: Path) -> Bank:
    return new_bank(tmp_path / "bank")


def ops(found: list[git_repository.Revision]) -> list[str]:
    return [r.trailer("Memory-Op") for r in found]


# -- log -------------------------------------------------------------------------------------------------


def test_log_of_all_of_a_file_and_of_an_operation(there: Bank) -> None:
    there.insert("one")
    there.write("- mine\n", NOTES)
    there.store.adopt()
    there.insert("two")
    assert ops(BankHistory(there.store, "test").log()) == ["insert", "edit", "insert", "init"]
    assert ops(BankHistory(there.store, "test").log(limit=2)) == ["insert", "edit"]
    assert ops(BankHistory(there.store, "test").log(about=NOTES)) == ["edit"]
    assert ops(BankHistory(there.store, "test").log(about=DAY, limit=1)) == ["insert"]
    assert ops(BankHistory(there.store, "test").log(op="insert")) == ["insert", "insert"]
    assert ops(BankHistory(there.store, "test").log(op="insert", limit=1)) == ["insert"]
    assert BankHistory(there.store, "test").log(op="ins") == []
    assert BankHistory(there.store, "test").log(about=NOTES, op="insert") == []


def test_log_of_what_is_not_there(there: Bank) -> None:
    with pytest.raises(Usage):
        BankHistory(there.store, "test").log(about="../x.md")
    with pytest.raises(NotFound):
        BankHistory(there.store, "test").log(about="memory/none.md")
    there.write("- mine\n", NOTES)
    assert BankHistory(there.store, "test").log(about=NOTES) == []
    with pytest.raises(NotFound):
        BankHistory(there.store, "test").log(about="^zzzzzzzzzz")
    with pytest.raises(NotFound):
        BankHistory(there.store, "test").log(about="^.*")


def test_log_of_a_fact(there: Bank) -> None:
    one = there.insert("one")
    there.insert("two")
    there.insert("one", equal=everywhere(there))
    there.edit("- one", "- one, corrected")
    there.store.adopt()
    there.edit("- one, corrected", "- one, corrected twice")
    there.store.adopt()
    about = f"^{one.fact.id}"
    assert ops(BankHistory(there.store, "test").log(about=about)) == ["edit", "edit", "insert", "insert"]
    assert ops(BankHistory(there.store, "test").log(about=about, op="edit", limit=1)) == ["edit"]
    history = BankHistory(there.store, "test")
    for target in (about, one.fact.id, f"[[2026-11-21#{about}]]", f"{DAY}:5"):
        said = history.statements_by_revision(history.log(about=target), target)
        assert {record.text for records in said.values() for record in records} >= {"one"}, target
    there.edit(there.text().splitlines()[4] + "\n", "")
    there.store.adopt()
    found = BankHistory(there.store, "test").log(about=about)
    assert ops(found) == ["edit", "edit", "edit", "insert", "insert"], "also of one that is gone"


def test_log_of_a_fact_that_was_moved(there: Bank) -> None:
    one = there.insert("one")
    line = there.text().splitlines()[-1]
    there.edit(line + "\n", "")
    there.write(line + "\n", NOTES)
    there.store.adopt()
    assert ops(BankHistory(there.store, "test").log(about=f"^{one.fact.id}")) == ["edit", "insert"]


def test_log_of_a_fact_nobody_has_committed(there: Bank) -> None:
    there.write("- mine ^abcdefghij\n", NOTES)
    assert BankHistory(there.store, "test").log(about="^abcdefghij") == []


# -- diff ------------------------------------------------------------------------------------------------


def test_diff_of_a_revision_and_of_the_first(there: Bank) -> None:
    done = there.insert("one")
    shown = audit.diff(there.store, done.result.revision)
    assert f"+- one ^{done.fact.id}" in shown and "MEMORY.md" not in shown
    first = audit.diff(there.store, there.store.history.log()[-1].id)
    assert "+++ b/MEMORY.md" in first and "+++ b/ua-memory.toml" in first
    with pytest.raises(NotFound):
        audit.diff(there.store, "nope")


def test_diff_of_hand_edits(there: Bank) -> None:
    there.insert("one")
    assert audit.diff(there.store) == ""
    there.edit("- one", "- one, changed")
    there.write("- new file\n", NOTES)
    there.path("MEMORY.md").unlink()
    shown = audit.diff(there.store)
    assert "+- one, changed" in shown
    assert f"+++ b/{NOTES}" in shown and "+- new file" in shown, "git diff HEAD would not show it"
    assert "--- a/MEMORY.md" in shown and "-# Memory" in shown
    there.store.adopt()
    assert audit.diff(there.store) == ""


def test_diff_before_the_first_revision(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "2026-11-21.md").write_text("- mine\n")
    assert "+- mine" in audit.diff(Bank(tmp_path).store)


# -- blame -----------------------------------------------------------------------------------------------


def test_blame(there: Bank) -> None:
    done = there.insert("one")
    there.write(there.text() + "\nMine.\n")
    there.store.adopt()
    there.write(there.text() + "Not committed.\n")
    lines = audit.blame(there.store, DAY)
    assert [line.line for line in lines] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [line.author for line in lines[:7:4]] == ["ua-memory", "ua-memory"]
    assert lines[6].author == "person" and lines[6].text == "Mine."
    assert not lines[7].revision.strip("0")
    assert audit.blame(there.store, f"{DAY}:5-7")[0].text.startswith("- one")
    assert len(audit.blame(there.store, f"{DAY}:7")) == 1
    assert len(audit.blame(there.store, f"{DAY}:7-9999")) == 2
    (line,) = audit.blame(there.store, f"^{done.fact.id}")
    assert (line.line, line.revision) == (5, done.result.revision)


def test_blame_of_a_file_that_no_revision_has(there: Bank) -> None:
    there.write("- mine ^abcdefghij\n", NOTES)
    for target in (NOTES, "^abcdefghij", f"{NOTES}:1"):
        (line,) = audit.blame(there.store, target)
        assert not line.revision.strip("0") and line.text == "- mine ^abcdefghij"


def test_blame_of_a_held_file(there: Bank) -> None:
    for n in range(9):
        there.insert(f"fact {n}")
    there.path().unlink()
    assert len(audit.blame(there.store, DAY)) == 13


@pytest.mark.parametrize(
    ("target", "error"),
    [
        (f"{DAY}:0", Usage),
        (f"{DAY}:7-5", Usage),
        (f"{DAY}:x", Usage),
        (f"{DAY}:-3", Usage),
        (f"{DAY}:3-", Usage),
        (f"{DAY}:1-2-3", Usage),
        (f"{DAY}:٣", Usage),
        (f"{DAY}:99", NotFound),
        ("memory/none.md", NotFound),
        ("../x.md", Usage),
        ("^zzzzzzzzzz", NotFound),
        ("^", NotFound),
    ],
)
def test_targets_that_are_none(there: Bank, target: str, error: type[Exception]) -> None:
    there.insert("one")
    with pytest.raises(error):
        audit.blame(there.store, target)


def test_targets() -> None:
    assert excerpts.parse_target("memory/a.md:3-4") == excerpts.NamedTarget("memory/a.md", "3-4")
    assert excerpts.parse_target("memory/a.md") == excerpts.NamedTarget("memory/a.md")
    assert excerpts.parse_target("memory/at 12:30.md") == excerpts.NamedTarget("memory/at 12:30.md")
    assert excerpts.parse_target("memory/at 12:30.md:2") == excerpts.NamedTarget("memory/at 12:30.md", "2")
    assert excerpts.parse_target("MEMORY.md:1") == excerpts.NamedTarget("MEMORY.md", "1")
    assert excerpts.line_span("a.md", "3", 3) == (3, 3)
    assert excerpts.line_span("a.md", "2-99", 3) == (2, 3)


# -- verify ----------------------------------------------------------------------------------------------


def said(there: Bank) -> str:
    return "\n".join(map(str, audit.verify(there.store)))


def test_a_good_bank_has_no_problem(there: Bank) -> None:
    for text in ("one", "```\nopen", "^k7m2q9x4tb", "- a\n  - when: x"):
        there.insert(text, tags=("a b",))
    BankHistory(there.store, "test").undo()
    there.write("- mine\n  - unknown: key\n\nProse.\n", NOTES)
    assert audit.verify(there.store) == []


@pytest.mark.shared
@pytest.mark.skipif(not CLAWD.is_dir(), reason="the shared data is not here")
def test_real_logs_have_no_problem(tmp_path: Path) -> None:
    shutil.copytree(CLAWD, tmp_path / "bank", copy_function=shutil.copyfile)
    for folder in (tmp_path / "bank", tmp_path / "bank" / "memory"):
        folder.chmod(0o755)
    bank.init(tmp_path / "bank")
    assert audit.verify(Bank(tmp_path / "bank").store) == []


def test_equal_ids_with_different_texts(there: Bank) -> None:
    """I35"""
    there.write("- one ^abcdefghij\n")
    there.write("- two ^abcdefghij\n", NOTES)
    there.write("- three ^abcdefghij\n- four ^abcdefghij\n", "memory/more.md")
    there.write("- one ^abcdefghij\n", "memory/same.md")
    shown = said(there)
    assert f"{NOTES}:1: ^abcdefghij is also {DAY}:1, with another text" in shown
    assert "memory/more.md:2: ^abcdefghij is already the id of another text, line 1" in shown
    assert "same.md" not in shown


def test_a_forgotten_fact_that_is_here_again(there: Bank) -> None:
    there.write("- one ^abcdefghij\n")
    there.write("- ^abcdefghij\n  - hash: 0123\n  - on: 2026-11-20\n", "memory/forgotten.md")
    assert f"{DAY}:1: ^abcdefghij was forgotten and is here again" in said(there)


def test_symbolic_links(there: Bank, tmp_path: Path) -> None:
    """I63"""
    (tmp_path / "outside.md").write_text("- theirs\n")
    there.path("memory/link.md").symlink_to(tmp_path / "outside.md")
    there.path("memory/folder").symlink_to(tmp_path)
    there.path("memory/picture.png").symlink_to(tmp_path / "x.png")
    there.path("memory/.hidden.md").symlink_to(tmp_path / "outside.md")
    there.path("MEMORY.md").unlink()
    there.path("MEMORY.md").symlink_to(tmp_path / "outside.md")
    assert [str(p).partition(":")[0] for p in audit.verify(there.store)] == [
        "MEMORY.md",
        "memory/folder",
        "memory/link.md",
    ]


def test_the_folder_of_logs_is_a_link(there: Bank, tmp_path: Path) -> None:
    there.path("memory").rename(tmp_path / "elsewhere")
    there.path("memory").symlink_to(tmp_path / "elsewhere")
    assert "memory:1: a symbolic link is not followed" in said(there)


def test_names_that_cannot_be_said(there: Bank) -> None:
    """Such a file was in no search and no revision, and nothing said so."""
    for name in (b"back\\slash.md", b"new\nline.md", b"no\xffutf.md", b".hid\\den.md", b"pict\\ure.png"):
        try:
            (there.root / "memory" / os.fsdecode(name)).write_text("- told\n")
        except OSError:  # macOS takes no name that is not UTF-8
            assert name == b"no\xffutf.md"
    found = [line.partition(":")[0] for line in said(there).splitlines() if "rename it" in line]
    assert {r"memory/back\\slash.md", r"memory/new\nline.md"} <= set(found)
    assert set(found) <= {r"memory/back\\slash.md", r"memory/new\nline.md", r"memory/no\udcffutf.md"}


def test_what_is_held(there: Bank) -> None:
    """I7"""
    for n in range(9):
        there.insert(f"fact {n}")
    there.path().unlink()
    assert f"{DAY}:1: facts disappeared all at once" in said(there)


def test_a_broken_trail(there: Bank) -> None:
    there.insert("one")
    blob = there.store.history.blobs([DAY])[DAY]
    assert git(there.root, "cat-file", "-t", blob).strip() == "blob"
    for pack in (there.root / ".git/objects/pack").glob("*.pack"):
        pack.chmod(0o644)
        pack.write_bytes(pack.read_bytes()[:-40] + b"\0" * 40)
    file = there.root / ".git/objects" / blob[:2] / blob[2:]
    if file.exists():
        file.chmod(0o644)
        file.write_bytes(b"\0" * 10)
    assert "git fsck failed" in said(there)


def test_a_flipped_byte_in_the_trail(there: Bank) -> None:
    there.insert("one " * 50)
    objects = [p for p in (there.root / ".git/objects").rglob("*") if p.is_file() and p.suffix != ".idx"]
    biggest = max(objects, key=lambda p: p.stat().st_size)
    biggest.chmod(0o644)
    data = bytearray(biggest.read_bytes())
    data[len(data) // 2] ^= 0xFF
    biggest.write_bytes(data)
    assert "git fsck failed" in said(there)


def test_settings_nobody_knows(there: Bank) -> None:
    there.write(there.text("ua-memory.toml") + "\n[core]\ntoken = 3\n", "ua-memory.toml")
    there.again()
    assert "ua-memory.toml:1: unknown setting 'core.token'" in said(there)


def test_problems_of_the_syntax(there: Bank) -> None:
    there.write(b"- one\n  - when: never\n\n\xff\n\n```\nopen\n")
    lines = [p.line for p in audit.verify(there.store)]
    assert lines == [2, 4, 6]


# -- secrets -----------------------------------------------------------------------------------------------


def planted(there: Bank) -> None:
    """Something wrong of each kind, in files of each kind; and an index of it."""
    there.write("# log\n\n- one ^abcdefghij\n- gone ^klmnopqrst\n- a\n  - when: x\n")
    cut = "- Patel ^ochmeu46wk (until May), not ^uvwxyz2345 or ^klmnopqrst as\n"
    two = "- tea ^teateateat\n  - flag: changed on two machines, the other version: ^uvwxyz2345\n"
    there.write(f"- two ^abcdefghij\n- three ^uvwxyz2345\n{cut}{two}", "memory/2026-11-20.md")
    there.write("- ^klmnopqrst\n  - hash: 0123\n  - on: 2026-11-20\n", "memory/forgotten.md")
    proofs = [f"  - proof: [[2026-11-20#^{one}]]\n" for one in ("uvwxyz2345", "klmnopqrst", "nowhere234")]
    there.write(f"- Three it is. ^zzzzzzzzzz\n  - proofs: 3\n{''.join(proofs)}", "memory/observations/x.md")
    there.write(there.text("ua-memory.toml") + "spelt = 1\n", "ua-memory.toml")


def test_a_quick_look_says_the_same_and_parses_no_log(there: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(there)
    store = there.again()
    whole = sorted(map(str, audit.file_problems(store)))
    assert len(whole) == 7 and sorted(map(str, audit.quick_problems(store))) == whole, "without an index"
    lines = [one.split(": ")[0][-2:] for one in whole if "not an id" in one or "two machines" in one]
    assert lines == [":3", ":4"]
    counts = audit.count_all(store)
    time.sleep(0.06)  # a file that was just written may change unseen
    with Memory(store) as memory:
        memory.index.refresh(vectors=False)
    parsed: list[str] = []
    parse = audit.markdown_document.parse
    monkeypatch.setattr(
        audit.markdown_document, "parse", lambda data, path: (parsed.append(path), parse(data, path))[1]
    )
    assert sorted(map(str, audit.quick_problems(store))) == whole
    assert audit.count_all(store) == counts and counts.facts == 7
    assert not any(path.startswith("memory/2026") for path in parsed)
    there.write("- other ^uvwxyz2345\n- four ^abcdefghij\n", "memory/2026-11-19.md")
    there.edit("- gone ^klmnopqrst\n", "")
    store = there.again()
    now = sorted(map(str, audit.file_problems(store)))
    assert len(now) == 9 and audit.count_all(store).facts == 8
    del parsed[:]
    quick = sorted(map(str, audit.quick_problems(store)))
    assert quick == now and "memory/2026-11-20.md" not in parsed


def test_secrets(there: Bank) -> None:
    there.write(f"# Day\n\n- mine {TOKEN}\n- and {TOKEN[:-1]}9\n")
    there.write(f"prose\r\n{TOKEN}\r\n", NOTES)
    assert audit.find_secrets(there.store) == [
        (DAY, 3, "github-token"),
        (DAY, 4, "github-token"),
        (NOTES, 2, "github-token"),
    ]
    there.store.adopt()
    there.insert(f"said {TOKEN}")
    assert len(audit.find_secrets(there.store)) == 3


def test_the_log_by_pages(there: Bank) -> None:
    for n in range(5):
        there.insert(f"fact {n}")
    with Memory.open(there.store.bank.root, now=there.clock) as memory:
        whole = [one.id for one in memory.history.log(limit=None)]
        pages: list[str] = []
        while found := memory.history.log(limit=2, before=pages[-1] if pages else None):
            pages += [one.id for one in found]
        assert pages == whole and len(whole) == 6
        assert [one.id for one in memory.history.log(op="insert", before=whole[1][:10], limit=2)] == whole[
            2:4
        ]
        assert [one.id for one in memory.history.log(DAY, before=whole[3], limit=None)] == [whole[4]]
        assert not memory.history.log(before=whole[-1])
        with pytest.raises(NotFound):
            memory.history.log(before="f" * 40)
