"""Planted secrets are taken, ordinary notes are left alone, offsets are exact, time is linear."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from secret_plants import Plant, makers, pem, plants

from ua_memory.errors import Malformed
from ua_memory.text.redaction import Secret as Found
from ua_memory.text.redaction import find, redact, redact_answer, tells_secret

HERE = Path(__file__).parent
PLANTS = list(plants())
INNOCENT = [line for line in (HERE / "innocent_lines.txt").read_text("utf-8").split("\n") if line]
CLAWD = HERE.parent.parent / "shared" / "data" / "logs" / "clawd"
TEXTS = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.sampled_from([p.text for p in PLANTS[::7]]),
        st.sampled_from([p.secret for p in PLANTS[::5]]),
        st.sampled_from(["password: ", "=", "\n", "[redacted: password]", "[redacted: "]),
        st.sampled_from(["]", "://a:", "@h", '"', " is "]),
    ),
    max_size=8,
).map("".join)


def _left(plant: Plant, text: str) -> bool:
    """Whether eight characters in a row of the secret, past its telling prefix, are still there."""
    secret = plant.secret
    return secret in text or any(secret[i : i + 8] in text for i in range(14, len(secret) - 8, 4))


def test_at_least_99_of_100_plants_are_taken() -> None:
    missed = [f"{p.kind} in {p.context}" for p in PLANTS if _left(p, redact(p.text).text)]
    kinds = {p.kind for p in PLANTS}
    print(f"{len(PLANTS)} plants of {len(kinds)} kinds, missed {len(missed)}")
    assert len(PLANTS) >= 400 and len(kinds) >= 40
    assert {p.context for p in PLANTS} >= {"prose", "code", "url", "json", "base64"}
    assert len(missed) <= len(PLANTS) // 100, missed


def test_other_seeds_fare_no_worse() -> None:
    corpus = [p for seed in (7, 77) for p in plants(seed)]
    assert sum(_left(p, redact(p.text).text) for p in corpus) <= len(corpus) // 100


def test_what_was_taken_is_called_by_its_kind() -> None:
    taken = [redact(p.text).counts for p in PLANTS]
    wrong = [(p.kind, p.context, t) for p, t in zip(PLANTS, taken, strict=True) if p.kind not in t]
    assert len(wrong) <= len(PLANTS) // 100, wrong


def test_ordinary_notes_are_left_alone() -> None:
    assert len(INNOCENT) >= 150
    taken = [(found.kind, line) for line in INNOCENT for found in find(line)]
    assert not taken
    assert not find("\n".join(INNOCENT))


def test_our_own_documentation_holds_no_secret() -> None:
    lines = [
        line for page in (HERE.parent / "docs").rglob("*.md") for line in page.read_text("utf-8").split("\n")
    ]
    assert len(lines) > 4000 and not [(found.kind, line) for line in lines for found in find(line)]


@pytest.mark.skipif(not CLAWD.is_dir(), reason="the shared logs are not beside this checkout")
def test_real_notes_yield_only_what_is_secret() -> None:
    texts = [path.read_text("utf-8", "surrogateescape") for path in sorted(CLAWD.rglob("*.md"))]
    kinds = Counter(found.kind for text in texts for found in find(text))
    # Looked at by hand: the head of a GitHub token that its author had masked, and a Spaces access key.
    assert kinds == {"github-token": 1, "api-key": 1}


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("postgres://bob:", "s3cr3tive", "@db.example.com/shop"),
        ('{"user": "bob", "password": "', "hunter" + "22", '"}'),
        ("export PGPASSWORD=", "tiger,&;x)9", "\npsql"),
        ("the password is ", "Winter" + "2026!x", ", tell Bob"),
        ("a: 1\npassword: ", "plainword", "\nb: 2"),
        ("mdp netflix: ", "Crocodile" + "77!!", ""),
        ("passwd gmail = ", "Xk9!" + "vbnQ", ""),
        ("mot de passe Doctolib → ", "Girafe_" + "2024!", ""),
        ("le mdp de la banque c'est ", "Girafe_" + "2024!", ""),
        ("clé wifi: ", "Girafe-" + "2024-bleu", ""),
        (
            "db passwort für die testinstanz falls du es brauchst: ",
            "hunter2-" + "Wal!ross99",
            " auf db.intern",
        ),
        ("password for the box if you need it some day this week: ", "hunter2-" + "Wal!rus99", ""),
        ("login for the test server is admin / ", "hunter2-" + "Wal!rus99", ""),
        ("login für den testserver: admin / ", "hunter2-" + "Wal!rus99", ""),
        ("code PIN de la carte: ", "44" + "17", ""),
        ("see\n", pem(Random(1)), "\nend"),
        ("the password is ", "Tr0ub4dor" + "&3", ", tell Bob"),
        ("?password=", "Tr0ub4dor" + "x3", "&user=bob"),
        ("cd x && PASSWORD=", "Tr0ub4dor" + "x3", "&& make"),
        ("Ünïcödé 漢字 🎉 token=", "x9Kd02LmQ7" + "pRt5VwZ1aB", "&y=1"),
    ],
)
def test_only_the_value_is_taken(before: str, value: str, after: str) -> None:
    text = before + value + after
    (found,) = find(text)
    assert text[found.start : found.end] == value
    assert redact(text).text == f"{before}[redacted: {found.kind}]{after}"


def test_overlapping_finds_are_one_and_counted() -> None:
    token = makers()["gh…p_"][1](Random(3))
    text = f"GITHUB_TOKEN={token} and again https://x:{token}@github.com/a/b"
    assert redact(text).counts == {"github-token": 2}
    assert token not in redact(text).text


@given(TEXTS)
@example("password=[redacted: password]hunter" + "22x password: [redacted: token]")
@settings(deadline=None, max_examples=max(60, settings().max_examples))
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact(text)
    twice = redact(once.text)
    assert twice.text == once.text and not twice.counts


@given(TEXTS)
def test_finds_are_in_order_and_apart(text: str) -> None:
    at = 0
    for found in find(text):
        assert at <= found.start < found.end <= len(text)
        at = found.end


def test_markers_are_never_taken() -> None:
    text = "password: [redacted: password], token=[redacted: npm-token] https://a:[redacted: url-password]@h"
    assert find(text) == ()
    assert find("x [redacted: password] y", {"word": r"\w+"}) == (Found("word", 0, 1), Found("word", 23, 24))


def test_own_patterns_go_first_and_bad_ones_are_named() -> None:
    assert redact("badge B-1234 of Bob", {"badge": r"B-\d{4}"}).text == "badge [redacted: badge] of Bob"
    assert redact("password: B-1234", {"badge": r"B-\d{4}"}).counts == {"badge": 1}
    assert redact("abc", {"empty": r"x*"}).counts == {}
    for patterns in ({"badge": "("}, {"Bad Name": "x"}, {"": "x"}, {"a" * 41: "x"}):
        with pytest.raises(Malformed, match=re.escape(f"redact.{next(iter(patterns))}")):
            redact("text", patterns)


FORMS = """%s = "%s"
%s: "%s"
%s => '%s'
char %s[25] = "%s"
%s !== "%s"
%s "%s";"""
NAMES = "api_key auth_key client_key db_pass password pwd my_password_secure app_secret"


def test_values_of_code_are_taken_in_the_forms_that_detect_secrets_knows() -> None:
    rng = Random(5)
    for name in NAMES.split():
        for size in (10, 12, 16, 24, 40):
            value = (
                "".join(rng.sample("abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ0123456789" * 2, size))
                + "7q"
            )
            texts = [form % (name, value) for form in FORMS.split("\n")]
            texts += [f'"{value}" == {name}', f"if ('{value}' != {name})"]
            assert [text for text in texts if value in redact(text).text] == []


def test_random_strings_in_quotes_need_no_name() -> None:
    rng = Random(6)
    for size in (28, 32, 40, 64):
        value = "".join(rng.sample("abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ0123456789+/" * 2, size))
        assert value not in redact(f'x = "{value}"').text
        assert value in redact(f'"integrity": "{value}"').text


@pytest.mark.few(8)
@pytest.mark.parametrize(
    "piece",
    [
        *(
            "a",
            " ",
            "\n",
            "\\",
            "eyJ",
            "eyJ-",
            "password ",
            '"password": "',
            "password=",
            "http://a:",
            "://a:b@",
        ),
        *(
            "api_key",
            "-----BEGIN RSA PRIVATE KEY-----\n",
            "seed ",
            "QUJD",
            "[redacted: password] ",
            "sk-",
            "mysql -",
        ),
        *("\"'", "a:b1!cdef@", "login a / "),
        *(
            "hunter2 is my password ",
            "| password |\n|--|\n| x |\n",
            "4111 1111 ",
            "password:\n\n\n- ",
            "key\n",
        ),
    ],
)
def test_time_grows_with_length_alone(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        started = time.process_time()
        find(text)
        return time.process_time() - started

    seconds(1000)
    short = min(seconds(10_000), seconds(10_000))
    assert seconds(80_000) < 8 * max(short, 0.005) * 4  # quadratic would be 64


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("postgres://app:p@ss/w0rd!x@db.internal:5432/shop", "w0rd!x"),
        ("mysql+pymysql://root:R00t#pw/1@127.0.0.1/db", "R00t#pw/1"),
        ("#id_token=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0\nNTY3ODkwIn0.u8jzPde0IgxLd6GncfBAepf", "u8jzPde0"),
        ("Das Passwort lautet Blau!Wal2291", "Blau!Wal2291"),
        ("Le mot de passe du serveur est Zx9kQw27p", "Zx9kQw27p"),
        ("数据库密码是 Zx9!kQw27p", "Zx9!kQw27p"),
        ("本番のパスワードは「Zx9!kQw27p」です", "Zx9!kQw27p"),
        ("Пароль от базы: Zx9!kQw27p", "Zx9!kQw27p"),
        ('"swordfish" is the password', "swordfish"),
        ("correct-horse-battery-staple is my password", "battery"),
        ("The passphrase:\n> correct horse battery staple", "battery"),
        ('password =\n"swordfish"', "swordfish"),
        ("4821 is the PIN for the door", "4821"),
        ("k9!xQ4mZ2w (password)", "k9!xQ4mZ2w"),
        ("user deploy with pass gr8-Wombat-71", "Wombat"),
        ("rotate: DATABASE_PASSWORD changed from gr8Wombat77 to sm4llKoala91", "Wombat"),
        ("rotate: DATABASE_PASSWORD changed from gr8Wombat77 to sm4llKoala91", "Koala"),
        ("my pin for the HSM is 4 7 1 1 9", "4 7 1 1 9"),
        ("the passphrase of the backup is correct horse battery staple", "battery"),
        ("pw von root ist hunter22 und der user ist admin", "hunter22"),
        ("het wachtwoord van de wifi is Rosen2026", "Rosen2026"), ("WiFi-wachtwoord: Rosen2026", "Rosen2026"),
        ("a palavra-passe do wifi é Rosen2026", "Rosen2026"), ("Rosen2026 é a palavra-passe", "Rosen2026"),
        ("kennwort von marlene ist Rosen2026", "Rosen2026"), ("pw für root: Rosen2026", "Rosen2026"),
        ("o pwd do servidor é Rosa2026, certo?", "Rosa2026"),
        ("Il PIN della carta è 4471", "4471"), ("il pin della carta era 4471.", "4471"),
        ("o PIN do cartão é 4471", "4471"), ("PIN della carta: 4471", "4471"),
        ("El PIN de la tarjeta es 4471", "4471"), ("le code PIN de la carte est 4471", "4471"),
        ("PIN der Alarmanlage ist 4711", "4711"), ("Der PIN-Code lautet 4711", "4711"),
        ("Die Geheimzahl ist 4711", "4711"), ("カードの暗証番号は4471です。", "4471"),
        ("My PIN is 4711 for the door", "4711"), ("il PIN della carta è 4471 e scade", "4471"),
        ("PINコード：4471", "4471"), ("银行卡的PIN码是4471", "4471"),
        ("network CM-LAB, password quark-7-lemon", "quark"), ("contraseña wayco2024", "wayco"),
        ("the lab wifi is CM-LAB (password quark-7-lemon)", "quark"), ("mot de passe soleil2024", "soleil"),
        ("Wifi at the cabin: HillHouse, password wayco2024", "wayco"), ("senha carnaval2025", "carnaval"),
        ("wifi password hunter22 for guests", "hunter"), ("passwort quark-7-lemon", "quark"),
        ("the gate passcode rosebud42", "rosebud"), ("password hunter22 and user admin", "hunter"),
        ("user: anna password maple1987\\nnext", "maple"), ("password lemon_9_tree", "lemon"),
    ],
)  # fmt: skip
def test_a_secret_that_was_once_missed_is_taken(text: str, secret: str) -> None:
    assert secret not in redact(text).text


@pytest.mark.parametrize(
    "text",
    [
        "Das Passwort ist falsch, bitte in 2 Tagen neu setzen.", "Le mot de passe est dans le coffre 3b.",
        "密码是必填项，至少 8 位。", "パスワードは8文字以上", "http://host:8080/path/x@y.com/z",
        "postgres://h:5432/x?user=a@b.c", "see redis://cache:6379/0 or bob@example.com",
        "eyJhbGciOiJIUzI1NiJ9 is how a header begins",
        "h1:abcDEFghiJKLmnoPQRstuVWXyz0123456789ABCDEFG= // go.sum",
        "het wachtwoord van Anna is te kort", "o João mudou a palavra-passe ontem",
        "Passwort von Anna: vergessen", "pw für root: siehe Zettel", "Das kennwort von Anna ist vergeben",
        "o token do servidor é renovado em 2026", "Il PIN della carta è scaduto nel 2024",
        "PIN der Alarmanlage ist seit 2024 neu", "il pin del relè è GPIO17", "PIN der Karte: 3 Versuche",
        "my pin was 2019 when I was young", "el pin del led es 1000", "Il pin di massa è 1200 ohm",
        "PIN für die Sitzung war 2026 noch geheim", "The postal PIN of Delhi was 110001",
        "Die Geheimzahl ist 1848 gewählt", "PINは2026年から必要です", "PIN番号は12345678文字まで",
        "暗証番号は4桁です", "PIN 7 von J2 ist 3300 Ohm von PIN 8",
    ],
)  # fmt: skip
def test_what_was_added_for_them_takes_nothing_else(text: str) -> None:
    assert redact(text).text == text


# fmt: off
# Digits of published test cards, each with all but its first group in `|`.
CARDS = (
    ('my card is 4111 1111 1111 1111, exp 12/27', '1111 1111 1111'),
    ('card 4111-1111-1111-1111', '1111-1111'),
    ('4242424242424242', '4242424242424242'),
    ('Visa: 4012888888881881 12/27 123', '4012888888881881'),
    ('amex 3782 822463 10005', '822463'),
    ('378282246310005', '378282246310005'),
    ('mastercard 5555 5555 5555 4444 09/28 111', '5555 4444'),
    ('2223003122003222', '2223003122003222'),
    ('6011 1111 1111 1117', '1111 1117'),
    ('3056 930902 5904', '930902'),
    ('JCB 3530 1113 3330 0000', '1113 3330'),
    ('{"cardNumber":"4111111111111111"}', '4111111111111111'),
    ('カード番号は4111111111111111です', '4111111111111111'),
    ('Karte 4111\xa01111\xa01111\xa01111', '1111\xa01111'),
    ('4111111111111111|12|2027|123', '4111111111111111'),
    ('Pay with 4111.1111.1111.1111 please', '1111.1111'),
    ('12/27 4111 1111 1111 1111', '1111 1111'),
    ('- card:\n  4111 1111 1111 1111', '1111 1111'),
    ('４１１１ １１１１ １１１１ １１１１', '１１１１ １１１１'),
    ('my card number for the order is 4111 1111 1111 1111', '1111 1111'),
    ('booking 4111-1111-1111-1111, exp 12/29, cvv 123', '1111-1111'),
    ('the maestro card is 6759649826438453', '6759649826438453'),
)
# `<pw>` and `<key>` stand for a password and a key.
NAMED_BEHIND = (
    "<pw> — that's the password",
    "my password's <pw>",
    '<pw> (that is the password)',
    '<pw> is my password',
    "<pw> (that's the wifi password)",
    '`<pw>` is the password for staging',
    'use <pw> as the password',
    "<pw>, that's my new password.",
    '<pw> — the wifi password.',
    '<pw> is the admin password and bob knows it',
    'the wifi is acme-guest, <pw> is its password',
    '<pw> ist mein Passwort',
    '<pw> (das ist das Passwort)',
    '<pw> ist das WLAN-Passwort',
    '<pw> est mon mot de passe',
    "<pw> (c'est le mot de passe)",
    '<pw> es mi contraseña',
    'la clave del wifi es <pw>',
    'La password del NAS è <pw>',
    "la parola d'ordine è <pw>",
    '<pw> es la clave del wifi',
    '<pw>がパスワードです',
    '<pw>（パスワード）',
    '<pw> 是密码',
    '<pw> is the passphrase',
    '<pw> was the old password',
    '<pw>\n(that is the password)',
    '<key> is my API key',
    '<key> (that is the token)',
    '<pw>. That is the password.',
    '<pw> <- password',
)
ON_THE_NEXT_LINE = (
    'API_KEY:\n  <key>',
    'password =\n"<pw>"',
    'password:\n  <pw>\nnext: 1',
    'password: |-\n  <pw>\n',
    'password: >+\n    <pw>\n',
    'password: |2-\n    <pw>\n',
    '- password:\n  - <pw>',
    'Password:\n\n```\n<pw>\n```\n',
    'Password:\n```text\n<pw>\n```',
    '> password:\n> <pw>',
    'The password is:\n<pw>',
    'the new password is\n<pw>',
    'The API key is:\n\n    <key>\n\nok',
    '**Password:**\n<pw>',
    '### Wifi password\n\n<pw>\n',
    'export DB_PASSWORD=\\\n<pw>\n',
    '"password":\n    "<pw>",',
    '<password>\n  <pw>\n</password>',
    '| API key |\n|---|\n| <key> |',
    'Name | Password\n--- | ---\nbob | `<pw>`',
    'Passwort:\n<pw>',
    'Mot de passe :\n<pw>',
    'contraseña:\n  <pw>',
    'パスワード：\n<pw>',
    'client_secret:\r\n  <key>\r\n',
    'OPENAI_API_KEY=\n"<key>"',
    'password:\n  value: <pw>',
    "| Name | Password |\n|------|----------|\n| bob | tiger99moon |\n| al | <pw> |",
    "The passwords are:\n- tiger99moon\n- <pw>\n",
)
# fmt: on


def _forms(text: str) -> tuple[str, ...]:
    """A text by itself, as a client's JSON has it, and as the child of an item."""
    return (
        text,
        json.dumps({"note": text}, ensure_ascii=False),
        "- 14:32\n  - " + text.replace("\n", "\n    "),
    )


@pytest.mark.parametrize(("text", "digits"), CARDS)
def test_a_card_number_is_taken(text: str, digits: str) -> None:
    for form in _forms(text):
        found = redact(form)
        assert digits not in found.text and found.counts == {"card-number": 1}


@pytest.mark.parametrize("text", [*NAMED_BEHIND, *ON_THE_NEXT_LINE])
def test_a_value_is_taken_wherever_its_name_stands(text: str) -> None:
    for secret in (
        ("hunter" + "2hunter", "Blau7" + "!Wal22x") if "<pw>" in text else ("Xk9Lm2Pq8R" + "t5VwZ1aBcD",)
    ):
        whole = text.replace("<pw>", secret).replace("<key>", secret)
        for form in _forms(whole):
            assert secret not in redact(form).text


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the database password?", "<pw>"),
        ("I cannot log in. Which password does staging have?", "it's `<pw>`, until May"),
        ("Please enter the PIN for the door.", "<pw>"),
        ("Wie lautet das Passwort für den Server?", "das ist <pw>"),
        ("Quel est le mot de passe ?", "bob / <pw>"),
        ("¿Cuál es la contraseña del wifi?", "<pw>"),
        ("パスワードを教えてください。", "<pw>"),
        ("What's the TOTP code?", "<pw>"),
        ("Please give me the two-factor code.", "it's <pw>"),
        ("What's the code from your authenticator app?", "<pw>"),
        ("Wie lautet der Einmalcode?", "<pw>"),
        ("Qual è il PIN della carta?", "<pw>"),
        ("カードの暗証番号は？", "<pw>"),
    ],
)
@pytest.mark.parametrize("secret", ["hunter2", "wintergreen22", "4482", "482913", "Sommer2026!"])
def test_a_secret_that_was_asked_for_is_taken(question: str, answer: str, secret: str) -> None:
    expected = answer.replace("<pw>", "[redacted: secret]")
    assert redact_answer(question, answer.replace("<pw>", secret)) == expected
    assert redact_answer(question, expected) == expected


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the database password?", "ask Joost"),
        ("What is the database password?", "it's in 1Password"),
        ("What is the database password?", "use $DB_PASSWORD"),
        ("What is the database password?", "OK, use secrets/prod.yaml"),
        ("What is the database password?", "I rotated it on 2026-11-03"),
        ("Which password hashing do you want?", "argon2id"),
        ("Which token library do you use?", "jose4"),
        ("Which pin is the LED on?", "GPIO17"),
        ("Which secret should I use?", "DEPLOY_KEY_2"),
        ("How long should passwords be?", "at least 14000 characters"),
        ("What's the error code?", "404"),
        ("What's the error code from the e-mail?", "4044"),
        ("Which auth code path fails?", "line 4044"),
        ("Which password app do you use?", "Bitwarden7"),
        ("I added the password check. Which port does staging use?", "6543"),
    ],
)
def test_an_answer_without_the_secret_stays(question: str, answer: str) -> None:
    assert redact_answer(question, answer) == answer


def test_a_long_word_is_searched_for_a_secret_at_once() -> None:
    started = time.process_time()
    assert not tells_secret("secret" * 16_000) and not tells_secret("passworda" * 11_000)
    assert time.process_time() - started < 3  # it was half a minute


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("The password is correct horse battery staple", "correct horse battery staple"),
        ("the passphrase was purple monkey dishwasher lamp, I think", "purple monkey dishwasher lamp"),
        ("The password is always the same as before", ""),
        ("The password is hidden behind kitchen calendar", ""),
        ("the password is correct and works again", ""),
    ],
)
def test_a_passphrase_in_a_sentence(text: str, secret: str) -> None:
    assert redact(text).text == (text.replace(secret, "[redacted: passphrase]") if secret else text)


def test_a_lone_word_and_a_passphrase_are_taken_as_answers() -> None:
    for answer in ("wintergreen", "correct horse battery staple", "482 913"):
        assert redact_answer("What is the password?", answer) == "[redacted: secret]"
    for answer in ("later", "none", "yes"):
        assert redact_answer("What is the password?", answer) == answer
