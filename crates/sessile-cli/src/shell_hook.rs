//! The script that a shell loads once, and that then follows sessions and directories.

use sessile::run::shell::Shell;

/// The script for a shell's start-up file.
pub(crate) fn hook(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
    }
}

// In all three: first, what start-up files exported is set right again if the shell was started in a session. Then,
// before each prompt, one call tells the mark, and the variables of this terminal's session if that has changed.

const BASH: &str = r#"if [ -n "${SESSILE_SESSION:-}" ]; then
  eval "$(command sessile env --shell bash 2>/dev/null)"
fi
_sessile_hook() {
  local status=$?
  eval "$(SESSILE_HOOKED="${_sessile_hooked:-}" command sessile hook bash --tick)"
  return $status
}
case $- in
  *i*)
    case ";${PROMPT_COMMAND[*]:-};" in
      *_sessile_hook*) ;;
      *) PROMPT_COMMAND="_sessile_hook${PROMPT_COMMAND:+;$PROMPT_COMMAND}" ;;
    esac
    case ${PS1:-} in
      *_sessile_mark*) ;;
      *) PS1='${_sessile_mark:-}'"${PS1:-}" ;;
    esac
    ;;
esac
"#;

const ZSH: &str = r#"if [[ -n ${SESSILE_SESSION:-} ]]; then
  eval "$(command sessile env --shell zsh 2>/dev/null)"
fi
_sessile_hook() {
  eval "$(SESSILE_HOOKED="${_sessile_hooked:-}" command sessile hook zsh --tick)"
}
if [[ -o interactive ]]; then
  typeset -ag precmd_functions
  if (( ! ${precmd_functions[(I)_sessile_hook]} )); then
    precmd_functions=(_sessile_hook $precmd_functions)
  fi
  setopt prompt_subst
  case ${PROMPT:-} in
    *_sessile_mark*) ;;
    *) PROMPT='${_sessile_mark:-}'"${PROMPT:-}" ;;
  esac
fi
"#;

const FISH: &str = r#"if set -q SESSILE_SESSION
    command sessile env --shell fish 2>/dev/null | source
end
function __sessile_hook --on-event fish_prompt
    set -l saved $status
    env SESSILE_HOOKED="$_sessile_hooked" sessile hook fish --tick | source
    return $saved
end
if status is-interactive
    if not functions -q __sessile_own_prompt
        functions -c fish_prompt __sessile_own_prompt
        function fish_prompt
            printf '%s' "$_sessile_mark"
            __sessile_own_prompt
        end
    end
end
"#;
