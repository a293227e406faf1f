#!/bin/sh
# Prints the section of one version of CHANGELOG.md, the notes of its release: notes.sh VERSION
set -eu
cd "$(dirname "$0")/.."
notes=$(awk -v version="$1" '
    /^## / { heading = $2; sub(/,$/, "", heading); found = heading == version; next }
    found' CHANGELOG.md)
[ -n "$notes" ] || { echo "CHANGELOG.md has no section for $1" >&2; exit 1; }
printf '%s\n' "$notes"
