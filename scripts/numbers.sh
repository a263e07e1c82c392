#!/bin/sh
# Brings docs/behaviours.md and docs/faults.md up to the tests that exist: a behaviour that has a test
# loses its excuse, a fault's row names its tests. Reasons are written by people.
set -eu
cd "$(dirname "$0")/.."
names=$(mktemp)
trap 'rm -f "$names" "$names.new"' EXIT
# A test may carry several numbers. The checker's own examples are no tests of the product.
grep -rhoE 'fn [a-z0-9_]*(behaviour|fault)_[0-9]+_[a-z0-9_]+' src tests --include='*.rs' |
    sed 's/^fn //' | sort -u >"$names"

awk '
    FNR == NR {
        count = split($0, word, "_")
        for (i = 1; i + 2 <= count; i++) if (word[i] == "behaviour") tested[word[i + 1] + 0] = 1
        next
    }
    match($0, /^- [0-9]+: /) && tested[substr($0, 3) + 0] { next }
    { print }
' "$names" docs/behaviours.md >"$names.new"
cat "$names.new" >docs/behaviours.md

awk -F ' *[|] *' '
    FNR == NR {
        count = split($0, word, "_")
        for (i = 1; i + 2 <= count; i++) if (word[i] == "fault") {
            fault = word[i + 1] + 0
            tests[fault] = tests[fault] (tests[fault] == "" ? "" : ", ") "`" $0 "`"
        }
        next
    }
    $2 ~ /^[0-9]+$/ && tests[$2 + 0] != "" { printf "| %s | %s | %s |  |\n", $2, $3, tests[$2 + 0]; next }
    { print }
' "$names" docs/faults.md >"$names.new"
cat "$names.new" >docs/faults.md
