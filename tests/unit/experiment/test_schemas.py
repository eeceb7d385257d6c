"""The schemas name what the registries hold."""

from pathlib import Path

import yaml

from crossover.experiment.schemas import schema
from crossover.metrics import METRICS
from crossover.peers import CLIENTS

RULES = Path(__file__).parents[3] / "src" / "crossover" / "logs" / "diagnoses" / "rules.yaml"


def test_the_metrics_that_may_be_wanted_are_those_that_are_defined() -> None:
    wanted = schema("experiment")["$defs"]["metrics"]["properties"]["wanted"]
    assert wanted["items"]["enum"] == sorted(METRICS)


def test_the_diagnoses_that_may_be_asked_for_are_those_that_have_a_rule() -> None:
    names = sorted(rule["name"] for rule in yaml.safe_load(RULES.read_text())["rules"])
    change = schema("retest")["properties"]["items"]["items"]["properties"]["change"]["properties"]
    for place in (schema("experiment")["properties"], change):
        assert place["diagnoses"]["items"]["enum"] == names


def test_clients_are_those_that_can_be_run() -> None:
    assert schema("experiment")["$defs"]["clients"]["items"]["enum"] == sorted(CLIENTS)
