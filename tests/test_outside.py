"""Other folders' markdown: found with its path, kept up to date, never written, never the bank's."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from index_bank import write
from terminal import Shell, new_shell

from ua_memory import config
from ua_memory.memory import Memory
from ua_memory.store.store import Store

OTHER = (
    "# Notes\n\n- The kiln fires at 1240 degrees #pottery ^aaaaaaaaaa\n\nGlazes crack when cooled too fast.\n"
)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = new_shell(tmp_path)
    write(shell.home / "notes" / "kiln.md", OTHER)
    configure(shell, "~/notes", "../gone")
    return shell


def configure(shell: Shell, *paths: str) -> None:
    shell.env["HOME"] = str(shell.home)
    named = ", ".join(f'"{path}"' for path in paths)
    settings = [
        line for line in (shell.cwd / "ua-memory.toml").read_text().splitlines() if "extra" not in line
    ]
    (shell.cwd / "ua-memory.toml").write_text("\n".join([f"extraPaths = [{named}]", *settings]) + "\n")
    shell.ok("trust", "--yes")


def found(shell: Shell, query: str = "kiln glazes crack") -> list[str]:
    hits = shell.ok("search", query, "--limit", "50", "--json").json["results"]
    return sorted(hit["path"] for hit in hits if hit["path"] != "MEMORY.md")


def test_a_daily_note_has_its_day_however_it_is_named(shell: Shell) -> None:
    """And so the newer of two is known."""
    write(shell.home / "notes" / "20261116.md", "- Marcos trabaja en Telefónica desde mayo.\n")
    write(shell.home / "notes" / "17-11-2026.md", "- Marcos se unió a Indra.\n")
    write(shell.home / "notes" / "x.md", "---\nfecha: 2026-11-15\n---\n- Canelo ist der Hund.\n")
    hits = shell.ok("search", "¿dónde trabaja Marcos?", "--json").json["results"]
    assert [hit["day"] for hit in hits[:2]] == ["2026-11-17", "2026-11-16"] and hits[0]["replaces"]
    assert shell.ok("search", "Canelo", "--json").json["results"][0]["day"] == "2026-11-15"


def test_a_line_of_a_diary_has_the_day_of_its_heading(shell: Shell) -> None:
    text = "# Diario\n\n## 2026-11-16\n- Comida con Marta\n\n## Martes 17 noviembre 2026\n- Fisio con Laia\n"
    write(
        shell.home / "notes" / "Diario.md",
        f"{text}\n### 18/11/2026\nPaseo largo.\n\n## Ideas 2026\n- Celosías\n",
    )
    write(shell.cwd / "memory" / "viaje.md", "## 2026-11-19 Sintra\n- Vuelo con Teresa\n")
    days = {
        "Marta": "2026-11-16",
        "Laia": "2026-11-17",
        "paseo": "2026-11-18",
        "celosías": None,
        "vuelo": "2026-11-19",
    }
    for query, day in days.items():
        assert shell.ok("search", query, "--json").json["results"][0].get("day") == day
    hits = shell.ok("search", "qué hice el 17 de noviembre de 2026", "--json").json["results"]
    assert hits[0]["snippet"] == "Fisio con Laia"


def test_odd_but_printable_names_and_a_last_line_that_ends_with_a_carriage_return(shell: Shell) -> None:
    names = {
        "\U0001f469\u200d\U0001f4bb dev.md": "Greta",
        "n\u00a0b.md": "Conrad",
        "\u0645\u06cc\u200c\u062e.md": "Leila",
    }
    for name, who in names.items():
        write(shell.home / "notes" / name, f"- The tram leaves at nine\r\n- {who} sold the piano\r")
    for name, who in names.items():
        first = shell.ok("search", f"what did {who} sell", "--json").json["results"][0]
        assert first["path"] == str(shell.home / "notes" / name)
    assert "left out" not in shell.ok("search", "piano").err


def test_they_are_found_and_left_as_they_are(shell: Shell) -> None:
    kiln = shell.home / "notes" / "kiln.md"
    before, folder = kiln.read_bytes(), sorted(kiln.parent.iterdir())
    done = shell.ok("search", "how hot is the kiln", "--tag", "pottery", "--json").json
    (hit,) = done["results"]
    assert (hit["path"], hit["startLine"], hit["record"]) == (str(kiln), 3, "fact") and "id" not in hit
    assert done["notes"] == ["extraPaths: ../gone: not there"]
    assert f"{kiln}#L3]" in shell.ok("recall", "how hot is the kiln").out
    assert "1240" in shell.ok("get", f"{kiln}:3").out and "Glazes" in shell.ok("get", str(kiln)).out
    assert shell("get", f"{kiln.parent}/../bank/ua-memory.toml").code == 2
    assert shell("get", "^aaaaaaaaaa").code == 4
    # An equal fact is a fact of its own here, not a sighting of theirs.
    shell.ok("insert", "The kiln fires at 1240 degrees", "--tag", "pottery")
    assert kiln.read_bytes() == before and sorted(kiln.parent.iterdir()) == folder
    assert "notes" not in shell.ok("git", "ls-files").out and "notes" not in shell.ok("status").out
    assert shell.ok("verify").code == 0
    assert shell.ok("status", "--json").json["index"]["state"] in ("ready", "behind")


def test_a_file_there_is_named_without_its_ending_and_a_block_in_it_by_its_id(shell: Shell) -> None:
    write(shell.cwd / "Projects" / "Plan.md", "# Plan\n\n- Alice paints ^alice1\n\nThe fence waits. ^fence\n")
    assert shell("get", "Projects/Plan").code == 2
    configure(shell, ".")
    for target in ("Projects/Plan", "Projects/Plan.md"):
        assert "# Plan" in shell.ok("get", target).out
        assert "Alice paints" in shell.ok("get", f"{target}#^alice1").out
        assert shell.ok("get", f"{target}#^fence").out.startswith("The fence")
        assert shell("get", f"{target}#^bob").code == 4
    assert shell("forget", "Projects/Plan.md#^alice1").code == 4


def test_a_note_there_is_named_as_in_a_link(shell: Shell) -> None:
    write(shell.home / "notes" / "people" / "Åsa Holm.md", "# Åsa\n\nThrows pots.\n")
    write(shell.home / "notes" / "kilns.md", "- gas\n")
    for name in ("Åsa Holm", "[[people/Åsa Holm]]", "åsa holm.md"):
        assert "Throws pots." in shell.ok("get", name).out
    assert shell.ok("get", "kilns:1").out == "- gas\n"
    write(shell.home / "notes" / "old" / "kilns.md", "- wood\n")
    twice = shell("get", "kilns")
    assert twice.code == 2 and "2 files have this name" in twice.err and "old/kilns.md" in twice.err
    assert "no such file in the bank" in shell("get", "Nobody").err


def test_an_old_windows_note_keeps_its_accents(shell: Shell) -> None:
    said = "Il treno costerà 89 € al mese da gennaio"
    (shell.home / "notes" / "treno.md").write_bytes(f"- {said}\n".encode("cp1252"))
    for call in (("search", "quanto costerà il treno"), ("get", "treno"), ("list",)):
        assert said in shell.ok(*call).out


def test_forget_names_what_is_left_there(shell: Shell) -> None:
    block = shell.ok("insert", "The shed's alarm code is kiwi", "--json").json["id"]
    write(shell.home / "notes" / "shed.md", "# Shed\n\nthe shed's alarm code is kiwi\n")
    done = shell("forget", f"^{block}")
    assert done.code == 20 and f"it is still in {shell.home / 'notes' / 'shed.md'}:3" in done.err
    assert "words.db" not in done.err


def test_every_change_there_is_seen_by_the_next_search(shell: Shell) -> None:
    notes = shell.home / "notes"
    kiln = str(notes / "kiln.md")
    assert found(shell) == [kiln, kiln]
    write(notes / "deep" / "new.md", "Kilns need a flue.\n")
    assert found(shell) == [str(notes / "deep" / "new.md"), kiln, kiln]
    write(notes / "kiln.md", "- The kiln is sold\n")
    assert found(shell) == [str(notes / "deep" / "new.md"), kiln]
    notes.rename(shell.home / "away")
    done = shell.ok("search", "kiln", "--json").json
    assert found(shell) == [] and done["notes"] == [
        f"extraPaths: {notes}: not there",
        "extraPaths: ../gone: not there",
    ]
    (shell.home / "away").rename(notes)
    assert len(found(shell)) == 2
    configure(shell)
    assert found(shell) == []
    assert shell("get", kiln).code == 2


def test_what_is_no_markdown_of_that_folder_is_not_read(shell: Shell) -> None:
    notes = shell.home / "notes"
    write(shell.home / "secret.md", "kiln secret\n")
    (notes / "link.md").symlink_to(shell.home / "secret.md")
    (notes / "linked").symlink_to(shell.home)
    (notes / "loop").symlink_to(notes)
    write(notes / ".hidden" / "a.md", "kiln hidden\n")
    write(notes / "kiln.txt", "kiln text\n")
    write(notes / "odd\n.md", "kiln odd\n")
    (notes / "folder.md").mkdir()
    configure(shell, "~/notes", "~/notes/kiln.md", ".", str(shell.home / "notes"))
    assert found(shell) == [str(notes / "kiln.md")] * 2
    assert shell("get", str(notes / "link.md")).code == 2
    write(shell.cwd / "README.md", "kiln in the readme\n")
    assert found(shell) == sorted([str(notes / "kiln.md")] * 2 + [str(shell.cwd / "README.md")])


def test_a_folder_that_is_a_link_is_its_target(shell: Shell) -> None:
    (shell.home / "way").symlink_to(shell.home / "notes")
    configure(shell, "~/way")
    assert set(found(shell)) == {str(shell.home / "notes" / "kiln.md")}
    write(shell.home / "other" / "b.md", "another kiln\n")
    (shell.home / "way").unlink()
    (shell.home / "way").symlink_to(shell.home / "other")
    assert found(shell) == [str(shell.home / "other" / "b.md")]


def test_what_may_not_be_read_is_told(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir
    locked = os.fsencode(shell.home / "notes" / "locked")

    def guarded(folder: bytes) -> object:
        if folder == locked:
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    write(shell.home / "notes" / "locked" / "c.md", "kiln c\n")
    monkeypatch.setattr("ua_memory.index.outside.os.scandir", guarded)
    notes = shell.ok("search", "kiln", "--json").json["notes"]
    assert f"extraPaths: {os.fsdecode(locked)}: Permission denied" in notes and len(found(shell)) == 2


def test_a_file_of_the_banks_own_folder_is_called_by_its_path_there(shell: Shell) -> None:
    configure(shell, ".")
    write(shell.cwd / "Kunden/Müller & Söhne.md", "The kiln is theirs.\n")
    assert shell.ok("search", "kiln").out.startswith("1. 1.00  Kunden/Müller & Söhne.md:1")
    assert "theirs.  Kunden/Müller & Söhne.md:1" in shell.ok("list").out
    assert "theirs" in shell.ok("get", "Kunden/Müller & Söhne.md:1").out
    assert "no history here" in shell("why", "Kunden/Müller & Söhne.md:1").err


def test_a_library_that_knows_no_home_says_so(shell: Shell) -> None:
    settings = config.load(shell.cwd, {})
    assert set(settings.untrusted) == {"extra_paths"}  # nor whose word counts
    with Memory.open(shell.cwd, config=replace(settings, extra_paths=("~/notes",))) as memory:
        assert any("~/notes: unknown home folder" in note for note in memory.search("kiln").notes)


def test_nothing_is_looked_at_where_there_is_none(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(shell)
    with Memory.open(shell.cwd) as memory:
        seen = memory.store.survey()
        assert isinstance(memory.store, Store) and memory.index.files.survey(seen, shell.cwd) is seen
