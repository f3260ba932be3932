"""OpenClaw's two tools, with its parameters and its JSON: memory_search and memory_get.

An agent, a prompt or a script that was made for OpenClaw's memory finds the same keys here. Failures are
JSON, too (`disabled`), as there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ua_memory import fence
from ua_memory.errors import NotFound, UaMemoryError, Usage
from ua_memory.mcp_server.declared import READS, Caller, Param, Tool, masked
from ua_memory.memory import Memory

if TYPE_CHECKING:
    from ua_memory.memory import Hit

RESULTS, SCORE = 6, 0.35
LINES, CHARACTERS = 120, 12_000
"""What OpenClaw gives where nothing is said."""
CORPORA = ("memory", "wiki", "all", "sessions")
WIKI = "memory/pages/"


def _search(memory: Memory, given: Mapping[str, Any], _: Caller) -> str:
    corpus = given.get("corpus", "memory")
    if corpus == "sessions":
        return _dumped({"results": [], "warning": "sessions are not kept apart here", "action": "use memory"})
    most = given.get("maxResults", RESULTS)
    try:
        found = memory.search(
            given["query"], limit=min(most if corpus != "wiki" else 10 * most, 1000),
            min_score=min(given.get("minScore", SCORE), 1.0),
        )  # fmt: skip
    except Usage:
        raise
    except UaMemoryError as error:
        return _dumped({"results": [], "disabled": True, "unavailable": True, **_failure(error)})
    hits = [hit for hit in found.hits if corpus != "wiki" or hit.item.path.startswith(WIKI)][:most]
    warned = {"warning": "; ".join(found.notes)} if found.notes else {}
    return _dumped(
        {
            "results": [_row(hit) for hit in hits],
            "provider": "local",
            "model": memory.config.embedding,
            "fallback": None,
            "citations": "auto",
            "mode": found.mode,
            **({"stale": True} if found.stale else {}),
            **warned,
        }
    )


def _row(hit: Hit) -> dict[str, Any]:
    item = hit.item
    where = item.place
    row: dict[str, Any] = {"path": where.path, "startLine": where.line, "endLine": where.end}
    row |= {"score": round(hit.score, 4), "snippet": fence.harmless(hit.snippet), "source": "memory"}
    row |= {"corpus": "wiki" if where.path.startswith(WIKI) else "memory", "citation": where.citation}
    return row | ({"id": item.id} if item.id else {})


def _get(memory: Memory, given: Mapping[str, Any], _: Caller) -> str:
    path, most = given["path"], given.get("lines", LINES)
    try:
        found = memory.get(path)
        if not found.path.endswith(".md"):
            raise Usage("not a file of memory", where=path[:200], mend="use MEMORY.md or memory/….md")
        start = max(given.get("from", 1), found.line)
        if start > max(found.end, 1):
            raise NotFound(f"it ends with line {found.end}", where=path)
    except NotFound:
        return _dumped({"status": "not_found", "text": "", "path": path})
    except UaMemoryError as error:
        code = type(error).__name__
        return _dumped({"status": "error", "code": code, "path": path, "text": "", **_failure(error)})
    rows: list[str] = []
    size = 0
    for row in masked(memory, found.text).split("\n")[start - found.line :][:most]:
        size += len(row) + 1
        if size > CHARACTERS and rows:
            break
        rows.append(row[:CHARACTERS])
    following = start + len(rows)
    answer: dict[str, Any] = {"status": "ok", "path": found.path, "from": start, "lines": len(rows)}
    text = fence.harmless("\n".join(rows))
    if following > found.end:
        return _dumped({**answer, "text": text})
    text += f"\n\n[More content available. Use from={following} to continue.]"
    return _dumped({**answer, "text": text, "truncated": True, "nextFrom": following})


def _failure(error: UaMemoryError) -> dict[str, str]:
    return {"error": str(error), **({"action": error.mend} if error.mend else {})}


def _dumped(answer: Mapping[str, Any]) -> str:
    return json.dumps(answer, ensure_ascii=False, indent=2)


TOOLS = (
    Tool(
        "memory_search", "Search memory files",
        "Mandatory recall step: search MEMORY.md and memory/*.md before you answer about earlier work, "
        "decisions, dates, people, preferences or todos. Returns JSON; then read more with memory_get.",
        {
            "query": Param("text", "Words, or a question.", needed=True),
            "maxResults": Param("integer", "At most so many results; 6 by itself.", least=1),
            "minScore": Param("number", "Leave out weaker ones, from 0 to 1; 0.35 by itself.", least=0),
            "corpus": Param("text", "memory and all: everything; wiki: knowledge pages.", among=CORPORA),
        },
        READS, _search,
    ),
    Tool(
        "memory_get", "Read a memory file",
        "Read lines of MEMORY.md or of a file in memory/, as memory_search names them. Returns JSON.",
        {
            "path": Param("text", "The file, from the bank's folder: memory/2026-11-21.md.", needed=True),
            "from": Param("integer", "The first line, counted from 1.", least=1),
            "lines": Param("integer", "At most so many lines; 120 by itself.", least=1),
            "corpus": Param("text", "Taken, and of no effect: a path says where it is.", among=CORPORA),
        },
        READS, _get,
    ),
)  # fmt: skip
