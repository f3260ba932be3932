"""The tools of archival and core memory, with Letta's names: insert, search, replace, read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ua_memory import fence, glance
from ua_memory.mcp_server.declared import ADDS, READS, REPLACES, Caller, Param, Tool, aside, masked
from ua_memory.memory import Memory


def _insert(memory: Memory, given: Mapping[str, Any], caller: Caller) -> str:
    tags = given.get("tags", ())
    done = memory.insert(
        given["content"], tags=tags, client=caller.client, session=caller.session, said_in=caller.said_in
    )
    fact = done.fact
    did = "This is known already; it was noted as seen again" if done.sighting else "Remembered"
    said = [f"{did}: ^{fact.id} in {fact.place.path}, line {fact.place.line}."]
    return " ".join([*said, *aside(done.result.redacted, done.result.notes)])


def _search(memory: Memory, given: Mapping[str, Any], _: Caller) -> str:
    answer = memory.search(given["query"])
    text, left = glance.hits_block(answer)
    notes = [*answer.notes, *([f"{len(left)} more found no room"] if left else [])]
    said = text or "Memory holds nothing on this. Other words may find more."
    return "\n".join([said, *(f"Note: {note}." for note in notes)])


def _replace(memory: Memory, given: Mapping[str, Any], caller: Caller) -> str:
    done = memory.core_replace(given["section"], given["value"], session=caller.session)
    did = "Replaced" if done.before else "Added"
    return " ".join(
        [f"{did} core block {done.after.name!r}.", *(f"{each}." for each in done.warnings),
         *aside(done.result.redacted, done.result.notes)]
    )  # fmt: skip


def blocks(memory: Memory, _given: Mapping[str, Any], _: Caller) -> str:
    """Core memory as a block of recalled memory."""
    found = memory.core_blocks()
    if not found:
        return "Core memory has no blocks yet; core_memory_replace adds one."
    text = "\n\n".join(f"## {block.name}\n{block.value}" for block in found)
    return fence.fenced("core", f"{glance.CORE}\n\n{masked(memory, text)}")


TOOLS = (
    Tool(
        "archival_memory_insert", "Remember",
        "Remember one fact, verbatim, across sessions. Secrets are taken out before anything is written.",
        {
            "content": Param(
                "text", 'One sentence that stands by itself: names and dates, not "he" and "today".',
                needed=True,
            ),
            "tags": Param("texts", 'Words to find it by, such as ["infra"].'),
        },
        ADDS, _insert,
    ),
    Tool(
        "archival_memory_search", "Search memory",
        "Find what memory holds: facts of earlier sessions and the user's notes, best first. Each line has "
        "its date and its source.",
        {"query": Param("text", 'Words, a question, or a "phrase" that must stand there.', needed=True)},
        READS, _search,
    ),
    Tool(
        "core_memory_replace", "Change core memory",
        "Replace a block of core memory, or add it: what every session begins with, kept short.",
        {
            "section": Param("text", "The block's name, as get_core_memory_blocks shows it.", needed=True),
            "value": Param(
                "text", "All of its new text; what is not in it is gone (`ua-memory undo` brings it back).",
                needed=True,
            ),
        },
        REPLACES, _replace,
    ),
    Tool(
        "get_core_memory_blocks", "Read core memory", "Read core memory: every block with its name.",
        {}, READS, blocks,
    ),
)  # fmt: skip
