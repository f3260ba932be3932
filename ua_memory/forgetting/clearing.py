"""The end of a forgetting, beside the files: what waits, logs, index and caches, and the search that proves
it. A record in `pending/` says what is to be gone: who is killed in the midst of it has it finished."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory import tombstones
from ua_memory.errors import Malformed
from ua_memory.forgetting import searching, waiting
from ua_memory.forgetting.searching import Searched
from ua_memory.forgetting.waiting import Cleared
from ua_memory.forgetting.words import Needle
from ua_memory.paths import make_private
from ua_memory.store import Store, swap
from ua_memory.store.lock import locked

if TYPE_CHECKING:
    from ua_memory.index.sync import Index

BEGUN = "forget-"
"""How a record in `pending/` begins that says what is to be gone until it is."""


class Clearing:
    """Clearing away, in one bank."""

    def __init__(self, store: Store, index: Callable[[], Index]) -> None:
        self.store, self.index = store, index

    def finish(self) -> list[Searched]:
        """Bring what a killed process has begun to forget to its end, or let go of it if nothing was done."""
        with self.alone():
            return self.end_begun()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One forgetting at a time: another one's record is no killed process's. Busy."""
        self.store.make_state()
        with locked(self.store.bank.state / "forget.lock", self.store.config.lock_seconds):
            yield

    def end_begun(self) -> list[Searched]:
        """The same, for who is alone already. Malformed."""
        done = []
        for file in sorted(self.store.bank.pending.glob(f"{BEGUN}*.json")):
            try:
                row = json.loads(file.read_bytes())
                sought = tuple(Needle(text, secret) for text, secret in row["texts"])
                buried, ids, session = row["buried"], frozenset(row["ids"]), row["session"]
            except (ValueError, KeyError, TypeError) as error:
                mend = f"forget it again, with this file out of the way: rm {file}"
                raise Malformed(
                    "a forgetting was cut short, and cannot be read", where=str(file), mend=mend
                ) from error
            self.store.require_settled()
            known = tombstones.read(self.store)
            if buried and all(block in known for block in buried):
                done.append(self.end(file, sought, ids, session)[1])
            else:
                file.unlink(missing_ok=True)
        return done

    def begin(
        self, buried: Iterable[str], ids: Collection[str], sought: Sequence[Needle], session: str = ""
    ) -> Path:
        """Say in `pending/` what is to be gone: who is killed in the midst of it has it finished."""
        self.store.make_state()
        folder = self.store.bank.pending
        make_private(folder)
        row = {
            "buried": [*buried], "ids": sorted(ids),
            "session": session, "texts": [[needle.text, needle.secret] for needle in sought],
        }  # fmt: skip
        file = folder / f"{BEGUN}{secrets.token_hex(8)}.json"
        try:
            fresh = file.with_suffix(".fresh")
            swap.write(fresh, json.dumps(row).encode(), mode=0o600)
            fresh.replace(file)
            swap.sync_folder(folder)
        except OSError as error:
            swap.refused(error, file)
        return file

    def end(
        self, begun: Path, sought: Sequence[Needle], ids: Collection[str], session: str = ""
    ) -> tuple[Cleared, Searched]:
        """Take it out of what waits, the logs, index and caches, and search everything for it. CannotWrite:
        the record stays, and the next forgetting goes on from it."""
        cleared = Cleared()
        with swap.told(self.store.bank.state):
            for queue, one in waiting.of_session(self.store, session) if session else ():
                queue.drop(one.key)
            waiting.clear(self.store, sought, ids, cleared)
            waiting.reindex(self.store, self.index(), self.store.config.search_seconds, cleared)
            begun.unlink(missing_ok=True)
        return cleared, searching.look(self.store, sought, objects=False)
