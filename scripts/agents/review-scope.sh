#!/bin/sh
# The reviewer of scope: every changed path lies inside what the task claims ($FLOCKD_CLAIMS, one a line).
set -eu
export LC_ALL=C
. "$(dirname "$0")/changed.sh"

# Whether one claim (a file, a folder or a glob) covers a path.
covers() {
    claim=${1%/}
    case "$claim" in
        '' | . | '**') return 0 ;;
    esac
    case "$2" in
        "$claim" | "$claim"/*) return 0 ;;
    esac
    # Unquoted on purpose: the claim is a pattern. `*` of the shell crosses `/`, so it is never too strict.
    # shellcheck disable=SC2254
    case "$2" in
        $claim) return 0 ;;
    esac
    return 1
}

claimed() {
    printf '%s\n' "${FLOCKD_CLAIMS:-}" | {
        while IFS= read -r claim; do
            if covers "$claim" "$1"; then exit 0; fi
        done
        exit 1
    }
}

outside=$(changed | while IFS= read -r path; do
    if claimed "$path"; then
        echo "inside: $path" >&2
    else
        echo "$path"
    fi
done)
if [ -n "$outside" ]; then
    echo "outside the claim:"
    echo "$outside"
    echo "verdict: fail $(printf '%s\n' "$outside" | wc -l | tr -d ' ') path(s) outside the claim"
else
    echo "verdict: pass"
fi
