"""Secrets made at run time from a seed, and innocent lines: no real-looking secret stands in the repository."""

# ruff: noqa: E501  (tables: a row a line)
from __future__ import annotations

import base64
import json
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from urllib.parse import quote

HEX, DIGITS, LOWER, UPPER = "0123456789abcdef", string.digits, string.ascii_lowercase, string.ascii_uppercase
ALNUM = string.ascii_letters + DIGITS
URLSAFE, B64 = ALNUM + "-_", ALNUM + "+/"


@dataclass(frozen=True)
class Plant:
    kind: str
    context: str
    text: str
    secret: str  # must not be left in the text; for base64 its whole run


def _draw(rng: Random, alphabet: str, size: int) -> str:
    """At least a digit and, where there are some, a small and a capital letter, as random strings of length have."""
    while True:
        drawn = "".join(rng.choice(alphabet) for _ in range(size))
        wanted = [s for s in (DIGITS, LOWER, UPPER) if set(s) & set(alphabet)]
        if all(set(drawn) & set(s) for s in wanted) and drawn[0].isalnum() and drawn[-1].isalnum():
            return drawn


def _uuid(rng: Random) -> str:
    return "-".join(
        _draw(rng, HEX, n) if n > 4 else "".join(rng.choice(HEX) for _ in range(n)) for n in (8, 4, 4, 4, 12)
    )


def _jwt(rng: Random) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return ".".join(
        (
            part({"alg": "HS256", "typ": "JWT"}),
            part({"sub": str(rng.random()), "iat": 1}),
            _draw(rng, URLSAFE, 43),
        )
    )


# fmt: off
# Kind of find, prefix in two halves, alphabet, length, suffix.
_PLAIN: tuple[tuple[str, str, str, str, int], ...] = (
    ("anthropic-key", "sk-", "ant-api03-", URLSAFE, 95), ("openai-key", "sk-", "proj-", URLSAFE, 120), ("openai-key", "sk", "-", ALNUM, 48),
    ("openai-key", "sk-", "svcacct-", URLSAFE, 120), ("openrouter-key", "sk-", "or-v1-", HEX, 64), ("github-token", "gh", "p_", ALNUM, 36),
    ("github-token", "gh", "o_", ALNUM, 36), ("github-token", "gh", "s_", ALNUM, 36), ("github-token", "github_", "pat_", ALNUM, 82),
    ("gitlab-token", "gl", "pat-", URLSAFE, 20), ("gitlab-token", "gl", "dt-", URLSAFE, 20), ("gitlab-token", "gl", "rt-", URLSAFE, 20),
    ("atlassian-token", "ATA", "TT3xFfGF0", URLSAFE, 180), ("bitbucket-token", "AT", "BB", ALNUM, 32), ("stripe-key", "sk_", "live_", ALNUM, 24),
    ("stripe-key", "rk_", "live_", ALNUM, 99), ("stripe-key", "sk_", "test_", ALNUM, 24), ("stripe-key", "wh", "sec_", ALNUM, 32),
    ("aws-key", "AK", "IA", UPPER + "234567", 16), ("aws-key", "AS", "IA", UPPER + "234567", 16), ("google-key", "AI", "za", URLSAFE, 35),
    ("google-token", "ya", "29.", URLSAFE, 80), ("google-secret", "GOC", "SPX-", URLSAFE, 28), ("npm-token", "np", "m_", ALNUM, 36),
    ("pypi-token", "pypi-", "AgEIcHlwaS5vcmc", URLSAFE, 150), ("rubygems-key", "ruby", "gems_", HEX, 48), ("docker-token", "dckr_", "pat_", URLSAFE, 27),
    ("huggingface-token", "h", "f_", ALNUM, 34), ("digitalocean-token", "dop_", "v1_", HEX, 64), ("fly-token", "fo", "1_", URLSAFE, 43),
    ("fly-token", "Fly", "V1 fm2_", B64, 120), ("heroku-key", "HR", "KU-", ALNUM, 40), ("cloudflare-token", "cf", "ut_", ALNUM, 48),
    ("databricks-token", "da", "pi", HEX, 32), ("doppler-token", "dp.", "pt.", ALNUM, 43), ("linear-key", "lin_", "api_", ALNUM, 40),
    ("notion-token", "nt", "n_", ALNUM, 46), ("notion-token", "sec", "ret_", ALNUM, 43), ("square-token", "sq0", "csp-", URLSAFE, 43),
    ("square-token", "EA", "AA", URLSAFE, 60), ("shopify-token", "shp", "at_", HEX, 32), ("vault-token", "hv", "s.", URLSAFE, 90),
    ("grafana-token", "gl", "c_", B64, 60), ("newrelic-key", "NR", "AK-", UPPER + DIGITS, 27), ("planetscale-token", "pscale_", "tkn_", URLSAFE, 43),
    ("supabase-key", "sb", "p_", HEX, 40), ("groq-key", "gs", "k_", ALNUM, 52), ("xai-key", "xa", "i-", ALNUM, 80),
    ("replicate-token", "r", "8_", ALNUM, 37), ("perplexity-key", "pp", "lx-", ALNUM, 48), ("pinecone-key", "pc", "sk_", ALNUM, 60),
    ("elevenlabs-key", "s", "k_", HEX, 48), ("tavily-key", "tv", "ly-", ALNUM, 32), ("nvidia-key", "nv", "api-", URLSAFE, 64),
    ("figma-token", "fi", "gd_", URLSAFE, 40), ("tailscale-key", "ts", "key-auth-", ALNUM, 30), ("pulumi-token", "pu", "l-", HEX, 40),
    ("buildkite-token", "bk", "ua_", HEX, 40), ("mailgun-key", "ke", "y-", HEX, 32), ("twilio-key", "S", "K", HEX, 32), ("sonar-token", "sq", "p_", HEX, 40),
    ("age-key", "AGE-SECRET", "-KEY-1", UPPER + DIGITS, 58), ("facebook-token", "E", "AA", ALNUM, 150), ("dropbox-token", "s", "l.", URLSAFE, 140),
)
# fmt: on


def makers() -> dict[str, tuple[str, Callable[[Random], str]]]:
    """Name of the maker -> (kind of find, how to draw one); these need no context."""

    def plain(first: str, second: str, alphabet: str, size: int) -> Callable[[Random], str]:
        return lambda rng: first + second + _draw(rng, alphabet, size)

    made = {f"{a}…{b}": (kind, plain(a, b, alphabet, size)) for kind, a, b, alphabet, size in _PLAIN}
    # fmt: off
    made |= {
        "slack": ("slack-token", lambda r: f"xo{'xb'}-{_draw(r, DIGITS, 12)}-{_draw(r, DIGITS, 12)}-{_draw(r, ALNUM, 24)}"),
        "slack hook": ("slack-webhook", lambda r: f"https://hooks.slack{'.com'}/services/T{_draw(r, UPPER + DIGITS, 8)}/B{_draw(r, UPPER + DIGITS, 10)}/{_draw(r, ALNUM, 24)}"),
        "telegram": ("telegram-token", lambda r: f"7{_draw(r, DIGITS, 9)}:A{'A'}{_draw(r, URLSAFE, 33)}"),
        "discord": ("discord-token", lambda r: f"M{_draw(r, ALNUM, 23)}.G{_draw(r, ALNUM, 5)}.{_draw(r, URLSAFE, 38)}"),
        "sendgrid": ("sendgrid-key", lambda r: f"S{'G'}.{_draw(r, URLSAFE, 22)}.{_draw(r, URLSAFE, 43)}"),
        "mailchimp": ("mailchimp-key", lambda r: f"{_draw(r, HEX, 32)}-us{r.randint(1, 21)}"),
        "mailgun 2": ("mailgun-key", lambda r: f"{_draw(r, HEX, 32)}-{_draw(r, HEX, 8)}-{_draw(r, HEX, 8)}"),
        "airtable": ("airtable-key", lambda r: f"pa{'t'}{_draw(r, ALNUM, 14)}.{_draw(r, HEX, 64)}"),
        "terraform": ("terraform-token", lambda r: f"{_draw(r, ALNUM, 14)}.atlas{'v1'}.{_draw(r, URLSAFE, 67)}"),
        "azure ad": ("azure-secret", lambda r: f"{_draw(r, ALNUM, 3)}8{'Q~'}{_draw(r, URLSAFE, 34)}"),
        "hubspot": ("hubspot-token", lambda r: f"pa{'t'}-na1-{_uuid(r)}"),
        "langsmith": ("langsmith-key", lambda r: f"lsv2_{'pt'}_{_draw(r, HEX, 32)}_{_draw(r, HEX, 10)}"),
        "postman": ("postman-key", lambda r: f"PM{'AK'}-{_draw(r, HEX, 24)}-{_draw(r, HEX, 34)}"),
        "brevo": ("brevo-key", lambda r: f"xkey{'sib'}-{_draw(r, HEX, 64)}-{_draw(r, ALNUM, 16)}"),
        "jwt": ("jwt", _jwt),
        "asana": ("asana-token", lambda r: f"1/{_draw(r, DIGITS, 16)}:{_draw(r, HEX, 32)}"),
        "bcrypt": ("password-hash", lambda r: f"$2{'b'}$12${_draw(r, ALNUM + './', 53)}"),
    }
    # fmt: on
    return made


def _named() -> tuple[tuple[str, str, Callable[[Random], str]], ...]:
    """What only its context gives away: kind, the context with %s for the secret, how to draw one."""

    def word(r: Random) -> str:
        return _draw(r, ALNUM, 10) + r.choice("!@#$%^*+=?~")[:1] + _draw(r, ALNUM, 3)

    def base(r: Random) -> str:
        return _draw(r, B64, 40)

    def hexa(r: Random) -> str:
        return _draw(r, HEX, 32)

    def wordy(r: Random) -> str:
        return r.choice(("hunter", "sunshine", "dragon", "Winter", "tiger")) + str(r.randint(10, 9999))

    # fmt: off
    return (
        ("password", "password = %s", word), ("password", '"password": "%s"', wordy), ("password", "PGPASSWORD=%s psql -h db", word),
        ("password", "the password is %s, please change it", wordy), ("password", "DB_PASSWORD='%s'", word), ("password", "passwd: %s", wordy),
        ("password", "machine api.example.com login alice password %s", word), ("password", "mysql -u root -p%s shop", wordy),
        ("password", "curl -u alice:%s https://example.com/x", wordy), ("password", "db.connect(user='bob', password='%s')", wordy),
        ("password", "Server=db;User Id=sa;Password=%s;Encrypt=true", wordy), ("password", "<password>%s</password>", wordy),
        ("password", "| Wifi password | %s |", wordy), ("password", "**Password:** `%s`", wordy), ("password", "--password %s", wordy),
        ("password", "Alice set the password for staging to %s", word), ("password", 'config.set("password", "%s")', wordy),
        ("url-password", "postgres://bob:%s@db.example.com:5432/shop", wordy), ("url-password", "redis://:%s@cache:6379/0", wordy),
        ("url-password", "mongodb+srv://app:%s@cluster0.mongodb.net", wordy), ("url-password", "git clone https://bob:%s@git.example.com/a.git", hexa),
        ("aws-secret", "aws_secret_access_key = %s", base), ("aws-secret", 'AWS_SECRET_ACCESS_KEY="%s"', base), ("aws-secret", "AWS key secret: %s", base),
        ("azure-key", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=%s;", lambda r: _draw(r, B64, 86) + "=="),
        ("heroku-key", "HEROKU_API_KEY=%s", _uuid), ("heroku-key", "the Heroku API key is %s", _uuid), ("cloudflare-token", "CLOUDFLARE_API_TOKEN=%s", lambda r: _draw(r, URLSAFE, 40)),
        ("twilio-token", "TWILIO_AUTH_TOKEN: %s", hexa), ("datadog-key", "DATADOG_API_KEY=%s", hexa), ("mistral-key", 'mistral_api_key = "%s"', lambda r: _draw(r, ALNUM, 32)),
        ("api-key", "x-api-key: %s", hexa), ("api-key", "https://api.example.com/v1?api_key=%s&q=1", hexa), ("token", "https://example.com/cb?access_token=%s", lambda r: _draw(r, ALNUM, 30)),
        ("bearer-token", "Authorization: Bearer %s", lambda r: _draw(r, URLSAFE, 40)), ("bearer-token", "curl -H 'Authorization: Bearer %s' x", hexa),
        ("basic-auth", "Authorization: Basic %s", lambda r: base64.b64encode(f"bob:{word(r)}".encode()).decode()), ("secret", "client_secret: %s", lambda r: _draw(r, ALNUM, 32)),
        ("api-key", 'SECRET_KEY = "%s"', lambda r: _draw(r, ALNUM + "!@#%^*(-_=+)", 50)), ("token", '"refresh_token": "%s"', lambda r: _draw(r, URLSAFE, 64)), ("secret", '{"name": "APP_SECRET", "value": "%s"}', hexa),
        ("password", "- name: DB_PASSWORD\n  value: %s", wordy), ("api-key", "my API key for the map is %s", lambda r: _draw(r, ALNUM, 32)), ("high-entropy", "here is the token we use: (%s)", lambda r: _draw(r, ALNUM, 40)),
        # Wordings that an earlier state of the patterns did not know.
        ("password", "requests.get(u, auth=('bob', '%s'))", wordy), ("password", "the admin password was changed to %s yesterday", wordy),
        ("login", "login admin / %s", wordy), ("password", "echo '%s' | docker login -u bob --password-stdin", wordy), ("password", "user=bob pwd=%s now", wordy),
        ("deepgram-key", "deepgram key %s", lambda r: _draw(r, HEX, 40)), ("password", "pass phrase for the key is %s", word), ("password", "ENV REDIS_PASSWORD %s", wordy),
        ("algolia-key", 'ALGOLIA_ADMIN_KEY="%s"', hexa), ("password", 'password="%s x more77"', wordy), ("secret", "otpauth://totp/x:bob?secret=%s&issuer=x", lambda r: _draw(r, UPPER + "234567", 32)),
        ("password", "a new db password for staging, ingest_rw / %s", lambda r: f"Tz8{_draw(r, ALNUM, 9)}"),
        ("login", "admin:%s@10.0.0.5", word), ("api-key", "the key I use for OpenWeather is %s", hexa), ("aws-signature", "https://b.s3.amazonaws.com/k?X-Amz-Signature=%s", lambda r: _draw(r, HEX, 64)),
    )
    # fmt: on


def pem(rng: Random, label: str = "RSA ", lines: int = 12) -> str:
    body = "\n".join(_draw(rng, B64, 64) for _ in range(lines))
    return f"-----BEGIN {label}PRIVATE" + f" KEY-----\n{body}\n-----END {label}PRIVATE KEY-----"


def plants(seed: int = 2026) -> Iterator[Plant]:
    """Every maker in prose, code, a URL, JSON and base64; named ones in five contexts of their own."""
    rng = Random(seed)
    for kind, make in makers().values():
        for context, shape in (("prose", "Bob pasted %s into the chat, so we rotate it."), ("code", 'client = Client("%s", retries=3)  # ok'),
                               ("url", "https://api.example.com/v1/things?x=%s&limit=5"), ("json", "%s"), ("base64", "%s")):  # fmt: skip
            secret = make(rng)
            if context == "json":
                yield Plant(kind, context, json.dumps({"a": [1, {"b": f"line\n{secret}"}]}), secret)
            elif context == "base64":
                coded = base64.b64encode(f"conf x={secret} end".encode()).decode()
                yield Plant(kind, context, f"data: {coded} in the file", coded)
            else:
                shown = quote(secret, safe="") if context == "url" and "/" not in secret else secret
                yield Plant(kind, context, shape % shown, shown)
    for kind, shape, draw in _named():
        for context in ("alone", "item", "json", "middle", "base64"):
            secret = draw(rng)
            text = shape % secret
            shown = {
                "alone": text,
                "item": f"- 14:32 note\n  - {text}\n- next",
                "json": json.dumps({"note": text}),
                "middle": f"So then:\n\n    {text}\n\nand it worked.",
            }
            if context == "base64":
                coded = base64.b64encode(text.encode()).decode()
                yield Plant(kind, context, f"  conf.yaml: {coded}\n", coded)
            else:
                yield Plant(kind, context, shown[context], secret)
    for label in ("", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED "):
        key = pem(rng, label)
        yield Plant("private-key", "prose", f"the key:\n{key}\nok", key)
        yield Plant("private-key", "json", json.dumps({"private_key": key + "\n"}), json.dumps(key)[1:-1])
        yield Plant("private-key", "quote", "> " + key.replace("\n", "\n> "), key.split("\n")[3])
        coded = base64.b64encode(key.encode()).decode()
        yield Plant("private-key", "base64", f"key_b64={coded}", coded)
        yield Plant(
            "private-key", "cut off", key[: key.index("-----END")] + "\nand so on", key.split("\n")[5]
        )
