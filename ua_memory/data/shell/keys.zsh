# Ctrl-X m: search memory for the words of the line, which stays as it is.
__ua_memory_line() { [[ -z $BUFFER ]] || { zle -I; ua-memory search -- "$BUFFER" </dev/null; } }
if [[ -o interactive ]]; then zle -N __ua_memory_line; bindkey '^Xm' __ua_memory_line; fi
