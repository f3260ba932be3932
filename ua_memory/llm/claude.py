"""A model behind the Anthropic Messages API: Anthropic's own, or whatever answers at the owner's URL.

The home of the SDK, which gives the connection and the names of its errors. Three things are done here
instead of there. Trying again: the SDK does not try a cut stream again, and sleeps for as long as a
`Retry-After` says, be it a day. Redirects are not followed: they would take texts where no owner sent
them. And no key or address is taken from the environment or the SDK's profiles: a daemon serves many.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ua_memory.errors import KeyRejected, ModelRefused, ModelUnavailable, RequestRejected, UaMemoryError
from ua_memory.redaction import NO_PATTERNS

from .budget import Meter
from .failures import MayPass, of_connection, of_event, of_status, told
from .model import ANTHROPIC, Endpoint, Message, Reply, Usage, is_on_this_network
from .posting import Posting
from .request import Request, Words, build
from .stream import Answer, ErrorEvent, Garbled, events

if TYPE_CHECKING:
    from anthropic import Anthropic

_UNMEASURED = 1.5
"""Claude's tokens to one of ours, at most, until a reply has told: newer tokenizers count 1.3 and more."""
_MARGIN = 1.1
_LONGEST_PAUSE = 8.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait, in seconds: for the connection, for the next byte, for one whole answer; how
    often to try again, after which first pause, and the longest `Retry-After` that is waited for; and
    whether one that was silent for too long is tried again at all."""

    connect: float = 10.0
    silence: float = 300.0
    whole: float = 1200.0
    retries: int = 2
    pause: float = 0.5
    longest_wait: float = 60.0
    slow_again: bool = True


UNHURRIED = Patience(silence=1200.0, whole=3600.0, slow_again=False)
"""With a server on this network: it says nothing while it reads a long prompt, and on a plain processor
that takes minutes. What was too slow there once is not tried again."""


class Claude(Posting):
    """One run's connection to a model. Close it, or use it as a context manager.

    Raises KeyRejected or RequestRejected at once for a key or a URL that cannot be one.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        meter: Meter,
        *,
        patterns: Mapping[str, str] = NO_PATTERNS,
        patience: Patience | None = None,
    ) -> None:
        _check(endpoint)
        self._free = is_on_this_network(endpoint.url)
        self._endpoint, self._meter = endpoint, meter
        self._patience = patience or (UNHURRIED if self._free else Patience())
        self._words = Words(patterns)
        self._measured: float | None = None
        self._client: Anthropic | None = None

    @property
    def name(self) -> str:
        """The id of the model asked for."""
        return self._endpoint.name

    @property
    def meter(self) -> Meter:
        """What this run has used so far."""
        return self._meter

    def __enter__(self) -> Claude:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Asking again opens another."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def ask(
        self,
        system: str,
        messages: Sequence[Message],
        *,
        purpose: str,
        max_tokens: int = 16_000,
        tools: Sequence[Mapping[str, Any]] = (),
        goes_on: bool = False,
    ) -> Reply:
        """See `Model.ask`."""
        request = build(self._words, system, messages, tools, goes_on=goes_on)
        body = {"model": self.name, "max_tokens": max_tokens, **request.body}
        pause = self._patience.pause
        for tried in range(self._patience.retries + 1):
            try:
                return self._try(body, request, purpose)
            except MayPass as failure:
                wait = failure.wait
                last = tried == self._patience.retries or (failure.slow and not self._patience.slow_again)
                if last or (wait or 0.0) > self._patience.longest_wait:
                    raise self._unavailable(failure, tried + 1) from failure
                # With jitter: many banks wake at the same hour.
                time.sleep(pause * random.uniform(0.75, 1.0) if wait is None else wait)
                pause = min(2 * pause, _LONGEST_PAUSE)
        raise AssertionError("the loop above returns or raises")

    def count(
        self, system: str, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = ()
    ) -> tuple[int, bool]:
        """How many tokens this prompt has, and whether the endpoint itself counted them (it costs
        nothing). Where it cannot, an estimate."""
        import anthropic

        request = build(self._words, system, messages, tools)
        try:
            counted = self._connected().messages.count_tokens(model=self.name, **request.body).input_tokens
        except anthropic.AnthropicError:
            return self.estimate(request.tokens), False
        self._measure(counted, request)
        return counted, True

    def estimate(self, tokens: int) -> int:
        """Upper estimate of this model's tokens for a number of ours, learnt from its own counts."""
        factor = _UNMEASURED if self._measured is None else self._measured * _MARGIN
        return int(tokens * factor) + 1

    def _try(self, body: dict[str, Any], request: Request, purpose: str) -> Reply:
        prompt = self.estimate(request.tokens)
        worst = Usage(cache_write=prompt, output=body["max_tokens"])
        entry = self._meter.reserve(purpose, self.name, worst, free=self._free)
        answer, sent = Answer(), True
        try:
            self._read(body, answer)
            # A refused answer is read, but no answer: it must not be kept, nor sent back.
            if answer.refusal is not None:
                raise self._refused(answer.refusal)
            reply = answer.reply()
        except MayPass as failure:
            sent = failure.sent
            raise
        except UaMemoryError:
            sent = False
            raise
        finally:
            used = answer.usage if answer.begun else Usage(input=prompt if sent else 0)
            failed = not answer.whole
            self._meter.settle(entry, answer.model, used, failed=failed, request=answer.request_id)
        self._measure(reply.usage.prompt, request)
        return reply

    def _read(self, body: dict[str, Any], answer: Answer) -> None:
        """Send the request and take its events in; on return `answer` is whole."""
        import anthropic

        try:
            stream = self._connected().messages.create(**body, stream=True)
        except anthropic.APIStatusError as error:
            raise of_status(error, self._endpoint) from error
        except anthropic.APIConnectionError as error:
            raise of_connection(error) from error
        with stream:
            answer.request_id = stream.response.headers.get("request-id", "")
            chunks = self._in_time(stream.response.iter_bytes())
            try:
                for event in events(chunks):
                    answer.take(event)
            except ErrorEvent as error:
                raise of_event(error.kind, str(error), self._endpoint) from error
            except Garbled as error:
                raise MayPass(f"the model's endpoint sent no proper answer: {error}", sent=True) from error
        if not answer.whole:
            raise MayPass("the model's answer ended before it was whole", sent=True)

    def _in_time(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The chunks, while they come in time. The SDK lets errors of the connection through raw, as the
        classes of a library below it; whatever breaks while bytes are read is a cut."""
        until = time.monotonic() + self._patience.whole
        while True:
            try:
                chunk = next(chunks, None)
            except Exception as error:
                slow = "Timeout" in type(error).__name__
                what = "stopped coming" if slow else "was cut off"
                raise MayPass(f"the model's answer {what}", sent=True, slow=slow) from error
            if chunk is None:
                return
            yield chunk
            if time.monotonic() > until:  # pings and comments alone would keep us here for ever
                what = f"the model's answer took longer than {self._patience.whole:g} s"
                raise ModelUnavailable(what, where=self._endpoint.url, mend="try again later")

    def _connected(self) -> Anthropic:
        if self._client is None:
            import anthropic

            times = anthropic.Timeout(self._patience.silence, connect=self._patience.connect)
            self._client = anthropic.Anthropic(
                # Set in any case: what is left out, the SDK looks for in the environment and the home folder.
                api_key=self._endpoint.api_key.strip() or "none",
                base_url=self._endpoint.url,
                max_retries=0,
                timeout=times,
                open_telemetry=False,
                http_client=anthropic.DefaultHttpxClient(
                    follow_redirects=False,
                    # Reading the system's certificates takes 0.1 s, which a plain http URL has no use for.
                    verify=urlsplit(self._endpoint.url).scheme != "http",
                    timeout=times,
                    # A proxy set for the world outside has no business with a model on this network. The
                    # SDK takes it from the environment even with trust_env=False; a mount overrides it.
                    mounts={"http://": None, "https://": None, "all://": None} if self._free else {},
                ),
            )
        return self._client

    def _measure(self, counted: int, request: Request) -> None:
        """Learn from what the endpoint counted; not from small prompts, which are mostly frame."""
        if counted and request.tokens >= 200:
            self._measured = max(self._measured or 1.0, counted / request.tokens)

    def _unavailable(self, failure: MayPass, tries: int) -> ModelUnavailable:
        what = failure.what + (f": {self._patience.silence:g} s" if failure.slow else "")
        what += f" ({tries} tries)" if tries > 1 else ""
        far = failure.wait is not None and failure.wait > self._patience.longest_wait
        when = f"in {failure.wait:.0f} s" if far and failure.wait != float("inf") else "later"
        if failure.slow and self._free:
            when += ", or let it read less at once with a smaller UA_CONTEXT_WINDOW"
        return ModelUnavailable(what, where=self._endpoint.url, mend=f"try again {when}")

    def _refused(self, why: str) -> ModelRefused:
        said = told(why, self._endpoint)
        what = f"{self.name} declined to answer" + (f": {said}" if said else "")
        return ModelRefused(what, where=self._endpoint.url, mend="another UA_MEMORY_MODEL, or do without one")


def _check(endpoint: Endpoint) -> None:
    parts = urlsplit(endpoint.url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RequestRejected(
            "this is no URL of a model", where=endpoint.url, mend="correct ANTHROPIC_BASE_URL"
        )
    key = endpoint.api_key.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        # Said here because the library below would print the key that it cannot send.
        raise KeyRejected("the key holds characters that no key has", mend="set ANTHROPIC_API_KEY anew")
    if not key and endpoint.url == ANTHROPIC:
        raise KeyRejected("there is no key", where=endpoint.url, mend="set ANTHROPIC_API_KEY")
