# mem WORDS: search. memo WORDS: remember. Neither needs quotes around its words.
mem() { if [ $# -eq 0 ]; then ua-memory status; else ua-memory search -- "$*"; fi; }
memo() { ua-memory insert -- "$*"; }
