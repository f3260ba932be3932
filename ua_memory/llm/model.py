"""The model interface: endpoints, messages, replies, token usage and prices."""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from functools import cache
from operator import add
from typing import Any, Literal, Protocol, cast
from urllib.parse import urlsplit

from ua_memory.errors import Usage
from ua_memory.text.patterns import data_text

# -- models ------------------------------------------------------------------------------------------------


ANTHROPIC = "https://api.anthropic.com"
DEFAULT_MODEL = "claude-sonnet-5-5"
"""A large model, since it decides what is worth keeping; `claude-haiku-5-5` costs a twentieth of it."""

Block = Mapping[str, Any]
"""One content block of the Messages API: `{"type": "text", "text": …}` and its siblings."""
Message = Mapping[str, Any]
"""`{"role": "user" or "assistant", "content": text or blocks}`; never changed after it was sent."""

Stop = Literal["end_turn", "tool_use", "max_tokens", "stop_sequence", "pause_turn", "window", "unknown"]
"""Why the model stopped. `window` is the API's `model_context_window_exceeded`; a refusal is raised."""


Provider = Literal["anthropic", "openai", "claude-code", "codex"]
"""The Messages API, OpenAI's chat completions API, or a client's own program."""
PROGRAMS: Mapping[str, str] = {"claude-code": "claude", "codex": "codex"}
"""Providers that are a program on this machine, with its name. It has its own login and needs no key."""
DEFAULT_URLS: Mapping[str, str] = {"anthropic": ANTHROPIC, "openai": "https://api.openai.com/v1"}
DEFAULT_MODELS: Mapping[str, str] = {"anthropic": DEFAULT_MODEL, "openai": "gpt-5-mini"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is, and its credentials: see `endpoint_of`.

    An empty `base_url` is the provider's own, an empty `model` its default. Key and token are left out of
    `repr`; local servers need none. `env` is the environment of a program.
    """

    api_key: str = field(default="", repr=False)
    base_url: str = ""
    model: str = ""
    provider: Provider = "anthropic"
    auth_token: str = field(default="", repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def url(self) -> str:
        """The base URL for requests, without a final slash; '' for a program."""
        return (self.base_url.strip() or DEFAULT_URLS.get(self.provider, "")).rstrip("/")

    @property
    def name(self) -> str:
        """The id of the requested model. A program's begins with its provider, unlike those of metered
        models."""
        if self.provider in PROGRAMS:
            return "/".join(filter(None, (self.provider, self.model.strip())))
        return self.model.strip() or DEFAULT_MODELS[self.provider]

    @property
    def can_answer(self) -> bool:
        """Whether there is a key, a URL, or a program, which has its own login."""
        return self.provider in PROGRAMS or bool(self.api_key or self.auth_token or self.base_url)

    @property
    def free(self) -> bool:
        """Whether requests cost nothing."""
        return self.provider in PROGRAMS or is_local(self.url)

    def variable(self, what: str) -> str:
        """The environment variable of a setting such as API_KEY or BASE_URL."""
        return f"{self.provider.upper()}_{what}"


def endpoint_of(provider: str, model: str, env: Mapping[str, str]) -> Endpoint | None:
    """The endpoint for the settings `provider` and `model` and these variables, None for none.

    Without a provider only `anthropic` is chosen by its variables: a key that a shell has for something else
    sends nothing. A named provider counts without a key, too; `ask` then says that it is missing.
    """
    known = ("API_KEY", "BASE_URL", "AUTH_TOKEN")
    chosen = provider or "anthropic"
    key, url, token = (env.get(f"{chosen.upper()}_{name}", "").strip() for name in known)
    if chosen == "anthropic" and (provider or key or url or token):
        # A token overrides a key, as in Anthropic's own programs: gateways ask for it.
        return Endpoint("" if token else key, url, model.strip(), "anthropic", token)
    if chosen == "openai":
        return Endpoint(key, url, model.strip(), "openai")
    if chosen in PROGRAMS:
        return Endpoint("", "", model.strip(), cast(Provider, chosen), env=dict(env))
    return None


def is_subscription(model: str) -> bool:
    """Whether this model is a client's program, which counts against its owner's subscription."""
    return model.partition("/")[0] in PROGRAMS


def is_local(url: str) -> bool:
    """Whether a URL's host is this machine or a private address, which is free."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith((".localhost", ".local")):
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one or several requests. `input` is what was neither read from the cache nor written to it;
    all three together are the size of the prompt."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    @property
    def prompt(self) -> int:
        """All input, cached or not."""
        return self.input + self.cache_read + self.cache_write

    @property
    def total(self) -> int:
        """All input and output."""
        return self.prompt + self.output

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model makes. `input` is None if it is not a JSON object; the result is then an
    error."""

    id: str
    name: str
    input: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer. `text` joins its text blocks; `blocks` are sent back unchanged."""

    text: str
    calls: tuple[ToolCall, ...]
    stop: Stop
    usage: TokenUsage
    blocks: tuple[Block, ...]
    model: str = ""
    request_id: str = ""

    @property
    def message(self) -> Message:
        """The assistant's message, to be appended to the conversation."""
        return {"role": "assistant", "content": list(self.blocks)}


def blocks(message: Message) -> list[Any]:
    """A message's content as blocks."""
    content = message.get("content") or ""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def user(*parts: str | Block) -> Message:
    """A user's message of texts and blocks, in order."""
    content = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return {"role": "user", "content": content}


@cache
def prompts() -> Mapping[str, Any]:
    """The prompts by name: texts, for each trait of the disposition one sentence for each level from 1 to 5,
    and what each of the `tools` does."""
    return tomllib.loads(data_text("prompts.toml"))


def prompt(name: str) -> str:
    """The prompt for a kind of work."""
    return str(prompts()[name])


def tool_task(name: str) -> str:
    """What the tool of this name does, in words for the model."""
    return str(prompts()["tools"][name])


class Model(Protocol):
    """The model that flush, retain, consolidate and reflect ask. `Claude` is one; tests have their own."""

    @property
    def name(self) -> str:
        """The id of the model asked for."""

    @property
    def one_shot(self) -> bool:
        """Whether each answer is a run of a program, so that the first request must have all context."""

    def ask(
        self, system: str, messages: Sequence[Message], *, purpose: str, max_tokens: int = 16_000,
        tools: Sequence[Mapping[str, Any]] = (), cacheable: bool = False,
    ) -> Reply:  # fmt: skip
        """Send `messages` and return the complete reply.

        `purpose` names the work in the ledger. `tools` are definitions with `name`, `description` and
        `input_schema`. `cacheable`: the same messages will be sent again with more after them, so they are
        cached. `max_tokens` includes thinking.

        Raises ModelUnavailable, KeyRejected, RequestRejected, ModelRefused, ModelMisbehaved, BudgetSpent.
        """


ModelOrEndpoint = Endpoint | Model | None
"""A model or its endpoint; None for no model, so that nothing leaves the machine."""


def check_model(model: ModelOrEndpoint) -> None:
    """Usage for a model that is none, such as a name."""
    if model is not None and not isinstance(model, Endpoint) and not hasattr(model, "ask"):
        raise Usage(f"not a model: {model!r:.80}", hint="Memory.endpoint(api_key=…, model=…)")


# -- prices ------------------------------------------------------------------------------------------------
# In US dollars per million tokens, from the dated table `data/prices.toml`.


PRICES_AS_OF = "2026-10"
"""The month in which the price lists were read: platform.claude.com/docs/en/about-claude/pricing, and
developers.openai.com/api/docs/pricing."""

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """Dollars per million tokens. A prompt over `long_from` tokens costs `long_factor` times as much; writing
    to the five-minute cache costs 1.25 times the input."""

    input: float
    output: float
    cache_read: float
    long_from: int | None = None
    long_factor: float = 1.0

    def of(self, usage: TokenUsage) -> float:
        """The dollars for one request. Not for sums of requests: a long prompt has its own price."""
        dollars = (usage.input + 1.25 * usage.cache_write) * self.input
        dollars += usage.cache_read * self.cache_read + usage.output * self.output
        is_long = self.long_from is not None and usage.prompt > self.long_from
        return dollars * (self.long_factor if is_long else 1.0) / MILLION


@cache
def _price_table() -> Mapping[str, ModelPrice]:
    return {name: ModelPrice(*row) for name, row in tomllib.loads(data_text("prices.toml")).items()}


def top_price() -> ModelPrice:
    """The most expensive model, with which limits reckon if a model's price is not known and it may not be
    free."""
    return max(_price_table().values(), key=lambda price: (price.output, price.cache_read))


def price(model: str) -> ModelPrice | None:
    """The price of a model by its id, with or without a date (`-20251001`, `-2025-08-07`); None if
    unknown."""
    return _price_table().get(re.sub(r"-(\d{8}|\d{4}-\d\d-\d\d)$", "", model))
