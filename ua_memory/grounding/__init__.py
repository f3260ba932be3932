"""Nothing made up: what a machine wrote is held against the words it was drawn from."""

from __future__ import annotations

from ua_memory.grounding.claims import around, claims, locate, named, ungrounded
from ua_memory.grounding.support import supported

__all__ = ["around", "claims", "locate", "named", "supported", "ungrounded"]
