"""What migrations and the test that holds them against the models both leave out."""


def ours(object, name, type, reflected, compare_to):
    """Full text and what is pgvector's belong to one database each; no model has them."""
    fts = type == "table" and name.startswith("units_fts")
    near = type in ("column", "index") and name.startswith(("near", "ix_vectors_near"))
    return not (fts or near)
