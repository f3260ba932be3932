# Ctrl-X m: search memory for the words of the line, which stays as it is.
__ua_memory_line() { [ -z "$READLINE_LINE" ] || ua-memory search -- "$READLINE_LINE"; }
case $- in *i*) bind -x '"\C-xm": __ua_memory_line' ;; esac
