//! Scripts of the shell hook: the one that a start-up file loads, and the one of each step.
//!
//! The loaded script sets right what start-up files exported, if the shell was started in a session. Before each prompt it
//! calls `_sessile_same`, a function of builtins alone, and only if that fails starts the program. The program's answer
//! changes the variables, the prompt's mark and `_sessile_same` itself. Standard input of the program is the terminal, also
//! where a loop redirects that of the shell.

use std::path::Path;

use sessile::context::is_variable_name;
use sessile::hook::{HookStep, Watch};
use sessile::run::shell::Shell;

use crate::cli::Cx;

/// Says that a selection does not reach commands typed in this shell, and how to change that.
pub(crate) fn note_unaffected(cx: &Cx) {
    cx.out.note(
        "commands typed in this shell are not affected: run them with `sessile run -- COMMAND`, or load the hook: \
         sessile hook install",
    );
}

/// The script for a shell's start-up file.
pub(crate) fn hook(shell: Shell) -> String {
    match shell {
        Shell::Bash => format!("{BASH_ZSH}{BASH}"),
        Shell::Zsh => format!("{}{ZSH}", BASH_ZSH.replace("--shell bash", "--shell zsh")),
        Shell::Fish => FISH.to_owned(),
    }
}

const BASH_ZSH: &str = r#"if [ -n "${SESSILE_SESSION:-}" ]; then
  eval "$(command sessile env --shell bash 2>/dev/null)"
fi
_sessile_same() { return 1; }
_sessile_keep() {
  local name
  for name in "$@"; do
    eval "[ -z \"\${_sessile_own_$name+x}\" ] && _sessile_own_$name=\$$name && _sessile_kept=\"\${_sessile_kept:-} \$name\""
  done
}
_sessile_restore() {
  local name
  eval "set -- ${_sessile_kept:-}"
  for name in "$@"; do
    eval "export $name=\"\$_sessile_own_$name\"; unset _sessile_own_$name"
  done
  _sessile_kept=
}
"#;

const BASH: &str = r#"_sessile_hook() {
  local status=$?
  # Without a terminal the redirection fails, and its message would stand before every prompt.
  _sessile_same ||
    eval "$({ command sessile hook bash --tick --shell-pid $$ </dev/tty 2>&3 3>&-; } 3>&2 2>/dev/null)"
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

const ZSH: &str = r#"_sessile_hook() {
  local subshell=
  (( ZSH_SUBSHELL )) && subshell=--subshell
  _sessile_same ||
    eval "$({ command sessile hook zsh --tick --shell-pid $$ $subshell </dev/tty 2>&3 3>&-; } 3>&2 2>/dev/null)"
}
if [[ -o interactive ]]; then
  typeset -ag precmd_functions chpwd_functions
  if (( ! ${precmd_functions[(I)_sessile_hook]} )); then
    precmd_functions=(_sessile_hook $precmd_functions)
  fi
  if (( ! ${chpwd_functions[(I)_sessile_hook]} )); then
    chpwd_functions=(_sessile_hook $chpwd_functions)
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
function __sessile_keep
    for name in $argv
        if not set -q _sessile_own_$name
            set -g _sessile_own_$name $$name
            set -ga _sessile_kept $name
        end
    end
end
function __sessile_restore
    for name in $_sessile_kept
        set -l own _sessile_own_$name
        set -gx $name $$own
        set -e $own
    end
    set -g _sessile_kept
end
if status is-interactive
    function __sessile_same
        return 1
    end
    function __sessile_hook --on-event fish_prompt --on-variable PWD
        set -l saved $status
        __sessile_same; or command sessile hook fish --tick --shell-pid $fish_pid </dev/tty | source
        return $saved
    end
    if not functions -q __sessile_own_prompt
        functions -c fish_prompt __sessile_own_prompt
        function fish_prompt
            printf '%s' "$_sessile_mark"
            __sessile_own_prompt
        end
    end
end
"#;

/// The script of a step, with the text that the prompt shows.
pub(crate) fn step_script(shell: Shell, step: &HookStep, mark: &str) -> String {
    script_with_clock(shell, step, mark, cfg!(target_os = "linux"))
}

/// The script of a step. `has_clock` is whether a shell can read the clock of a deadline from a file; without it each prompt starts
/// the program. Reading a missing file prints an error in zsh and fish, even with standard error redirected.
fn script_with_clock(shell: Shell, step: &HookStep, mark: &str, has_clock: bool) -> String {
    let prefix = if shell == Shell::Fish { "__sessile" } else { "_sessile" };
    let mut script = String::new();
    let names = step.keeps.iter().filter(|name| is_variable_name(name));
    let names: Vec<&str> = names.map(String::as_str).collect();
    if !names.is_empty() {
        script.push_str(&format!("{prefix}_keep {}\n", names.join(" ")));
    }
    script.push_str(&shell.script(&step.changes));
    if step.leaves {
        script.push_str(&format!("{prefix}_restore\n"));
    }
    let mark = shell.quoted(mark);
    match shell {
        Shell::Fish => script.push_str(&format!("set -g _sessile_mark {mark}\nset -g _sessile_pwd $PWD\n")),
        Shell::Bash | Shell::Zsh => {
            script.push_str(&format!("_sessile_mark={mark}\n_sessile_pwd=$PWD\n"));
        }
    }
    if let Some(watch) = step.watch.as_ref().filter(|_| has_clock) {
        script.push_str(&same_function(
            shell,
            watch,
            step.session.as_ref().map(|session| session.id.as_str()),
        ));
    }
    script
}

/// The function by which a shell finds, without another process, that nothing has changed.
fn same_function(shell: Shell, watch: &Watch, session: Option<&str>) -> String {
    let quoted = |path: &Path| shell.quoted(&path.to_string_lossy());
    let session = shell.quoted(session.unwrap_or_default());
    let context = shell.quoted(&watch.context);
    let stamp = quoted(&watch.stamp);
    let newer = watch.files.iter().map(|file| format!("! {} -nt {stamp}", quoted(file)));
    let present = watch.present.iter().map(|file| format!("-e {}", quoted(file)));
    let absent = watch.absent.iter().map(|file| format!("! -e {}", quoted(file)));
    let tests: Vec<String> = newer.chain(present).chain(absent).collect();
    let deadline = watch.deadline;
    match shell {
        Shell::Bash | Shell::Zsh => format!(
            "_sessile_same() {{\n  \
             [[ $PWD == \"$_sessile_pwd\" && ${{SESSILE_SESSION-}} == {session} && ${{SESSILE_CONTEXT-}} == {context} &&\n  {} ]] || return 1\n  \
             local up rest\n  \
             read -r up rest 2>/dev/null </proc/uptime && [ \"${{up%%.*}}\" -lt {deadline} ]\n}}\n",
            tests.join(" &&\n  ")
        ),
        Shell::Fish => {
            let tests: String = tests.iter().map(|test| format!("    and test {test}\n")).collect();
            format!(
                "function __sessile_same\n    \
                 test \"$PWD\" = \"$_sessile_pwd\" -a \"$SESSILE_SESSION\" = {session} -a \"$SESSILE_CONTEXT\" = {context}\n\
                 {tests}    and read -l up rest 2>/dev/null </proc/uptime\n    \
                 and test $up -lt {deadline}\nend\n"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_without_a_clock_file_asks_the_program_at_each_prompt() {
        let step = HookStep { watch: Some(Watch { deadline: 7, ..Watch::default() }), ..HookStep::default() };
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = |has_clock| script_with_clock(shell, &step, "", has_clock);
            assert!(
                script(true).contains("_sessile_same") && script(true).contains("/proc/uptime"),
                "{shell:?}"
            );
            assert!(
                !script(false).contains("_sessile_same") && !script(false).contains("/proc"),
                "{shell:?}"
            );
        }
    }
}
