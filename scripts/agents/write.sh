#!/bin/sh
# The writing agent of this repository: does what the task's body asks for by running its ```sh block.
# Reads the prompt on standard input, works in the current folder (a worktree), ends with a verdict.
set -u
export LC_ALL=C

prompt=$(cat)
block=$(printf '%s\n' "$prompt" | awk '
    /^```sh$/ && !seen { inside = 1; seen = 1; next }
    /^```$/ { inside = 0 }
    inside { print }
')
if [ -z "$block" ]; then
    echo "verdict: blocked the task has no sh block; this agent can do nothing else"
    exit 0
fi
echo "task ${FLOCKD_TASK_ID:-?}: running $(printf '%s\n' "$block" | wc -l) lines"
if ! printf '%s\n' "$block" | sh -eu; then
    echo "verdict: fail the sh block of the task failed"
    exit 0
fi
git --no-optional-locks status --short
echo "verdict: pass"
