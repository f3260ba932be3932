"""Standing rules: what a person says always holds is a preference, in five languages, without a model."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ua_memory.clients.turns import Turn
from ua_memory.retain.extract import extract
from ua_memory.text.wording import RULE_LENGTH, standing_rule, stated_for_good

RULES = (
    "don't touch legacy/, it ships to a customer",
    "use UTC everywhere",
    "We do not use mocks.",
    "never deploy on fridays",
    "we use pnpm here",
    "and money is always integer cents",
    "pls no emojis in commit messages",
    "terraform is applied only from CI",
    "nobody is allowed to edit the archive",
    "Leave the old scheduler alone.",
    "my wife is allergic to nuts",
    "Bitte immer per du, nie sie.",
    "In mails aan patiënten altijd u zeggen, nooit je.",
    "Op vrijdag mag je niet deployen.",
    "Gebruik geen afkortingen in de tekst.",
    "Não uses abreviaturas nos títulos.",
    "Nos orçamentos sempre com IVA.",
    "Non usare abbreviazioni nei titoli.",
    "Le fatture si mandano sempre in PDF.",
    "Die Karten kommen nur von unserem Server.",
    "Freitags darf man nicht deployen.",
    "Il ne faut rien prévoir avant 9h.",
    "N'utilise jamais npm ici.",
    "On utilise toujours des virgules.",
    "No toques la carpeta legacy.",
    "Los nombres siempre en minúsculas.",
    "La base de datos no se toca.",
    "pls remember: the returns label must be A6 landscape",
    "please remember that the staging DB is wiped every Sunday",
    "Merk dir: die Etiketten sind A6 quer",
    "n'oublie pas que la base est vidée le dimanche",
    "take the bus, never the taxi",
    "価格は必ず税込で表示して。",
    "本番のサーバーには触らないで",
    "コメントは英語でお願い",
    "いつも敬語で答えてください。",
    "answer me in german, code comments in english",
    "Code comments in English.",
    "deutsch bitte, aber code und commits englisch",
    "antworte mir auf deutsch",
    "Please run ruff and mypy before every commit.",
    "ask marta before changing any invoice text",
    "frag mich bevor du pushst",
    "never deploy on friday, I'll be offline then anyway",
    "chat auf deutsch, code auf englisch",
    "From today on, never push to main.",
    "keine deploys am freitag",
    "N'invite pas la presse, Yann n'a pas digéré l'article.",
    "Ne planifie rien pour moi à ces dates.",
    "Surtout, n'envoie rien aux membres sans moi.",
    "Ne pas toucher au fichier de config.",
    "Je ne veux plus d'emails de rappel le dimanche.",
    "Je préfère que tu m'écrives en français.",
    "and answers in english pls even when i paste german logs",
    "and we squash merge, so dont bother with cleaning up the history",
    "all our migrations have to set a lock timeout",
    "we can deploy on fridays, but only before noon",
    "at most 2 min per test",
    "Il faut rendre les clés avant 1h du matin.",
    "Il faut que tu lances les tests avant chaque push.",
    "We store backups on S3.",
)
OTHERS = (
    "i always forget that",
    "the rounding test fails about one in five on ci, never here",
    "ppl say we run out in july",
    "works. 2 min 50",
    "fix it, but dont touch the fixture",
    "it never worked on my machine",
    "No way, never ever!",
    "Nein, auf keinen Fall.",
    "絶対にだめです。",
    "いつも雨が降っています。",
    "don't commit yet",
    "should we always use pnpm?",
    "why do you never ask",
    "I don't know what that means",
    "no worries, thanks",
    "the build always fails on mac",
    "this plan must be written for a new session",
    "you can look up the history only in that folder",
    "I want you to do a deep analysis",
    "Das hat nie funktioniert.",
    "C'est fait, merci.",
    "¿Usamos pnpm aquí?",
    "ログを確認してもらえますか",
    "ok take postgres queue, no celery",
    "let's go with Postgres for the queue, no Celery",
    "I remember that the staging DB was wiped in May.",
    "Remember, just do it!",
    "Remember, the wifi is slow today",
    "Don't forget, I can't hear you",
    "don't forget: call Anna at 5 today",
    "Remember that time in Paris",
    "彼のことが忘れないでいる",
    "Ik ben er nog nooit geweest.",
    "O João nunca foi a Paris.",
    "Non ho mai visto il mare.",
    "We sehen uns am 3. Mai wieder.",
    "Dat is niet altijd nodig.",
    "We don't use the same browser I guess",
    "remember to push before you leave",
    "403 Forbidden: csrf token mismatch",
    "ok",
    "write this comment in german",
    "the error messages are in german",
    "answer the german customer first",
    "the linter runs before every commit",
    "bei jedem commit schlägt der hook fehl",
    "add a comment for each parameter",
    "ask him before lunch",
    "On Sunday I'll run the migration by hand, don't touch the prod database until then.",
    "on sunday ill run the migration by hand, so dont deploy",
    "tomorrow we deploy manually, no pipeline",
    "heute bitte keine deploys",
    "we support english, german and french",
    "am sonntag mach ich die migration von hand, bitte nicht deployen",
    "Das Deployment mache ich diesmal selbst, sonst läuft das immer über die Pipeline.",
    "Yann asked whether we store payments on the site.",
    "Sie fragte, ob wir Redis verwenden.",
    "Je crois que le code a changé, il faut que je demande à Yann.",
    "Je pense qu'il faut relancer le serveur.",
    "Il faut encore que j'appelle la mairie.",
    "Ne t'inquiète pas, ça marche.",
    "N'hésite pas à demander.",
    "N'importe quoi, ça ne tient pas.",
    "Le moteur tousse et ne démarre pas.",
    "Ne peux pas venir demain.",
    "Ne pas oublier le pain.",
    "Je préfère attendre demain.",
    "Je ne veux pas y aller ce soir.",
    "no sé qué decidió",
    "no creo",
    "y no vino nadie",
    "no lo tengo claro",
    "no dia 3 de dezembro às 16h",
)


@pytest.mark.parametrize("text", RULES)
def test_what_always_holds_is_a_rule(text: str) -> None:
    assert standing_rule(text)


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_no_rule(text: str) -> None:
    assert not standing_rule(text) and not standing_rule(f"never do {'this ' * RULE_LENGTH}")


@pytest.mark.parametrize(
    "text", ["use UTC everywhere", "No toques la carpeta legacy.", "価格は必ず税込で表示して。"]
)
def test_a_persons_rule_is_a_preference(text: str) -> None:
    at = datetime(2026, 10, 5, 9, 12, tzinfo=UTC)
    (kept,) = extract([Turn("a", "person", text, at), Turn("b", "assistant", text, at)])
    assert (kept.text, kept.kind, kept.who) == (text, "preference", "person")


@pytest.mark.parametrize(
    "text",
    [
        "It's no longer true that we never deploy on fridays.",
        "You never mentioned that we use pnpm.",
        'He said "never touch prod" and I disagreed.',
        "If we always used tabs it would be nicer.",
        "Wir verwenden nicht immer Tabs.",
        "No es cierto que siempre usamos yarn.",
        "必ず英語で書く必要はありません。",
        "You don't have to always ask first.",
        "We never said that the API is always public.",
        "On n'utilise pas toujours yarn.",
        "It's not true that only Marta may deploy.",
        "I wish we always had tests.",
        "Il n'est pas obligatoire de toujours signer.",
        "Das stimmt nicht, wir deployen immer freitags.",
    ],
)
def test_what_denies_a_rule_or_quotes_or_wishes_for_one_is_none(text: str) -> None:
    assert not standing_rule(text) and not stated_for_good(text)


@pytest.mark.parametrize(
    "text",
    [
        "no le digas nada a Rosa",
        "no me pongas tablas",
        "no servers in the US",
        "we no longer use yarn, only pnpm",
        "Marta said we must never touch the ledger",
        "no need to ask, always format",
    ],
)
def test_a_rule_that_follows_a_denial_is_one(text: str) -> None:
    assert standing_rule(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'd never want emojis in commit messages.", "I would always like short answers.",
        "I'd always rather have short answers.", "I would never want you to push to main.",
        "Always use black; ruff could never replace it.",
        "Never store tokens in the repo; anyone could always read them.",
        "Always answer in English, I could never read long German texts.",
        "Immer Deutsch antworten, ich würde Englisch nie verstehen.",
        "Je voudrais toujours des réponses courtes.", "Ich würde immer kurze Antworten bevorzugen.",
        "Responde siempre en español, nunca podría leer inglés.", "Ich möchte nie Emojis in Commits.",
        "Réponds toujours en français, je ne pourrais jamais lire l'anglais.",
        "Siempre preferiría respuestas cortas.",
    ],
)  # fmt: skip
def test_a_wish_and_a_rule_beside_its_reason_are_rules(text: str) -> None:
    assert standing_rule(text) and stated_for_good(text)
    assert [found.text for found in extract([Turn("a", "person", text)])] == [text]
