/**
 * The scripts that `savepoint completion` prints. They hold no knowledge of the verbs: each asks
 * `savepoint __complete -- WORDS…`, which answers a line per candidate ("value<TAB>description") and ":files", ":dirs"
 * or ":command" for what the shell completes by itself.
 */
export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]

const bash = String.raw`# bash completion for savepoint; to use it: source <(savepoint completion bash)
_savepoint() {
  local line shell=
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) shell=files ;;
      :dirs) shell=dirs ;;
      :command) shell=command ;;
      ?*) COMPREPLY+=("$(printf '%q' "${'${'}line%%$'\t'*}")") ;;
    esac
  done < <("${'${'}COMP_WORDS[0]/#\~/$HOME}" __complete -- "${'${'}COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  case $shell in
    files) ;;
    dirs) compopt -o dirnames +o default 2>/dev/null ;;
    command) mapfile -t COMPREPLY < <(compgen -c -- "${'${'}COMP_WORDS[COMP_CWORD]}") ;;
    *) compopt +o default 2>/dev/null ;;
  esac
  return 0
}
complete -o default -F _savepoint savepoint
`

const zsh = String.raw`#compdef savepoint
# zsh completion for savepoint; to use it: source <(savepoint completion zsh)
_savepoint() {
  local line value shell=
  local -a candidates
  while IFS= read -r line; do
    case $line in
      :files|:dirs|:command) shell=$line ;;
      ?*)
        value=${'${'}line%%$'\t'*}
        value=${'${'}value//:/\\:}
        [[ $line == *$'\t'* ]] && value+=":${'${'}line#*$'\t'}"
        candidates+=("$value")
        ;;
    esac
  done < <("${'${'}~words[1]}" __complete -- "${'${'}(@)words[2,CURRENT]}" 2>/dev/null)
  (( $#candidates )) && _describe -V 'savepoint' candidates
  case $shell in
    :files) _files ;;
    :dirs) _files -/ ;;
    :command) _command_names -e ;;
  esac
}
if [[ $funcstack[1] == _savepoint ]]; then
  _savepoint "$@"
else
  compdef _savepoint savepoint
fi
`

const fish = String.raw`# fish completion for savepoint; to use it: savepoint completion fish | source
function __savepoint_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l program $words[1]
  set -e words[1]
  for line in ($program __complete -- $words 2>/dev/null)
    switch $line
      case :files
        __fish_complete_path (commandline -ct)
      case :dirs
        __fish_complete_directories (commandline -ct)
      case :command
        __fish_complete_command
      case '*'
        printf '%s\n' $line
    end
  end
end
complete -c savepoint -e
complete -c savepoint -f -k -a '(__savepoint_complete)'
`

export const completionScripts: Record<Shell, string> = { bash, zsh, fish }
