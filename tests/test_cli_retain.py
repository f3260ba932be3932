"""`retain`, `ingest` and their queue as people and scripts meet them."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest
from fake_model import FakeModel
from terminal import Shell, new_shell
from test_cli_json import agrees
from test_extract_by_model import SAID, fact, keep

KEEPS = {"calls": [keep(fact("Alice moved the API to Fly.io.", SAID), fact("Alice moved it to AWS.", SAID))]}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return new_shell(tmp_path)


def test_without_a_model_the_sentences_are_kept_and_it_is_said(shell: Shell) -> None:
    done = shell.ok("retain", SAID, "Bob likes tea.")
    assert done.out.startswith("The text: saved 1 fact") and SAID in done.out
    assert "without a model" in done.err
    again = shell.ok("retain", SAID, "Bob likes tea.")
    assert again.out.startswith("The text was retained before; nothing changed")
    assert "--mode chunks" in shell.ok("retain", "x y z").err


def test_a_hit_in_a_document_has_its_name_and_headings(shell: Shell) -> None:
    shell.ok(
        "ingest",
        str(written(shell, "# Contract Rivet\n\nThe penalty is 300 euros a day.\n", name="rivet.md")),
    )
    assert " rivet.md > Contract Rivet The penalty" in " ".join(shell.ok("search", "penalty").out.split())
    hit = shell.ok("search", "penalty", "--json").json["results"][0]
    assert f", {shell.cwd.parent / 'rivet.md'}\n" in shell.ok("why", f"^{hit['id']}").out


def test_with_a_model_it_is_handed_over_or_waited_for(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def start(bank: object, env: object, *words: str) -> str:
        started.extend(words)
        return "/x/flush.log"

    monkeypatch.setattr("ua_memory.daemon.spawn.start_detached", start)
    with FakeModel(KEEPS) as fake:
        done = shell.ok("retain", "--wait", SAID, ANTHROPIC_BASE_URL=fake.url)
        assert "+ Alice moved the API to Fly.io.  (2026-11-" in done.out
        assert "but not saved" in done.out and not started
        told = shell.ok("ingest", "--json", str(written(shell)), ANTHROPIC_BASE_URL=fake.url).json
        agrees("retain offered", told)
        assert started == ["queue", "retry", told["offered"][0]["key"]] and len(fake.bodies) == 1
        done = shell.ok(*started, ANTHROPIC_BASE_URL=fake.url)
        assert "saved 2 facts" in done.out or "saved 1 fact" in done.out
    assert shell.ok("queue", "list").out == "The queue is empty.\n"
    assert "saved and waits for the model" in shell.ok("retain", "Bob.", ANTHROPIC_API_KEY="k").out


def written(shell: Shell, text: str = SAID, name: str = "outside.md") -> Path:
    path = shell.cwd.parent / name
    path.write_text(text, "utf-8")
    return path


def test_what_waits_is_listed_retried_and_dropped(shell: Shell) -> None:
    path = str(written(shell))
    failed = shell("ingest", "--wait", path, ANTHROPIC_BASE_URL="http://127.0.0.1:9")
    assert failed.code == 14 and "the text is queued" in failed.err and "ua-memory queue retry" in failed.err
    assert "outside.md (74 characters), queued" in shell.ok("queue", "list").out
    (waiting,) = shell.ok("queue", "list", "--json").json["waiting"]
    assert waiting["documentId"] == path and waiting["characters"] == 74
    with FakeModel(KEEPS) as fake:
        done = shell.ok("queue", "retry", "--json", ANTHROPIC_BASE_URL=fake.url).json
    assert done["retained"][0]["facts"] and done["flushed"] == []
    shell("retain", "--wait", "Bob likes tea.", ANTHROPIC_BASE_URL="http://127.0.0.1:9")
    (waiting,) = shell.ok("queue", "list", "--json").json["waiting"]
    assert shell.ok("queue", "drop", waiting["key"]).out.startswith("Discarded a text (14 characters)")


@pytest.mark.parametrize("none", [{}, {"UA_MEMORY_PROVIDER": "none", "ANTHROPIC_API_KEY": "x"}])
def test_what_waits_for_a_model_is_retried_without_one(shell: Shell, none: dict[str, str]) -> None:
    shell("retain", "--wait", SAID, ANTHROPIC_BASE_URL="http://127.0.0.1:9")
    assert f"a text ({len(SAID)} characters) of cli" in shell.ok("status").out
    assert "no conversation is queued" in shell.ok("flush").out
    assert SAID in shell.ok("queue", "retry", **none).out
    assert shell.ok("queue", "list").out == "The queue is empty.\n"


def test_an_interruption_says_what_waits(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ua_memory.retain.retain.Retainer._retain", interrupted)
    for words in (("retain", "--wait", SAID), ("queue", "retry")):
        done = shell(*words, ANTHROPIC_BASE_URL="http://127.0.0.1:9")
        assert done.code == 130 and "interrupted; 1 text in the queue (ua-memory queue list" in done.err


def test_its_json_is_as_documented(shell: Shell) -> None:
    path = str(written(shell, f"# Hosting\n\n{SAID}\n\nBob prefers tea over coffee.\n"))
    shell.ok("ingest", path)
    written(shell, f"# Hosting\n\n{SAID}\n\nBob prefers coffee over tea.\n")
    with FakeModel(KEEPS) as fake:
        agrees("retain", shell.ok("ingest", "--wait", "--json", path, ANTHROPIC_BASE_URL=fake.url).json)
    printed = shell.ok(
        "retain", "--dry-run", "--json", "--document-id", "a", SAID, ANTHROPIC_API_KEY="k"
    ).json
    assert printed["preview"][0]["facts"][0].pop("when")
    agrees("retain dry-run", printed)


def test_a_batch_is_one_object_a_line(shell: Shell) -> None:
    lines = f'{{"text": "{SAID}", "document_id": "a"}}\n\n{{"text": "Bob prefers tea.", "tags": ["x"]}}\n'
    done = shell.ok("retain", "--batch", "--json", stdin=lines).json["retained"]
    assert done[0]["path"].endswith("/a.md") and len(done) == 2
    bad = shell("retain", "--batch", stdin='{"text": "ok"}\n{"texts": 1}\n')
    assert bad.code == 2 and "line 2" in bad.err
    bad = shell("retain", "--batch", stdin='{"text": "ok"}\n{"text": "ok", "timestamp": "soon"}\n')
    assert bad.code == 2 and "line 2: 'soon' is not a valid time" in bad.err
    (shell.cwd.parent / "batch.jsonl").write_text(lines)
    again = shell.ok("retain", "--batch", "--json", str(shell.cwd.parent / "batch.jsonl")).json["retained"]
    assert [one["path"] for one in again] == [one["path"] for one in done]
    assert shell("retain", "--batch", "some", "words").code == shell("retain", "--batch").code == 2


def test_a_file_of_the_bank_is_refused_and_a_folder_is_none(shell: Shell) -> None:
    shell.ok("insert", "one")
    log = next((shell.cwd / "memory").glob("*.md"))
    done = shell("ingest", str(log))
    assert done.code == 2 and "already part of the memory bank" in done.err
    assert "a folder" in shell("ingest", str(shell.cwd.parent)).err
    assert shell("ingest", "nothing.md").code == 4
    assert "empty.md: the file is empty" in shell("ingest", str(written(shell, "", name="empty.md"))).err
    assert "no such file" in shell("retain", "nothing.md").err
    assert "several files" in shell("ingest", "--document-id", "a", "x.md", "y.md").err
    assert "not read" in shell("ingest", str(written(shell, name="x.xlsx"))).err
    binary = written(shell, "\0", name="binary.md")
    assert "nothing was ingested" in shell("ingest", str(written(shell)), str(binary)).err


def test_other_formats_need_the_extra(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    known = builtins.__import__

    def without(name: str, *args: Any, **more: Any) -> Any:
        if name.startswith("markitdown"):
            raise ImportError(name)
        return known(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    done = shell("ingest", str(written(shell, "<p>hi</p>", "page.html")))
    assert done.code == 2 and "pip install 'ua-memory[ingest]'" in done.err


def test_html_is_read_by_the_converter(shell: Shell) -> None:
    pytest.importorskip("markitdown")
    page = f"<html><script>steal()</script><h1>Hosting</h1><p>{SAID}</p><table><tr>"
    page += "<th>Name</th><th>Role</th></tr><tr><td>Alice</td><td>runs the platform</td></tr></table>"
    page += "<dl><dt>Deposit</dt><dd>200 euros by Friday, in cash</dd></dl></html>"
    done = shell.ok("ingest", str(written(shell, page, "page.html"))).out
    assert (
        SAID in done
        and "Name: Alice; Role: runs the platform" in done
        and "Deposit: 200" in done
        and "steal" not in done
    )


def test_a_mail_is_read_as_it_was_written(shell: Shell) -> None:
    mail = (
        "Received: from x by y\nFrom: =?utf-8?q?Zo=C3=A9_Lima?= <zoe@example.org>\nTo: noor@example.org\n"
        "Subject: proofs\nDate: Mon, 16 Nov 2026 11:42:07 +0100\nMIME-Version: 1.0\n"
        'Content-Type: multipart/alternative; boundary="b"\n\n--b\nContent-Type: text/html\n\n<p>no</p>\n'
        "--b\nContent-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n"
        "Le contrat co=FBte 900 euros jusqu=\n'en mai.\n--b--\n"
    )
    done = shell.ok("ingest", str(written(shell, mail, "proofs.eml"))).out
    assert "Zoé Lima: Le contrat coûte 900 euros jusqu'en mai.  (2026-11-16)" in done


def test_a_note_has_the_day_of_its_front_matter_and_a_diary_those_of_its_headings(shell: Shell) -> None:
    note = "---\ntitle: Board\ndate: 2026-10-14\n---\n\n- Tomorrow Alice signs the lease in Porto\n"
    shell.ok("ingest", str(written(shell, note, "board.md")))
    assert "2026-10-15" in shell.ok("list", "--json").out
    diary = "---\ntags: [diary]\n---\n## 2026-10-12\nBob paid the dentist 90 euros\n## 2026-10-21\n"
    diary += "Ida is paid 400 euros for it.\n"
    done = shell.ok("ingest", str(written(shell, diary, "diary.md"))).out
    assert "90 euros  (2026-10-12)" in done and "euros for it.  (2026-10-21)" in done


def test_a_windows_text_is_read_as_utf_16_or_as_cp1252_even_in_part(shell: Shell) -> None:
    said = "Le béton coûte {} € à Angers.\r\n"
    (shell.cwd / "wide.txt").write_bytes(said.format(800).encode("utf-16"))
    (shell.cwd / "old.txt").write_bytes(said.format(900).encode("cp1252"))
    mixed = said.format(700).encode() + said.format(600).encode("cp1252")
    (shell.cwd / "mixed.txt").write_bytes(mixed)
    told = shell.ok("ingest", "wide.txt", "old.txt", "mixed.txt").out
    assert all(f"Le béton coûte {price} € à Angers." in told for price in (600, 700, 800, 900))


def test_a_broken_file_is_named(shell: Shell) -> None:
    pytest.importorskip("markitdown")
    for name in ("broken.pdf", "broken.docx"):
        done = shell("ingest", str(written(shell, "no such thing", name)))
        assert done.code == 9 and name in done.err, done.err
