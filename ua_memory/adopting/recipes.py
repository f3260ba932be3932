"""Mental models and pages of another tool: declared where there is none of that id; what is ours stays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ua_memory import markdown
from ua_memory.adopting.taken import Taken
from ua_memory.importers import Found
from ua_memory.paths import LOGS
from ua_memory.records import MentalModel, Page
from ua_memory.store import Draft


def recipes(draft: Draft, found: Found) -> Iterator[Taken]:
    """Write the models and pages that the bank does not have."""
    for model in found.models:
        yield _take(draft, model, f"{LOGS}/models/{model.id}.md")
    for page in found.pages:
        yield _take(draft, page, f"{LOGS}/pages/{page.id}.md")


def _take(draft: Draft, record: MentalModel | Page, path: str) -> Taken:
    what: Literal["model", "page"] = "model" if isinstance(record, MentalModel) else "page"
    if not draft.exists(path):
        draft.write(path, f"{markdown.show(record)}\n".encode())
        return Taken(what, record.name, path, "new")
    ours = next(iter(markdown.parse(draft.read(path), path).of(type(record))), None)
    if ours and _says(ours) == _says(record):
        return Taken(what, record.name, path, "same")
    return Taken(what, record.name, path, "left", f"ours has a {what} of this id, which stays")


def _says(record: MentalModel | Page) -> tuple[str, str]:
    """What one of them is: a model its text, a page what it asks for, since its body is written anew."""
    text = record.body if isinstance(record, MentalModel) else record.source_query
    return record.name, " ".join(text.split())
