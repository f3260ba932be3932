"""The memory tool of the Anthropic API (`memory_20250818`), on a bank: `/memories` is its `memory/` folder.

    tool = MemoryTool(Memory.open("/home/noor/ua-memory"))
    client.beta.messages.tool_runner(..., tools=[tool])       # or by hand: tool.answer(block)

`docs/python.md` tells what an agent may change. Nothing of the SDK is imported here.
"""

from __future__ import annotations

from ua_memory.memory_tool.texts import MemoryToolError
from ua_memory.memory_tool.tool import AsyncMemoryTool, MemoryTool

__all__ = ["AsyncMemoryTool", "MemoryTool", "MemoryToolError"]
