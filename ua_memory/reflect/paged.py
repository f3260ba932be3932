"""The part of `Memory` that keeps knowledge pages and mental models."""

from __future__ import annotations

from collections.abc import Sequence

from ua_memory import pages
from ua_memory.modelled import Modelled
from ua_memory.pages import Kept
from ua_memory.records import MentalModel, Page


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
