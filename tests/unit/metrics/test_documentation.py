"""The page of definitions is the one that the definitions make."""

from pathlib import Path

from crossover.metrics.documentation import metrics_page


def test_page_is_up_to_date():
    page = Path(__file__).parents[3] / "docs" / "metrics.md"
    assert page.read_text() == metrics_page(), "python -m crossover.metrics.documentation > docs/metrics.md"
