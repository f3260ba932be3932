"""An agent's memory as markdown you own.

    from ua_memory import AutoFlush, Memory

What is exported here is loaded when it is first asked for (PEP 562): importing this package is on the
path of every command, `ua-memory --help` included, and must cost nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from ua_memory.errors import UaMemoryError
    from ua_memory.mcp.memory_tool import AsyncMemoryTool, MemoryTool, MemoryToolError
    from ua_memory.memory import Memory
    from ua_memory.retain.autoflush import AutoFlush

    __version__: str

__all__ = [
    "AsyncMemoryTool", "AutoFlush", "Memory", "MemoryTool", "MemoryToolError", "UaMemoryError", "__version__",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Load an export at its first use; AttributeError for what is not exported."""
    value: object
    if name == "Memory":
        from ua_memory.memory import Memory as value
    elif name in ("AsyncMemoryTool", "MemoryTool", "MemoryToolError"):
        from ua_memory.mcp import memory_tool

        value = getattr(memory_tool, name)
    elif name == "UaMemoryError":
        from ua_memory.errors import UaMemoryError as value
    elif name == "AutoFlush":
        from ua_memory.retain.autoflush import AutoFlush as value
    elif name == "__version__":
        from importlib.metadata import version

        value = version("ua-memory")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
