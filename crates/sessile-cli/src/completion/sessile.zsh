#compdef sessile
function _sessile() {
    local dash=${words[(ie)--]}
    if (( dash < CURRENT )) && [[ " ${words[1,dash]} " == *' '(run|exec)' '* ]]; then
        # The wrapped command completes itself.
        words=("${(@)words[dash + 1, -1]}")
        (( CURRENT -= dash ))
        _normal
        return
    fi
    local -a completions=("${(@f)$(
        _CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=$(( CURRENT - 1 )) SESSILE_COMPLETE=zsh \
            sessile -- "${(@)words[1,CURRENT]}" 2> /dev/null
    )}")
    local -a open=() whole=()
    local completion
    for completion in $completions; do
        # A key waits for its value.
        if [[ "${completion%%:*}" == *= ]]; then
            open+=("$completion")
        else
            whole+=("$completion")
        fi
    done
    [[ -n $open ]] && _describe -V 'values' open -S ''
    [[ -n $whole ]] && _describe -V 'values' whole
}

if [[ $funcstack[1] == _sessile ]]; then
    _sessile "$@"
else
    compdef _sessile sessile
fi
