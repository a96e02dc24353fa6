function __sessile_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l token (commandline --current-token --cut-at-cursor)
    set -l dash (contains --index -- -- $words)
    if test -n "$dash"; and string match --quiet --regex '^(run|exec)$' -- $words[1..$dash]
        # The wrapped command completes itself.
        set -l rest
        if test $dash -lt (count $words)
            set rest (string escape -- $words[(math $dash + 1)..-1])
        end
        complete --do-complete (string join ' ' -- $rest $token)
        return
    end
    SESSILE_COMPLETE=fish sessile -- $words $token 2>/dev/null
end

complete --keep-order --exclusive --command sessile --arguments '(__sessile_complete)'
