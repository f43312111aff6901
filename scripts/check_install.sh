#!/usr/bin/env bash
# Build the wheel once and try it with every Python that is here: in a fresh environment with the pinned libraries,
# without extras and with each extra by itself, and with no network where the system can take it away.
# Usage: scripts/check_install.sh [PYTHON…]    (python3.11 python3.12 python3.13 unless given; BUILDER has build and hatchling)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
repo=$PWD
builder=${BUILDER:-$repo/.venv/bin/python}
[[ $# -gt 0 ]] || set -- python3.11 python3.12 python3.13
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
unset PYTHONPATH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/dist" "$work/elsewhere"
printf '%s\n' '{"title": "Tarn Mill", "text": "Tarn Mill was built by Orla Venn."}' \
    '{"title": "Orla Venn", "text": "Orla Venn was born in Port Isk."}' >"$work/corpus.jsonl"
if unshare -rn true 2>/dev/null; then offline=(unshare -rn) network="no network"; else offline=() network="network up"; fi

quietly() { # run a step, and show what it said only where it fails
    "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; echo "failed: $*" >&2; exit 1; }
}

install() { # what to install → into $venv, at the versions that the tests ran with
    quietly "$venv/bin/python" -m pip install --disable-pip-version-check -c "$repo/constraints.txt" "$@"
}

ask() { # encoder → a tiny index, and a question to it
    quietly "${offline[@]}" "$venv/bin/gfm" index "$work/corpus.jsonl" --out "$work/index" --encoder "$1"
    quietly "${offline[@]}" "$venv/bin/gfm" search "$work/index" "Where was the builder of Tarn Mill born?"
}

serve() { # a service over the tiny index, and a question to it
    "$venv/bin/gfm" serve "$work/index" --port 0 >"$work/served" 2>&1 &
    local server=$! address='' answer=''
    for _ in $(seq 120); do
        address=$(sed -n 's/^serving .* at //p' "$work/served")
        [[ -z $address ]] && kill -0 "$server" 2>/dev/null || break
        sleep 0.5
    done
    answer=$(curl --silent --fail "$address/search" --json '{"question": "Where was the builder of Tarn Mill born?"}') || true
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    [[ $answer == *'"passages"'* ]] || { cat "$work/served" >&2; echo "failed: gfm serve" >&2; exit 1; }
}

try_extra() { # what needs the extra
    ask hashing:64
    case $1 in
        serve) serve ;;
        mcp) quietly "${offline[@]}" "$venv/bin/python" -c '
import asyncio, sys
from mcp import Client
from mcp.client.stdio import StdioServerParameters

async def main():
    async with Client(StdioServerParameters(command=sys.argv[1], args=["mcp", sys.argv[2]])) as client:
        found = await client.call_tool("search", {"question": "Where was the builder of Tarn Mill born?"})
        assert found.structured_content["passages"], found

asyncio.run(main())' "$venv/bin/gfm" "$work/index" ;;
        langchain | llama-index) quietly "${offline[@]}" "$venv/bin/python" -c '
import sys
from importlib import import_module
from gfm import GNNRetriever, GraphIndex

retriever = GNNRetriever.from_pretrained(GraphIndex.open(sys.argv[2]))
adapter = import_module("gfm.adapters." + sys.argv[1].replace("-", "_")).GraphRetriever(retriever=retriever, top_k=2)
ask = adapter.invoke if sys.argv[1] == "langchain" else adapter.retrieve
assert len(ask("Where was the builder of Tarn Mill born?")) == 2' "$1" "$work/index" ;;
        static) ask wordllama ;;
        llm) OPENAI_MODEL=any quietly "${offline[@]}" "$venv/bin/gfm" \
            index "$work/corpus.jsonl" --out "$work/llm_index" --extractor llm --dry-run ;;
        bench) quietly "${offline[@]}" "$venv/bin/gfm" bench demo --limit 5 --encoder hashing:64 --retrievers gfm,bm25 \
            --one-process --work "$work/bench_work" --out "$work/bench" ;;
        *) echo "failed: the extra $1 is not tried here" >&2; exit 1 ;;
    esac
    quietly "$venv/bin/python" -m pip check --disable-pip-version-check
}

quietly "$builder" -m build --wheel --no-isolation --outdir "$work/dist" "$repo"
wheel=$(echo "$work"/dist/*.whl)
extras=$(unzip -p "$wheel" '*.dist-info/METADATA' | sed -n 's/^Provides-Extra: //p' | grep -vx dev)
echo "$(basename "$wheel"), extras: $(echo $extras), searching with $network"

cd "$work/elsewhere"
for python; do
    "$python" --version >/dev/null 2>&1 || { echo "$python: not here, passed over"; continue; }
    venv=$work/venv
    SECONDS=0
    quietly "$python" -m venv --clear "$venv"
    install "$wheel"
    took=$SECONDS
    version=$("${offline[@]}" "$venv/bin/gfm" --version)
    SECONDS=0
    quietly "${offline[@]}" "$venv/bin/gfm" demo
    echo "$("$venv/bin/python" --version): $version; installed in $took s ($(du -sm "$venv" | cut -f1) MB), demo in $SECONDS s"
    "$venv/bin/python" -m pip freeze --all --disable-pip-version-check | sed 's/[=@ ].*//' | sort >"$work/base"
    for extra in $extras; do
        SECONDS=0
        install "$wheel[$extra]"
        "$venv/bin/python" -m pip freeze --all --disable-pip-version-check | sed 's/[=@ ].*//' | sort >"$work/more"
        try_extra "$extra"
        added=$(comm -13 "$work/base" "$work/more")
        echo "  with $extra: $(wc -w <<<"$added") more packages, works, $SECONDS s"
        # Each extra stands by itself: what this one brought goes before the next one comes.
        [[ -z $added ]] || quietly "$venv/bin/python" -m pip uninstall -y --disable-pip-version-check $added
    done
done
