"""How the Anthropic SDK knows our tools for its own, without being imported here: that takes it 1.3 seconds.

Where it is loaded, its tool runner runs only what derives from its classes, and shows the model the words of
its own `ToolError` alone: of another error it shows a `repr`, and its user a traceback.
"""

from __future__ import annotations

import sys
from abc import ABCMeta
from functools import cache

from ua_memory.memory_tool.texts import MemoryToolError

_MODULE = "anthropic.lib.tools"


def declare(tool: type, *, waits: bool) -> None:
    """Tell the SDK, if it is loaded, that a class is a tool of its kind; `waits`: one to be awaited."""
    name = "BetaAsyncBuiltinFunctionTool" if waits else "BetaBuiltinFunctionTool"
    kind = getattr(sys.modules.get(_MODULE), name, None)
    if isinstance(kind, ABCMeta):
        kind.register(tool)


def refusal(text: str) -> MemoryToolError:
    """The error to raise, which is the SDK's `ToolError`, too, where that is loaded."""
    known = getattr(sys.modules.get(_MODULE), "ToolError", None)
    return _both(known)(text) if isinstance(known, type) else MemoryToolError(text)


@cache
def _both(known: type) -> type[MemoryToolError]:
    return type("MemoryToolError", (MemoryToolError, known), {})
