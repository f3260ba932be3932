"""docs/cli.md and docs/json.md say what the command line does: taken from it, and compared with it.

`make golden` rewrites the parts between marks (`<!-- commands: begin -->`) from the code.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from source import nodes

from ua_memory import config
from ua_memory.caller import Call
from ua_memory.cli.app import VERBS, command_line, run
from ua_memory.errors import EXIT_CODES
from ua_memory.views import output as boundary

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def help_of(*verb: str) -> str:
    """What `--help` prints into a pipe."""
    out, err = io.StringIO(), io.StringIO()
    nowhere = Path("/nonexistent")
    code = run(Call([*verb, "--help"], nowhere, nowhere, {}, io.BytesIO(), out, err))
    assert code == 0, err.getvalue()
    return out.getvalue()


def commands() -> Iterator[tuple[str, ...]]:
    """Every command by its words: (), ("insert",), ("core", "list"), … in the order of the table."""
    yield ()
    root: Any = command_line()
    for section in VERBS.values():
        for name in section:
            yield (name,)
            for inner in getattr(root.get_command(None, name), "commands", ()):
                yield (name, inner)


def commands_section() -> str:
    blocks = []
    for words in commands():
        title = " ".join(("ua-memory", *words))
        blocks.append(f"### {title}\n\n```text\n{help_of(*words).rstrip()}\n```\n")
    return "\n" + "\n".join(blocks) + "\n"


def settings_section() -> str:
    rows = ["| key | default | variable | meaning |", "|---|---|---|---|"]
    for default, key, meaning, variable, *_, name in config.settings():
        meaning += " (sensitive)" if name in config.sensitive() else ""
        shown = "" if default in ("", (), {}) else f"`{str(default).lower() if default is True else default}`"
        rows.append(f"| `{key}` | {shown} | {f'`{variable}`' if variable else ''} | {meaning} |")
    return "\n" + "\n".join(rows) + "\n"


def between(text: str, mark: str, new: str) -> str:
    """The text with what stands between a pair of marks replaced."""
    begin, end = f"<!-- {mark}: begin -->\n", f"<!-- {mark}: end -->"
    assert text.count(begin) == text.count(end) == 1, mark
    head, _, rest = text.partition(begin)
    return head + begin + new + end + rest.partition(end)[2]


def test_every_command_and_setting_is_documented(golden: Callable[[Path, bytes], None]) -> None:
    file = DOCS / "cli.md"
    text = between(file.read_text("utf-8"), "commands", commands_section())
    golden(file, between(text, "settings", settings_section()).encode())


@pytest.mark.parametrize("family", ["pages", "models", "observations", "opinions", "entities", "directives"])
def test_every_family_of_what_is_known_can_be_listed_and_asked_for_one(family: str) -> None:
    group_: Any = command_line()
    verbs = group_.get_command(None, family)
    assert (
        verbs.get_command(None, "list") and verbs.get_command(None, "get") and "get" in help_of(family, "get")
    )
    assert verbs.get_command(None, "frobnicate") is None


def test_the_man_page_is_what_the_help_says(golden: Callable[[Path, bytes], None]) -> None:
    spec = importlib.util.spec_from_file_location("manpage", DOCS / "manpage.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    golden(DOCS / "ua-memory.1", module.page().encode())


def test_help_fits_eighty_columns() -> None:
    for words in commands():
        assert max(map(len, help_of(*words).splitlines())) <= 80, words


def test_the_table_of_exit_codes_is_the_codes() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", (DOCS / "cli.md").read_text("utf-8"), re.M)
    codes = [int(code) for code, _ in rows]
    assert codes == sorted({0, 1, boundary.INTERRUPTED, boundary.PIPE_CLOSED, *EXIT_CODES})
    assert all(meaning.strip() for _, meaning in rows)


# -- links ---------------------------------------------------------------------------------------------------

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def prose(page: Path) -> str:
    """A page without its code blocks."""
    return re.sub(r"^( *)(`{3,}).*?^\1\2$", "", page.read_text("utf-8"), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """What can follow `#` in a link to a page: its headings, written as GitHub and `make docs` do."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_documents_lead_somewhere(page: Path) -> None:
    found = re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?", prose(page))
    for target, anchor in found:
        there = page.parent / target if target else page
        assert there.exists(), f"{page.relative_to(ROOT)} links to {target}"
        assert not anchor or anchor in anchors(there), f"{page.relative_to(ROOT)} links to {target}#{anchor}"


# -- the map -------------------------------------------------------------------------------------------------

MAP = [row for row in prose(ROOT / "CONTRIBUTING.md").splitlines() if row.startswith("| ") and "`" in row]
A_NAME = re.compile(r"(?!\w+\.(?:py|toml|txt|json|md)$)[A-Za-z_]\w*(?:\.\w+)*")
JSON_KEYS = {"sets"}
"""Words of the map that stand in a data file."""


def files_of(row: str) -> set[Path]:
    """The Python files that a row of the map names: by path, as a folder, or by name beside such a one."""
    named = re.findall(r"`([\w./]+)`", row)
    paths = [base / name for name in named for base in (ROOT, ROOT / "ua_memory") if (base / name).exists()]
    beside = [path if path.is_dir() else path.parent for path in paths]
    paths += [file for name in named for folder in beside for file in (folder / name, folder / f"{name}.py")]
    paths += [ROOT / "ua_memory" / f"{name}.py" for name in named]
    return {file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])}


@cache
def defined_in(file: Path) -> set[str]:
    """The names that a file defines, and its own."""
    found = {file.stem}
    for node in nodes(file.read_text("utf-8")) if file.suffix == ".py" else ():
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
    return found


@pytest.mark.parametrize("row", MAP, ids=lambda row: row[2:].partition(" |")[0])
def test_the_map_names_what_exists(row: str) -> None:
    known = {name for file in files_of(row) if file.is_file() for name in defined_in(file)} | JSON_KEYS
    for name in filter(A_NAME.fullmatch, re.findall(r"`([^`]+)`", row)):
        assert {*name.split(".")} <= known, f"CONTRIBUTING.md: {name} is in no file that its row names"


def test_the_map_leads_to_files_of_ours() -> None:
    assert len(MAP) > 30 and sum(map(len, map(files_of, MAP))) > 150


def test_the_anchors_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "a.md"
    page.write_text("# Of `a-b`, and C's\n\n```sh\n# no heading\n```\n\n## Two – words\n")
    assert anchors(page) == {"of-a-b-and-cs", "two--words"}


def test_the_readme_fits_two_screens() -> None:
    rows = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert len(rows) <= 100 and max(map(len, rows)) <= 120


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_asks_nothing_of_the_network(tmp_path: Path) -> None:
    mkdocs = shutil.which("mkdocs", path=f"{ROOT / '.venv-docs/bin'}:{os.environ['PATH']}")
    if not mkdocs or not (ROOT / "mkdocs.yml").exists():
        pytest.skip("no mkdocs: make docs")
    site = tmp_path / "site"
    done = subprocess.run(
        [mkdocs, "build", "--strict", "--site-dir", str(site)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stderr
    pages = {page.relative_to(site).as_posix(): page.read_text("utf-8") for page in site.rglob("*.html")}
    assert {"index.html", "docs/first-day.html", "docs/decisions/index.html"} <= pages.keys()
    fetched = re.compile(r'<(?:script|img|iframe)[^>]* src="?(?:https?:)?//|<link[^>]* href="?(?:https?:)?//')
    assert not [name for name, page in pages.items() if fetched.search(page)]
    assert (site / "search/search_index.js").stat().st_size > 100_000


def test_the_tests_that_documents_name_are_there() -> None:
    for file in PAGES:
        for name in re.findall(r"`((?:tests|benchmarks|examples)/[\w./-]*)", file.read_text("utf-8")):
            assert (ROOT / name).exists(), f"{file.name} names {name}"
