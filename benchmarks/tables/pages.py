"""The pages of the documentation: tables between two marks, figures beside them."""

from pathlib import Path

from benchmarks.result_lines import put_into
from benchmarks.tables.design import Figure, Paper
from benchmarks.tables.text import page_text

PAGES = Path(__file__).parents[2] / "docs" / "papers"
MARKS = ("<!-- tables -->", "<!-- end of tables -->")


def draw(figure: Figure, path: Path) -> None:
    """A figure as SVG, the same bytes for the same results."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context({"svg.hashsalt": "toprank", "svg.fonttype": "none", "font.size": 9, "axes.grid": True}):
        canvas = Canvas(figsize=figure.size, layout="constrained")
        figure.draw(canvas, figure.experiment.results())
        FigureCanvasSVG(canvas).print_svg(path, metadata={"Date": None})


def write(paper: Paper) -> None:
    """The page of a paper and its figures."""
    for part in paper.parts:
        if isinstance(part, Figure) and part.is_ready:
            draw(part, PAGES / f"{paper.key}-figure-{part.number}.svg")
    put_into(PAGES / f"{paper.key}.md", page_text(paper), MARKS)
