"""`edit` and `open`: which program is started, with which file and line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from terminal import EVERY, Shell, new_shell

from ua_memory.cli.search import open_at_line

RECORDS = '#!/bin/sh\nprintf "%s\\n" "$@" > "$RECORD"\n'


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = new_shell(tmp_path)
    shell.write("memory/2026-11-20.md", "- Alice lives in Porto.\n- Bob drinks tea.\n")
    shell.env |= {"RECORD": str(tmp_path / "argv"), "PATH": os.environ["PATH"]}
    return shell


def program(tmp_path: Path, name: str, script: str = RECORDS) -> str:
    """A program of this name that writes down its arguments."""
    file = tmp_path / "a b" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(script)
    file.chmod(0o700)
    return str(file)


def told(shell: Shell) -> list[str]:
    words = Path(shell.env["RECORD"]).read_text().splitlines()
    return [word.replace(str(shell.cwd), ".") for word in words]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ((), ["./MEMORY.md"]),
        (("MEMORY.md",), ["./MEMORY.md"]),
        (("2026-11-20",), ["./memory/2026-11-20.md"]),
        (("yesterday",), ["./memory/2026-11-20.md"]),
        (("today",), ["./memory/2026-11-21.md"]),
        (("memory/2026-11-20.md:2",), ["+2", "./memory/2026-11-20.md"]),
        (("memory/2026-11-20.md#L2",), ["+2", "./memory/2026-11-20.md"]),
        (("[[2026-11-20]]",), ["./memory/2026-11-20.md"]),
    ],
)
def test_a_target_is_opened_at_its_line(
    shell: Shell, tmp_path: Path, target: tuple[str, ...], expected: list[str]
) -> None:
    done = shell.ok("edit", *target, EDITOR=f"'{program(tmp_path, 'vim')}'")
    assert told(shell) == expected and done.out == ""


def test_a_fact_is_opened_where_it_stands(shell: Shell, tmp_path: Path) -> None:
    shell.ok("insert", "The gate is green.")
    (one,) = shell.ok("list", "--since", "today", "--json").json["results"]
    editor = f"'{program(tmp_path, 'code')}' --wait"
    shell.ok("edit", f"^{one['id']}", VISUAL=editor, EDITOR="false")
    assert told(shell) == ["--wait", "-g", f"./memory/2026-11-21.md:{one['startLine']}"]
    shell.ok("edit", one["citation"], VISUAL=" ", EDITOR=f"'{program(tmp_path, 'other')}'")
    assert told(shell) == ["./memory/2026-11-21.md"]


@pytest.mark.parametrize(
    ("editor", "expected"),
    [
        ("vim", ["+7", "/x/a b.md"]),
        ("/usr/bin/nvim", ["+7", "/x/a b.md"]),
        ("nano", ["+7", "/x/a b.md"]),
        ("emacs", ["+7", "/x/a b.md"]),
        ("code", ["-g", "/x/a b.md:7"]),
        ("codium", ["-g", "/x/a b.md:7"]),
        ("hx", ["/x/a b.md:7"]),
        ("subl", ["/x/a b.md:7"]),
        ("ed", ["/x/a b.md"]),
    ],
)
def test_each_editor_is_told_the_line_in_its_way(editor: str, expected: list[str]) -> None:
    assert open_at_line(editor, "/x/a b.md", 7) == expected
    assert open_at_line(editor, "/x/a b.md", 0) == ["/x/a b.md"]


def test_what_is_saved_is_an_edit_by_hand_and_the_first_to_be_undone(shell: Shell, tmp_path: Path) -> None:
    shell.ok("insert", "The gate is green.")
    writes = program(tmp_path, "vi", '#!/bin/sh\necho "- Plums are in." >> "$1"\n')
    done = shell.ok("edit", "today", EDITOR=f"'{writes}'")
    assert done.out.startswith("Saved memory/2026-11-21.md (commit ")
    assert "Plums are in." in shell.ok("today").out
    assert "memory/2026-11-21.md" not in shell.ok("status", "--json").json["edited"]
    shell.ok("undo")
    out = shell.ok("today").out
    assert "Plums are in." not in out and "The gate is green." in out


@pytest.mark.parametrize(
    ("editor", "says"),
    [
        ("", "no editor is set"),
        ("  ", "no editor is set"),
        ("/nowhere/vim", "'/nowhere/vim' cannot be started: No such file"),
        ("vim 'x", "cannot be read"),
        ("false", "ended with 1"),
    ],
)
def test_an_editor_that_is_none(shell: Shell, editor: str, says: str) -> None:
    done = shell("edit", EDITOR=editor)
    assert done.code == 2 and says in done.err and "a bug" not in done.err


def test_at_a_terminal_vi_is_the_editor_where_none_is_set(shell: Shell, tmp_path: Path) -> None:
    folder = Path(program(tmp_path, "vi")).parent
    shell.env["PATH"] = f"{folder}:{shell.env['PATH']}"
    shell.terminals = EVERY
    shell.ok("edit", "memory/2026-11-20.md:2", EDITOR=" ")
    assert told(shell) == ["+2", "./memory/2026-11-20.md"]


def test_what_is_not_there_is_not_opened(shell: Shell, tmp_path: Path) -> None:
    editor = f"'{program(tmp_path, 'vim')}'"
    for target in ("memory/nothing.md", "^aaaaaaaaaa", "memory/2026-11-20.md:9"):
        assert shell("edit", target, EDITOR=editor).code == 4
        assert shell("open", target).code == 4
    assert shell("edit", "../secret", EDITOR=editor).code in (2, 4)
    assert not Path(shell.env["RECORD"]).exists()


def test_open_without_a_vault(shell: Shell, tmp_path: Path) -> None:
    assert shell.ok("open", "--print").out == f"{shell.cwd}\n"
    assert shell.ok("open", "yesterday", "--print").out == f"{shell.cwd}/memory/2026-11-20.md\n"
    assert shell.ok("open", PATH="/nowhere").out == f"{shell.cwd}\n", "nothing can open it"
    folder = str(Path(program(tmp_path, "xdg-open")).parent)
    assert shell.ok("open", PATH=f"{folder}:/bin:/usr/bin").out == f"Opened {shell.cwd}\n"
    assert told(shell) == ["."]
    program(tmp_path, "xdg-open", "#!/bin/sh\nexit 3\n")
    assert shell.ok("open", PATH=f"{folder}:/bin:/usr/bin").out == f"{shell.cwd}\n"


@pytest.mark.parametrize("vault", [".", ".."])
def test_open_in_a_vault(shell: Shell, vault: str) -> None:
    (shell.cwd / vault / ".obsidian").mkdir()
    shell.write("memory/Ärger & Co.md", "- The gate squeaks.\n")
    found = shell.ok("open", "memory/Ärger & Co.md:1", "--print").out
    root = str(shell.cwd).replace("/", "%2F")
    assert found == f"obsidian://open?path={root}%2Fmemory%2F%C3%84rger%20%26%20Co.md\n"
    assert shell.ok("open", "--print").out == f"obsidian://open?path={root}%2FMEMORY.md\n"


def test_without_a_bank_there_is_nothing_to_open(tmp_path: Path) -> None:
    shell = Shell(tmp_path, tmp_path)
    for verb in ("list", "today", "edit", "open"):
        assert shell(verb).code == 3
