"""Date words of other languages by the English word that the grammar knows: what dateparser leaves out.

dateparser knows `three days ago` in each; this adds what joins and bounds it (since, between, last, early),
the seasons, numerals, and the cases that Russian and Ukrainian put words into. It is also the gate: without
one of these words nothing is loaded. `last<` stands behind its noun and goes before it, a key ending in `*`
is a stem.
"""

from __future__ import annotations

from dataclasses import dataclass

from ua_memory.dates.words import several

MONTHS = several("January February March April May June July August September October November December")
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
class Tongue:
    """One language: `names` are dates by themselves, `joins` only beside them.

    `signs` tell which language it is; `doubtful` names are words of another one, too.
    """

    code: str
    names: dict[str, str]
    joins: dict[str, str]
    signs: frozenset[str]
    doubtful: frozenset[str] = frozenset()


_DE = Tongue(
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
        "in: im in während; on: am; from: vom von; until: bis; between: zwischen; and: und; since: seit ab;"
        "before: vor; after: nach; last: letzte* vergangene*; this: diese*; next: nächste* kommende*;"
        "early: anfang; mid: mitte; late: ende; the: der die das den dem; of: des; morning: vormittag;"
        "evening: abend; afternoon: nachmittag; night: nacht; 1: ein eine einem einer einen; 2:"
        " zwei; 3: drei;"
        "4: vier; 5: fünf; 6: sechs; 7: sieben; 8: acht; 9: neun; 10: zehn; 12: zwölf; 20: zwanzig;"
        " 30: dreißig;"
        "or: oder; over: über; early: anfangs"
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
)
_FR = Tongue(
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
        "in: en dans pendant durant; on: le; the: la les l au; of: de du d des; since: depuis;"
        " until: jusqu'à"
        " jusqu'au jusqu'en jusque; before: avant; after: après; between: entre; from: dès; and: et; to: à;"
        "last<: dernier dernière derniers dernières passé passée; next<: prochain prochaine prochains;"
        "this: ce cet cette ces; early: début; mid: mi milieu; late: fin; morning: matin; evening: soir;"
        "afternoon: après-midi; night: nuit; 1: un une; 2: deux; 3: trois; 4: quatre; 5: cinq; 6:"
        " six; 7: sept;"
        "8: huit; 9: neuf; 10: dix; 12: douze; 20: vingt; 30: trente; early: au_début; late:"
        " à_la_fin; or: ou;"
        "of_April: d'avril; of_August: d'août; of_October: d'octobre"
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
_ES = Tongue(
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
        "in: en durante; on: el; the: la las los; of: de del; since: desde; until: hasta; before:"
        " antes_de antes_del;"
        "after: después_de después_del; between: entre; and: y e; to: a al; last<: pasado pasada"
        " pasados pasadas;"
        "last: último última últimos últimas; next: próximo próxima; this: este esta; early:"
        " principios comienzos;"
        "mid: mediados; late: finales fines; morning: mañana; evening: noche; afternoon: tarde; or: o u;"
        "1: un una; 2: dos; 3: tres; 4: cuatro; 5: cinco; 6: seis; 7: siete; 8: ocho; 9: nueve; 10:"
        " diez; 12: doce;"
        "20: veinte; 30: treinta; ago>: hace"
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
_RU = Tongue(
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
        "in: в во на за; since: с со; from: от; until: до; to: по; between: между; and: и; after: после;"
        "before: перед; last: прошл* последн* минувш*; this: эт*; next: следующ* будущ*; early:"
        " начале начала;"
        "mid: середине; late: конце конца; morning: утром; evening: вечером; night: ночью; 1: один"
        " одну одна;"
        "2: два две двух; 3: три трёх трех; 4: четыре; 5: пять пяти; 6: шесть; 7: семь; 8: восемь;"
        " 9: девять;"
        "10: десять; 12: двенадцать; or: или; the_day_before: накануне"
    ),
    frozenset(several("что мы как когда был была было были с в и это ы э ъ")),
    frozenset(several("лет день дня год лета лето")),
)
_UK_UNITS = (
    "year: рік року році роки років; month: місяць місяця місяці місяців; week: тиждень тижня тижні"
    " тижнів тижню;"
    "day: день дня дні днів; quarter: квартал кварталі кварталу; weekend: вихідні вихідних"
)
_UK = Tongue(
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
        "in: у в на за; since: з із зі; from: від; until: до; to: по; between: між; and: і й та;"
        " after: після;"
        "before: перед; last: минул* останн*; this: цього цьому цей ця цю цієї цій; next: наступн*;"
        "early: початку; mid: середині; late: кінці наприкінці; morning: вранці зранку; evening:"
        " ввечері увечері;"
        "night: вночі; ago: тому; 1: один одну одна; 2: два дві двох; 3: три трьох; 4: чотири; 5:"
        " п'ять; 6: шість;"
        "7: сім; 8: вісім; 9: дев'ять; 10: десять; 12: дванадцять; or: або чи"
    ),
    frozenset(several("що ми як коли був була було були з у і це")),
    frozenset(several("день дня року літа літо лютий")),
)
TONGUES = (_DE, _FR, _ES, _RU, _UK)
