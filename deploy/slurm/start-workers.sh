#!/bin/sh
# Submits workers for a pool while jobs wait for slots that no worker has: start-workers.sh POOL MOST [LABEL…]
#
# MOST is the largest number of workers that wait in Slurm or run. Each LABEL, such as gpu=h200, is a label of the
# submitted workers; only jobs that ask for no other label count.
set -eu

pool=$1 most=$2
shift 2
name=trainyard-$pool
cd "${WORKER_FOLDER:-$HOME/trainyard}"
set -a
. "${WORKER_SETTINGS:-$HOME/trainyard-worker.env}"
set +a

labels=
for label; do labels="$labels --label $label"; done

# Slots that are wanted and neither free nor on their way: each worker below has one.
wanted=$(.venv/bin/python manage.py queue --pool "$pool" --json | .venv/bin/python -c '
import json, sys

(queue,) = json.load(sys.stdin)["items"]
offered = set(sys.argv[1:])
groups = (group for group in queue["labels"] if {"=".join(pair) for pair in group["labels"].items()} <= offered)
print(max(0, sum(group["slots_wanted"] for group in groups) - queue["free"]))
' "$@")
present=$(squeue --noheader --me --name "$name" --format %i | wc -l)
pending=$(squeue --noheader --me --name "$name" --states PENDING --format %i | wc -l)

missing=$((wanted - pending))
room=$((most - present))
[ "$missing" -le "$room" ] || missing=$room
while [ "$missing" -gt 0 ]; do
    WORKER_POOL=$pool WORKER_LABELS=$labels sbatch --job-name "$name" --export ALL deploy/slurm/worker.sbatch
    missing=$((missing - 1))
done
