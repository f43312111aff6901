#!/usr/bin/env bash
# Install the wheel into a new environment and run its demo from an empty folder, as someone without the repository would.
# Usage: scripts/check_wheel.sh [PYTHON WITH build AND hatchling]    (make wheel-check passes .venv's)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
repo=$PWD
python=$(command -v "${1:-.venv/bin/python}")
[[ $python = /* ]] || python=$repo/$python

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/dist" "$work/elsewhere"

echo "building the wheel"
"$python" -m build --wheel --no-isolation --outdir "$work/dist" "$repo" >"$work/build.log" 2>&1 || {
    cat "$work/build.log" >&2
    exit 1
}

echo "installing it into a new environment"
"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt "$work"/dist/*.whl

echo "running its demo from an empty folder"
cd "$work/elsewhere"
where=$(env -u PYTHONPATH "$work/venv/bin/python" -c 'import gfm; print(gfm.__file__)')
[[ $where = "$work"/venv/* ]] || {
    echo "expected gfm from the new environment, found $where" >&2
    exit 1
}
env -u PYTHONPATH HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 "$work/venv/bin/gfm" demo
echo "the wheel works: $(basename "$work"/dist/*.whl)"
