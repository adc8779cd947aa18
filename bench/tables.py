"""Tables as text: rows of cells, the first row the head."""


def plain(table):
    """Columns in line, figures to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    right = [_figures(column) for column in zip(*table[1:], strict=True)]
    for row in table:
        cells = zip(row, widths, right, strict=True)
        yield "  ".join(
            cell.rjust(width) if figure else cell.ljust(width) for cell, width, figure in cells
        ).rstrip()


def markdown(table):
    right = [_figures(column) for column in zip(*table[1:], strict=True)]
    rule = ["--:" if figure else "---" for figure in right]
    for row in (table[0], rule, *table[1:]):
        yield f"| {' | '.join(row)} |"


def _figures(column):
    return all(not cell or cell.replace(".", "", 1).isdigit() for cell in column) and any(column)
