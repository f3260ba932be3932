"""Numbers of payment cards: an issuer's first digits, its lengths, and the check digit (Luhn).

One number in ten passes the check, so that alone takes nothing: order numbers, ids, telephone numbers
and timestamps stay. A number written as cards write it, or of a length and beginning that an issuer has
today, is taken; a rarer one only with a word beside it that speaks of a card.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .kinds import compiled

_GAP = "[ .\u00a0\u2007\u2009\u202f\u2010\u2011\u2012\u2013-]"
# In fours (a fifth group is the end of a long number, or the three digits on the back), as Amex and Diners
# print it, or in one piece. Not inside a word, a path, a decimal or an account's number in fours (IBAN).
_NUMBER = (
    r"(?:(?<![A-Za-z0-9_/#+-])(?<!\d\.)|(?<=\\[nrt])|(?<=%20))"
    rf"(?:(?<!\d{{4}}{_GAP})(?<![A-Z]{{2}}\d{{2}}{_GAP})\d{{4}}(?P<four>{_GAP})\d{{4}}(?P=four)\d{{4}}(?P=four)\d{{4}}"
    rf"(?P<rest>(?P=four)\d{{3}}(?!\d))?(?!{_GAP}(?!20\d\d|0[1-9]\d\d|1[0-2]\d\d)\d{{4}}(?!\d))"
    rf"|\d{{4}}(?P<six>{_GAP})\d{{6}}(?P=six)\d{{4,5}}|\d{{12,19}})(?![A-Za-z0-9_]|\.\w|-\d)"
)
# First digits and lengths in use: Visa, Mastercard, American Express, Discover, JCB, UnionPay, Diners.
_COMMON = (
    r"4\d{15}|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}"
    r"|6(?:011|4[4-9]\d|5\d\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14}"
)
# Rarer ones: Diners' fourteen, Maestro and its like, thirteen or nineteen digits.
_RARE = r"3(?:0[0-5]|[689]\d)\d{11}|4\d{12}(?:\d{6})?|(?:5[06-8]|6\d)\d{10,17}"
_CARD = (
    r"(?i)card|\bvisa\b|amex|american express|maestro|diners|union ?pay|\bjcb\b|discover|\bcvv|\bcvc|\bpan\b"
    r"|kart[ae]|carte|tarjeta|cart[ãa]o|карт|カード|卡|카드"
)
_ID = (
    r"(?i)(?:(?P<thing>order|invoice|ticket|tracking|parcel|booking|reference|ref|serial|imei|iccid|isbn|ean|gtin"
    r"|upc|sku|timestamp|\bts|nonce|seed|snowflake|message|msg|chat|user|thread|channel|job|build|run|trace|span"
    r"|request|session|transaction|commit|tweet|post|status|video|meeting|zoom|item|product|customer|member"
    r"|bestell\w*|rechnung\w*|kunden\w*|artikel\w*|commande|facture|pedido|cliente|注文|订单)"
    r"|_?id|№|#|(?P<number>\bno|nr|num|number|nummer|número|numéro|番号|号码))s?"
    r"[\"'`*]{0,2}[ _-]?(?:no|nr|num|numbers?|nummer|番号|号|id|ids|key)?[.:#=\"'`*]{0,4}"
    r"(?: (?:is|was|ist|est|es))?[ \"'`#:=：]{0,3}$"
)
_SOME = re.compile(rf"\d{{4}}{_GAP}?\d{{4}}")


def luhn(digits: str) -> bool:
    """Whether the last digit checks the others."""
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(doubled) + sum(map(int, digits[-1::-2]))) % 10 == 0


def cards(text: str) -> Iterator[tuple[str, int, int]]:
    """Where card numbers stand, as kind, start and end."""
    if not _SOME.search(text):  # most texts: no pattern is compiled for them
        return
    card, thing, common, rarer = map(compiled, (_CARD, _ID, _COMMON, _RARE))
    for match in compiled(_NUMBER).finditer(text):
        start = match.start()
        before = text[max(text.rfind("\n", 0, start) + 1, start - 60) : start]
        behind = text[match.end() : match.end() + 30].split("\n", 1)[0]
        told, other = card.search(before), thing.search(before)
        grouped, named = match["four"] or match["six"], told or card.search(behind)
        sure = grouped and named  # `my card for the order is 4111 1111 …`
        if other and not sure and (other["thing"] or not (told or (grouped and other["number"]))):
            continue
        rare = named or grouped
        for end in (match.end(), match.start("rest")) if match["rest"] else (match.end(),):
            digits = "".join(str(int(digit)) for digit in text[start:end] if digit.isdecimal())
            if (common.fullmatch(digits) or (rare and rarer.fullmatch(digits))) and luhn(digits):
                yield ("card-number", start, end)
                break
