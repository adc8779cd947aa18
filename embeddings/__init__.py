"""Text to unit vectors, to bytes and back, and the nearest of many. No database, no request."""

from embeddings.embedder import Embedder, NoVector, why
from embeddings.encoders import load
from embeddings.matrix import GONE, PENDING, PRIVATE, PUBLIC, Matrix
from embeddings.passages import digest, pack, passages, pooled, unpack

__all__ = [
    "GONE",
    "PENDING",
    "PRIVATE",
    "PUBLIC",
    "Embedder",
    "Matrix",
    "NoVector",
    "digest",
    "load",
    "pack",
    "passages",
    "pooled",
    "unpack",
    "why",
]
