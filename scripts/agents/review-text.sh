#!/bin/sh
# The reviewer of text: no conflict markers, no trailing blanks, no carriage returns, a final newline.
set -eu
export LC_ALL=C
. "$(dirname "$0")/changed.sh"

findings=$(changed | while IFS= read -r path; do
    [ -f "$path" ] && [ ! -L "$path" ] || continue
    # Binary files are not text: grep -I takes them as if they matched nothing.
    grep -Iq '' "$path" || continue
    awk '
        /^(<<<<<<<|>>>>>>>)( |$)/ { print FILENAME ":" FNR ": conflict marker" }
        /[ \t]$/ { print FILENAME ":" FNR ": trailing blanks" }
        /\r/ { print FILENAME ":" FNR ": carriage return" }
    ' "./$path"
    if [ -s "$path" ] && [ -n "$(tail -c 1 "$path")" ]; then
        echo "$path: no newline at the end"
    fi
done)
if [ -n "$findings" ]; then
    printf '%s\n' "$findings"
    echo "verdict: fail $(printf '%s\n' "$findings" | wc -l | tr -d ' ') finding(s)"
else
    echo "verdict: pass"
fi
