/// The scripts by which shells complete the commands. Layer: cli.
#include "client/help/shell_script.hpp"

namespace lightq::cli {
namespace {

// Each line of `lightq completion words` is a word, a tab and its meaning. The line `:files` stands for the
// shell's own completion of file names.

constexpr std::string_view bash_script = R"(# Completion of lightq for bash:  source <(lightq completion bash)
_lightq() {
  local line words=() files=
  while IFS= read -r line; do
    if [ "$line" = ":files" ]; then files=yes; else words+=("${line%%$'\t'*}"); fi
  done < <("${COMP_WORDS[0]}" completion words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null </dev/null)
  local current="${COMP_WORDS[COMP_CWORD]}"
  # The shell regards what stands before = as a word of its own.
  if [ "$current" = "=" ]; then current=; fi
  if [ "${COMP_WORDS[COMP_CWORD]}" = "=" ] || [ "${COMP_WORDS[COMP_CWORD-1]}" = "=" ]; then words=("${words[@]#*=}"); fi
  COMPREPLY=("${words[@]}")
  if [ -n "$files" ]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
  fi
}
complete -F _lightq lightq
)";

constexpr std::string_view zsh_script = R"(#compdef lightq
# Completion of lightq for zsh:  source <(lightq completion zsh)
_lightq() {
  local line files= tab=$'\t'
  local -a found shown
  for line in "${(@f)$("${words[1]}" completion words "${(@)words[2,CURRENT]}" 2>/dev/null </dev/null)}"; do
    [[ -z "$line" ]] && continue
    if [[ "$line" == ":files" ]]; then files=yes; continue; fi
    found+=("${line%%$tab*}")
    shown+=("${line/$tab/  }")
  done
  (( $#found )) && compadd -l -d shown -a found
  [[ -n "$files" ]] && _files
  return 0
}
if [[ "$funcstack[1]" == "_lightq" ]]; then _lightq "$@"; else compdef _lightq lightq; fi
)";

constexpr std::string_view fish_script = R"(# Completion of lightq for fish:  lightq completion fish | source
function __lightq_words
    set -l typed (commandline -opc)
    set -l current (commandline -ct)
    set -l command $typed[1]
    set -e typed[1]
    for line in ($command completion words $typed $current 2>/dev/null </dev/null)
        if test "$line" = ":files"
            __fish_complete_path $current
        else
            echo $line
        end
    end
end
complete -c lightq -f -a '(__lightq_words)'
)";

}  // namespace

std::string shell_script(std::string_view shell) {
  return std::string(shell == "bash" ? bash_script : shell == "zsh" ? zsh_script : fish_script);
}

}  // namespace lightq::cli
