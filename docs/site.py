"""The hook of mkdocs.yml: which files the site has, and its navigation.

Files have the same paths on the site as in the repository, so that links lead to the same places in both.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/**/*.md")
COPIED = ("LICENSE", "docs/images/*.png", "docs/iframe-worker.js", "docs/site.css", "examples/*")
FENCE = re.compile(r"^(`{3,}\w+) +([^\n\"`]+)$", re.M)
LINK = re.compile(r"\[([^]]+)\]\(([^)#]+\.md)\)")


def links(page: str) -> dict[str, list[Any]]:
    """The pages that list items and table rows of a page lead to, by the `##` heading above them."""
    found: dict[str, list[Any]] = {}
    folder, heading = Path(page).parent, ""
    for row in (ROOT / page).read_text("utf-8").splitlines():
        if row.startswith("## "):
            heading = row.removeprefix("## ")
        elif row.startswith(("- [", "| [")) and (link := LINK.search(row)):
            found.setdefault(heading, []).append({link[1]: (folder / link[2]).as_posix()})
    return found


def on_config(config: Any) -> Any:
    """The navigation is the list in docs/README.md; a page of that list that is itself a list is unfolded."""
    sections = links("docs/README.md")
    decisions = "docs/decisions/README.md"
    sections["Decisions"] = [decisions, *(each for rows in links(decisions).values() for each in rows)]
    first = sections.pop("First day")
    config.nav = [{"First page": "README.md"}, *first, *({name: rows} for name, rows in sections.items())]
    return config


def on_files(files: Files, config: Any) -> Files:
    """What the theme brings, and our files by their paths in the repository."""
    theirs = [each for each in files if not Path(each.abs_src_path or "").is_relative_to(config.docs_dir)]
    ours = sorted({path for pattern in (*PAGES, *COPIED) for path in ROOT.glob(pattern) if path.is_file()})
    names = [path.relative_to(ROOT).as_posix() for path in ours]
    made = [File(name, str(ROOT), config.site_dir, config.use_directory_urls) for name in names]
    return Files([*theirs, *made])


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """What follows the language of a code block, such as the name of a file, becomes its title. The first two
    pages, which stand in no section, have the width of the navigation for their sessions."""
    if page.parent is None:
        page.meta["hide"] = ["navigation"]
    return FENCE.sub(r'\1 title="\2"', markdown)
