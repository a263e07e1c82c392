# Sourced by the reviewers: `changed` prints the paths that differ from the last commit, one a line.
# shellcheck shell=sh

changed() {
    {
        git --no-optional-locks -c core.quotePath=false diff --name-only HEAD
        git --no-optional-locks -c core.quotePath=false ls-files --others --exclude-standard
    } | sort -u
}
