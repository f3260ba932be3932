"""Names that promise a secret, how a value is given to them, and names that only speak of one."""

from __future__ import annotations

import re
from functools import cache
from re import Match, Pattern

# Some part of every name, to be looked for before any pattern is tried.
STEMS = ("pass", "pwd", "pw", "contrase", "kennwort", "mot de passe", "senha", "key", "token", "jwt", "otp",
         "pat", "secret", "credential", "auth", "string", "csrf")  # fmt: skip


def _any(words: str) -> str:
    return "|".join(words.split())


_NAME = (
    r"(?i:(?P<password>pass(?:[ -]?(?:word|phrase)|wd|wort|code)s?|(?<![a-z0-9])pwd|(?-i:(?<=[a-z])Pwd)"
    r"|contrase(?:ñ|n)as?|kennwort|mots? de passe|(?<![a-z])senhas?(?![a-z])"
    r"|(?<![a-z0-9])(?:pass|pw)(?![a-z]))|(?P<key>keys?)"
    r"|(?P<token>tokens?|(?<![a-z])(?:jwt|csrf)(?![a-z])|(?-i:(?<![A-Za-z])(?:PAT|OTP)(?![A-Za-z])))"
    r"|(?P<secret>secrets?|credentials?|auth(?:orization)?(?![a-z])|string))"
)
_GAP = r"(?P<suffix>[\w-]{0,32})(?: #?\d{1,2}(?=:))?(?:\[\d{0,5}\])?(?:\\{0,3}[\"'`*)\]]){0,4}"
# The value stands on the next line: indented, quoted, in a code fence, as an item, as its `value:`.
LINE = r"(?:\r?\n|(?:\\r)?\\n)"
_BREAK = (
    rf"[ \t*]{{0,8}}+(?:\\{{1,2}}(?={LINE}))?{LINE}(?:[ \t>]{{0,40}}+{LINE}){{0,2}}[ \t>]{{0,40}}+"
    rf"(?:[`~]{{3}}[\w-]{{0,20}}{LINE}[ \t>]{{0,40}}+)?(?:[-*+] )?(?:\\?[\"']?value\\?[\"']?\s?[:=]\s?)?"
)
# What joins them: `=`, `:`, a table's `|`, `"value":` of a list, `("` of a call, `is`, `was set to`, a blank,
# the end of a heading.
_SIGN = (
    r"(?P<sign>(?:,|\\n|\s){1,20}\\?[\"']?value\\?[\"']?\s?[:=]\s?"
    rf"|[ \t]{{0,8}}(?:=>|:=|={{1,3}}|!=|::?|->|→|\|)[ \t]{{0,8}}"
    rf"(?:(?P<block>[|>][-+\d]{{0,2}})[ \t]{{0,20}})?(?:{_BREAK})?"
    rf"|[ \t]{{0,4}},[ \t]{{0,4}}(?=\\{{0,3}}[\"'`])|>(?:{_BREAK})?"
    r"|(?:(?: (?:for|of|on|in|to) [\w./@ -]{1,40}?)? (?:is|was|are|to|has been|will be)|['’]s)"
    r"(?: (?:now|still|again|just|changed|set|reset|rotated|updated|switched)){0,3}(?: to| as)?:?"
    rf"(?: (?![ \t\n])|{_BREAK})"
    rf"| ?(?:for|of|on) [\w./@ -]{{1,40}}? ?[:=] {{0,4}}(?:{_BREAK})?|\([ \t]?(?=\\{{0,3}}[\"'`])"
    rf"|[ \t]{{1,4}}|{_BREAK})"
)
_SCHEME = r"(?i:(?:bearer|basic|token|apikey|digest|bot|ssws) {1,4})?"
_VALUE = (
    _SCHEME + r"(?:\*{1,2} ?)?(?:[@fbr](?=\\{0,3}[\"']))?(?:(?P<quote>\\{0,3}[\"'`])" + _SCHEME
    + r"(?P<quoted>(?:(?!(?P=quote))(?:\\.|[^\n\\])){1,512})(?:(?P=quote)|(?<=[^\s\"'`<>\\]{512}))"
    r"|(?P<bare>[^\s\"'`<>]{4,512}))"
)  # fmt: skip
LONGEST = 512  # what is judged of a value; it is taken to its end

PROVIDERS = re.compile(
    "(?i)" + _any("""
        aws heroku azure cloudflare twilio datadog mistral cohere deepgram algolia mailgun
        postmark okta railway segment snyk travis jenkins github gitlab slack stripe google
        openai anthropic pagerduty zendesk intercom mapbox openweather newsapi fastly vercel
        netlify sentry amplitude mixpanel shodan virustotal
    """)
)  # fmt: skip
# `key` alone opens nothing: these words before it do.
KEY_BEFORE = re.compile(
    "(?i)(?:" + _any("""
        api access secret auth priv(?:ate)? sign(?:ing|ature) encrypt(?:ion)? master account
        storage service client licen[cs]e deploy webhook admin app(?:lication)? subscription
        shared consumer db database crypto hmac project server root user integration ingest
        write personal activation product recovery wallet host sdk bot team rest live test hex
        my our your
    """) + "|" + PROVIDERS.pattern[4:] + r")[ _.-]?$"
)  # fmt: skip
_ENV_KEY = re.compile(r"[A-Z0-9]_$")  # `LINEAR_KEY=`
_STRING_BEFORE = re.compile(r"(?i)connection[ _-]?$")
# A name that goes on like this speaks about the secret, it does not hold it.
_ABOUT = re.compile(
    r"(?i)[_-]?(?:" + _any(r"""
        ids? names? path files? env ur[li]s? len length count fields? polic(?:y|ies) types? ttl
        expir\w* rotat\w* reset\w* manager hint limits? usage budget window arn refs? reference
        version size prefix store provider endpoint header param\w* strength min\w* max\w* less
        boards? words? pairs? iz\w* is\w* or ors ed ing ary e ration stor\w* book ring man port
        age enger ive ion through thru ent ch status state error handler changed at since until
        digest algo\w* hash
    """)
    + r")(?![a-z]).*|[a-z]{3,}(?<!key)(?<!token)(?<!prod)(?<!dev)(?<!test).*"
)  # fmt: skip
# `page_token`, `maxTokens`, `primary_key` hold none; `monkey`, `tiktoken`, `compass` are other words.
_BEFORE = re.compile(
    r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))(?i:" + _any("""
        max min page next sync continuation num total prompt completion input output cursor stop
        pad eos bos sep unk special public primary foreign cache partition sort row idempotency
        by
    """) + r")[ _.-]?$|(?i:mon|don|tur|hot|whis|jo|tic|tik)$"
)  # fmt: skip
_BEFORE_PASS = re.compile(r"(?i)(?:com|by|sur|tres|un)$")


@cache
def assignment() -> Pattern[str]:
    """A name, what joins it to its value, and the value, `quoted` or `bare`; matched at a stem."""
    return re.compile(_NAME + _GAP + _SIGN + _VALUE)


def sort_of(text: str, match: Match[str]) -> str | None:
    """`password`, `key`, `token` or `secret`; None where the name only speaks of a secret."""
    sort = next(g for g in ("password", "key", "token", "secret") if match[g])
    before = text[max(0, match.start() - 16) : match.start()]
    if _ABOUT.fullmatch(match["suffix"]) or (_BEFORE_PASS if sort == "password" else _BEFORE).search(before):
        return None
    if sort == "key" and not (KEY_BEFORE.search(before) or _ENV_KEY.search(before)):
        return None
    if match["secret"] == "string" and not _STRING_BEFORE.search(before):
        return None
    return sort
