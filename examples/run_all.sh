#!/usr/bin/env bash
# Models on settings, then a table, a ranking and the web page:
#   examples/run_all.sh 'digits-mlp digits-cnn' 'digits digits-c.contrast.*' out/
# Give the same command again to resume it or to add models and settings; nothing is computed twice.
set -euo pipefail
read -ra models <<<"$1"
read -ra settings <<<"$2"
out=$3

mkdir -p "$out"
export TESTBED_DB=$out/testbed.db
testbed run "${models[@]}" --on "${settings[@]}"
testbed grid "${settings[@]}" --format markdown >"$out/table.md"
testbed rank "${settings[@]}" >"$out/ranking.txt" || echo 'no ranking'
testbed site --out "$out/site"
echo "table.md, ranking.txt and site/index.html are in $out"
