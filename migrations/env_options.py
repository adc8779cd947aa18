"""What migrations and the test that holds them against the models both leave out."""


def ours(object, name, type, reflected, compare_to):
    """The tables of full-text search belong to SQLite; migrations make them, models do not."""
    return not (type == "table" and name.startswith("units_fts"))
