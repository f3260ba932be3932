#compdef ua-memory
_ua_memory() {
  local -a found
  found=("${(@f)$(ua-memory completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n $found ]]; then _describe ua-memory found; else _files; fi
}
if [[ $funcstack[1] == _ua-memory ]]; then _ua_memory "$@"; else compdef _ua_memory ua-memory; fi
