"""The web server: routes, server-sent events for open pages, exit when idle, and who is let in."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import html
import json
import os
import secrets
import signal
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from http import HTTPStatus
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl

from ua_memory.errors import Busy, Held, NotFound, UaMemoryError, Usage
from ua_memory.paths import make_private
from ua_memory.store.swap import replace_file
from ua_memory.web import pages, render
from ua_memory.web.pages import Failed, Page, Shown

if TYPE_CHECKING:
    import socket

    from starlette.applications import Starlette
    from starlette.datastructures import Headers
    from starlette.requests import Request
    from starlette.responses import Response

IDLE = 1800.0
"""Seconds without a request after which the server exits."""
RESTS = 60.0
"""Seconds without a request after which caches are freed."""
POLL = 0.25
"""Seconds between two checks for a new revision."""
MOST_LIVE = 8
"""Open pages that receive events."""
MOST_NEWS = 600
"""New revisions sent to an open page after one check."""
MOST_CONNECTIONS = 64
MOST_DRAWN = 16
"""Pages in the cache of rendered HTML: the heat map takes 30 ms."""
SLOWEST = 10
"""Seconds that a connection without a complete request stays open."""
FRAGMENT = "fragment"
"""In the header `Accept`, requests a page without its frame."""


Thread = Literal["reads", "typing", "meaning"]


@dataclass(frozen=True)
class Served:
    """What the server needs of the bank it shows.

    `banks`: a `BankPages` for each thread: pages, search by words while the user types, search by meaning.
    `head` returns the newest revision without a subprocess. `tend`, called at each poll, maintains the file
    watcher. `rest` frees caches when idle. `write` enables the forms."""

    root: Path
    banks: Mapping[Thread, pages.BankPages]
    head: Callable[[], str | None]
    tend: Callable[[], object]
    rest: Callable[[], object]
    write: bool


class Web:
    """The pages of one bank as an ASGI application; setting `stopping` ends the event streams."""

    def __init__(self, served: Served) -> None:
        self.served, self.templates = served, render.environment()
        threads = {name: ThreadPoolExecutor(1, f"web-{name}") for name in served.banks}
        self.threads: Mapping[Thread, Executor] = threads
        self.turns = {name: asyncio.Lock() for name in served.banks}
        self.live, self.stopping = 0, asyncio.Event()
        self.drawn: dict[tuple[str, str, bool], tuple[Shown, str]] = {}

    def application(self) -> Starlette:
        """The Starlette application. Routes that write exist only with `Served.write`."""
        from starlette.applications import Starlette
        from starlette.routing import Route

        routes = [Route("/static/{name}", self._static), Route("/live", self._live)]
        if self.served.write:
            routes.append(Route("/do/{what}", self._do, methods=["POST"]))
        for path, view in pages.VIEWS.items():
            routes += [Route(f"{path}.json", self._handler(view)), Route(path, self._handler(view))]
        return Starlette(routes=routes, exception_handlers={404: self._missing})

    # -- pages ---------------------------------------------------------------------------------------------

    def _handler(self, view: Page) -> Callable[[Request], Any]:
        from starlette.responses import Response

        async def answer(request: Request) -> Response:
            query = {**dict(request.query_params), **request.path_params}
            if len(query.get("q", "")) > pages.LONGEST_QUERY:
                return self._error(request, Failed(2, {"message": "the query is longer than 400 characters"}))
            thread = self._thread(view, query)
            try:
                async with self.turns[thread]:
                    if await request.is_disconnected():  # another letter was typed meanwhile
                        return Response(status_code=499)
                    shown = await self._in(thread, view, query)
                if view is not pages.search or FRAGMENT not in request.headers.get("accept", ""):
                    count = await self._in("reads", pages.fact_count)
                    shown = replace(shown, more={**shown.more, "fact_count": count})
            except UaMemoryError as error:
                return self._error(request, error)
            return self._shown(request, shown)

        return answer

    @staticmethod
    def _thread(view: Page, query: Mapping[str, str]) -> Thread:
        """The thread for a request: search while typing waits neither for pages nor for a model, and
        pages do not wait for what reads the whole bank."""
        if view is not pages.search:
            slow = (view is pages.health and query.get("all")) or (view is pages.probes and query.get("run"))
            return "meaning" if slow else "reads"
        return "typing" if query.get("by") == "words" else "meaning"

    async def _in(self, thread: Thread, work: Callable[..., Any], *args: Any) -> Any:
        """Run `work` in a thread, with the thread's own bank as first argument."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads[thread], work, self.served.banks[thread], *args)

    def _shown(self, request: Request, shown: Shown, status: int = 200, at: str = "") -> Response:
        """The response for a page, as HTML or JSON; `at` is its address if it is not that of the request."""
        from starlette.responses import HTMLResponse, JSONResponse

        if request.url.path.endswith(".json"):
            return _unless_known(request, JSONResponse(dict(shown.data), status))
        inside = FRAGMENT in request.headers.get("accept", "")
        path, _, query = at.partition("?")
        path, query = (path, query) if at else (request.url.path, request.url.query)
        asked = path, query, inside
        known = self.drawn.get(asked)
        if known is None or known[0] != shown:
            text = self.templates.get_template(shown.template).render(
                {"form": {}, **shown.more, "data": shown.data}, command=shown.command, inside=inside,
                path=path, query=dict(parse_qsl(query)), root=self.served.root,
                write=self.served.write, version=version("ua-memory"),
            )  # fmt: skip
            while len(self.drawn) >= MOST_DRAWN:
                del self.drawn[next(iter(self.drawn))]
            self.drawn[asked] = known = shown, text
        return _unless_known(request, HTMLResponse(known[1], status))

    def _error(self, request: Request, error: UaMemoryError) -> Response:
        code, status = error.exit_code, HTTPStatus.INTERNAL_SERVER_ERROR
        if code in (NotFound.exit_code, Usage.exit_code):
            status = HTTPStatus.NOT_FOUND
        elif code in (Busy.exit_code, Held.exit_code):
            status = HTTPStatus.SERVICE_UNAVAILABLE
        return self._shown(request, Shown("error.html", {"error": _error_data(error)}, ()), status)

    async def _refused(
        self, request: Request, what: str, form: Mapping[str, str], error: UaMemoryError
    ) -> Response:
        """The page of a form that failed, with the error and the entered values (status 409)."""
        at, view, query = pages.home(what, form)
        try:
            shown = await self._in("reads", view, query)
        except UaMemoryError:
            return self._error(request, error)
        shown = replace(shown, more={**shown.more, "refused": _error_data(error), "form": form})
        return self._shown(request, shown, HTTPStatus.CONFLICT, at)

    async def _missing(self, request: Request, _error: Exception) -> Response:
        return self._error(request, Failed(NotFound.exit_code, {"message": "no such page"}))

    async def _static(self, request: Request) -> Response:
        from starlette.responses import Response

        name = request.path_params["name"]
        if name not in render.STATIC:
            return await self._missing(request, KeyError(name))
        return _unless_known(request, Response(render.static(name), media_type=render.STATIC[name]))

    async def _do(self, request: Request) -> Response:
        from starlette.requests import ClientDisconnect
        from starlette.responses import PlainTextResponse, RedirectResponse

        try:
            body = await request.body()
        except ClientDisconnect:  # also if it exceeds MOST_BODY
            return PlainTextResponse("the form is too long\n", 413)
        typed = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
        form = {name: value.replace("\r\n", "\n") for name, value in typed}
        what = request.path_params["what"]
        work = pages.WRITES.get(what)
        if work is None:
            return await self._missing(request, KeyError())
        try:
            done = await self._in("reads", work, form)
        except UaMemoryError as error:
            return await self._refused(request, what, form, error)
        except KeyError as error:
            return self._error(request, Failed(Usage.exit_code, {"message": f"the form lacks {error}"}))
        if isinstance(done, str):
            return RedirectResponse(done, 303)
        return self._shown(request, done, at=pages.home(what, {})[0])

    # -- live ----------------------------------------------------------------------------------------------

    async def _live(self, request: Request) -> Any:
        from sse_starlette import EventSourceResponse
        from starlette.responses import Response

        if self.live >= MOST_LIVE:
            return Response("too many open pages\n", 503)
        self.live += 1  # not in the stream, which starts later, when others may have been accepted

        async def counted(scope: Any, receive: Any, send: Any) -> None:
            try:
                await EventSourceResponse(self._news(), ping=20)(scope, receive, send)
            finally:
                self.live -= 1

        return counted

    async def _news(self) -> AsyncGenerator[dict[str, str], None]:
        """Server-sent events: `ready`, then one `revision` for each new revision, the oldest first."""
        known = self.served.head()
        yield {"event": "ready", "data": "{}"}
        while not self.stopping.is_set():
            await asyncio.sleep(POLL)
            if (head := self.served.head()) == known:
                continue
            found = await self._in("reads", _since, known)
            known = found[-1]["id"] if found else head  # the last one sent may be newer than `head`
            for one in found:
                yield {"event": "revision", "data": json.dumps(one)}


def _error_data(error: UaMemoryError) -> dict[str, Any]:
    return {"message": error.what, "where": error.where, "mend": error.hint}


def _unless_known(request: Request, answer: Response) -> Response:
    """Add an ETag to a response, or answer 304 if the browser has that version."""
    from starlette.responses import Response

    tag = f'"{hashlib.blake2b(bytes(answer.body), digest_size=16).hexdigest()}"'
    if answer.status_code == 200 and tag in request.headers.get("if-none-match", ""):
        answer = Response(status_code=304)
    answer.headers["etag"] = tag
    return answer


def _since(bank: pages.BankPages, known: str | None) -> list[dict[str, Any]]:
    """The revisions after `known`, the oldest first; only the newest if `known` is not in the history."""
    found: list[dict[str, Any]] = []
    words: tuple[str, ...] = pages.NEWEST
    while len(found) < MOST_NEWS and (rows := bank.ask(*words, fails=False).get("revisions")):
        for row in rows:
            if row["revision"] == known:
                return found[::-1]
            named = {"id": row["revision"], "op": row["op"], "says": row["subject"]}
            found.append({**named, "paths": row["paths"][:20]})
        words = (*pages.NEWEST, f"--before={rows[-1]['revision']}")
    return found[::-1] if known is None else found[:1]


def _protocol() -> type[asyncio.Protocol]:
    """uvicorn's HTTP protocol, with SLOWEST seconds for each complete request, else the connection is closed.

    uvicorn has no timeout for the first request and restarts it at each byte of later ones, so that another
    program on this machine could occupy all connections."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class PromptProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.timeout_keep_alive_task = self.loop.call_later(SLOWEST, self.timeout_keep_alive_handler)

        def data_received(self, data: bytes) -> None:
            waited = self.timeout_keep_alive_task
            super().data_received(data)
            idle = self.cycle is None or self.cycle.response_complete
            if waited and idle and self.timeout_keep_alive_task is None:
                due = waited.when()
                self.timeout_keep_alive_task = self.loop.call_at(due, self.timeout_keep_alive_handler)

    return PromptProtocol


def serve(served: Served, link: OneTimeLink, at: socket.socket, idle: float = IDLE) -> None:
    """Serve until SIGINT, SIGTERM or `idle` seconds without a request. Requests are not logged."""
    import uvicorn

    async def run() -> None:
        web = Web(served)
        guard = Guard(web.application(), at.getsockname()[1], link)
        config = uvicorn.Config(
            guard, http=_protocol(), ws="none", log_config=None, access_log=False, server_header=False,
            lifespan="off", limit_concurrency=MOST_CONNECTIONS, timeout_graceful_shutdown=1,
            timeout_keep_alive=SLOWEST, h11_max_incomplete_event_size=1 << 16,
        )  # fmt: skip
        server = uvicorn.Server(config)
        # uvicorn's handlers raise the signal again at exit, which would make `--stop` a failure.
        server.capture_signals = contextlib.nullcontext  # type: ignore[assignment]
        for signum in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(signum, setattr, server, "should_exit", True)

        async def watch() -> None:
            rested = 0.0
            while not server.should_exit and (waited := time.monotonic() - guard.seen) < idle:
                served.tend()
                if waited > RESTS and rested != guard.seen:
                    rested = guard.seen
                    served.rest()
                await asyncio.sleep(POLL)
            server.should_exit = True
            web.stopping.set()

        watching = asyncio.create_task(watch())
        await server.serve(sockets=[at])
        await watching
        for each in web.threads.values():
            each.shutdown(wait=False, cancel_futures=True)

    asyncio.run(run())


# -- who is let in -----------------------------------------------------------------------------------------
# Authentication and request checks, and the security headers of every response.
#
# Threats: other sites in the same browser (forged requests, DNS rebinding), other users of this machine, and
# the text in memory. See docs/security.md.


LINK_SECONDS = 60.0
"""How long a one-time link is valid."""
MOST_BODY = 1 << 20
"""Bytes of a request's body."""
LONGEST_ADDRESS = 2048
"""Bytes of a request's path and query."""
FORM = "application/x-www-form-urlencoded"
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
AGAIN = "again=1"
"""The query parameter of a refreshed request, so that it is refreshed only once."""
REFRESH = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={}">'
    "<title>ua-memory</title><p>Opening…"
)
NO_LINK = "not signed in: run `ua-memory web` for a new link\n"


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
        self.hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        # Cookies are shared by all ports of a host (RFC 6265, 8.5), so the name includes the port.
        self.name, self.value = f"ua_memory_{port}", secrets.token_urlsafe(32)
        self.seen = time.monotonic()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                kept = (row for row in message["headers"] if row[0] != b"cache-control")
                message = {**message, "headers": [*kept, *HEADERS]}
            await send(message)

        refusal = self.refusal(scope)
        if refusal is None and scope["path"] != "/live":
            self.seen = time.monotonic()
        await (refusal or self.inner)(scope, _bounded(receive), sent)

    def refusal(self, scope: Any) -> Response | None:
        """The response to a refused request or a sign-in; None accepts it."""
        from starlette.datastructures import Headers
        from starlette.responses import HTMLResponse, PlainTextResponse

        headers, query = Headers(scope=scope), scope["query_string"].decode("latin-1")
        address = (scope.get("raw_path") or b"/").decode("latin-1")
        if len(address) + len(query) > LONGEST_ADDRESS:
            return PlainTextResponse("the address is too long\n", 414)
        if status := self._foreign(scope["method"], headers):
            return PlainTextResponse("refused\n", status)
        if scope["path"] == "/enter":
            return self._enter(scope["method"], dict(parse_qsl(query)).get("t", ""))
        if self._signed_in(headers):
            return None
        # A browser that follows a link from another site omits a strict cookie: a refresh sends it.
        fresh = scope["method"] == "GET" and AGAIN not in query.split("&")
        if fresh and headers.get("sec-fetch-dest") == "document":
            path = "/" + address.split("?")[0].lstrip("/\\")  # `//x` is a host
            url = "&".join(filter(None, (query, AGAIN)))
            return HTMLResponse(REFRESH.format(html.escape(f"{path}?{url}")))
        return PlainTextResponse(NO_LINK, 401)

    def _foreign(self, method: str, headers: Headers) -> int:
        """The error status for a request from another site; 0 if it is from our page or the address bar."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        site = headers.get("sec-fetch-site", "")
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            return 421
        if origins not in ([], [f"http://{hosts[0]}"]):
            return 403
        if method not in ("GET", "HEAD"):
            kind = headers.get("content-type", "").split(";")[0].strip().lower()
            if site != "same-origin" or not origins or kind != FORM:
                return 403
        if site not in ("", "same-origin", "none") and headers.get("sec-fetch-dest") != "document":
            return 403
        return 0

    def _signed_in(self, headers: Headers) -> bool:
        cookies = (each for line in headers.getlist("cookie") for each in line.split(";"))
        pairs = (each.strip().partition("=") for each in cookies)
        given = [value.encode("latin-1") for name, _, value in pairs if name == self.name]
        # Another port of this host may set a cookie of the same name, which must not lock the user out.
        return any(hmac.compare_digest(each, self.value.encode()) for each in given)

    def _enter(self, method: str, token: str) -> Response:
        """Sign a browser in with a one-time link. The response is a page, not a redirect, since browsers do
        not send a strict cookie in a chain of redirects that began at another site."""
        from starlette.responses import HTMLResponse, PlainTextResponse

        if method != "GET" or not self.link.use(token):
            return PlainTextResponse(NO_LINK, 401)
        opening = HTMLResponse(REFRESH.format("/"))
        opening.set_cookie(self.name, self.value, httponly=True, samesite="strict")
        return opening


def _bounded(receive: Any) -> Any:
    """Wrap `receive`: a body of more than MOST_BODY bytes appears as a disconnect."""
    left = MOST_BODY

    async def received() -> Any:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        return message if left >= 0 else {"type": "http.disconnect"}

    return received
