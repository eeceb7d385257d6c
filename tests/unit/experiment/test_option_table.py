"""The option table: up to date, and every option described with what it means."""

from pathlib import Path

from crossover.experiment.option_table import TABLES, _options, option_page
from crossover.experiment.schemas import schema

PAGE = Path(__file__).parents[3] / "config" / "README.md"


def test_the_page_is_what_the_schemas_say() -> None:
    assert PAGE.read_text() == option_page()


def test_every_option_is_described() -> None:
    undescribed = [
        (title, path)
        for title, name, definition in TABLES
        for path, _, text in _options(
            schema(name)["$defs"][definition] if definition else schema(name), schema(name), ""
        )
        if not text
    ]
    assert undescribed == []
