"""Many requests posted at once and answered within a day, at half the price: the API's message batches.

Nobody waits: who posts keeps the `Post`, and whoever comes later collects it, in another process or on
another day. The worst case of all of them stands in the ledger until then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ua_memory.errors import BudgetSpent, KeyRejected, ModelUnavailable, RequestRejected, UaMemoryError

from .budget import Meter
from .failures import MayPass, of_connection, of_status
from .ledger import Entry, entry_of
from .model import Endpoint, Message, Reply, Usage
from .request import Request, Words, build
from .stream import Answer

if TYPE_CHECKING:
    from anthropic import Anthropic

HALF = 0.5
"""What a request of a batch costs of its price."""


@dataclass(frozen=True, slots=True)
class Question:
    """One request of a batch."""

    system: str
    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Post:
    """A batch that was posted: its name at the endpoint, how many of the questions it has, the first ones,
    the model that was asked, and its line of the ledger."""

    id: str
    count: int
    model: str
    entry: str

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {"id": self.id, "count": self.count, "model": self.model, "entry": self.entry}

    @staticmethod
    def of(row: Mapping[str, Any]) -> Post:
        """From JSON. KeyError, TypeError, ValueError for what is none."""
        return Post(str(row["id"]), int(row["count"]), str(row["model"]), str(row["entry"]))


class Posting:
    """The part of `Claude` that posts and collects batches."""

    _endpoint: Endpoint
    _meter: Meter
    _words: Words
    _free: bool

    @property
    def name(self) -> str:
        """The id of the model asked for."""
        raise NotImplementedError

    def estimate(self, tokens: int) -> int:
        """Upper estimate of this model's tokens for a number of ours."""
        raise NotImplementedError

    def _connected(self) -> Anthropic:
        raise NotImplementedError

    def post(self, questions: Sequence[Question], *, purpose: str, max_tokens: int) -> Post:
        """Post questions, as many of them, from the first on, as the limits bear. What `ask` raises;
        BudgetSpent where not even the first one fits."""
        built = [build(self._words, q.system, q.messages, q.tools, goes_on=True) for q in questions]
        entry, count = self._reserved(built, purpose, max_tokens)
        requests = [
            {"custom_id": str(n), "params": {"model": self.name, "max_tokens": max_tokens, **each.body}}
            for n, each in enumerate(built[:count])
        ]
        try:
            with _errors(self._endpoint):
                made = self._connected().messages.batches.create(requests=requests)  # type: ignore[arg-type]
        except (KeyRejected, RequestRejected):  # whatever else went wrong, it may have been taken
            self._meter.settle_all(entry, [], share=HALF, failed=True)
            raise
        return Post(made.id, count, self.name, entry.line().decode())

    def collect(self, post: Post) -> dict[int, Reply] | None:
        """The replies to a batch by the number of their question, None while it is under way; those that
        failed, were refused or ran out of time are missing. What `ask` raises; RequestRejected where the
        endpoint knows no such batch any more."""
        with _errors(self._endpoint):
            batches = self._connected().messages.batches
            if batches.retrieve(post.id).processing_status != "ended":
                return None
            rows = [(row.custom_id, row.result) for row in batches.results(post.id)]
        found: dict[int, Reply] = {}
        used: list[Usage] = []
        for name, result in rows:
            if result.type == "succeeded" and name.isdigit() and int(name) < post.count:
                answer = _whole(result.message.to_dict())
                used.append(answer.usage)
                if answer.refusal is None:
                    found[int(name)] = answer.reply()
        self._meter.settle_all(entry_of(json.loads(post.entry)), used, share=HALF, failed=not found)
        return found

    def _reserved(self, built: Sequence[Request], purpose: str, max_tokens: int) -> tuple[Entry, int]:
        worst = [Usage(cache_write=self.estimate(r.tokens), output=max_tokens) for r in built]
        count = len(worst)
        while True:
            try:
                return self._meter.reserve_all(
                    purpose, self.name, worst[:count], share=HALF, free=self._free
                ), count
            except BudgetSpent:
                if count <= 1:
                    raise
                count = count * 3 // 4


def _whole(message: Mapping[str, Any]) -> Answer:
    """A message as if it had been streamed: one reader of answers is enough."""
    answer = Answer()
    answer.take({"type": "message_start", "message": message})
    for number, block in enumerate(message.get("content") or ()):
        answer.take({"type": "content_block_start", "index": number, "content_block": block})
    answer.take({"type": "message_delta", "delta": message, "usage": message.get("usage")})
    answer.take({"type": "message_stop"})
    return answer


@contextmanager
def _errors(endpoint: Endpoint) -> Iterator[None]:
    """Whatever the SDK raises, as an error of ours."""
    import anthropic

    try:
        yield
    except anthropic.APIStatusError as error:
        raise _told(of_status(error, endpoint), endpoint) from error
    except anthropic.APIConnectionError as error:
        raise _told(of_connection(error), endpoint) from error
    except anthropic.AnthropicError as error:
        raise _told(MayPass(f"the model's endpoint gave no batch: {error}"), endpoint) from error


def _told(why: MayPass | UaMemoryError, endpoint: Endpoint) -> UaMemoryError:
    if isinstance(why, UaMemoryError):
        return why
    return ModelUnavailable(why.what, where=endpoint.url, mend="try again later")
