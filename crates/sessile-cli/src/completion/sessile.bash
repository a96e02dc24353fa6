# Completes the command whose first word is word $1 of the line, at character $2.
_sessile_wrapped() {
    if declare -F _comp_command_offset > /dev/null; then
        _comp_command_offset "$1"
        return
    elif declare -F _command_offset > /dev/null; then
        _command_offset "$1"
        return
    fi
    COMP_LINE=${COMP_LINE:$2}
    COMP_POINT=$((COMP_POINT - $2))
    COMP_WORDS=("${COMP_WORDS[@]:$1}")
    COMP_CWORD=$((COMP_CWORD - $1))
    local program=${COMP_WORDS[0]} current=$3 spec reply
    if ((COMP_CWORD == 0)); then
        mapfile -t COMPREPLY < <(compgen -c -- "$current")
        return
    fi
    spec=$(complete -p "$program" 2> /dev/null || complete -p "${program##*/}" 2> /dev/null)
    if [[ $spec =~ ' -F '([^ ]+) ]]; then
        "${BASH_REMATCH[1]}" "$program" "$current" "${COMP_WORDS[COMP_CWORD - 1]}"
    elif [[ $spec =~ ' -C '([^ ]+) ]]; then
        reply=${BASH_REMATCH[1]//\'/}
        export COMP_LINE COMP_POINT COMP_TYPE COMP_KEY
        mapfile -t COMPREPLY < <("$reply" "$program" "$current" "${COMP_WORDS[COMP_CWORD - 1]}" 2> /dev/null)
    else
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
}

_sessile() {
    local line=${COMP_LINE:0:COMP_POINT} rest word i runs=
    local -a words=() at=() offset=()
    COMPREPLY=()
    # bash splits words at = and :, which are parts of values here. What no space separates is one word again.
    for ((i = 0; i <= COMP_CWORD; i++)); do
        rest=${line#"${line%%[![:space:]]*}"}
        word=${COMP_WORDS[i]}
        ((i < COMP_CWORD)) || word=$rest
        if ((i > 0 && ${#rest} == ${#line})); then
            words[${#words[@]} - 1]+=$word
        else
            words+=("$word")
            at+=("$i")
            offset+=("$((COMP_POINT - ${#rest}))")
        fi
        line=${rest:${#word}}
    done
    local cword=$((${#words[@]} - 1)) current=$2
    [[ $current != [=:] ]] || current=
    for ((i = 1; i < cword; i++)); do
        case ${words[i]} in
            run | exec) runs=yes ;;
            --)
                [[ -z $runs ]] || { _sessile_wrapped "${at[i + 1]}" "${offset[i + 1]}" "$current"; return; }
                break
                ;;
        esac
    done
    local prefix=${words[cword]%"$current"}
    IFS=$'\013' read -r -d '' -a COMPREPLY < <(
        _CLAP_IFS=$'\013' _CLAP_COMPLETE_INDEX=$cword _CLAP_COMPLETE_COMP_TYPE=$COMP_TYPE SESSILE_COMPLETE=bash \
            sessile -- "${words[@]}" 2> /dev/null
        printf '\0'
    )
    for i in "${!COMPREPLY[@]}"; do
        word=${COMPREPLY[i]#"$prefix"}
        case $word in
            *[[:space:]\$\`\"\'\\\&\;\|\<\>\(\)\*\?\!]*) printf -v word %q "$word" ;;
        esac
        COMPREPLY[i]=$word
    done
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace
    fi
}

if ((BASH_VERSINFO[0] > 4 || BASH_VERSINFO[0] == 4 && BASH_VERSINFO[1] >= 4)); then
    complete -o bashdefault -o nosort -F _sessile sessile
else
    complete -o bashdefault -F _sessile sessile
fi
