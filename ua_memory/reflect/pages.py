"""The pages and mental models of a bank: declared and edited by their owner, refreshed from memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ua_memory.errors import BudgetSpent, KeyRejected, ModelUnavailable, RequestRejected, UaMemoryError
from ua_memory.knowledge import pages
from ua_memory.knowledge.pages import PageChange
from ua_memory.records import MentalModel, Page

if TYPE_CHECKING:
    from ua_memory.llm.access import ModelAccess, ModelOrEndpoint
    from ua_memory.llm.model import Model
    from ua_memory.reflect.refresh import Proposal, Refresher, RefreshResult, RefreshView, StaleReasons, Tell
    from ua_memory.store.store import Store

_FATAL = (ModelUnavailable, KeyRejected, RequestRejected, BudgetSpent)
"""Errors that every other page would meet, too."""


class Pages:
    """The knowledge pages of one bank; `view` gives what a refresh may use of memory."""

    def __init__(self, store: Store, door: str, models: ModelAccess, view: Callable[[], RefreshView]) -> None:
        self._store, self._door, self._models, self._view = store, door, models, view

    def create(
        self, id: str, name: str, source_query: str, tags: Sequence[str] = (), *, by_person: bool = False
    ) -> PageChange:
        """Declare what a page tracks; `refresh` writes its body. Usage."""
        return pages.create_page(
            self._store, id, name, source_query, tags, door=self._door, by_person=by_person
        )

    def update(
        self, id: str, *, name: str | None = None, source_query: str | None = None,
        tags: Sequence[str] | None = None, by_person: bool = False,
    ) -> PageChange:  # fmt: skip
        """Change a page's name, question or tags; never its body. NotFound, Usage, Malformed."""
        return pages.update_page(
            self._store, id, title=name, source_query=source_query, tags=tags, door=self._door,
            by_person=by_person,
        )  # fmt: skip

    def delete(self, id: str, *, by_person: bool = False) -> PageChange:
        """Delete a page. NotFound."""
        return pages.delete(self._store, "page", id, door=self._door, by_person=by_person)

    def list(self) -> Sequence[Page]:
        """All pages."""
        return pages.pages(self._store)

    def get(self, id: str) -> Page:
        """One page. NotFound."""
        return pages.page(self._store, id)

    def staleness(self, id: str) -> StaleReasons:
        """Whether a page is out of date, and why. Reads only. NotFound."""
        return self._refresher(None, None).stale(self.get(id))

    def refresh(
        self, id: str, *, full: bool = False, dry_run: bool = False, model: ModelOrEndpoint = None,
        tell: Tell | None = None,
    ) -> RefreshResult:  # fmt: skip
        """Bring a page up to date, in one commit; nothing is asked or written where nothing has changed.

        Without a `model` it is put together from the facts' own words. `full` writes it anew; `dry_run`
        writes nothing, but asks the model; `tell` hears the price first. Raises NotFound, ChangedOnDisk,
        Malformed, and what the model raises: the page is as it was then.
        """
        page = self.get(id)
        with self._models.open(model) as asked:
            return self._refresher(asked, model).refresh(page, full=full, dry_run=dry_run, tell=tell)

    def refresh_stale(
        self, model: ModelOrEndpoint = None, *, every: bool = False, full: bool = False,
        dry_run: bool = False, tell: Tell | None = None, done: Callable[[RefreshResult], None] | None = None,
    ) -> Sequence[RefreshResult]:  # fmt: skip
        """Refresh the pages that are stale, each in a commit of its own; with `every` those that are not are
        in the result, too. `done` hears of each as it comes.

        A page that fails does not keep others from it, unless no other would be spared; the first error is
        raised at the end.
        """
        all_done: list[RefreshResult] = []
        failed: UaMemoryError | None = None
        with self._models.open(model) as asked:
            refresher = self._refresher(asked, model)
            for page in self.list():
                try:
                    one = refresher.refresh(page, full=full, dry_run=dry_run, tell=tell)
                except _FATAL:
                    raise
                except UaMemoryError as error:
                    failed = failed or error
                    continue
                if every or one.why or one.revision or one.diff:
                    all_done.append(one)
                    if done:
                        done(one)
        if failed:
            raise failed
        return all_done

    def _refresher(self, model: Model | None, at: ModelOrEndpoint) -> Refresher:
        from ua_memory.reflect.refresh import Refresher

        return Refresher(self._store, self._view(), door=self._door, model=model, at=at)


class MentalModels:
    """The mental models of one bank: written by a person; memory only proposes changes."""

    def __init__(self, store: Store, door: str, models: ModelAccess, view: Callable[[], RefreshView]) -> None:
        self._store, self._door, self._models, self._view = store, door, models, view

    def create(
        self, id: str, name: str, body: str, tags: Sequence[str] = (), *, by_person: bool = False
    ) -> PageChange:
        """Write a person's mental model; for a machine (not `by_person`) Usage."""
        return pages.create_model(self._store, id, name, body, tags, door=self._door, by_person=by_person)

    def update(
        self, id: str, *, name: str | None = None, body: str | None = None, by_person: bool = False
    ) -> PageChange:
        """Change a mental model as a person wants it. NotFound, Usage."""
        return pages.update_model(
            self._store, id, title=name, body=body, door=self._door, by_person=by_person
        )

    def delete(self, id: str, *, by_person: bool = False) -> PageChange:
        """Delete a mental model. NotFound, Usage."""
        return pages.delete(self._store, "model", id, door=self._door, by_person=by_person)

    def list(self) -> Sequence[MentalModel]:
        """All mental models."""
        return pages.models(self._store)

    def get(self, id: str) -> MentalModel:
        """One mental model. NotFound."""
        return pages.model(self._store, id)

    def propose(self, id: str, *, model: ModelOrEndpoint = None, tell: Tell | None = None) -> Proposal:
        """What memory would change in a mental model. Nothing is written. NotFound; the model's errors."""
        from ua_memory.reflect.refresh import Refresher, propose

        one = self.get(id)
        with self._models.open(model) as asked:
            refresher = Refresher(self._store, self._view(), door=self._door, model=asked, at=model)
            return propose(refresher, one, tell)
