"""The trail in git: every revision a commit, read back as revisions. The only package that knows git."""

from __future__ import annotations

from ua_memory.history.additions import Addition, additions
from ua_memory.history.locks import filesystem_now
from ua_memory.history.revisions import (
    MACHINE,
    SOMEBODY,
    BlameLine,
    Commit,
    Revision,
    blob_id,
    parse_trailers,
)
from ua_memory.history.switching import Moment, Others
from ua_memory.history.trail import History

__all__ = [
    "MACHINE",
    "SOMEBODY",
    "Addition",
    "BlameLine",
    "Commit",
    "History",
    "Moment",
    "Others",
    "Revision",
    "additions",
    "blob_id",
    "filesystem_now",
    "parse_trailers",
]
