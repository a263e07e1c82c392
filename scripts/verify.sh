#!/bin/sh
# The check of a task's result, run in its worktree: something was made, and it is sound Markdown.
set -eu
export LC_ALL=C
. "$(dirname "$0")/agents/changed.sh"

fail() {
    echo "$1"
    echo "verdict: fail $1"
    exit 1
}

files=$(changed)
[ -n "$files" ] || fail "nothing was changed"

printf '%s\n' "$files" | while IFS= read -r path; do
    case "$path" in
        *.md) ;;
        *) continue ;;
    esac
    head -n 1 "$path" | grep -q '^# .' || fail "$path does not start with a title"
    awk -F '|' '
        /^\|/ { if (columns && NF != columns) { print FILENAME ":" FNR ": " NF - 2 " columns, expected " columns - 2; bad = 1 }
                columns = NF; rows += 1; next }
        { columns = 0 }
        END { if (!rows) { print FILENAME ": has no table"; bad = 1 } exit bad }
    ' "$path" || fail "$path has a broken table"
    echo "$path: $(grep -c '^|' "$path") table lines"
done
echo "verdict: pass"
