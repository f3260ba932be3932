"""Date words of other languages into the English ones that the grammar reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ua_memory.text.calendar import Token, cut, several
from ua_memory.text.patterns import late

# -- languages ---------------------------------------------------------------------------------------------
# Date words of other languages by the English words that the grammar knows, which then reads them.
#
# Names of months and days in every case that they take in a query, units, seasons, numerals, and what bounds
# a date: since, between, last, early. `last<` stands behind its noun and goes before it; `ago>before` goes
# behind the count that follows it (`vor drei Tagen`) and is `before` where none does. A key that ends in `*`
# is a stem. A test holds the names of months and days against CLDR's.


MONTHS = several("January February March April May June July August September October November December")
NUMBERS = (*map(str, range(1, 21)), "30")
DAYS = several("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")


def _row(names: str, english: tuple[str, ...]) -> dict[str, str]:
    """`января/январе февраля/феврале` → each form with the English name of its place."""
    return {
        form: name for forms, name in zip(names.split(), english, strict=True) for form in forms.split("/")
    }


def _words(text: str) -> dict[str, str]:
    """`since: seit ab; last: letzte* vergangene*` → each word with its English one; `_` joins words."""
    found = {}
    for group in text.replace("\n", " ").split(";"):
        english, _, words = group.strip().partition(":")
        found.update({word.replace("_", " "): english.replace("_", " ") for word in words.split()})
    return found


@dataclass(frozen=True)
class Language:
    """One language: `names` are dates by themselves, `joins` only beside them.

    `signs` tell which language it is; `doubtful` names are words of another one, too. `asks` are small words
    of a question, which beside a name tell it though they are words of English, too.
    """

    code: str
    names: dict[str, str]
    joins: dict[str, str]
    signs: frozenset[str]
    doubtful: frozenset[str] = frozenset()
    asks: frozenset[str] = frozenset()


_DE = Language(
    "de",
    _row(
        "januar/jänner februar/feber märz april mai juni juli august september oktober november dezember",
        MONTHS,
    )
    | _row("montag dienstag mittwoch donnerstag freitag samstag/sonnabend sonntag", DAYS)
    | _words(
        "today: heute; yesterday: gestern; the_day_before_yesterday: vorgestern; tomorrow: morgen;"
        "the_day_after_tomorrow: übermorgen; spring: frühling frühjahr; summer: sommer; autumn:"
        " herbst; winter: winter;"
        "year: jahr jahres jahre jahren; month: monat monats monate monaten; week: woche wochen;"
        "day: tag tage tagen; quarter: quartal quartals; weekend: wochenende; Christmas: weihnachten;"
        "Easter: ostern; New_Year's_Eve: silvester"
    ),
    _words(
        "in: im während; from_now>in: in; on: am; from: vom von; until: bis; between: zwischen; and: und; "
        "since: seit ab; ago>before: vor; after: nach; last: letzte* vergangene*; this: diese*; "
        "next: nächste* kommende*; early: anfang; mid: mitte; late: ende; the: der die das den dem; "
        "of: des; morning: vormittag; evening: abend; afternoon: nachmittag; night: nacht; or: oder; "
        "over: über; early: anfangs"
    )
    | _row(
        "ein/eine/einem/einer/einen zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"
        " dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn zwanzig dreißig",
        NUMBERS,
    ),
    frozenset(
        several(
            "der das und wir ich ist haben hat wann wer im vom seit vor bis mit von zu den dem ein"
            " eine nicht auf für"
            " über zwischen wurde wurden sich beim zum zur hatte hatten gab sind letzte letzten"
            " letzter letztes letztem"
            " anfang ende mitte nächste nächsten diesen diesem dieser am"
        )
    ),
    frozenset(several("april august september november winter morgen mai ostern tag tage juni juli sommer")),
    frozenset(several("was war wer wo wie ist los passiert gemacht habe haben hab ich wir es da")),
)
_FR = Language(
    "fr",
    _row(
        "janvier février/fevrier mars avril mai juin juillet août/aout septembre octobre novembre décembre",
        MONTHS,
    )
    | _row("lundi mardi mercredi jeudi vendredi samedi dimanche", DAYS)
    | _words(
        "today: aujourd'hui; yesterday: hier; the_day_before_yesterday: avant-hier; tomorrow: demain;"
        "the_day_after_tomorrow: après-demain; spring: printemps; the_summer: l'été d'été en_été cet_été;"
        "autumn: automne l'automne d'automne; winter: hiver l'hiver d'hiver; year: an ans année"
        " l'année années l'an;"
        "month: mois; week: semaine semaines; day: jour jours; quarter: trimestre; weekend: week-end"
        " weekend;"
        "Christmas: noël; Easter: pâques"
    ),
    _words(
        "in: en pendant durant; from_now>in: dans; ago>: il_y_a; on: le; the: la les l au; "
        "of: de du d des; since: depuis; until: jusqu'à jusqu'au jusqu'en jusque; before: avant; "
        "after: après; between: entre; from: dès; and: et; to: à; "
        "last<: dernier dernière derniers dernières passé passée; next<: prochain prochaine prochains; "
        "this: ce cet cette ces; early: début; mid: mi milieu; late: fin; morning: matin; evening: soir; "
        "afternoon: après-midi; night: nuit; early: au_début; late: à_la_fin; or: ou; of_April: d'avril; "
        "of_August: d'août; of_October: d'octobre"
    )
    | _row(
        "un/une deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze"
        " seize dix-sept dix-huit dix-neuf vingt trente",
        NUMBERS,
    ),
    frozenset(
        several(
            "le la les des du de en et nous que qu'est est avec pour dans avons depuis dernier"
            " dernière jusqu'à avant"
            " après entre quand quoi ce cette était été il elle je au aux une un qui sur"
        )
    ),
    frozenset(several("mars mai an ans jour jours mois hier noël avril")),
)
_ES = Language(
    "es",
    _row(
        "enero febrero marzo abril mayo junio julio agosto septiembre/setiembre octubre noviembre diciembre",
        MONTHS,
    )
    | _row("lunes martes miércoles/miercoles jueves viernes sábado/sabado domingo", DAYS)
    | _words(
        "today: hoy; yesterday: ayer; the_day_before_yesterday: anteayer antier; tomorrow: mañana;"
        " spring: primavera;"
        "summer: verano; autumn: otoño; winter: invierno; year: año años; month: mes meses; week:"
        " semana semanas;"
        "day: día días dia dias; quarter: trimestre; weekend: fin_de_semana; Christmas: navidad"
    ),
    _words(
        "in: durante; from_now>in: en; on: el; the: la las los; of: de del; since: desde; until: hasta; "
        "before: antes_de antes_del; after: después_de después_del; between: entre; and: y e; to: a al; "
        "last<: pasado pasada pasados pasadas; last: último última últimos últimas; next: próximo próxima; "
        "this: este esta; early: principios comienzos; mid: mediados; late: finales fines; "
        "morning: mañana; evening: noche; afternoon: tarde; or: o u; ago>: hace; from_now>: dentro_de"
    )
    | _row(
        "un/una dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince"
        " dieciséis diecisiete dieciocho diecinueve veinte treinta",
        NUMBERS,
    ),
    frozenset(
        several(
            "el la los las de del en qué que con por y una un hicimos desde hasta hace entre antes"
            " después cuándo quién"
            " fue era hay está pasado pasada último última últimos este esta se al lo cuando para"
        )
    ),
    frozenset(
        several("mayo abril mes martes domingo sábado verano dia dias navidad primavera junio julio enero")
    ),
)
_RU_UNITS = (
    "year: год года году лет годы; month: месяц месяца месяце месяцев месяцы; week: неделя неделе"
    " неделю недели недель;"
    "day: день дня дней дни; quarter: квартал квартале квартала; weekend: выходные выходных"
)
_RU = Language(
    "ru",
    _row(
        "январь/января/январе февраль/февраля/феврале март/марта/марте апрель/апреля/апреле"
        " май/мая/мае/маем"
        " июнь/июня/июне июль/июля/июле август/августа/августе сентябрь/сентября/сентябре/сентябрём"
        " октябрь/октября/октябре ноябрь/ноября/ноябре декабрь/декабря/декабре",
        MONTHS,
    )
    | _row(
        "понедельник/понедельника/понедельнику вторник/вторника среда/среду/среды/среде четверг/четверга"
        " пятница/пятницу/пятницы суббота/субботу/субботы воскресенье/воскресенья",
        DAYS,
    )
    | _words(
        "today: сегодня; yesterday: вчера; the_day_before_yesterday: позавчера; tomorrow: завтра;"
        "the_day_after_tomorrow: послезавтра; in_spring: весной; spring: весна весны весну;"
        " in_summer: летом;"
        "summer: лето лета; in_autumn: осенью; autumn: осень осени; in_winter: зимой; winter: зима"
        " зимы зиму;"
        "ago: назад; Christmas: рождество;" + _RU_UNITS
    ),
    _words(
        "in: в во на за; from_now>: через; some: несколько нескольких; since: с со; from: от; until: до; "
        "to: по; between: между; and: и; after: после; before: перед; last: прошл* последн* минувш*; "
        "this: эт*; next: следующ* будущ*; early: начале начала; mid: середине; late: конце конца; "
        "morning: утром; evening: вечером; night: ночью; or: или; the_day_before: накануне; "
        "18_month: полтора_года; 6_week: полтора_месяца"
    )
    | _row(
        "один/одну/одна два/две/двух/пару три/трёх/трех четыре пять/пяти шесть семь восемь девять"
        " десять одиннадцать двенадцать тринадцать четырнадцать пятнадцать шестнадцать семнадцать"
        " восемнадцать девятнадцать двадцать тридцать",
        NUMBERS,
    ),
    frozenset(several("что мы как когда был была было были с в и это ы э ъ")),
    frozenset(several("лет день дня год лета лето")),
)
_UK_UNITS = (
    "year: рік року році роки років; month: місяць місяця місяці місяців; week: тиждень тижня тижні"
    " тижнів тижню;"
    "day: день дня дні днів; quarter: квартал кварталі кварталу; weekend: вихідні вихідних"
)
_UK = Language(
    "uk",
    _row(
        "січень/січня/січні лютий/лютого/лютому березень/березня/березні квітень/квітня/квітні"
        " травень/травня/травні"
        " червень/червня/червні липень/липня/липні серпень/серпня/серпні вересень/вересня/вересні"
        " жовтень/жовтня/жовтні листопад/листопада/листопаді грудень/грудня/грудні",
        MONTHS,
    )
    | _row(
        "понеділок/понеділка вівторок/вівторка середа/середу/середи/середі четвер/четверга"
        " п'ятниця/п'ятницю/п'ятниці субота/суботу/суботи неділя/неділю/неділі",
        DAYS,
    )
    | _words(
        "today: сьогодні; yesterday: вчора учора; the_day_before_yesterday: позавчора; tomorrow: завтра;"
        "the_day_after_tomorrow: післязавтра; in_spring: навесні весною; spring: весна весни весну;"
        "in_summer: влітку улітку; summer: літо літа; in_autumn: восени; autumn: осінь осені;"
        " in_winter: взимку узимку;"
        "winter: зима зими зиму; Christmas: різдво;" + _UK_UNITS
    ),
    _words(
        "in: у в на; from_now>in: за; from_now>: через; some: кілька декілька; since: з із зі; from: від; "
        "until: до; to: по; between: між; and: і й та; after: після; before: перед; last: минул* останн*; "
        "this: цього цьому цей ця цю цієї цій; next: наступн*; early: початку; mid: середині; "
        "late: кінці наприкінці; morning: вранці зранку; evening: ввечері увечері; night: вночі; "
        "ago: тому; or: або чи; 18_month: півтора_року; 6_week: півтора_місяця"
    )
    | _row(
        "один/одну/одна два/дві/двох/пару три/трьох чотири п'ять шість сім вісім дев'ять десять"
        " одинадцять дванадцять тринадцять чотирнадцять п'ятнадцять шістнадцять сімнадцять"
        " вісімнадцять дев'ятнадцять двадцять тридцять",
        NUMBERS,
    ),
    frozenset(several("що ми як коли був була було були з у і це")),
    frozenset(several("день дня року літа літо лютий")),
)
LANGUAGES = (_DE, _FR, _ES, _RU, _UK)


# -- chinese -----------------------------------------------------------------------------------------------
# Chinese date words into English ones. The script has no spaces: they are found by pattern.


HAN = late("[\u4e00-\u9fff]")
_DIGITS = {char: n for n, char in enumerate("零一二三四五六七八九十")} | {"两": 2, "〇": 0}
_N = r"(?:\d{1,4}|[一二三四五六七八九十两]{1,3})"
_DAY = dict(zip("一二三四五六日天", (*DAYS, "Sunday"), strict=True))
_SEASON = dict(zip("春夏秋冬", ("spring", "summer", "autumn", "winter"), strict=True))


def _chinese_words(text: str) -> dict[str, str]:
    """`昨天 yesterday, 前天 2 days ago` → each Chinese word with its English ones."""
    return dict(row.strip().split(" ", 1) for row in text.split(","))


_UNIT = _chinese_words(
    "天 days, 日 days, 周 weeks, 星期 weeks, 礼拜 weeks, 月 months, 年 years, 小时 hours,"
    " 分钟 minutes, 季度 quarters"
)
_YEAR = _chinese_words("前年 2 years ago, 去年 last year, 今年 this year, 明年 next year")
_WHICH = _chinese_words("上 last, 上个 last, 这 this, 这个 this, 本 this, 下 next, 下个 next")
_PLAIN = _chinese_words(
    "大前天 3 days ago, 前天 2 days ago, 昨天 yesterday, 昨日 yesterday, 昨晚 last night, 今天 today,"
    "今日 today,"
    "今晚 tonight, 今早 this morning, 明天 tomorrow, 后天 the day after tomorrow, 上周末 last weekend,"
    "这周末 this weekend, 本周末 this weekend, 周末 the weekend, 上半年 first half of this year,"
    "下半年 second half of this year, 圣诞节 at Christmas, 元旦 on New Year's Day, 春天 in spring,"
    "夏天 in summer, 秋天 in autumn, 冬天 in winter, 春季 in spring, 夏季 in summer, 秋季 in autumn,"
    "冬季 in winter, 早上 morning, 上午 morning, 下午 afternoon, 晚上 evening, 以来 <since, 之前 <before,"
    "以前 <before, 以后 <after, 之后 <after, 从 from, 自 from, 到 to, 至 to, 和 and, 初 <early, 中旬 <mid,"
    "底 <late, 末 <late"
)
_PLAIN |= _YEAR
_JOINS = {"to", "and", "from", "morning", "afternoon", "evening"}


def _number(text: str) -> int:
    if text.isdigit():
        return int(text)
    if "十" in text:
        tens, _, ones = text.partition("十")
        return (_DIGITS[tens] if tens else 1) * 10 + (_DIGITS[ones] if ones else 0)
    return _DIGITS[text]


def _month(text: str) -> str:
    number = _number(text)
    return MONTHS[number - 1] if 1 <= number <= 12 else ","


def _which(match: re.Match[str]) -> str:
    which, unit, at = _WHICH[match[1]], _UNIT[match[2]].removesuffix("s"), match[3]
    return f"{_DAY[at]} of {which} week" if at else f"{which} {unit}"


def _rule(pattern: str, make: Callable[[re.Match[str]], str]) -> tuple[re.Pattern[str], Callable[..., str]]:
    return late(pattern.replace("N", _N)), make


_RULES = (
    _rule(
        r"(\d{4})\s*年\s*(\d{1,2})\s*月\s*(\d{1,2})\s*[日号]",
        lambda m: f"{m[1]}-{int(m[2]):02}-{int(m[3]):02}",
    ),
    _rule(r"(\d{4})\s*年\s*(\d{1,2})\s*月份?", lambda m: f"{_month(m[2])} {m[1]}"),
    _rule(r"(\d{4})\s*年第?([一二三四1-4])季度", lambda m: f"Q{_number(m[2])} {m[1]}"),
    _rule(r"((?:19|20)\d\d)\s*年([春夏秋冬])[天季]", lambda m: f"{_SEASON[m[2]]} {m[1]}"),
    _rule(r"((?:19|20)\d\d)\s*年", lambda m: f"year {m[1]}"),
    _rule(r"(去年|今年|明年)(N)月份?", lambda m: f"{_month(m[2])} {_YEAR[m[1]]}"),
    _rule(r"(去年|今年|明年)([春夏秋冬])[天季]", lambda m: f"{_SEASON[m[2]]} of {_YEAR[m[1]]}"),
    _rule(
        r"(?:最近|过去|近)的?(N)个?(天|日|周|星期|月|年|小时)",
        lambda m: f"the last {_number(m[1])} {_UNIT[m[2]]}",
    ),
    _rule(
        r"(N)个?(天|日|周|星期|礼拜|月|年|小时|分钟|季度)[之以]?前",
        lambda m: f"{_number(m[1])} {_UNIT[m[2]]} ago",
    ),
    _rule(r"(N)个?(天|周|星期|月|年)[之以]?后", lambda m: f"{_number(m[1])} {_UNIT[m[2]]} from now"),
    _rule(r"(上个?|这个?|本|下个?)(周|星期|礼拜)([一二三四五六日天])", _which),
    _rule(r"(上个?|这个?|本|下个?)(周|星期|礼拜|月|季度)(?!末)()", _which),
    _rule(r"(?:周|星期|礼拜)([一二三四五六日天])", lambda m: f"on {_DAY[m[1]]}"),
    _rule(r"(N)月(N)[日号]", lambda m: f"{_number(m[2])} {_month(m[1])}"),
    _rule(r"第([一二三四])季度", lambda m: f"in Q{_number(m[1])}"),
    _rule(r"(?<![\d个一二三四五六七八九十两])(N)月份?(?!亮|饼|球)", lambda m: f"in {_month(m[1])}"),
    _rule("|".join(sorted(_PLAIN, key=len, reverse=True)), lambda m: _PLAIN[m[0]]),
    _rule(r"\d{4}-\d\d-\d\d", lambda m: m[0]),
)


def in_english(text: str) -> list[tuple[str, int, int]]:
    """The date words of a text in English with their places; empty where it has none by itself."""
    found: list[tuple[str, int, int]] = []
    at = 0
    while at < len(text):
        rule = next(((m, make) for pattern, make in _RULES if (m := pattern.match(text, at))), None)
        if rule is None:
            if not found or found[-1][0] != ",":
                found.append((",", at, at + 1))
            at += 1
            continue
        match, make = rule
        _add(found, make(match), match.start(), match.end())
        at = match.end()
    return found if any(word not in _JOINS and word != "," for word, _, _ in found) else []


def _add(found: list[tuple[str, int, int]], word: str, at: int, to: int) -> None:
    """`5月底` is late May, `3月以来` since March: what bounds stands behind."""
    if not word.startswith("<"):
        if found and found[-1][0] in ("to", "and"):
            word = word.removeprefix("in ")
        found.append((word, at, to))
    elif found and found[-1][0] != "," and found[-1][0] not in _JOINS:
        plain, first, _ = found[-1]
        plain = plain.removeprefix("in ").removeprefix("on ").removeprefix("year ")
        found[-1] = (f"{word[1:]} {plain}", first, to)


# -- translation -------------------------------------------------------------------------------------------
# Which language a text's date words are of, and those words in English.


_CYRILLIC = late("[Ѐ-ӿ]")
_ONLY_UKRAINIAN, _ONLY_RUSSIAN = late("[іїєґ]", re.I), late("[ыэёъ]", re.I)
_APOSTROPHES = str.maketrans("’ʼ", "''")
_WIDEST = 5
"""Tokens of one entry of a table at most: `après-demain`, `fin de semana`."""
_GO_BEFORE_IN = ("last", "this", "next", "early", "mid", "late", "since", "until")
_UNITS = {"day", "week", "month", "quarter", "year"}

_BOUNDS = {"in", "since", "until", "before", "after", "between", "early", "mid", "late", "from"}
"""What makes a date of a bare year: `Anfang 2026`."""

Piece = tuple[str, int, int]
"""An English word or two, and the place [from, to) of what it was made of."""


def language(text: str) -> str | None:
    """The language whose date words a text has, if it is one we read: 'de', 'fr', 'es', 'ru', 'uk', 'zh'."""
    if HAN.search(text):
        return "zh" if in_english(text) else None
    low = {token.low: token for token in cut(text.translate(_APOSTROPHES)) if token.kind == "word"}
    words = set(low) | {f"{token.text.lower()}" for token in low.values()}
    best, score = None, 0
    for spoken in LANGUAGES:
        cyrillic = spoken.code in ("ru", "uk")
        if cyrillic != bool(_CYRILLIC.search(text)) or _excluded(spoken, text):
            continue
        names = words & set(spoken.names)
        sure = names - spoken.doubtful
        signs = words & spoken.signs - names
        short = bool(sure) and all(
            word in spoken.names or word in spoken.asks or _known(word, spoken) for word in words
        )
        dated = len(words) <= 2 and bool(names) and re.search(r"\b\d{4}\b", text) is not None
        if not names and re.search(r"\b(?:19|20)\d\d\b", text):
            bounds = {word for word in words if spoken.joins.get(word) in _BOUNDS}
            names, dated = bounds, bool(bounds and (len(words) <= 2 or len(signs - bounds) > 0))
            signs = set()
        weight = (3 if names & set(spoken.names) else 1) * len(names) + len(signs)
        if names and (signs or short or cyrillic or dated) and weight > score:
            best, score = spoken.code, weight
    return best


def _known(word: str, spoken: Language) -> bool:
    return word in spoken.joins or _stem(word, spoken) is not None


def _excluded(spoken: Language, text: str) -> bool:
    if spoken.code == "ru":
        return bool(_ONLY_UKRAINIAN.search(text))
    return spoken.code == "uk" and bool(_ONLY_RUSSIAN.search(text))


def translated(text: str, code: str) -> list[Piece]:
    """The text's date words in English, in order; anything between them is a comma."""
    if code == "zh":
        return in_english(text)
    spoken = next(each for each in LANGUAGES if each.code == code)
    tokens = cut(text.translate(_APOSTROPHES))
    pieces: list[Piece] = []
    i = 0
    while i < len(tokens):
        word, width = _piece(text, tokens, i, spoken)
        at, to = tokens[i].at, tokens[i + width - 1].to
        i += width
        if word.endswith("<"):
            _before_its_noun(pieces, (word[:-1], at, to))
        elif word:
            pieces.append((word, at, to))
    return _settled(pieces)


def _piece(text: str, tokens: list[Token], i: int, spoken: Language) -> tuple[str, int]:
    """English for what begins at a token, and how many tokens that is."""
    for width in range(min(_WIDEST, len(tokens) - i), 1, -1):
        window = tokens[i : i + width]
        if any(token.kind not in ("word", "number", "dash") for token in window):
            continue
        key = " ".join(token.text.lower() for token in window)
        key = key.replace(" - ", "-")
        known = spoken.names.get(key) or spoken.joins.get(key)
        if known:
            return known, width
    token = tokens[i]
    low = token.text.lower()
    if token.kind in ("number", "date", "ordinal", "dash", "clock"):
        return token.text, 1
    if token.kind == "mark":
        dotted = token.text == "." and i and tokens[i - 1].kind == "number" and len(tokens[i - 1].text) <= 2
        return ("" if dotted else ","), 1
    return spoken.names.get(low) or spoken.joins.get(low) or _stem(low, spoken) or ",", 1


def _stem(low: str, spoken: Language) -> str | None:
    stems = (key for key in spoken.joins if key.endswith("*") and low.startswith(key[:-1]))
    return next((spoken.joins[key] for key in stems), None)


def _before_its_noun(pieces: list[Piece], which: Piece) -> None:
    """`lundi dernier`, `les 10 derniers jours`: "last" goes before the noun, or before the number."""
    if pieces and pieces[-1][0] not in (",", "the", "of", "on", "in"):
        noun, at, to = pieces[-1]
        pieces[-1] = which
        pieces.append((noun.removeprefix("the "), at, to))
    else:
        pieces.append(which)


def _counted(words: list[str]) -> bool:
    return bool(words) and (words[-1].isdigit() or words[-1] == "some")


def _settled(pieces: list[Piece]) -> list[Piece]:
    """What depends on neighbours: `с марта по май`, `в 2019 году`, `hace tres días`, `10 last days`."""
    words = [word for word, _, _ in pieces]
    found: list[Piece] = []
    waiting: Piece | None = None  # a word that goes behind the count that follows it
    for n, (word, at, to) in enumerate(pieces):
        before, after = words[n - 1] if n else "", words[n + 1 : n + 3]
        if word == "since" and any(each in ("to", "until") for each in words[n + 1 : n + 6]):
            word = "from"
        if word == "year" and re.fullmatch(r"(?:19|20)\d\d", before):
            found[-1] = (found[-1][0], found[-1][1], to)
            continue
        if ">" in word:
            behind, _, alone = word.partition(">")
            if len(after) == 2 and after[0].isdigit() and after[1] in _UNITS:
                waiting = (behind, at, to)
                continue
            word = alone or ","
        if word.startswith("in ") and before in _GO_BEFORE_IN:
            word = word[3:]
        if word == "ago" and before in _UNITS and not _counted(words[: n - 1]):
            found[-1] = (f"1 {before}", *found[-1][1:])
        found.append((word, at, to))
        if waiting and word in _UNITS:
            found.append(waiting)
            waiting = None
    return found
