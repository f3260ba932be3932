"""The tools that agents see over MCP: what each says of itself, and what it does.

The tools stand in tables, by noun: `archival`, `pages`, `asking`, `documents`, `openclaw`. `sdk.server` makes
the official SDK's server of them; what that answers to `tools/list` is kept in `data/mcp.json`, so that a
relay can say it without loading the SDK (0.9 s, 65 MB), and `answer` does what a tool does without it, too.
A test holds the file to the SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ua_memory.config import Config
from ua_memory.errors import NotFound, UaMemoryError, Usage
from ua_memory.mcp_server import archival, asking, documents, openclaw, pages, resources
from ua_memory.mcp_server.declared import Caller, Tool, checked, usage
from ua_memory.memory import Memory
from ua_memory.wording import OFF

__all__ = ["TOOLS", "Caller", "answer", "call", "switched_on"]

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for table in (archival.TOOLS, asking.TOOLS, pages.TOOLS, documents.TOOLS, openclaw.TOOLS)
    for tool in table
}
"""All tools, by name, in the order in which they are listed."""


INSTEAD = {
    "pages create": "create_page", "pages update": "update_page", "core list": "get_core_memory_blocks",
    "core get": "get_core_memory_blocks", "insert": "archival_memory_insert",
    "search": "archival_memory_search",
}  # fmt: skip
"""What an agent calls where an error names a command."""


def switched_on(config: Config) -> list[str]:
    """The names of the tools that the settings mcp.tools and mcp.read_only leave."""
    wanted = config.mcp_tools or tuple(TOOLS)
    return [
        name for name in TOOLS if name in wanted and (TOOLS[name].hints.reads or not config.mcp_read_only)
    ]


def answer(memory: Memory, asked: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """The answer to one request, as JSON has it.

    `{"tool": name, "arguments": …}` gives `text` and `failed`; `{"resources": true}` a list of `resources`;
    `{"read": uri}` a `text`, or `missing`: why there is none.
    """
    if "resources" in asked:
        return {"resources": resources.listed(memory) if memory.config.enabled else []}
    if "read" in asked and not memory.config.enabled:
        return {"missing": OFF}
    if "read" in asked:
        try:
            return {"text": resources.read(memory, str(asked["read"]))}
        except NotFound as error:
            return {"missing": str(error)}
    text, failed = call(memory, str(asked["tool"]), asked.get("arguments"), caller)
    return {"text": text, "failed": failed}


def call(memory: Memory, name: str, arguments: object, caller: Caller) -> tuple[str, bool]:
    """What a tool answers, as a text for the model, and whether it is an error. KeyError for no tool."""
    tool = TOOLS[name]
    if not memory.config.enabled:
        return OFF, True
    try:
        if name not in switched_on(memory.config):
            raise Usage(
                "its user has switched it off", mend="go on without it (settings mcp.tools, mcp.read_only)"
            )
        return tool.work(memory, checked(tool.takes, arguments), caller), False
    except UaMemoryError as error:
        where = f" ({error.where})" if error.where else ""
        mend = error.mend or (f"pass {usage(tool.takes)}" if isinstance(error, Usage) else "")
        for command, instead in INSTEAD.items():
            mend = mend.replace(f"ua-memory {command}", f"call {instead}")
        mend = f" To mend it: {mend}." if mend else ""
        return f"{name} failed: {error.what}{where}.{mend}", True
