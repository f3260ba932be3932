"""Authentication and request checks of the web server, and the security headers of every response.

Threats: other sites in the same browser (forged requests, DNS rebinding), other users of this machine, and
the text in memory. See docs/security.md.
"""

from __future__ import annotations

import hmac
import os
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.paths import make_private
from ua_memory.store.swap import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable

LINK_SECONDS = 60.0
"""How long a one-time link is valid."""
MOST_BODY = 1 << 20
"""Bytes of a request's body."""
LONGEST_ADDRESS = 2048
"""Bytes of a request's path and query."""
FORM = b"application/x-www-form-urlencoded"
HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        b" form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script';"
        b" trusted-types ua",
    ),
    (b"x-content-type-options", b"nosniff"),
    # Not `no-referrer`: with it a browser sends forms with `Origin: null`, which is refused.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-embedder-policy", b"require-corp"),
    (b"cache-control", b"no-store"),
)
"""Headers of every response. There is no CORS header, so that no other site can read one."""
AGAIN = b"again=1"
"""The query parameter of a refreshed request, so that it is refreshed only once."""
REFRESH = (
    b'<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=%s">'
    b"<title>ua-memory</title><p>Opening\xe2\x80\xa6"
)
NO_LINK = b"not signed in: run `ua-memory web` for a new link\n"


def put_private(file: Path, text: str) -> None:
    """Write a file that only its owner can read. OSError."""
    replace_file(file, text.encode(), file.with_name(f"{file.name}.{os.getpid()}"))


class OneTimeLink:
    """A sign-in token in a file that only its owner can read.

    It is valid for LINK_SECONDS and for one use: the file is deleted when the token is used.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / "web.enter"

    def make(self) -> str:
        """Write a new token, which replaces the old one. OSError."""
        make_private(self.file.parent)
        token = secrets.token_urlsafe(32)
        put_private(self.file, token)
        return token

    def use(self, token: str) -> bool:
        """Whether the token is valid; if so, it is deleted."""
        try:
            known, age = self.file.read_text("ascii"), time.time() - self.file.stat().st_mtime
        except (OSError, UnicodeDecodeError):
            return False
        if not known or age > LINK_SECONDS or not hmac.compare_digest(known.encode(), token.encode()):
            return False
        self.file.unlink(missing_ok=True)
        return True


class Guard:
    """ASGI middleware that checks each request and refuses it or passes it to the inner application.

    `port` is the server's port; `link` signs a new browser in. `seen` is the monotonic time of the last
    accepted request, in seconds.
    """

    def __init__(self, inner: Any, port: int, link: OneTimeLink) -> None:
        self.inner, self.link = inner, link
        self.hosts = tuple(f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost"))
        # Cookies are shared by all ports of a host (RFC 6265, 8.5), so the name includes the port.
        self.name, self.value = f"ua_memory_{port}".encode(), secrets.token_urlsafe(32).encode()
        self.seen = time.monotonic()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        status, body, more = self.verdict(scope)
        if status:
            await _answer(send, status, body, more)
            return
        if scope["path"] != "/live":
            self.seen = time.monotonic()

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                kept = (row for row in message["headers"] if row[0] != b"cache-control")
                message = {**message, "headers": [*kept, *HEADERS]}
            await send(message)

        await self.inner(scope, _bounded(receive), sent)

    def verdict(self, scope: Any) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
        """(status, body, headers) of the response to a refused request or a sign-in; status 0 accepts it."""
        headers = scope["headers"]
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > LONGEST_ADDRESS:
            return 414, b"the address is too long\n", []
        if (status := self._foreign(scope, headers)) != 0:
            return status, b"refused\n", []
        if scope["path"] == "/enter":
            return self._enter(scope)
        if not self._signed_in(headers):
            # A browser that follows a link from another site omits a strict cookie: a refresh sends it.
            fresh = scope["method"] == "GET" and AGAIN not in scope["query_string"].split(b"&")
            if fresh and _one(headers, b"sec-fetch-dest") == b"document":
                path = b"/" + (scope.get("raw_path") or b"/").split(b"?")[0].lstrip(b"/\\")  # `//x` is a host
                url = b"&".join(filter(None, (scope["query_string"], AGAIN)))
                return 200, REFRESH % _attribute(path + b"?" + url), [_HTML]
            return 401, NO_LINK, []
        return 0, b"", []

    def _foreign(self, scope: Any, headers: Any) -> int:
        """The error status for a request from another site; 0 if it is from our page or the address bar."""
        origins = {b"http://" + host for host in self.hosts}
        host, origin = _all(headers, b"host"), _all(headers, b"origin")
        site = _one(headers, b"sec-fetch-site")
        if len(host) != 1 or host[0] not in self.hosts:
            return 421
        if origin and (len(origin) != 1 or origin[0] != b"http://" + host[0] or origin[0] not in origins):
            return 403
        if scope["method"] not in ("GET", "HEAD"):
            kind = _one(headers, b"content-type").split(b";")[0].strip().lower()
            if site != b"same-origin" or not origin or kind != FORM:
                return 403
        if site not in (b"", b"same-origin", b"none") and _one(headers, b"sec-fetch-dest") != b"document":
            return 403
        return 0

    def _signed_in(self, headers: Any) -> bool:
        cookies = (each for line in _all(headers, b"cookie") for each in line.split(b";"))
        pairs = (each.strip().partition(b"=") for each in cookies)
        given = [value for name, _, value in pairs if name == self.name]
        # Another port of this host may set a cookie of the same name, which must not lock the user out.
        return any(hmac.compare_digest(each, self.value) for each in given)

    def _enter(self, scope: Any) -> tuple[int, bytes, list[tuple[bytes, bytes]]]:
        """Sign a browser in with a one-time link. The response is a page, not a redirect, since browsers do
        not send a strict cookie in a chain of redirects that began at another site."""
        query = dict(part.partition(b"=")[::2] for part in scope["query_string"].split(b"&"))
        if scope["method"] != "GET" or not self.link.use(query.get(b"t", b"").decode("latin-1")):
            return 401, NO_LINK, []
        cookie = self.name + b"=" + self.value + b"; HttpOnly; SameSite=Strict; Path=/"
        return 200, REFRESH % b"/", [_HTML, (b"set-cookie", cookie)]


_HTML = (b"content-type", b"text/html; charset=utf-8")


def _all(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for key, value in headers if key == name]


def _one(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    return next(iter(_all(headers, name)), b"")


def _attribute(url: bytes) -> bytes:
    """Escape a URL for an HTML attribute."""
    for sign, name in ((b"&", b"&amp;"), (b'"', b"%22"), (b"<", b"%3C"), (b">", b"%3E"), (b"'", b"%27")):
        url = url.replace(sign, name)
    return url


async def _answer(send: Any, status: int, body: bytes, more: list[tuple[bytes, bytes]]) -> None:
    kind = [] if more else [(b"content-type", b"text/plain; charset=utf-8")]
    headers = [*kind, *more, (b"content-length", str(len(body)).encode()), *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _bounded(receive: Any) -> Any:
    """Wrap `receive`: a body of more than MOST_BODY bytes appears as a disconnect."""
    left = MOST_BODY

    async def received() -> Any:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        return message if left >= 0 else {"type": "http.disconnect"}

    return received
