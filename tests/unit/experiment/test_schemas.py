"""The schemas name what the registries hold."""

from crossover.experiment.schemas import schema
from crossover.metrics import METRICS


def test_the_metrics_that_may_be_wanted_are_those_that_are_defined() -> None:
    wanted = schema("experiment")["$defs"]["metrics"]["properties"]["wanted"]
    assert wanted["items"]["enum"] == sorted(METRICS)
