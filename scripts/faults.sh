#!/bin/sh
# Runs every test called fault_* and prints the table of docs/faults.md with what each of them said.
set -eu
cd "$(dirname "$0")/.."
results=$(mktemp)
trap 'rm -f "$results"' EXIT

# A failing trial is shown in the table too; the exit code comes at the end.
code=0
"${CARGO:-cargo}" test --locked --no-fail-fast -- fault_ >"$results" 2>&1 || code=$?
grep -q '^test result:' "$results" || { cat "$results"; exit 1; }

awk -F '|' '
    FNR == NR {
        # A test line: "test path::to::fault_01_name ... ok".
        if ($0 ~ /^test .* \.\.\. /) {
            split($0, word, " ")
            count = split(word[2], part, "::")
            said[part[count]] = word[4]
        }
        next
    }
    $2 ~ /^ *[0-9]+ *$/ {
        number = $2; report = $3; names = $4; why = $5
        gsub(/[` ]/, "", names); gsub(/^ +| +$/, "", report); gsub(/^ +| +$/, "", why)
        result = why
        if (names != "") {
            result = "ok"
            count = split(names, name, ",")
            for (i = 1; i <= count; i++)
                if (said[name[i]] != "ok") result = name[i] ": " (said[name[i]] == "" ? "not run" : said[name[i]])
            applied += 1
            if (result != "ok") failed += 1
        } else open += 1
        printf "%3d  %-58s  %s%s\n", number, report, (names == "" ? "-- " : names "  "), result
    }
    END { printf "\n%d of %d reports have a trial, %d of them failed\n", applied, applied + open, failed }
' "$results" docs/faults.md
[ "$code" -eq 0 ] || { echo; sed -n '/^failures:/,$p' "$results"; }
exit "$code"
