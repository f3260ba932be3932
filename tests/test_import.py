"""What other tools remembered, taken over: nothing lost, nothing doubled, nothing of ours replaced."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from terminal import Shell, new_shell

from ua_memory import errors as errors_module
from ua_memory.markdown import document as markdown
from ua_memory.records import Fact
from ua_memory.text import dates
from ua_memory.upkeep import import_sources as importers
from ua_memory.upkeep import import_sources as notes

SECRET = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
COPIES = "memory/imported/clawd"
LONG = "word " * 1200


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return new_shell(tmp_path)


def made(tmp_path: Path, name: str, files: dict[str, str]) -> str:
    """A source's folder with these files; its path."""
    for path, text in files.items():
        file = tmp_path / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    return str(tmp_path / name)


def workspace(tmp_path: Path, **more: str) -> str:
    return made(
        tmp_path,
        "clawd",
        {
            "AGENTS.md": "Be kind.\n",
            "MEMORY.md": f"# Long-term\n\nFirst words.\n\n## Who I serve\n\n- Alice\n\n## Long\n\n{LONG}\n",
            "memory/2026-02-03.md": "# Tuesday\r\n\r\n- Alice left Heroku.\r\n  - loud\r\n\r\nAn aside.\r\n",
            "memory/2026-02-20-brief.md": f"- a token {SECRET}\n\n```\nnever closed\n",
            "memory/vision.md": "The long view.\n",
            "memory/again.md": "The long view.\n",
            "memory/empty.md": " \n",
            **more,
        },
    )


def states(done: dict[str, object]) -> list[tuple[str, str]]:
    return [(each["source"], each["state"]) for each in done["taken"]]  # type: ignore[attr-defined]


# -- OpenClaw --------------------------------------------------------------------------------------------


def test_curated_memory_comes_first_then_the_newest_days_then_the_rest(shell: Shell, tmp_path: Path) -> None:
    source = workspace(tmp_path)
    first = shell.ok("import", "openclaw", source, "--json").json
    assert states(first) == [
        ("## Long-term", "new"),
        ("## Who I serve", "new"),
        ("## Long", "left"),
        ("MEMORY.md", "new"),
        ("memory/2026-02-20-brief.md", "new"),
    ]
    assert "budget" in first["taken"][2]["why"] or "room" in first["taken"][2]["why"]
    assert first["later"] == 2 and first["redacted"] == {"github-token": 1}
    assert shell.ok("core", "get", "Who I serve").out.strip() == "- Alice"
    curated = (shell.cwd / COPIES / "MEMORY.md").read_text()
    assert shell.ok("core", "get", "long-term").out.strip() == "First words."
    assert "First words." not in curated and LONG.strip() in curated and "Alice" not in curated
    rest = shell.ok("import", "openclaw", source, "--all", "--json").json
    assert [name for name, state in states(rest) if state == "new"] == [
        "memory/2026-02-03.md",
        "memory/again.md",
    ]
    assert rest["left"] == [
        "memory/empty.md: empty",
        "memory/vision.md: the same as memory/again.md",
        "AGENTS.md: instructions for the agent, not memories",
    ]


def test_a_copy_is_the_source_to_the_byte_but_for_its_secrets(shell: Shell, tmp_path: Path) -> None:
    source = workspace(tmp_path)
    shell.ok("import", "openclaw", source, "--all")
    copy = (shell.cwd / COPIES / "2026-02-03.md").read_bytes()
    assert copy.endswith((Path(source) / "memory/2026-02-03.md").read_bytes())
    brief = (shell.cwd / COPIES / "2026-02-20-brief.md").read_text()
    assert brief.endswith("- a token [redacted: github-token]\n\n```\nnever closed\n")
    fact = markdown.parse(copy, f"{COPIES}/2026-02-03.md").of(Fact)[0]
    assert (fact.text, fact.said_by) == ("Alice left Heroku.\n- loud", "import")
    assert SECRET not in shell.ok("log", "--json").out


def test_a_second_import_changes_nothing_and_undo_takes_all_of_it_back(shell: Shell, tmp_path: Path) -> None:
    before = (shell.cwd / "MEMORY.md").read_bytes()
    source = workspace(tmp_path)
    done = shell.ok("import", "openclaw", source, "--all", "--json").json
    again = shell.ok("import", "openclaw", source, "--all", "--json").json
    assert {state for _, state in states(again)} == {"same"} and again["revision"] == done["revision"]
    shell.ok("core", "replace", "Who I serve", "Alice and Bob")  # ours now
    assert {s for _, s in states(shell.ok("import", "openclaw", source, "--json").json)} == {"same"}
    shell.ok("undo")
    shell.ok("undo", done["revision"])
    assert (shell.cwd / "MEMORY.md").read_bytes() == before
    assert not list(shell.cwd.glob("memory/**/*.md"))
    assert ("MEMORY.md", "new") in states(shell.ok("import", "openclaw", source, "--json").json)


def test_a_block_of_ours_is_never_replaced(shell: Shell, tmp_path: Path) -> None:
    shell.ok("core", "replace", "Who I Serve", "Carol")
    done = shell.ok("import", "openclaw", workspace(tmp_path)).out
    assert "core memory already has a block of this name, which stays" in done
    assert shell.ok("core", "get", "Who I serve").out.strip() == "Carol"
    assert "- Alice" in (shell.cwd / COPIES / "MEMORY.md").read_text()


def test_a_dry_run_tells_the_same_and_changes_nothing(shell: Shell, tmp_path: Path) -> None:
    source = workspace(tmp_path)
    head = shell.ok("log", "--json").out
    dry = shell.ok("import", "openclaw", source, "--all", "--dry-run", "--json").json
    assert shell.ok("log", "--json").out == head and not list(shell.cwd.glob("memory/**/*.md"))
    wet = shell.ok("import", "openclaw", source, "--all", "--json").json
    for key in ("taken", "left", "problems", "redacted", "later"):
        assert dry[key] == wet[key], key
    assert dry["dry_run"] and "memory/2026-02-20-brief.md:3: this code fence is not closed" in str(dry)


def test_what_changed_at_its_source(shell: Shell, tmp_path: Path) -> None:
    source = workspace(tmp_path)
    shell.ok("import", "openclaw", source, "--all")
    log = Path(source) / "memory/2026-02-03.md"
    log.write_bytes(log.read_bytes() + b"\r\n- Bob came.\r\n")
    assert ("memory/2026-02-03.md", "updated") in states(
        shell.ok("import", "openclaw", source, "--all", "--json").json
    )
    copy = shell.cwd / COPIES / "2026-02-03.md"
    assert copy.read_bytes().endswith(log.read_bytes())
    copy.write_bytes(copy.read_bytes() + b"- mine\r\n")
    log.write_bytes(log.read_bytes() + b"- Carol, too.\r\n")
    done = shell.ok("import", "openclaw", source, "--all").out
    assert "changed both at its source and here" in done and b"- mine" in copy.read_bytes()
    log.write_bytes(b"- Another workspace of the same name.\n")
    shell.ok("import", "openclaw", source, "--all")
    assert b"Another" in (shell.cwd / COPIES / "2026-02-03-2.md").read_bytes()


def test_what_is_no_workspace(shell: Shell, tmp_path: Path) -> None:
    assert "not an OpenClaw workspace" in shell("import", "openclaw", made(tmp_path, "x", {"a.md": "x"})).err
    assert shell("import", "openclaw", str(tmp_path / "nowhere")).code == 4
    assert "the bank itself" in shell("import", "openclaw", ".").err
    state = made(tmp_path, "state", {"workspace-b/memory/2026-02-03.md": "- b\n", "README.md": "no"})
    assert states(shell.ok("import", "openclaw", state, "--json").json) == [("memory/2026-02-03.md", "new")]


# -- notes -------------------------------------------------------------------------------------------------


def test_notes_are_found_under_their_day_and_their_title(shell: Shell, tmp_path: Path) -> None:
    vault = made(
        tmp_path,
        "My vault",
        {
            "Coffee Brewing.md": "---\ncreated: 2026-03-04\ntags: [drink]\norigin: Ethiopia\n---\n- finer\n",
            "daily/20260305.md": "Rain.\n",
            ".obsidian/x.md": "hidden",
            "broken.md": "---\na: [\n---\nStill here.\n",
            "picture.png": "png",
            "program.md": "\0\1\0",
        },
    )
    (Path(vault) / "windows.md").write_bytes("- wide\n".encode("utf-16"))
    (Path(vault) / "latin.md").write_bytes("- città\n".encode("latin-1"))
    (tmp_path / "private.md").write_text("not to be imported")
    (Path(vault) / "linked.md").symlink_to(tmp_path / "private.md")
    (Path(vault) / "daily/inside.md").symlink_to(Path(vault) / "daily/20260305.md")
    dry = shell("import", "markdown", vault, "--dry-run")
    told = dry.out + dry.err
    assert "linked.md: a link that leads out of the folder" in told and "program.md: binary" in told
    done = shell.ok("import", "markdown", vault, "--json").json
    assert [(each["path"], each.get("day")) for each in done["taken"]] == [
        ("memory/imported/My-vault/2026-03-04-Coffee Brewing.md", "2026-03-04"),
        ("memory/imported/My-vault/broken.md", None),
        ("memory/imported/My-vault/daily/2026-03-05-20260305.md", "2026-03-05"),
        ("memory/imported/My-vault/latin.md", None),
        ("memory/imported/My-vault/windows.md", None),
    ]
    imported = shell.cwd / "memory/imported/My-vault"
    assert (imported / "latin.md").read_text("utf-8").endswith("---\n- città\n")
    assert (imported / "windows.md").read_text("utf-8").endswith("---\n- wide\n")
    coffee = (shell.cwd / done["taken"][0]["path"]).read_text()
    assert "origin: Ethiopia\n" in coffee and coffee.endswith("---\n- finer\n")
    hit = shell.ok("search", "coffee brewing", "--json").json["results"][0]
    assert (hit["snippet"], hit["origin"], hit["day"]) == ("finer", "import", "2026-03-04")
    assert "Still here." in shell.ok("search", "still here").out
    assert done["problems"] and done["problems"][0].startswith("broken.md:")


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("2026-02-03.md", "2026-02-03"),
        ("a/2026_02_03 talk.md", "2026-02-03"),
        ("systems_20260203.md", "2026-02-03"),
        ("2026/02/03.md", "2026-02-03"),
        ("20260230.md", None),
        ("1202602031.md", None),
        ("2026-02.md", None),
        ("17-11-2026.md", "2026-11-17"),
        ("Diario/17.11.2026.md", "2026-11-17"),
        ("11-17-2026.md", "2026-11-17"),
        ("03-04-2026.md", None),
        ("Martes 17 noviembre 2026.md", "2026-11-17"),
        ("Tuesday, November 17th 2026.md", "2026-11-17"),
        ("2026年11月17日.md", "2026-11-17"),
        ("November 2026.md", None),
        ("Roadmap 2026.md", None),
        ("31-02-2026.md", None),
    ],
)
def test_the_day_in_a_path(path: str, day: str | None) -> None:
    assert dates.day_in_path(path) == day


def test_a_zone_tells_day_and_month_apart() -> None:
    zones = ZoneInfo("America/New_York"), ZoneInfo("Europe/Madrid")
    assert [dates.day_in_path("03-04-2026.md", zone) for zone in zones] == ["2026-03-04", "2026-04-03"]
    assert dates.day_of_note("x.md", {"fecha": "2026-11-15"}) == "2026-11-15"


def test_a_path_that_is_too_deep_keeps_its_inner_folders() -> None:
    name = notes.bank_path("deep/" * 300 + "inner/x.md", None)
    assert name.endswith("deep/inner/x.md") and len(name) < 900


@given(
    st.dictionaries(
        st.text(max_size=12).map(lambda name: name.replace("\ud800", "") + ".md"),
        st.text(st.characters(codec="utf-8"), max_size=60).map(str.encode),
        min_size=1, max_size=4,
    )
)  # fmt: skip
def test_any_note_is_taken_once_and_reads_as_it_did(files: dict[str, bytes]) -> None:
    from ua_memory.paths import is_memory_file
    from ua_memory.upkeep.import_ import with_front_matter

    made, _, _ = notes.collect_notes(files, curated=True)
    assert len({note.hash for note in made}) == len(made)
    for note in made:
        path = f"memory/imported/x/{note.name}"
        assert is_memory_file(path)
        keys = {"imported_from": f"markdown:x/{note.path}", "imported_hash": note.hash}
        then, now = markdown.parse(note.data, path), markdown.parse(with_front_matter(note, keys), path)
        assert now.front.get("imported_hash") == note.hash
        again = replace(note, body=with_front_matter(note, keys))
        assert with_front_matter(again, keys) == again.body
        if not then.front_end and not then.problems:
            assert [r.text for r in now.of(Fact)] == [r.text for r in then.of(Fact)]


def test_an_unknown_source() -> None:
    with pytest.raises(errors_module.Usage, match="cannot import from"):
        importers.read_source("notion", "x", {})
