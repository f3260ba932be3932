"""What rests on statements that are taken back goes with them, or is revised, as it is where they are
forgotten."""

from __future__ import annotations

from collections.abc import Mapping

from ua_memory import statements
from ua_memory.forgetting.changing import Changing
from ua_memory.forgetting.derived import Deriving
from ua_memory.forgetting.forgetting import told
from ua_memory.forgetting.owners import Owners
from ua_memory.statements import Statement
from ua_memory.store import Draft, Store


def let_go(store: Store, draft: Draft, lost: Mapping[str, Statement]) -> str:
    """Take out of an open revision what was derived only from the `lost`, revise what was partly; in words
    what that comes to, empty for nothing. A person's own lines stay."""
    texts = dict(statements.texts(store))
    for path, data in draft.files.items():
        texts.pop(path, None)
        if data is not None:
            texts[path] = data
    deriving = Deriving(
        texts, [], Owners(store, texts).ours, store.now().date(), take=False, patterns=store.config.redact,
        ids=lost.keys(), known=lost,
    )  # fmt: skip
    plan = Changing(deriving).plan()
    plan.carry_out(draft)
    return told(plan) if plan.files else ""
