_ua_memory() {
  local IFS=$'\n'
  COMPREPLY=($(ua-memory completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _ua_memory ua-memory
