function __ua_memory
  set -l typed (commandline -opc) (commandline -ct)
  ua-memory completion fish -- $typed[2..] 2>/dev/null
end
complete -c ua-memory -a '(__ua_memory)'
