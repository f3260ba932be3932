#!/usr/bin/env bash
# A bank from its first minute to its first flush and page, in a temporary folder that is removed at the end.
# `make demo` runs it; by hand: PATH="$PWD/.venv/bin:$PATH" bash examples/demo.sh
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d "${TMPDIR:-/tmp}/ua-memory-demo.XXXXXX")
trap 'ua-memory daemon stop >/dev/null 2>&1 || true; cd / && rm -rf "$place"' EXIT
# Nothing of the machine takes part: no bank, no settings and no git identity from outside.
export HOME="$place" XDG_RUNTIME_DIR="$place/run" GIT_CONFIG_GLOBAL="$place/.gitconfig" GIT_CONFIG_NOSYSTEM=1
mkdir -m 700 "$place/run"
unset UA_MEMORY_DAEMON UA_MEMORY_BANK UA_MEMORY_ENABLED UA_TRUNCATION_THRESHOLD UA_CONTEXT_WINDOW ANTHROPIC_API_KEY ANTHROPIC_BASE_URL
git config --global user.name "Noor Lindqvist"
git config --global user.email noor@example.org

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' faint=$'\e[2m' off=$'\e[0m'; else bold='' faint='' off=''; fi

tell() { printf '\n%s# %s%s\n' "$faint" "$*" "$off"; }
show() { printf '%s$ %s%s\n' "$bold" "$*" "$off"; }
run() { # print a command as one would type it, then do it
	local word line=''
	for word in "$@"; do
		case $word in *[\ \'\"\>]*) line+=" \"$word\"" ;; *) line+=" $word" ;; esac
	done
	show "${line# }"
	"$@"
}
# A demo that finds nothing is a demo that fails: ask again, silently, and look for the text.
check() { # check TEXT COMMAND…
	local text=$1
	shift
	"$@" 2>&1 | grep -F -- "$text" >/dev/null || { printf '\nThe demo failed: no “%s” in: %s\n' "$text" "$*" >&2; exit 1; }
}

tell "Noor keeps notes in markdown. They become a bank; not a byte of them changes."
cp -r "$here/day" "$place/notes" && rm "$place/notes/README.md"
cd "$place/notes"
run ua-memory init
ua-memory daemon start >/dev/null & # which any search would do; the first does not wait for the model then
run ua-memory log
check "Noor Lindqvist" ua-memory log

tell "A day as she wrote it. List items are facts; prose is found as well."
run ua-memory get memory/2026-10-14.md:12-22
run ua-memory core list

tell "Facts come in by the tool …"
run ua-memory insert "Map tiles take 1.4 GB with all nautical labels" --tag infra
run ua-memory insert "Tariq sent the test key" --origin agent --client codex

today=$(ls memory | tail -n 1)
tell "… and by hand, in any editor. This one is echo."
show "echo '- The tile server survives a restart. #infra' >> memory/$today"
echo '- The tile server survives a restart. #infra' >> "memory/$today"
run ua-memory diff
check "+- The tile server" ua-memory diff

tell "A search finds both, by words and by meaning."
run ua-memory search "how big are the map tiles" --limit 2
check "1.4 GB" ua-memory search "how big are the map tiles" --limit 2
run ua-memory search "is the tile server stable" --limit 2
check "survives a restart" ua-memory search "is the tile server stable" --limit 2
run ua-memory search "what did the old map tiles cost" --limit 2
check "310 euros" ua-memory search "what did the old map tiles cost" --limit 2

tell "The next write commits the line she typed first, under her own name."
run ua-memory insert "Lotte starts on the harbour signs" --origin agent --client codex
run ua-memory log

tell "That was too early. Take it back; everything else stays."
run ua-memory undo
run ua-memory log -n 2
if grep -q Lotte "memory/$today"; then echo "The demo failed: the undo did nothing." >&2; exit 1; fi

tell "Who wrote which line of today?"
run ua-memory blame "memory/$today"
check "Noor Lindqvist" ua-memory blame "memory/$today"

tell "Her agent's context window is full. What was said in it goes into memory, without a key: the speakers' own sentences."
run ua-memory flush "$here/session.jsonl"
run ua-memory flush "$here/session.jsonl"
run ua-memory search "why do we leave Mapbox, and when" --limit 1
check "310 to 780 euros" ua-memory search "why do we leave Mapbox, and when" --limit 1
check "Henrik will send the certificate" cat memory/2026-10-14.md

tell "Ask what all of it says. Without a key: the evidence, in order."
run ua-memory reflect "why do we leave Mapbox" --budget low
check "310 to 780 euros" ua-memory reflect "why do we leave Mapbox"

tell "A page that keeps an answer up to date, each sentence with its source. consolidate, say every night, writes it."
run ua-memory pages create tiles --name "Map tiles" --query "what do our map tiles cost, and what did we decide"
run ua-memory consolidate
run ua-memory pages get tiles
check "[[2026-10-14#^" ua-memory pages get tiles

tell "Where does that come from?"
run ua-memory why "$(grep -n -m 1 -F '[[2026-10-14#^' memory/pages/tiles.md | sed 's/:.*//; s/^/tiles:/')"

tell "Does everything hold?"
ua-memory daemon stop >/dev/null # so that its Chroma is compared, too
run ua-memory verify

tell "It was a folder of markdown under git all along."
run ls MEMORY.md memory ua-memory.toml
run git --no-pager log --oneline -n 3
