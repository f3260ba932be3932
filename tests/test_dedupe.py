"""What stands for what: a belief for its facts, one of those that say the same for all, and none is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from index_bank import Missing, a_bank, an_index, log, write
from terminal import new_shell

from ua_memory.index.embedding import Embedder
from ua_memory.index.filters import Filters
from ua_memory.index.items import SESSION
from ua_memory.recall.arms import Ranked, parse_query
from ua_memory.recall.calibration import calibrated_scores
from ua_memory.recall.dedupe import fold, with_support
from ua_memory.recall.newer import newer_first
from ua_memory.recall.search import Hit, SearchResult, search

DATA = Path(__file__).parent / "data"
DAY = "memory/2026-11-21.md"
BELIEF = "memory/observations/alice.md"
FACTS = log(
    "Alice left Heroku for Fly.io since the price doubled ^aaaaaaaaaa",
    "Alice dropped Datadog since the price rose ^bbbbbbbbbb",
    "Bob owns a puppy ^cccccccccc",
)
OBSERVED = """- Alice leaves providers when the price rises. ^p2w7c5n3rd
  - proofs: 2
  - proof: [[2026-11-21#^aaaaaaaaaa]] "since the price doubled"
  - proof: [[2026-11-21#^bbbbbbbbbb]]
"""


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.item.id or hit.item.text for hit in hits]


def asked(root: Path, files: dict[str, str], query: str, retired: bool | None = None) -> SearchResult:
    """The answer by words alone, which is quick."""
    with an_index(a_bank(root, files), Missing()) as index:
        return search(index, query, limit=50, filters=Filters(retired=retired))


def test_an_observation_stands_for_its_facts(tmp_path: Path) -> None:
    files = {DAY: FACTS, BELIEF: OBSERVED}
    with an_index(a_bank(tmp_path, files)) as index:
        query = "why did Alice leave, was it the price"
        hit = search(index, query).hits[0]
        assert hit.item.id == "p2w7c5n3rd" and hit.item.proofs == ("aaaaaaaaaa", "bbbbbbbbbb")
        assert sorted(item.id or "" for item in hit.folded) == ["aaaaaaaaaa", "bbbbbbbbbb"]
        assert "aaaaaaaaaa" not in ids(search(index, query, limit=50).hits)
        # However few are asked for, the first is the same.
        assert search(index, query, limit=1).hits[0] == hit
        # Whoever asks for kinds gets them.
        facts = search(index, query, filters=Filters(kinds=("world",))).hits
        assert {"aaaaaaaaaa", "bbbbbbbbbb"} <= set(ids(facts)) and not any(one.folded for one in facts)
        both = ids(search(index, query, filters=Filters(kinds=("world", "observation"))).hits)
        assert {"aaaaaaaaaa", "bbbbbbbbbb", "p2w7c5n3rd"} <= set(both)


def test_a_fact_that_answers_far_better_stands_by_itself(tmp_path: Path) -> None:
    found = asked(tmp_path, {DAY: FACTS, BELIEF: OBSERVED}, "Heroku Fly.io Alice doubled").hits
    assert found[0].item.id == "aaaaaaaaaa"
    scores = [hit.score for hit in found]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    "other",
    [
        OBSERVED + "  - retired: 2026-11-20\n",
        OBSERVED.replace("[[2026-11-21#^aaaaaaaaaa]]", "[[x#^dddddddddd]]"),
    ],
)
def test_a_belief_that_is_gone_or_of_other_facts_stands_for_none(tmp_path: Path, other: str) -> None:
    found = asked(tmp_path, {DAY: FACTS, BELIEF: other}, "why did Alice leave, was it the price").hits
    assert "aaaaaaaaaa" in ids(found)


def test_a_belief_changed_in_its_file_leaves_the_facts(tmp_path: Path) -> None:
    from ua_memory.index.sync import Refresh

    with an_index(a_bank(tmp_path, {DAY: FACTS, BELIEF: OBSERVED})) as index:
        search(index, "price")
        write(tmp_path / BELIEF, "- Something else\n")
        answer = search(index, "why did Alice leave, was it the price", refresh=lambda: Refresh())
        assert {"aaaaaaaaaa", "bbbbbbbbbb"} <= set(ids(answer.hits)) and "p2w7c5n3rd" not in ids(answer.hits)


LONG = "the staging database of the shop runs out of connections whenever the nightly report starts late"


@pytest.mark.parametrize(
    ("one", "other", "fold"),
    [
        ("Alice moved the API to Fly.io", "alice moves the API to fly.io!", True),
        ("Alice moved the API to Fly.io", "Alice moved API to a Fly.io", True),
        ("Bob beat Alice", "Alice beat Bob", False),
        ("version 3.11 is out", "version 3.12 is out", False),
        ("the deploy is safe", "the deploy is not safe", False),
        (LONG, LONG + " again", True),
        (LONG, LONG.replace("late", "never late"), False),
        (LONG, LONG + " Monday", False),
        (LONG, LONG + " 2019", False),
        (LONG, LONG.replace("late", "early"), False),
        (LONG, LONG + " and so do the others", False),
        ("buy oat milk\n  - when: 2026-01-02", "buy oat milk\n  - when: 2026-02-03", False),
        ("buy oat milk\n  - when: 2026-01-02", "buy oat milk", True),
        ("buy oat milk\n  - retired: 2026-01-02", "buy oat milk", False),
        ("buy oat milk\n  - kind: preference", "buy oat milk", False),
        ("买燕麦奶", "买燕麦奶。", True),
        ("我不喜欢燕麦奶", "我喜欢燕麦奶", False),
    ],
)
def test_what_says_the_same_folds(tmp_path: Path, one: str, other: str, fold: bool) -> None:
    for first, second in ((one, other), (other, one)):
        files = {DAY: log(first, "x"), "memory/2026-11-20.md": log(second)}
        found = asked(tmp_path, files, one.split("\n")[0], retired=True)
        count = sum(1 for hit in found.hits if len(hit.item.text) > 2)
        assert (count, sum(len(hit.folded) for hit in found.hits)) == ((1, 1) if fold else (2, 0))


def test_a_page_and_a_model_are_found_by_their_names(tmp_path: Path) -> None:
    page = "---\nid: p\nname: Kiln schedule\nsource_query: when\ntags: [pots]\n---\nMondays only.\n"
    model = "---\nid: m\nname: How Ann glazes\ntags: []\n---\n## Thin\n\nTwo coats.\n"
    files = {"memory/pages/p.md": page, "memory/models/m.md": model, DAY: log("nothing")}
    for query, text, heading in (("kiln", "Mondays only.", "Kiln schedule"), ("ann", "Two coats.", None)):
        hit = asked(tmp_path, files, query).hits[0]
        assert hit.item.text == text and hit.item.heading == (heading or "How Ann glazes > Thin")


def test_who_reads_it_is_told(tmp_path: Path) -> None:
    shell = new_shell(tmp_path)
    for day in ("18", "19", "20", "21"):
        shell.write(f"memory/2026-11-{day}.md", "## 10:00\n\n- We ate at the Blue Door\n")
    shell.write(DAY, FACTS)
    shell.write(BELIEF, OBSERVED)
    hit = shell.ok("search", "where did we eat", "--limit", "1", "--json").json["results"][0]
    assert hit["citation"] == "memory/2026-11-18.md#L3"
    assert [each["day"] for each in hit["folded"]] == ["2026-11-19", "2026-11-20"]
    assert "also      memory/2026-11-19.md#L3, " in shell.ok("search", "where did we eat").out
    block = shell.ok("recall", "where did we eat", "--limit", "1").out
    assert "[memory/2026-11-18.md#L3; also in 2 other places: 2026-11-19, 2026-11-20]" in block
    hit = shell.ok("search", "Alice leaves providers", "--limit", "1", "--json").json["results"][0]
    assert hit["proofs"] == ["aaaaaaaaaa", "bbbbbbbbbb"] and len(hit["folded"]) == 2
    assert "based on  ^" in shell.ok("search", "Alice leaves providers").out


# -- which value is the latest -------------------------------------------------------------------------


def said_on(days: dict[str, Sequence[str]]) -> dict[str, str]:
    return {f"memory/{day}.md": log(*lines) for day, lines in days.items()}


@pytest.mark.parametrize(
    ("old", "new", "query"),
    [
        ("The staging database listens on port 5433", "Staging database is on port 6543 now", "staging port"),
        ("Which port does staging use? – 6543", "Which port does staging use now? – 7000", "staging port"),
        ("Which database? – mysql", "Which database? – postgres", "which database"),
        ("データベースは何ですか？ – mysql", "データベースは何ですか？ – postgres", "データベースは何ですか"),
        ("release is planned for nov 12th", "release was pushed back, its nov 19th now", "release date"),
        ("Stand-up is at 9:15", "Stand-up moved to 9:45 because dispatch calls at nine", "stand-up time"),
        ("alerts go to #ops-night, not mail", "alerts go to #harbor-pages now, not mail", "alerts channel"),
        ("offline-pakete maximal 150 mb", "die pakete dürfen jetzt 220 mb haben", "größe der pakete"),
        ("la demo es el 5 de diciembre", "adelantaron la demo al 29 de noviembre", "cuándo es la demo"),
        ("公開は 11月20日", "公開は 12月2日に延期になった", "公開は"),
        ("the choir sings on Tuesdays", "the choir sings on Thursdays", "when does the choir sing"),
        ("der Chor probt dienstags im Saal", "der Chor probt jeden Mittwoch im Saal", "wann probt der Chor"),
        ("the limit for tablets is 40 calls", "the limit for tablets is 120 calls", "limit for tablets"),
        ("We use Redis for the cache", "We do NOT use Redis for the cache any more", "what is the cache"),
        ("Wir benutzen Kafka für Aufträge", "Wir benutzen Kafka für Aufträge nicht mehr", "Kafka für was"),
        ("Nous utilisons Gulp pour le site", "Nous n'utilisons plus Gulp pour le site", "Gulp pour le site"),
        ("Usamos Terraform para la red", "Ya no usamos Terraform para la red", "Terraform para la red"),
        ("検索にはSolrを使っています。", "検索にはSolrをもう使っていません。", "検索にSolrを使っていますか"),
        ("Marta doesn't like cilantro", "Marta likes cilantro", "does Marta not like cilantro"),
        ("the bookkeeper of the firm is Petra", "the bookkeeper of the firm is now Max", "who is bookkeeper"),
        ("at most four nights in a row", "three nights in a row is the limit now", "nights in a row"),
        ("Kapitel 4 gebe ich Ende Juni ab", "Kapitel 4 geht jetzt am 17. Juli raus", "gebe ich Kapitel 4 ab"),
        ("the demo opens on october 6", "the demo was moved!! its october 13 now", "demo opens"),
        ("los fondos son 450 euros", "hemos subido los fondos a 600 euros", "cuánto son los fondos"),
        ("一語の単価は14円です", "一語の単価を16円に上げます", "一語の単価は"),
        ("猫のモモを病院に連れて行った。体重は4.2kg。", "モモの体重は4.6kgに増えた。", "モモの体重は？"),
        ("王小姐的手册十二月十日交稿, 3章", "王小姐的手册改到十二月十五日交稿, 4章", "手册什么时候交稿？"),
        ("the audit is on 12 november", "the audit was moved, the 26th, same month", "audit is on"),
        ("the tax audit is on 12 november", "the tax audit is on the 26th now", "tax audit"),
        ("die treppe muss am 16. oktober drin sein", "die treppe kommt erst am 30.", "treppe drin"),
        ("opzeggen kan voor 15 november", "opzeggen moet voor de 6e ipv de 15e", "contract opzeggen"),
        ("The SMS budget. It is 2,300 a month", "we changed the sms deal, 3,100 a month", "budget a month"),
        ("on est à 73 paniers", "on est montés à 88 paniers depuis la fête", "combien de paniers"),
        ("Terry cleans windows for £18", "Terry has put the windows up to £22", "what do windows cost"),
        ("la revisión básica son 38 euros", "la básica la subo a 45 euros", "la revisión básica"),
        ("Rent 1150 €", "Rent 1178 €", "rent"),
        ("Poids 71,4 kg", "Poids 68,7 kg", "mon poids"),
        ("Mia's swimming lesson is on Tuesday at 16:00", "Swimming lesson moved to Thursday at 17:00",
         "When is Mia's swimming lesson?"),
        ("Our Kubernetes cluster has 3 nodes", "The cluster has 5 nodes now",
         "nodes of our Kubernetes cluster"),
        ("Tom's dentist appointment is on 4 December",
         "The dentist appointment moved to 11 December because Dr Haas is away",
         "When is Tom's appointment?"),
        ("Tom's dentist appointment is on 4 December\n  - entities: [[Tom]]",
         "Now it is on 11 December, the dentist appointment\n  - entities: [[Tom]]", "Tom's appointment?"),
        ("Der Zahnarzttermin von Tom ist am 4. Dezember",
         "Der Zahnarzttermin wurde auf den 11. Dezember verschoben",
         "Wann ist der Zahnarzttermin von Tom?"),
        ("Die Besprechung mit Brandt ist um 9 Uhr", "Die Besprechung wurde auf 10 Uhr verschoben",
         "Wann ist die Besprechung mit Brandt?"),
        ("El alquiler de Sevilla es de 800 euros", "El alquiler ahora es de 850 euros",
         "alquiler de Sevilla"),
        ("Le loyer de Lyon est de 800 euros", "Le loyer est maintenant de 850 euros", "le loyer de Lyon"),
        ("The Atlas 2 release is on 3 December", "The release slipped to 10 December",
         "When is Atlas 2 released?"),
        ("The tyres of the Skoda need 2.8 bar", "The tyres need 3.1 bar now",
         "bar in the tyres of the Skoda"),
        ("The deploy to Fly takes 4 minutes", "The deploy takes 7 minutes",
         "how long does the deploy to Fly take"),
        ("Timeout of the payment gateway is 30 seconds", "Timeout of the gateway is 60 seconds",
         "timeout of the payment gateway"),
        ("Iberdrola presupuesta la acometida de la nave: 8.760 €",
         "y la acometida al final son 9.140, no 8.760", "cuánto cuesta la acometida de la nave"),
        ("Der Anschluss der Halle kostet laut Wien Energie 8760 Euro",
         "der Anschluss kostet 9140 und nicht 8760", "Was kostet der Anschluss der Halle?"),
        ("Hugo's line costs 8,760 euros, says Iberdrola", "the line is 9,140 after all, not 8,760",
         "what does Hugo's line cost"),
        ("The code of the house is 4711", "The code is 1234 instead of 4711", "code of the house"),
        ("アリスの家賃は800円です\n  - entities: [[アリス]]", "アリスの家賃は900円に変わった",
         "アリスの家賃は"),
        ("Mia tem 2 gatos", "Mia agora tem três gatos", "quantos gatos tem a Mia?"),
        ("Mia a deux chats", "Mia a maintenant trois chats", "combien de chats a Mia ?"),
        ("Le repas du club est le samedi 28", "Le repas du club passe au samedi 5 décembre",
         "quand a lieu le repas du club"),
        ("Le repas du club est fixé au 28 novembre", "On a changé la date du repas : le 5 décembre",
         "quand a lieu le repas du club"),
        ("La cena del club es el sábado 28", "La cena del club pasa al sábado 5 de diciembre",
         "cuándo es la cena del club"),
        ("The large box costs 12 euros", "Price of the large box: 14 euros", "what does the large box cost"),
        ("Jonas's room is number 4", "jonas' room is now number 7", "Jonas room"),
        ("Die Müllers zahlen 900 Euro", "Familie Müller zahlt jetzt 950 Euro", "was zahlen die Müllers"),
        ("The roses cost 12 euros", "A rose costs 14 euros now", "what do the roses cost"),
        ("Die Miete der Wohnung in Graz beträgt 900 Euro", "Die Miete der Wohnung beträgt 950 Euro",
         "Wie hoch ist die Miete der Wohnung in Graz?"),
        ("The projectors run firmware 4.2.1.", "The projectors were rolled back to firmware 4.1.9.",
         "which firmware do the projectors have"),
        ("Die Probe beginnt um 19:00", "Ab Januar beginnt die Probe um 19:30", "wann beginnt die Probe"),
        ("Le cours de danse coûte 12 euros", "À partir de mars le cours de danse coûtera 14 euros",
         "prix du cours de danse"),
        ("La clase es a las 18:00", "A partir de marzo la clase es a las 18:30", "a qué hora es la clase"),
        ("La tessera costa 20 euro", "La tessera sale a 25 euro", "quanto costa la tessera"),
        ("The members elected Palmira chair of the club, 9 votes", "Fernanda was elected chair, 14 votes",
         "chair of the club"),
    ],
)  # fmt: skip
def test_the_newer_value_stands_first_and_names_the_older(
    tmp_path: Path, old: str, new: str, query: str
) -> None:
    files = said_on({"2026-10-01": [old, "Bob owns a puppy"], "2026-11-02": [new, "Ann drinks tea"]})
    with an_index(a_bank(tmp_path, files)) as index:
        hits = search(index, query).hits
    assert [hit.item.text for hit in hits[:2]] == [new.split("\n")[0], old.split("\n")[0]]
    assert hits[0].replaces == hits[1].item and hits[1].replaces is None
    assert hits[0].score >= hits[1].score


def test_the_first_line_of_a_table_is_no_older_value(tmp_path: Path) -> None:
    files = said_on({"2026-11-02": ["Batch 15 of bee hives went wrong in week 15"]})
    files["memory/2026-10-01.md"] = "# 2026-10-01\n\n| what | cost |\n|---|---|\n| bee hives | 12 € |\n"
    hits = asked(tmp_path, files, "bee hives").hits
    assert len(hits) == 2 and not any(hit.replaces for hit in hits)


@pytest.mark.parametrize(("row", "newer"), [("large", True), ("medium", False)])
def test_a_row_of_a_pasted_table_says_what_the_head_of_its_table_says(
    tmp_path: Path, row: str, newer: bool
) -> None:
    said = {"2026-10-01": ["the large box costs 12 euros"], "2026-11-02": ["the small box is red"]}
    items = sorted(
        (hit.item for hit in asked(tmp_path, said_on(said), "box").hits), key=lambda i: i.day or ""
    )
    table = f"Person: here they are\n\n| Box | Price |\n|---|---|\n| small | 8 € |\n| {row} | 14 € |\n"
    passage = replace(items[1], record=SESSION, text=table)
    found = [Ranked(items[0], 0.9, {}), Ranked(passage, 0.8, {})]
    assert (newer_first(found, "what does the large box cost")[0][0].item == passage) == newer


def test_recall_names_the_older_value_and_says_that_an_agent_had_said_it(tmp_path: Path) -> None:
    shell = new_shell(tmp_path)
    shell.write(
        "memory/2026-10-01.md", "## 10:00 · claude-code\n\n- The staging port is 5433\n  - origin: agent\n"
    )
    shell.write(DAY, "## 10:00\n\n- The staging port is 6543 now\n")
    row = shell.ok("recall", "staging port").out.splitlines()[2]
    assert "; before, 2026-10-01: The staging port is 5433 (an agent's words)]" in row


@pytest.fixture(scope="module")
def model() -> Embedder:
    return Embedder()


@pytest.mark.parametrize(
    ("old", "new", "query"),
    [
        ("Alice lives in Berlin", "Alice moved to Porto", "where does Alice live?"),
        ("Alice Meyer lives in Berlin with a cat", "Last week Alice moved to Porto", "Alice lives where"),
        ("Alice moved to Lyon", "Alice is now living in Porto", "where does Alice live"),
        ("Bob works at Siemens as an engineer", "Bob joined Bosch in May", "where does Bob work"),
        ("Carol is an engineer at Initech", "Carol is now at Globex", "where is Carol working"),
        ("We use Jenkins for the builds", "We switched from Jenkins to Buildkite", "what do we use to build"),
        ("The shop runs on Heroku", "The shop moved from Heroku to Fly.io", "where does the shop run"),
        ("Dan works at Initech", "Dan left Initech for Globex", "where does Dan work"),
        ("Our doctor is Dr Patel", "Our doctor is now Dr Whitfield, Dr Patel retired", "who is our doctor"),
        ("The cache is Redis 7 on port 6379", "We replaced Redis with Valkey 8", "which cache do we use"),
        ("The schedule `nightly_ingest` has the cron `15 3 * * *`, so it runs at 03:15 UTC.",
         "move the nightly to 04:30 UTC pls, bsh publishes later now", "when does the nightly run?"),
        ("topic: `events.raw`; partitions: 12; retention: 72 h",
         "retention of events.raw: the streaming team changed it to 48h", "retention of events.raw"),
        ("Target is 1500 messages per replica, cooldown for scaling down 10 min",
         "target of the queue scaler: 1500 was too high, set 800", "target messages per replica of queues"),
        ("Alice wohnt in Berlin", "Im Mai ist Alice nach Porto gezogen", "wo wohnt Alice"),
        ("Bob arbeitet bei Siemens", "Bob ist zu Bosch gewechselt", "wo arbeitet Bob"),
        ("Ines is the secretary of the club", "Marta has taken over from Ines as secretary",
         "who is the secretary"),
        ("The secretary is Ines", "Marta succeeded Ines as secretary", "who is the secretary"),
        ("Ines is our treasurer", "Since May Marta is treasurer instead of Ines", "who is the treasurer"),
        ("Ines ist die Trainerin", "Marta hat von Ines das Amt der Trainerin übernommen",
         "wer ist die Trainerin"),
        ("Ines ist Kassenwart", "Marta löst Ines als Kassenwart ab", "wer ist Kassenwart"),
        ("Inès est la secrétaire", "Marta a succédé à Inès comme secrétaire", "qui est la secrétaire"),
        ("Inés es la secretaria", "Marta ha sustituido a Inés como secretaria", "quién es la secretaria"),
        ("Le tarif est de 48 de l'heure", "52 de l'heure, on oublie l'ancien tarif", "quel est le tarif"),
        ("The rate is 48 an hour", "52 an hour, forget the old rate", "what is the rate"),
        ("Der Tarif ist 48 die Stunde", "52 die Stunde, den alten Tarif vergessen wir", "wie ist der Tarif"),
        ("La tarifa es de 48 la hora", "52 la hora, olvida la tarifa anterior", "cuál es la tarifa"),
        ("Wir nutzen Jenkins für die CI", "Wir sind von Jenkins auf Buildkite umgestiegen", "was ist die CI"),
        ("Alice habite à Berlin", "Alice a déménagé à Porto", "où habite Alice"),
        ("Bob travaille chez Renault", "Bob a rejoint Airbus", "où travaille Bob"),
        ("Nous utilisons Jenkins", "Nous sommes passés de Jenkins à Buildkite", "utilisons-nous Jenkins ?"),
        ("Alice vive en Berlín", "Alice se mudó a Oporto", "dónde vive Alice"),
        ("Bob trabaja en Telefónica", "Bob dejó Telefónica por Indra", "dónde trabaja Bob"),
        ("Usamos Jenkins para la CI", "Cambiamos de Jenkins a Buildkite", "usamos Jenkins"),
        ("アリスはベルリンに住んでいます", "アリスはポルトに引っ越しました", "アリスはどこに住んでいますか"),
        ("ボブはトヨタで働いています", "ボブはトヨタからホンダに転職しました", "ボブはどこで働いていますか"),
    ],
)  # fmt: skip
def test_where_somebody_is_now_stands_before_where_they_were(
    tmp_path: Path, model: Embedder, old: str, new: str, query: str
) -> None:
    files = said_on({"2026-10-01": [old, "Bob owns a puppy"], "2026-11-02": [new, "Ann drinks tea"]})
    with an_index(a_bank(tmp_path, files), model) as index:
        hits = search(index, query).hits
    assert [hit.item.text for hit in hits[:2]] == [new, old] and hits[0].replaces == hits[1].item


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("the rent is 1,180 euros a month", "The new warehouse costs 3,650 euros a month"),
        ("the port of the database is 5433", "the port of the cache is 6379"),
        ("rye is 5.20", "wheat is 4.80 now"),
        ("the deploy takes 4 minutes", "Alice moved the desk to room 4"),
        ("we meet on Sundays", "we meet on Sundays now that the sun is out"),
        ("Marta likes cilantro", "Jonas does not like cilantro"),
        ("we use Redis for the cache", "we do not use Kafka for the orders"),
        ("Alice does not fly on Fridays", "Alice does not fly on Fridays or rainy days"),
        ("the firm rents a desk from Petra", "the firm rents a desk from Max, too"),
        ("we use Redis for the cache", "don't we use Redis for the cache?"),
        ("We use Redis for the session cache", "We do not use Redis for the test cache"),
        ("Alice lives in Berlin", "Alice's brother moved to Porto"),
        ("Alice lives in Berlin", "The brother of Alice moved to Porto"),
        ("Alice lives in Berlin", "Bob and Alice moved to the data team"),
        ("Alice lives in Berlin", "Alice moved the API to Porto"),
        ("Alice lives in Berlin", "Alice moved to Berlin in May"),
        ("Alice lives in Berlin", "She moved to Porto"),
        ("Alice lives in Berlin", "Alice joined Bosch"),
        ("Bob works at Siemens", "Bob joined the chess club"),
        ("Bob works at Siemens", "Bob moved to Porto"),
        ("We use Jenkins for the builds", "The shop switched from Jenkins to Buildkite"),
        ("Jenkins needs Java 17", "We switched from Jenkins to Buildkite"),
        ("Alice wohnt in Berlin", "Der Bruder von Alice ist nach Porto gezogen"),
        ("Alice habite à Berlin", "Le frère d'Alice a déménagé à Porto"),
        ("Alice vive en Berlín", "El hermano de Alice se mudó a Oporto"),
        ("アリスはベルリンに住んでいます", "ボブはポルトに引っ越しました"),
        ("Spare key is with Ada at number 9", "I've ordered a new seal, part number 4471"),
        ("The cache is Redis 7", "Bob replaced Redis with Valkey at home"),
        ("der Zug fährt um 9:15, also früh", "der Termin ist jetzt um 10, also später"),
        ("the importer has 40 tests", "the API has 12 tests now"),
        (
            "the organ of the chapel is due on 12 november",
            "the chapel has the 19th-century bell now, already",
        ),
        ("the physio comes on mondays", "the gym is full on fridays, no more mondays"),
        ("the deploy takes 10 minutes", "the queue waits for 4 minutes, 10 was too long"),
        ("we own 2 vans", "the demo: 2 → 4 seats"),
        ("at most 2 vans a day", "no more than 2 vans at a time, 3 on the weekend"),
        ("the tenants' meeting is on 11 december", "the rent meeting went to 18 december"),
        ("the lift inspection is on 9 december", "the lift passed on the 2nd of two tries, already"),
        ("we ordered 12 chairs for the hall", "the hall opens at 9, not 12"),
        ("der Laden öffnet um 8 Uhr", "im Laden gibt es Brot erst um 11 Uhr"),
    ],
)
def test_what_nothing_replaces_stays_where_it_is(tmp_path: Path, old: str, new: str) -> None:
    hits = asked(tmp_path, said_on({"2026-10-01": [old], "2026-11-02": [new]}), old).hits
    assert hits[0].item.text == old and not any(hit.replaces for hit in hits)


@pytest.mark.parametrize(
    ("old", "new", "query"),
    [
        ("max 4 nights in a row for anybody", "three nights in a row is the maximum now", "how many nights"),
        ("son 275 sacos de 69 kilos", "se mojó una parte, ahora son 240 sacos", "cuántos sacos"),
        ("the show opens on april 17th", "and they moved the opening to may 8th", "when is the opening"),
        ("la fête c'est le 28 novembre", "la fête glisse au 12 décembre", "quand a lieu la fête"),
        ("der Strom kostet 11,4 Cent", "der Strom geht rauf auf 12,9 Cent", "was kostet Strom"),
        ("Airflow runs 2.9, the upgrade is parked", "Airflow was upgraded to 2.10", "airflow version in use"),
        ("budget is 600 on the deck", "I'm lowering the budget to 450 MB for the deck", "deck budget"),
        ("plasterer on July 6", "the plasterer can't before July 20", "when is the plasterer here"),
        (
            "physio is mondays and thursdays at 11",
            "the physio's rota: tuesdays and fridays at 2, no more Mondays",
            "when does the physio come",
        ),
        ("at most 2 false alarms a shift", "2 → 4 false alarms is ok with a map", "false alarms a shift"),
        ("window: start with 10 min", "window: take 4 min, 10 was too long", "how long is the window"),
        ("il turno di notte dura 12 ore", "la notte si accorcia: 10 ore", "quanto dura la notte?"),
        (
            "o empréstimo é de três semanas, renovável",
            "o empréstimo passa a ser de quatro semanas",
            "de quanto é o empréstimo?",
        ),
        (
            "screens tire him, 20 minutes and then a break",
            "he can do 35 minutes of screen now before a break",
            "how long can he look at a screen",
        ),
        ("the post timeout is 18 s", "raised the post timeout. 25 s.", "what is the post timeout"),
    ],
)  # fmt: skip
def test_the_newer_count_stands_first_in_a_bank_full_of_its_words(
    tmp_path: Path, old: str, new: str, query: str
) -> None:
    others = [f"{words} {n}" for n in range(9) for words in ("night", "saco", "deck")]
    said = said_on({"2026-09-01": others, "2026-10-01": [old], "2026-11-02": [new]})
    texts = [hit.item.text for hit in asked(tmp_path, said, query).hits]
    assert texts.index(new) < texts.index(old)


def test_a_correction_stands_first_though_many_texts_have_its_words(tmp_path: Path) -> None:
    old, new = "sì, Wilk legge sabato alle 18", "correggo: Wilk legge domenica alle 11, non sabato"
    others = [f"Wilk legge da casa, le poesie {word}" for word in ("brevi", "lunghe", "nuove", "serie")]
    said = said_on({"2026-09-01": others, "2026-10-01": [old], "2026-11-02": [new]})
    hits = asked(tmp_path, said, "quando legge Wilk?").hits
    assert [hit.replaces.text for hit in hits if hit.item.text == new and hit.replaces] == [old]


@pytest.mark.parametrize(
    ("old", "new", "query", "newer"),
    [
        ("The launch is on 13 December, the 3rd is Petra's birthday", "The launch is on 20 December now",
         "When is Petra's birthday?", "When is the launch?"),
        ("The launch is on 13 December. Petra's birthday is on the 3rd.", "The launch moved to 20 December",
         "When is Petra's birthday?", "When is the launch?"),
        ("Der Start ist am 13. Dezember, am 3. hat Petra Geburtstag", "Der Start ist jetzt am 20. Dezember",
         "Wann hat Petra Geburtstag?", "Wann ist der Start?"),
        ("Tomatoes are 3 euros, basil is 2", "Tomatoes are 4 euros now", "what does basil cost?",
         "what do tomatoes cost?"),
        ("Die Miete beträgt 900 Euro, die Garage 60 Euro", "Die Miete beträgt jetzt 950 Euro",
         "Was kostet die Garage?", "Wie hoch ist die Miete?"),
        ("La salle coûte 80 euros, le piano coûte 45 euros", "La salle coûte maintenant 95 euros",
         "combien coûte le piano ?", "combien coûte la salle ?"),
        ("Anna Roth's room has 14 square metres and Ben's has 18", "Ben's room has 20 square metres now",
         "how big is Anna Roth's room?", "how big is Ben's room?"),
        ("No egg for Jonas until the test by Dr. Sahin on 2 June",
         "Dr. Sahin wants an infusion instead, 27 May",
         "Was Jonas vaccinated against measles?", "What does Dr. Sahin want?"),
    ],
)  # fmt: skip
def test_a_newer_value_replaces_the_older_one_only_if_it_is_about_what_is_asked(
    tmp_path: Path, model: Embedder, old: str, new: str, query: str, newer: str
) -> None:
    with an_index(a_bank(tmp_path, said_on({"2026-10-01": [old], "2026-11-02": [new]})), model) as index:
        first = search(index, query).hits[0]
        assert first.item.text == old and not first.replaces
        assert search(index, newer).hits[0].item.text == new


@pytest.mark.parametrize(
    ("old", "new", "query"),
    [
        ("The database is hosted at Hetzner.",
         "We dropped Hetzner and moved the database to Scaleway.", "Where is the database hosted?"),
        ("The launch is on 13 December.",
         "We are moving the launch from 13 December to 20 January.", "When is the launch?"),
        ("Our contact at Bergmann is Ms. Okafor.",
         "Ms. Okafor left Bergmann; it is Mr. Lindner now.", "Who is our contact at Bergmann?"),
        ("Der Stromanbieter ist Vattenfall.",
         "Wir haben Vattenfall gekündigt und sind jetzt bei Naturstrom.", "Wer ist unser Stromanbieter?"),
        ("We pay 29 euros a month for the gym membership.",
         "I cancelled the gym membership.", "How much is the gym membership?"),
        ("We pay 29 euros a month for the gym membership.",
         "I cancelled the gym membership.", "What does the gym cost?"),
        ("Das Fitnessstudio kostet 29 Euro im Monat bei FitX.",
         "Ich habe FitX gekündigt, das Fitnessstudio war zu voll.", "Was kostet das Fitnessstudio?"),
        ("Notre fournisseur d'électricité est EDF.",
         "Nous avons résilié EDF, maintenant c'est Enercoop.", "Qui est notre fournisseur d'électricité ?"),
        ("Nuestro proveedor de internet es Movistar.",
         "Cancelamos Movistar y ahora tenemos Digi.", "¿Quién es nuestro proveedor de internet?"),
        ("The newsletter goes out through Mailchimp.",
         "We cancelled Mailchimp, the newsletter goes out through Buttondown.",
         "What do we send the newsletter with?"),
        ("The backup tool is Duplicati.", "We stopped using Duplicati.", "What is the backup tool?"),
        ("Das Auto steht in der Garage in der Hauptstraße.",
         "Ich habe die Garage in der Hauptstraße gekündigt.", "Wo steht das Auto?"),
        ("L'abonnement de la salle de sport coûte 29 euros.",
         "J'ai résilié l'abonnement de la salle de sport.",
         "Combien coûte l'abonnement de la salle de sport ?"),
        ("El seguro del coche cuesta 400 euros al año.",
         "Cancelé el seguro del coche.", "¿Cuánto cuesta el seguro del coche?"),
        ("Der Start ist am 13. Dezember.",
         "Wir schieben den Start vom 13. Dezember auf den 20. Januar.", "Wann ist der Start?"),
        ("La réunion est à 14h.", "On avance la réunion de 14h à 13h.", "À quelle heure est la réunion ?"),
        ("The rent is 900 euros.",
         "They raise the rent from 900 to 950 euros in May.", "How much is the rent?"),
        ("coverage gate is 85% in ci, dont lower it ever",
         "and the coverage gate is gone, ci only reports it now", "coverage gate"),
        ("squash merging is the default", "squash merging is off since yesterday", "squash merging"),
        ("van from Hatton, they do it for 780 all in",
         "hatton mailed, because of the date and the third floor its 845 now",
         "how much is the van of hatton"),
    ],
)  # fmt: skip
def test_what_somebody_ended_left_or_moves_stands_before_what_was(
    tmp_path: Path, model: Embedder, old: str, new: str, query: str
) -> None:
    with an_index(a_bank(tmp_path, said_on({"2026-10-01": [old], "2026-11-02": [new]})), model) as index:
        hits = search(index, query).hits
    assert [hit.item.text for hit in hits] == [new, old] and hits[0].replaces == hits[1].item


@pytest.mark.parametrize(
    ("old", "new", "query"),
    [
        ("Our office is in Munich.", "We moved to Berlin.", "Where is our office?"),
        ("Our contact at Bergmann is Ms. Okafor.",
         "I left the keys at Bergmann.", "Who is our contact at Bergmann?"),
        ("Our contact at Bergmann is Ms. Okafor.",
         "Ms. Okafor left Bergmann for lunch.", "Who is our contact at Bergmann?"),
        ("Our contact at Bergmann is Ms. Okafor.",
         "We cancelled the meeting with Bergmann.", "Who is our contact at Bergmann?"),
        ("Our contact at Bergmann is Ms. Okafor.",
         "Mr. Lindner left Bergmann.", "Who is our contact at Bergmann?"),
        ("The database is hosted at Hetzner.",
         "We dropped the idea of leaving Hetzner.", "Where is the database hosted?"),
        ("The database is hosted at Hetzner.",
         "Tobias dropped Hetzner and moved the forum to Scaleway.", "Where is the database hosted?"),
        ("The October invoice came from Hetzner.",
         "We dropped Hetzner and moved the database to Scaleway.", "Who sent the October invoice?"),
        ("We pay 29 euros a month for the gym membership.",
         "Anna cancelled the gym membership.", "How much is our gym membership?"),
        ("We pay 29 euros a month for the gym membership.",
         "I cancelled the gym class on Friday.", "How much is the gym membership?"),
        ("The gym membership card is in the drawer.",
         "I cancelled the gym membership.", "Where is the gym membership card?"),
        ("Der Stromanbieter ist Vattenfall.",
         "Petra hat Vattenfall gekündigt.", "Wer ist unser Stromanbieter?"),
        ("Der Stromanbieter ist Vattenfall.",
         "Ich habe den Termin bei Vattenfall abgesagt.", "Wer ist unser Stromanbieter?"),
        ("Die Miete für das Büro in München beträgt 900 Euro.",
         "Wir haben München am Morgen verlassen.", "Wie hoch ist die Miete für das Büro?"),
        ("Unser Büro ist in München.",
         "Wir haben München verlassen, es ging nach Berlin in den Urlaub.", "Wo ist unser Büro?"),
        ("Die Datenbank liegt bei Hetzner.",
         "Ich habe das Angebot von Hetzner abgelehnt und beendet.", "Wo liegt die Datenbank?"),
        ("Notre fournisseur d'électricité est EDF.",
         "Nous avons annulé le rendez-vous avec EDF.", "Qui est notre fournisseur d'électricité ?"),
        ("Notre bureau est à Lyon.", "Nous avons quitté Lyon ce matin.", "Où est notre bureau ?"),
        ("Nuestro proveedor de internet es Movistar.",
         "Ana dejó el móvil en Movistar.", "¿Quién es nuestro proveedor de internet?"),
        ("Nuestra oficina está en Madrid.", "Dejamos Madrid por la mañana.", "¿Dónde está nuestra oficina?"),
        ("The dentist is Dr. Haas in Mill Lane.",
         "I cancelled the appointment with Dr. Haas.", "Who is the dentist?"),
        ("The tenancy of the flat runs until May.", "I quit smoking.", "Until when does the tenancy run?"),
        ("Tobias likes Hetzner.",
         "We dropped Hetzner and moved the database to Scaleway.", "What does Tobias like?"),
        ("Petra works at Vattenfall.", "Wir haben Vattenfall gekündigt.", "Where does Petra work?"),
        ("Petra trabaja en Movistar.", "Cancelamos Movistar y ahora tenemos Digi.", "¿Dónde trabaja Petra?"),
        ("We paid 29 euros a month for the gym membership in May.",
         "I cancelled the hotel in May.", "How much was the gym membership?"),
        ("The launch is on 13 December.",
         "Ann is on holiday from 13 December to 20 January.", "When is the launch?"),
        ("Ask Henrik Maier for the keys.", "Henrik Maier is off since Monday.", "Who has the keys?"),
        ("The login button is blue.", "The login form is gone now.", "What colour is the login button?"),
        ("The shop opens at 9:00.", "Ben works in the shop from 9:00 to 12:00.", "When does the shop open?"),
        ("Das Büro hat von 9 bis 17 Uhr auf.",
         "Petra ist von 9 bis 12 Uhr beim Arzt.", "Wann hat das Büro auf?"),
    ],
)  # fmt: skip
def test_what_ended_elsewhere_changes_nothing_here(
    tmp_path: Path, model: Embedder, old: str, new: str, query: str
) -> None:
    with an_index(a_bank(tmp_path, said_on({"2026-10-01": [old], "2026-11-02": [new]})), model) as index:
        hits = search(index, query).hits
    assert hits[0].item.text == old and not any(hit.replaces for hit in hits)


@pytest.mark.parametrize(
    ("old", "new", "query"),
    [
        ("Lena's teacher is Frau Krüger",
         "Frau Krüger is on leave, Herr Özdemir teaches Lena's class until summer", "who is Lena's teacher"),
        ("Our dentist is Dr Weber", "Dr Weber retired, we go to Dr Lang", "who is our dentist"),
        ("The spare key is with Mrs Novak",
         "got the spare key back from Mrs Novak, Timo has it", "who has the spare key"),
        ("The wifi at the office is called nest",
         "office wifi renamed to kestrel", "how is the office wifi called"),
        ("The default branch is master", "default branch is main since yesterday", "default branch"),
        ("Max batch size is 500", "batch size reduced to 200", "what is the max batch size"),
        ("Flights to Lisbon leave at 7:10", "airline rebooked us, Lisbon flight leaves 9:35",
         "when does the Lisbon flight leave"),
    ],
)  # fmt: skip
def test_what_is_replaced_in_other_words_is_named(
    tmp_path: Path, model: Embedder, old: str, new: str, query: str
) -> None:
    with an_index(a_bank(tmp_path, said_on({"2026-03-01": [old], "2026-09-02": [new]})), model) as index:
        hits = search(index, query).hits
    assert hits[0].item.text == new and hits[0].replaces and hits[0].replaces.text == old


def test_of_changes_in_everyday_words_most_stand_first(tmp_path: Path, model: Embedder) -> None:
    rows = [row.split("\t") for row in (DATA / "changes.tsv").read_text("utf-8").splitlines()]
    days: dict[str, list[str]] = {}
    for number, (old, new, *_) in enumerate(rows):
        days.setdefault(f"2026-03-{1 + number % 28:02}", []).append(old)
        days.setdefault(f"2026-09-{1 + number % 28:02}", []).append(new)
    with an_index(a_bank(tmp_path, said_on(days)), model) as index:
        first = [search(index, query).hits[0].item.text == new for _, new, query, _ in rows]
    assert len(rows) == 95 and sum(first) >= 62


def test_a_newer_value_that_stands_first_by_itself_names_the_older(tmp_path: Path) -> None:
    said = [f"The upload limit is {value} MB" for value in ("10", "now 20", "now 50")]
    found = asked(tmp_path, said_on({"2026-10-01": said}), "upload limit now").hits
    items = sorted((hit.item for hit in found), key=lambda item: item.line)
    ranked = [Ranked(item, score, {}) for item, score in zip(items[::-1], (0.9, 0.8, 0.7), strict=True)]
    placed, replaced = newer_first(ranked)
    assert [one.item for one in placed] == items[::-1]
    assert replaced == {items[2].key: items[1]}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("my hourly rate for clients is $65", "I have 3 forms for new clients"),
        ("the clients pay a deposit of $400", "clients get 10 percent off now"),
        ("Clients 4", "Clients 5"),
    ],
)
def test_a_value_of_another_thing_is_no_newer_one(tmp_path: Path, old: str, new: str) -> None:
    found = asked(tmp_path, said_on({"2026-10-01": [old], "2026-11-02": [new]}), "clients").hits
    items = sorted((hit.item for hit in found), key=lambda item: item.day or "")
    assert len(items) == 2 and not newer_first([Ranked(item, 0.7, {}) for item in items])[1]


@pytest.mark.parametrize(
    ("old", "new", "query"),
    [
        ("Production runs Postgres 16.", "Staging runs Postgres 17.", "postgres"),
        ("The Redis cache TTL is 45 minutes.", "The CDN cache TTL is 10 minutes.", "cache TTL"),
        ("The staging port of the shop is 7001.", "The staging port of ledger is 9002.", "shop staging port"),
        ("Der Mietpreis in Bonn ist 900 Euro.", "Der Mietpreis in Kiel ist 800 Euro.", "Mietpreis Bonn"),
        ("Mia's lesson is on 4 December.", "Leo's lesson moved to 11 December.", "when is mia's lesson?"),
        ("Our Kubernetes cluster has 3 nodes.", "The Nomad cluster has 5 nodes now.", "Kubernetes cluster"),
        ("Der Termin von Tom ist am 4. Mai.", "Der Termin von Lena ist jetzt am 11. Mai.", "Tom Termin"),
        ("El alquiler de Sevilla es 800 euros.", "El alquiler de Madrid ahora es 850.",
         "alquiler de Sevilla"),
        ("The deploy to Fly takes 4 minutes.", "The deploy to Koyeb takes 7 minutes.", "deploy to Fly"),
        ("Gym is open until 21:00.", "The pool is not open until 21:00 but 20:00.", "when is the gym open"),
        ("A batch of 50 takes 75 s when enrichment is slow, and is read again.",
         "The job is slow because migration 57 dropped the index: it reads 41 million rows.",
         "why is enrichment slow"),
        ("The analysis takes 3 hours.", "The analyst now takes 5 hours.", "how long does the analysis take"),
        ("The retry limit is 3.", "The login limit was raised. 5.", "what is the retry limit"),
        ("Timeout of staging is 10 s.", "We raised the timeout of production. 25 s.", "timeout of staging"),
        ("Oven at 180 degrees for bread.", "Oven at 220 degrees for pizza, it rises to the top.",
         "oven temperature for bread"),
        ("Tom's visit is on 4 May.\n  - entities: [[Tom]]",
         "The visit moved to 11 May.\n  - entities: [[Lena]]", "Tom's visit"),
        ("Paula's room is number 4.", "Paul's room is now number 7.", "Paula's room"),
        ("Le repas du club est le samedi 28.", "La réunion du club passe au samedi 5 décembre.",
         "quand a lieu le repas du club"),
        ("Ines is the secretary.", "Marta has taken over from Uta as secretary.", "who is the secretary"),
        ("Ines ist Trainerin.", "Das neue Auto von Ines steht bei der Trainerin.", "wer ist Trainerin"),
        ("Ines knows the secretary.", "Marta has taken over from Ines as secretary.",
         "who knows the secretary"),
        ("The code of the house is 4711.", "The code of the shed is 1234 instead of 4711.", "house code"),
        ("The code for the house is 4711.", "The code for the shed is now 1234.", "code for the house"),
        ("Guests get the house code 4711.", "The code of the shed is 1234 instead of 4711.",
         "what is the code of the house"),
        ("Der Code vom Haus ist 4711.", "Der Code vom Schuppen ist 1234 statt 4711.", "Code vom Haus"),
        ("Le code de la maison est 4711.", "Le code du garage est 1234 au lieu de 4711.",
         "code de la maison"),
        ("paula's room is number 4.", "Paul's room is now number 7.", "paula's room"),
        ("The rent in Paris is 900 euros.", "The rent of the parish is now 750 euros.", "rent in Paris"),
        ("The parish rent is 900 euros.", "The Paris rent is now 750 euros.", "parish rent"),
        ("Anna's visit is on 4 May.", "Annabel's visit moved to 11 May.", "when is Anna's visit"),
        ("Annabel's visit is on 4 May.", "Anna's visit moved to 11 May.", "when is Annabel's visit"),
        ("Mark opens at 9:00.", "The market opens at 10:00 now.", "when does Mark open"),
        ("The roses cost 12 euros.", "Rose's ticket costs 14 euros now.", "what do the roses cost"),
        ("The shop opens at 9:00.", "The garage opens from March to May, at 8:00.", "when is it open"),
        ("The reader shows 40 titles.", "In the end Max found the reader after 3 hours.", "the reader"),
        ("The Polish class is on 4 May.", "The polishing class moved to 11 May.", "Polish class"),
        ("Le loyer de Jean est de 800 euros.", "Le loyer de Jeanne est maintenant de 850.", "loyer de Jean"),
        ("El turno de Francisco es a las 9:00.", "El turno de Francisca ahora es a las 10:00.",
         "turno de Francisco"),
    ],
)  # fmt: skip
def test_a_value_of_another_subject_is_no_newer_one(tmp_path: Path, old: str, new: str, query: str) -> None:
    hits = asked(tmp_path, said_on({"2026-10-01": [old], "2026-11-02": [new]}), query).hits
    assert len(hits) == 2 and not any(hit.replaces for hit in hits)
    assert hits[0].item.text == old.split("\n")[0] or query in ("postgres", "cache TTL")


@pytest.mark.parametrize(
    ("old", "new", "query"),
    [
        ("The office wifi reaches the yard", "the office wifi password was changed to kestrel",
         "office wifi password"),
        ("The harbour office is in the yard", "the harbour office party was moved to 17 December",
         "harbour office"),
        ("No deploys to production from November 27 to 30.",
         "The batch size is 650 now because 800 gave spikes on production", "production"),
        ("Ada shows the results at the meeting in Malaga; the deadline is 2027-01-20.",
         "Ada shows them at the meeting in Malaga, the deadline is January 20, 2027", "deadline for Malaga"),
    ],
)  # fmt: skip
def test_the_same_day_and_a_part_of_the_thing_are_no_older_value(
    tmp_path: Path, old: str, new: str, query: str
) -> None:
    """Of both an agent read "before, …", as if that had held until then."""
    hits = asked(tmp_path, said_on({"2026-10-01": [old], "2026-11-02": [new]}), query).hits
    assert len(hits) == 2 and not any(hit.replaces for hit in hits)


def test_a_number_that_both_count_by_is_no_value(tmp_path: Path) -> None:
    old = "The job starts the backup on all six servers at the same time."
    new = "All six servers were updated to Debian 13 on 5 June."
    hits = asked(
        tmp_path, said_on({"2026-04-01": [old], "2026-06-05": [new]}), "which debian do our servers run"
    ).hits
    assert len(hits) == 2 and not any(hit.replaces for hit in hits)


@pytest.mark.parametrize(
    ("old", "new", "query"),
    [
        (
            "also watchdog resets on #7, 3 a day",
            "So #7's watchdog resets came from water in the connector: the ADC read 4095 and the loop hung",
            "why did #7 keep resetting?",
        ),
        (
            "l'heure c'est 48 euros, atelier ou pose pareil",
            "Combien d'heures comptez-vous ? 34 à l'atelier de Lyon, 8 de pose avec les marches et le limon",
            "quand est-ce qu'on pose l'escalier",
        ),
    ],
)
def test_an_explanation_with_the_same_words_is_no_newer_value(
    tmp_path: Path, old: str, new: str, query: str
) -> None:
    hits = asked(tmp_path, said_on({"2026-10-01": [old], "2026-11-02": [new]}), query).hits
    assert len(hits) == 2 and not any(hit.replaces for hit in hits)


@pytest.mark.parametrize(("kind", "lifted"), [(-1.0, False), (1.0, True)])
def test_only_what_has_the_kind_of_answer_asked_for_is_newer(
    tmp_path: Path, kind: float, lifted: bool
) -> None:
    old, new = "We pay Portwise 2,350 euros a month", "Portwise has room 4 in our office now"
    items = [
        hit.item for hit in asked(tmp_path, said_on({"2026-10-01": [old], "2026-11-02": [new]}), old).hits
    ]
    items.sort(key=lambda item: item.day or "")
    found = [Ranked(items[0], 0.6, {"kind": 1.0}), Ranked(items[1], 0.4, {"kind": kind})]
    placed, replaced = newer_first(found)
    assert [one.item for one in placed] == (items[::-1] if lifted else items) and bool(replaced) == lifted


def test_a_newer_value_with_fewer_of_the_words_is_as_likely_as_the_older_one(tmp_path: Path) -> None:
    said = {"2026-10-01": ["the toll for lorries is 40 francs"], "2026-11-02": ["the toll is 45 now"]}
    with an_index(a_bank(tmp_path, said_on(said)), Embedder()) as index:
        index.refresh()
        query = parse_query(index.words, "what do lorries pay")
        items = [hit.item for hit in search(index, "toll").hits]
    old, new = sorted(items, key=lambda item: item.day or "")
    weak = {"every": 0.28, "names": 1.0, "rest": 0.2, "newer": 0.25}
    hits = [Ranked(new, 0.9, weak), Ranked(old, 0.9, {"every": 0.7, "names": 1.0, "rest": 0.64})]
    (newer,), (older,) = calibrated_scores(query, hits[:1]), calibrated_scores(query, hits[1:])
    assert newer < older - 0.1 and calibrated_scores(query, hits)[0] == pytest.approx(older, abs=0.05)


@pytest.mark.parametrize(("record", "lifted"), [(SESSION, True), ("fact", False)])
def test_a_passage_that_has_the_old_value_among_others_does_not_hide_the_new_one(
    tmp_path: Path, record: str, lifted: bool
) -> None:
    """A passage of many turns matches by all of them: the new sentence has less than half of its score."""
    said = {"2026-10-01": ["the toll for lorries is 40 francs"], "2026-11-02": ["the toll is 45 now"]}
    items = [hit.item for hit in asked(tmp_path, said_on(said), "toll").hits]
    old, new = sorted(items, key=lambda item: item.day or "")
    passage = replace(old, record=record, text=f"Person: the rates are up\nPerson: {old.text}")
    placed, _ = newer_first([Ranked(passage, 0.9, {}), Ranked(new, 0.3, {})], "what do lorries pay")
    assert (placed[0].item == new) == lifted


def test_what_replaces_a_fact_replaces_the_passage_that_was_found_by_it(tmp_path: Path) -> None:
    said = {"2026-10-01": ["use 4,15 euros for oil in the cellar"], "2026-11-02": ["oil is 3,90 euros now"]}
    items = [hit.item for hit in asked(tmp_path, said_on(said), "oil").hits]
    old, new = sorted(items, key=lambda item: item.day or "")
    text = f"Person: how did it go\nAgent: well, cellars are dry\nPerson: {old.text}"
    passage = replace(old, key="p", record=SESSION, text=text)
    found = [Ranked(passage, 1.0, {}), Ranked(old, 0.5, {}), Ranked(new, 0.4, {})]
    assert [one.item.key for one in newer_first(found, "how is stock valued")[0]] == [
        new.key, passage.key, old.key
    ]  # fmt: skip
    assert newer_first([found[0], found[2]], "how is stock valued")[0][0].item == passage


@pytest.mark.parametrize(
    ("score", "gains"), [(0.3, True), (0.75, True), (0.85, False), (-0.1, False)]
)  # a good fact has the passage under it, a fact that does not match says nothing
def test_a_passage_gains_from_the_fact_that_quotes_it(tmp_path: Path, score: float, gains: bool) -> None:
    said = {"2026-10-01": ["the toll for lorries is 40 francs", "the lift takes 800 kilos"]}
    fact, other = (hit.item for hit in asked(tmp_path, said_on(said), "toll for lorries, lift").hits)
    passage = replace(other, key="p", record=SESSION, text=f"Person: well\nAgent: so **{fact.text}**, noted")
    longer = replace(other, key="l", record=SESSION, text="Person: lorries, tolls and lifts again")
    found = [
        Ranked(longer, 0.8, {"every": 1.0}),
        Ranked(passage, 0.7, {"every": 1.0}),
        Ranked(fact, score, {"every": 1.0}),
    ]
    placed = with_support(sorted(found, key=lambda one: -one.score))
    best = max((one for one in placed if one.item.record == SESSION), key=lambda one: one.score)
    assert (best.item.key == "p") == gains
    assert ("support" in next(one for one in placed if one.item.key == "p").parts) == gains


@pytest.mark.parametrize(
    ("weak", "day", "first"),
    [
        (0.4, None, "f"),
        (0.6, None, "p"),  # about as good: the passage has both the words and the fact
        (0.4, "2026-10-01", "p"),  # the session may say how it is now
    ],
)
def test_a_weak_fact_lifts_no_passage_above_a_much_better_note_without_a_day(
    tmp_path: Path, weak: float, day: str | None, first: str
) -> None:
    said = {"2026-10-01": ["the toll for lorries is 40 francs", "the lift takes 800 kilos"]}
    fact, other = (hit.item for hit in asked(tmp_path, said_on(said), "toll for lorries, lift").hits)
    passage = replace(other, key="p", record=SESSION, day="2026-11-01", text=f"Person: {other.text}")
    found = [
        Ranked(replace(fact, key="f", day=day), 0.7, {"every": 1.0}),
        Ranked(passage, 0.65, {"every": 1.0}),
        Ranked(other, weak, {"every": 1.0}),
    ]
    assert with_support(found)[0].item.key == first


def test_a_longer_number_is_not_the_number_that_a_fact_states(tmp_path: Path) -> None:
    (fact,) = (hit.item for hit in asked(tmp_path, {DAY: log("lorries pay a toll of 40")}, "toll").hits)
    for toll, gains in (("40", True), ("400", False)):
        passage = replace(fact, key="p", record=SESSION, text=f"Person: lorries pay a toll of {toll}")
        placed = with_support([Ranked(passage, 0.6, {"every": 1.0}), Ranked(fact, 0.5, {"every": 1.0})])
        assert ("support" in placed[0].parts) == gains


def test_no_passage_gains_so_much_that_it_ranks_before_a_certain_fact(tmp_path: Path) -> None:
    said = {"2026-10-01": ["the toll for lorries is 40 francs"], "2026-10-02": ["the lift takes 800 kilos"]}
    fact, other = (hit.item for hit in asked(tmp_path, said_on(said), "toll for lorries, lift").hits)
    passage = replace(other, key="p", record=SESSION, day="2026-11-01", text=f"Person: {other.text}")
    found = [
        Ranked(fact, 0.95, {"every": 1.0}),
        Ranked(passage, 0.85, {"every": 1.0}),
        Ranked(other, 0.7, {"every": 1.0}),
    ]
    placed = with_support(found)
    assert [one.item.key for one in placed] == [fact.key, "p", other.key]
    assert 0.85 < placed[1].score < 0.95


FLAT = "New flat: the keys on 15 January 2027"


@pytest.mark.parametrize(
    ("note", "said", "replaced"),
    [
        (FLAT, "we get the keys of the flat on 18 January and not on the 15th", True),
        ("Casa: le chiavi il 15 maggio", "le chiavi della casa ci sono il 18 maggio e non il 15", True),
        ("Huis: de sleutels 15 mei", "de sleutels van het huis komen op 18 mei, niet op de 15e", True),
        (FLAT, "the keys of the flat are moved to 18 January", False),
        (FLAT, "we get the keys of the flat on 18 January, not 15 of them", False),
    ],
)  # fmt: skip
def test_a_note_without_a_day_is_replaced_by_what_says_that_it_is_wrong(
    tmp_path: Path, note: str, said: str, replaced: bool
) -> None:
    files = said_on({"2026-11-27": [said]}) | {"memory/flat.md": f"- {note}\n"}
    hits = asked(tmp_path, files, note.partition(":")[0]).hits
    assert any(hit.replaces and hit.replaces.text == note for hit in hits) == replaced
    assert not replaced or hits[0].item.text == said


def test_what_has_no_day_is_shown_as_undated(tmp_path: Path) -> None:
    shell = new_shell(tmp_path)
    (shell.cwd / "memory" / "flat.md").write_text(f"- {FLAT}\n")
    shell.ok("insert", "we get the keys of the flat on 18 January and not on the 15th")
    assert f"before    undated: {FLAT}" in shell.ok("search", "keys of the new flat").out
    assert f"before, undated: {FLAT}" in shell.ok("recall", "keys of the new flat").out


@pytest.mark.parametrize("query", ["which port did redis have before?", "what port was redis on in october"])
def test_a_query_about_the_past_changes_no_order(tmp_path: Path, query: str) -> None:
    days = {"2026-10-01": ["redis listens on port 6379"], "2026-11-02": ["redis moved to port 6380"]}
    hits = asked(tmp_path, said_on(days), query).hits
    assert not any(hit.replaces for hit in hits)
    assert [hit.item.date for hit in hits] == ["2026-10-01", "2026-11-02"]


@pytest.mark.parametrize(
    "query",
    [
        "what was the rent before", "what was the old rent", "what did we pay for rent before the increase",
        "previous rent", "wie hoch war die rent vorher", "quanto pagavamo di rent prima?",
        "quanto si pagava di rent prima del trasloco",
    ],
)  # fmt: skip
def test_what_was_before_stands_first_and_the_last_of_it_before_others(tmp_path: Path, query: str) -> None:
    rent = {"2026-03-02": "The rent is 1480 euros", "2026-06-02": "The rent goes up to 1620 euros"}
    days = {day: [text] for day, text in {**rent, "2026-09-02": "The rent goes up to 1705 euros"}.items()}
    assert asked(tmp_path, said_on(days), query).hits[0].item.date == "2026-06-02"


def test_an_old_thing_is_not_what_was_before(tmp_path: Path) -> None:
    said = {"2026-10-01": ["the old server has 16 GB"], "2026-11-02": ["the old server now has 32 GB"]}
    hits = asked(tmp_path, said_on(said), "how much memory does the old server have").hits
    assert hits[0].item.date == "2026-11-02" and hits[0].replaces


@pytest.mark.parametrize(
    ("old", "new", "query"),
    [
        ("the rent is 890", "the rent goes up to 945 now", "what was the rent before?"),
        ("die Miete ist 890 €", "die Miete steigt auf 945 €", "wie hoch war die Miete vorher?"),
        ("le loyer est de 890 €", "le loyer passe à 945 €", "quel était le loyer précédent ?"),
        ("el alquiler es de 890 €", "el alquiler sube a 945 €", "¿cuánto era el alquiler antes?"),
        ("a renda é de 890 €", "a renda sobe para 945 €", "quanto era a renda antigamente?"),
        ("l'affitto è di 890 €", "l'affitto sale a 945 €", "quanto era l'affitto prima?"),
        ("de huur is 890 €", "de huur is verhoogd naar 945 €", "wat was de huur hiervoor?"),
        ("de huur is 890 €", "de huur gaat naar 945 €", "wat was de vorige huur?"),
    ],
)
def test_the_value_before_is_first_where_it_is_asked_for(
    tmp_path: Path, old: str, new: str, query: str
) -> None:
    days = said_on({"2026-10-01": [old], "2026-11-02": [new], "2026-11-03": ["Ana: Radio 12"]})
    assert [hit.item.text for hit in asked(tmp_path, days, query).hits[:2]] == [old, new]


# -- what no longer holds ------------------------------------------------------------------------------


def test_a_retired_fact_is_found_only_when_asked_for(tmp_path: Path) -> None:
    shell = new_shell(tmp_path)
    old, new = (
        shell.ok("insert", text, "--json").json["id"]
        for text in ("Redis runs on port 6379", "Valkey took over from Redis on port 6380")
    )
    assert shell("retire", f"^{old}", "--by", f"^{old}").code == 2
    done = shell.ok("retire", f"^{old}", "--by", f"^{new}", "--why", "redis is gone", "--json").json
    assert done["retired"] == f"2026-11-21, replaced by [[2026-11-21#^{new}]], redis is gone"
    assert f"- retired: {done['retired']}" in (shell.cwd / DAY).read_text()

    def found(*words: str) -> list[str]:
        return [hit["id"] for hit in shell.ok("search", *words, "--json").json["results"]]

    assert found("which port has redis") == [new]
    assert old in found("--retired", "which port has redis") and old in found(
        "which port did redis use before?"
    )
    assert "6379" not in shell.ok("recall", "which port has redis").out
    again = shell.ok("retire", f"^{old}").out
    assert again.startswith("Already retired: Redis") and again.endswith("(nothing was changed)\n")
    shell.ok("undo")
    assert old in found("which port has redis") and not shell("verify").code


def test_a_persons_line_keeps_its_words_when_it_is_retired(tmp_path: Path) -> None:
    shell = new_shell(tmp_path)
    shell.write(
        DAY, "# 2026-11-21\n\n## 10:00\n\n- P:  the *desk*   is in room 4 ^k7m2q9x4tb\n- and B in 5\n"
    )
    shell.ok("retire", "^k7m2q9x4tb")
    now = (shell.cwd / DAY).read_text()
    assert "- P:  the *desk*   is in room 4 ^k7m2q9x4tb\n  - retired: 2026-11-21\n- and B in 5" in now


def test_only_a_fact_can_be_retired(tmp_path: Path) -> None:
    shell = new_shell(tmp_path)
    shell.write(BELIEF, OBSERVED)
    shell.write(DAY, FACTS)
    assert (
        "not a fact" in shell("retire", "^p2w7c5n3rd").err
        and "no such id" in shell("retire", "^zzzzzzzzzz").err
    )
    assert shell("retire", "").code == 2
    rows = (("^p2w7c5n3rd", "not a fact"), (f"{DAY}:1", "not a fact"), ("^zzzzzzzzzz", "no such id"))
    assert all(why in shell("retire", target).err for target, why in rows)


def test_a_passage_stays_under_no_fact_that_was_lifted_over_it(tmp_path: Path) -> None:
    """The fact is as good an answer as the passage only by what it replaces: the passage says more."""
    said = {"2026-10-01": ["the macros hold dbt at 1.8"], "2026-11-02": ["the macros moved to dbt 1.10"]}
    items = [hit.item for hit in asked(tmp_path, said_on(said), "macros dbt").hits]
    old, new = sorted(items, key=lambda item: item.day or "")
    more = replace(new, key="more", record=SESSION, text="Person: the macros moved to dbt 1.10\nask Yusuf")
    placed, _ = newer_first([Ranked(old, 0.9, {}), Ranked(more, 0.7, {}), Ranked(new, 0.6, {})])
    assert placed[0].item == new and placed[0].score == 0.9
    with an_index(a_bank(tmp_path / "again", said_on(said))) as index:
        kept, _ = fold(index.words, placed, lambda item: item, 10, beliefs=False)
    assert more.key in {one.one.item.key for one in kept}
