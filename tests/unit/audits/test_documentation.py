"""The page of audits is the one that the audits make, and the schema of published tables is one."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from crossover.audits.documentation import audits_page

ROOT = Path(__file__).parents[3]


def test_page_is_up_to_date():
    page = ROOT / "docs" / "audits.md"
    assert page.read_text() == audits_page(), "python -m crossover.audits.documentation > docs/audits.md"


@pytest.mark.parametrize("file", sorted((ROOT / "config" / "published").glob("*.yaml")), ids=lambda file: file.stem)
def test_published_tables_fit_their_schema(file):
    schema = json.loads((ROOT / "workflow" / "schemas" / "published.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(file.read_text()), schema)
