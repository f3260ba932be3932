"""What went wrong with a request, told as our errors: what may pass is tried again, the rest is said."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from ua_memory.errors import KeyRejected, RequestRejected, UaMemoryError
from ua_memory.redaction import redact

from .model import Endpoint

if TYPE_CHECKING:
    from anthropic import APIConnectionError, APIStatusError

_MAY_PASS = {"overloaded_error", "api_error", "rate_limit_error", "timeout_error"}
_OF_THE_KEY = {"authentication_error", "permission_error", "billing_error"}
_LONGEST = 300


class MayPass(Exception):
    """A failure that another try may not meet. `wait` is what the endpoint asked for, in seconds;
    `sent` whether the prompt may have been read, and so paid for; `slow` that nothing came for too long."""

    def __init__(
        self, what: str, *, wait: float | None = None, sent: bool = False, slow: bool = False
    ) -> None:
        super().__init__(what)
        self.what, self.wait, self.sent, self.slow = what, wait, sent, slow


def of_status(error: APIStatusError, endpoint: Endpoint) -> MayPass | UaMemoryError:
    """An answer with a status of 3xx, 4xx or 5xx; the SDK's rules for which to try again."""
    status, headers = error.status_code, error.response.headers
    said = told(error.api_message or "", endpoint)
    what = f"the model's endpoint answered {status}" + (f": {said}" if said else "")
    again = headers.get("x-should-retry")
    if again == "true" or (again != "false" and (status in (408, 409, 429) or status >= 500)):
        return MayPass(what, wait=_wait(headers.get("retry-after-ms"), headers.get("retry-after")))
    if status in (408, 409, 429) or status >= 500:
        return _unavailable(what, endpoint)
    if status in (401, 402, 403):
        return _key(what, endpoint)
    if 300 <= status < 400:
        what = f"{what}, and is not followed to {headers.get('location', 'elsewhere')!r}"
    return _request(what, endpoint)


def of_connection(error: APIConnectionError) -> MayPass:
    """No answer at all: nobody there, no network, a time-out, or cut off before its first byte."""
    import anthropic

    cause = error.__cause__
    kind = type(cause).__name__ if cause else ""
    if isinstance(error, anthropic.APITimeoutError) and kind != "ConnectTimeout":
        return MayPass("the model's endpoint was silent for too long", sent=True, slow=True)
    why = str(cause).strip()[:_LONGEST] if cause else ""
    what = "the model's endpoint cannot be reached" + (f": {redact(why).text}" if why else "")
    return MayPass(what, sent=kind not in ("ConnectError", "ConnectTimeout"))


def of_event(kind: str, message: str, endpoint: Endpoint) -> MayPass | UaMemoryError:
    """An error in the middle of a stream."""
    said = told(message, endpoint)
    what = f"the model's endpoint broke off its answer: {kind}" + (f", {said}" if said else "")
    if kind in _MAY_PASS:
        return MayPass(what)
    return _key(what, endpoint) if kind in _OF_THE_KEY else _request(what, endpoint)


def told(text: str, endpoint: Endpoint) -> str:
    """An endpoint's own words, short, on one line and without the key that some of them repeat."""
    key = endpoint.api_key.strip()
    plain = text.replace(key, "[key]") if key else text
    return " ".join(redact(plain).text.split())[:_LONGEST]


def _key(what: str, endpoint: Endpoint) -> KeyRejected:
    return KeyRejected(what, where=endpoint.url, mend="put a key that is valid there into ANTHROPIC_API_KEY")


def _request(what: str, endpoint: Endpoint) -> RequestRejected:
    mend = f"UA_MEMORY_MODEL is {endpoint.name}, ANTHROPIC_BASE_URL {endpoint.url}: are both right?"
    return RequestRejected(what, where=endpoint.url, mend=mend)


def _unavailable(what: str, endpoint: Endpoint) -> UaMemoryError:
    from ua_memory.errors import ModelUnavailable

    return ModelUnavailable(what, where=endpoint.url, mend="try again later")


def _wait(milliseconds: str | None, seconds: str | None) -> float | None:
    """What `Retry-After` asks for: seconds, or a date, which is read as a long time."""
    for value, factor in ((milliseconds, 0.001), (seconds, 1.0)):
        try:
            return max(0.0, float(value or "") * factor)
        except ValueError:
            continue
    try:
        return float("inf") if seconds and parsedate_to_datetime(seconds) else None
    except ValueError:
        return None
