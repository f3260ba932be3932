"""The part of `Memory` that answers for what was done: the trail, what is wrong, and what is taken back.

What does it is imported where it is used: all of grounding and lineage would be read for each command else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ua_memory.forgetting.forgets import Forgets

if TYPE_CHECKING:
    from ua_memory.health import Check
    from ua_memory.history import BlameLine, Revision
    from ua_memory.lineage import Chain
    from ua_memory.records import Problem
    from ua_memory.statements import Statement
    from ua_memory.stats import Stats
    from ua_memory.store import Result
    from ua_memory.undo import Undone


class Audited(Forgets):
    """The trail of a bank and what can be done with it."""

    def log(
        self, about: str | None = None, *, op: str | None = None, limit: int | None = 20
    ) -> list[Revision]:
        """Revisions, newest first: all, of a file, or of a fact (`^id`)."""
        from ua_memory import audit

        return audit.log(self.store, about=about, op=op, limit=limit)

    def brought(
        self, revisions: Sequence[Revision], about: str | None = None
    ) -> dict[str, tuple[Statement, ...]]:
        """{revision: the statements it brought or changed}, without what was forgotten since; of a file or
        fact (`^id`) alone where it is `about` one."""
        from ua_memory import audit

        return audit.brought(self.store, revisions, about)

    def taken_back(self) -> set[str]:
        """The revisions that an undo took back."""
        return self.store.history.taken_back()

    def diff(self, revision: str | None = None) -> str:
        """What a revision changed, or what is changed by hand and not committed yet."""
        from ua_memory import audit

        return audit.diff(self.store, revision)

    def undo(self, revision: str | None = None) -> Undone:
        """Take back a revision (the newest, unless one is named), or restore what is held."""
        from ua_memory import undo

        return undo.undo(self.store, revision, door=self.door)

    def redo(self) -> Undone:
        """Take back the newest undo."""
        from ua_memory import undo

        return undo.redo(self.store, door=self.door)

    def blame(self, target: str) -> list[BlameLine]:
        """Who wrote each line of a file, a range or a fact."""
        from ua_memory import audit

        return audit.blame(self.store, target)

    def why(self, target: str) -> Chain:
        """What `^id`, `PATH:LINE` or a file rests on, down to quotes, session and commit."""
        from ua_memory import lineage

        return lineage.why(self.store, target)

    def verify(self) -> list[Problem]:
        """Every invariant that can be checked; empty where all hold."""
        return self.verified()[0]

    def verified(self) -> tuple[list[Problem], list[Problem]]:
        """The same, and what could not be checked now, with the reason."""
        from ua_memory import audit, health

        problems, unchecked = health.index_checked(self.store)
        return [*audit.verify(self.store), *health.state_problems(self.store), *problems], unchecked

    def secrets(self) -> list[tuple[str, int, str]]:
        """(path, line, kind) of each secret in the files."""
        from ua_memory import audit

        return audit.secrets(self.store)

    def past_secrets(self) -> list[tuple[str, str, int, str]]:
        """(revision, path, line, kind) of each secret that ever came into the trail, where it came first."""
        from ua_memory import audit

        return audit.past_secrets(self.store)

    def doctor(self, *, mend: bool = False) -> list[Check]:
        """The checks of the surroundings and the state, and with `mend` what can be mended, mended."""
        from ua_memory import health

        if mend:
            self.finish_forgetting()
        return health.checkup(self.store, mend=mend)

    def stats(self) -> Stats:
        """What the bank holds, counted."""
        from ua_memory import stats

        return stats.count(self.store)

    def accept(self) -> Result:
        """Let what disappeared by hand be gone: commit it as the person's."""
        return self.store.adopt(accept=True)
