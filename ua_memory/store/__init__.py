"""The truth on disk and its trail: `Store` reads, and its `revision` is the only way to write."""

from __future__ import annotations

from ua_memory.store.draft import Draft, Result
from ua_memory.store.proof import FileStat
from ua_memory.store.sight import Sight
from ua_memory.store.store import Store
from ua_memory.store.survey import Survey
from ua_memory.store.witness import Witness

__all__ = ["Draft", "FileStat", "Result", "Sight", "Store", "Survey", "Witness"]
