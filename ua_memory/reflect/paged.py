"""The part of `Memory` that keeps knowledge pages and mental models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ua_memory import pages
from ua_memory.errors import BudgetSpent, KeyRejected, ModelUnavailable, RequestRejected, UaMemoryError
from ua_memory.modelled import Modelled
from ua_memory.pages import Kept
from ua_memory.records import MentalModel, Page

if TYPE_CHECKING:
    from ua_memory.llm import Model
    from ua_memory.modelled import Asked
    from ua_memory.reflect.grounds import Recalled
    from ua_memory.reflect.refresh import Refreshed, Refresher, Tell
    from ua_memory.reflect.staleness import Stale
    from ua_memory.reflect.suggested import Proposal
    from ua_memory.statements import Statement

HOPELESS = (ModelUnavailable, KeyRejected, RequestRejected, BudgetSpent)
"""What no other page would be spared."""


class Paged(Modelled):
    """Knowledge pages and mental models of a bank."""

    def create_page(
        self, id: str, name: str, source_query: str, tags: Sequence[str] = (), *, by_person: bool = False
    ) -> Kept:
        """Declare what a page tracks; `refresh_page` writes its body. Usage."""
        return pages.create_page(
            self.store, id, name, source_query, tags, door=self.door, by_person=by_person
        )

    def update_page(
        self, id: str, *, name: str | None = None, source_query: str | None = None,
        tags: Sequence[str] | None = None, by_person: bool = False,
    ) -> Kept:  # fmt: skip
        """Change a page's name, question or tags; never its body. NotFound, Usage, Malformed."""
        return pages.update_page(
            self.store, id, title=name, source_query=source_query, tags=tags, door=self.door,
            by_person=by_person,
        )  # fmt: skip

    def delete_page(self, id: str, *, by_person: bool = False) -> Kept:
        """Let a page go. NotFound."""
        return pages.delete(self.store, "page", id, door=self.door, by_person=by_person)

    def list_pages(self) -> list[Page]:
        """All pages."""
        return pages.pages(self.store)

    def get_page(self, id: str) -> Page:
        """One page. NotFound."""
        return pages.page(self.store, id)

    # -- refreshing --------------------------------------------------------------------------------------

    def refresh(self) -> Any:
        """Bring the index up to date."""
        raise NotImplementedError

    def fact(self, block: str) -> Statement:
        """What has a block id."""
        raise NotImplementedError

    def staleness(self, id: str) -> Stale:
        """Whether a page is out of date, and why. Reads only. NotFound."""
        return self._refresher(None, None).stale(self.get_page(id))

    def refresh_page(
        self, id: str, *, full: bool = False, dry_run: bool = False, model: Asked = None,
        tell: Tell | None = None,
    ) -> Refreshed:  # fmt: skip
        """Bring a page up to date, in one commit; nothing is asked or written where nothing has changed.

        Without a `model` it is put together from the facts' own words. `full` writes it anew; `dry_run`
        writes nothing, but asks the model; `tell` hears the price first. Raises NotFound, ChangedOnDisk,
        Malformed, and what the model raises: the page is as it was then.
        """
        page = self.get_page(id)
        with self._asking(model) as asked:
            return self._refresher(asked, model).refresh(page, full=full, dry_run=dry_run, tell=tell)

    def refresh_stale(
        self, model: Asked = None, *, every: bool = False, full: bool = False, dry_run: bool = False,
        tell: Tell | None = None, done: Callable[[Refreshed], None] | None = None,
    ) -> list[Refreshed]:  # fmt: skip
        """Refresh the pages that are stale, each in a commit of its own; with `every` those that are not are
        in the result, too. `done` hears of each as it comes.

        A page that fails does not keep others from it, unless no other would be spared; the first error is
        raised at the end.
        """
        all_done: list[Refreshed] = []
        failed: UaMemoryError | None = None
        with self._asking(model) as asked:
            refresher = self._refresher(asked, model)
            for page in self.list_pages():
                try:
                    one = refresher.refresh(page, full=full, dry_run=dry_run, tell=tell)
                except HOPELESS:
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

    def propose_model(self, id: str, *, model: Asked = None, tell: Tell | None = None) -> Proposal:
        """What memory would change in a mental model. Nothing is written. NotFound; the model's errors."""
        from ua_memory.reflect.suggested import propose

        one = self.get_model(id)
        with self._asking(model) as asked:
            return propose(self._refresher(asked, model), one, tell)

    def _refresher(self, model: Model | None, at: Asked) -> Refresher:
        from ua_memory.recall.search import Filters
        from ua_memory.redaction import redact
        from ua_memory.reflect.grounds import FAINTEST, KINDS, PASSED
        from ua_memory.reflect.refresh import Refresher, View

        wanted = Filters(kinds=KINDS, retired=False)

        def recall(question: str) -> Recalled:
            found = self.search(question, limit=PASSED, min_score=FAINTEST, filters=wanted)
            if found.stale:  # it had no time to read all; a page would be called up to date that is not
                self.refresh()
                found = self.search(question, limit=PASSED, min_score=FAINTEST, filters=wanted)
            return found.hits, found.notes

        view = View(recall, self.fact, self._equal, lambda text: redact(text, self.config.redact).text)
        return Refresher(self.store, view, door=self.door, model=model, at=at)

    # -- mental models -----------------------------------------------------------------------------------

    def create_model(
        self, id: str, name: str, body: str, tags: Sequence[str] = (), *, by_person: bool = False
    ) -> Kept:
        """Write a person's mental model; for a machine (not `by_person`) Usage."""
        return pages.create_model(self.store, id, name, body, tags, door=self.door, by_person=by_person)

    def update_model(
        self, id: str, *, name: str | None = None, body: str | None = None, by_person: bool = False
    ) -> Kept:
        """Change a mental model as a person wants it. NotFound, Usage."""
        return pages.update_model(self.store, id, title=name, body=body, door=self.door, by_person=by_person)

    def delete_model(self, id: str, *, by_person: bool = False) -> Kept:
        """Let a mental model go. NotFound, Usage."""
        return pages.delete(self.store, "model", id, door=self.door, by_person=by_person)

    def list_models(self) -> list[MentalModel]:
        """All mental models."""
        return pages.models(self.store)

    def get_model(self, id: str) -> MentalModel:
        """One mental model. NotFound."""
        return pages.model(self.store, id)
