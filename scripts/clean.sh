#!/bin/sh
# Removes what a loop made in this repository: its state, its worktrees and its flockd/ branches.
set -eu
cd "$(dirname "$0")/.."

# A running loop still owns all of it: its lock file is held.
if [ -e state/lock ] && command -v flock >/dev/null && ! flock -n state/lock true; then
    echo "a loop is running: make stop first" >&2
    exit 4
fi
for tree in state/worktrees/*; do
    [ -d "$tree" ] || continue
    git worktree remove --force "$tree" 2>/dev/null || rm -rf "$tree"
done
git worktree prune
git for-each-ref --format='%(refname:short)' 'refs/heads/flockd/' | while read -r branch; do
    git branch -q -D "$branch"
done
if [ -d state ]; then
    find state -mindepth 1 -maxdepth 1 ! -name README.md -exec rm -rf {} +
fi
