"""The one door to a language model: asking, tools, failures, price and limits.

A caller makes a `Meter` (what may be spent, and where that is written down) and a `Claude` (an
endpoint and a meter), then calls `ask` once or `run_tools` for a loop. Without an endpoint there is
no model, and nothing here is called. The SDK is imported by the first request, not by this package.
"""

from __future__ import annotations

from .budget import Limits, Meter
from .claude import Claude, Patience
from .estimate import THEIRS, Estimate, priced
from .ledger import Ledger, Spent, Totals
from .loop import Bounds, Outcome, Tool, ToolError, run_tools
from .model import Endpoint, Message, Model, Reply, ToolCall, Usage, is_on_this_network, user
from .posting import HALF, Post, Question
from .prices import PRICES_AS_OF, price

__all__ = [
    "HALF",
    "PRICES_AS_OF",
    "THEIRS",
    "Bounds",
    "Claude",
    "Endpoint",
    "Estimate",
    "Ledger",
    "Limits",
    "Message",
    "Meter",
    "Model",
    "Outcome",
    "Patience",
    "Post",
    "Question",
    "Reply",
    "Spent",
    "Tool",
    "ToolCall",
    "ToolError",
    "Totals",
    "Usage",
    "is_on_this_network",
    "price",
    "priced",
    "run_tools",
    "user",
]
