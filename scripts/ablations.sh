#!/usr/bin/env bash
# The tables of docs/ablations.md: trains a network for each setting, then measures all of them on the same questions.
#
#   scripts/ablations.sh TRAIN DEV   TRAIN and DEV hold the sets 2wiki, hotpotqa and musique; hours on two cores
#   scripts/ablations.sh demo        a few steps on the demo data, to see that everything runs; its figures mean nothing
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ "${1:-}" = demo ]; then
    train=(data=demo "data.sets=[{name:demo,limit:16}]" index.encoder=hashing:64 index.extractor=none
        trainer.max_steps=2 trainer.val_every=2)
    sets=(demo --encoder hashing:64 --extractor none --limit 8 --one-process)
elif [ $# -eq 2 ]; then
    train=("data.root=$1")
    sets=(--root "$2")
else
    sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
fi
for name in rounds seeds hops inputs; do
    python "$here/train.py" -m "experiment=ablation/$name" "${train[@]}"
done
checkpoints=$(printf '%s\n' outputs/ablation/*/*/checkpoint | sort -V | paste -sd, -)
gfm bench "${sets[@]}" --config ablations --retrievers "gfm,$checkpoints"
gfm bench "${sets[@]}" --config keep
