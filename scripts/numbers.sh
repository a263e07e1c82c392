#!/bin/sh
# Brings docs/behaviours.md and docs/faults.md up to the tests that exist: a behaviour that has a test
# loses its excuse, a fault's row names its tests. Reasons are written by people.
set -eu
cd "$(dirname "$0")/.."
names=$(mktemp)
trap 'rm -f "$names" "$names.new"' EXIT
# The checker's own examples are no tests of the product.
grep -rhoE 'fn (behaviour|fault)_[0-9]+_[a-z0-9_]+' src tests --include='*.rs' | sed 's/^fn //' | sort -u >"$names"

awk '
    FNR == NR { split($0, part, "_"); if (part[1] == "behaviour") tested[part[2] + 0] = 1; next }
    match($0, /^- [0-9]+: /) && tested[substr($0, 3) + 0] { next }
    { print }
' "$names" docs/behaviours.md >"$names.new"
cat "$names.new" >docs/behaviours.md

awk -F ' *[|] *' '
    FNR == NR {
        split($0, part, "_")
        if (part[1] == "fault") tests[part[2] + 0] = tests[part[2] + 0] (tests[part[2] + 0] == "" ? "" : ", ") "`" $0 "`"
        next
    }
    $2 ~ /^[0-9]+$/ && tests[$2 + 0] != "" { printf "| %s | %s | %s |  |\n", $2, $3, tests[$2 + 0]; next }
    { print }
' "$names" docs/faults.md >"$names.new"
cat "$names.new" >docs/faults.md
