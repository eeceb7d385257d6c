"""Reads the experiment and plans it; every rule below takes its paths from the plan."""

from pathlib import Path

from crossover.workflow import load_plan

# With --configfile the experiment itself is the configuration; its file is the first one given.
PLAN = load_plan(
    experiment=(
        workflow.configfiles[0]
        if workflow.configfiles
        else config.get("experiment", "default")
    ),
    retest=str(config.get("retest", "")),
    store=Path("results"),
    main_process=workflow.is_main_process,
)
REPORT_RECEIPT = PLAN.report_receipt


wildcard_constraints:
    key="[0-9a-f]+",


def weights_of_prompts(wildcards):
    """Receipts of the tokenizers that count the prompts, where the store lacks them."""
    return ancient(PLAN.weights_of_prompts)


def runs_of_parse_job(wildcards):
    """The receipt of the deployment where cells are missing, nothing where the store has them all."""
    return ancient(PLAN.runs_of_parse_job(wildcards.key))


def reports_of_metrics_job(wildcards):
    """The receipt of the parse job where engine reports are missing, nothing where the store has them all."""
    return ancient(PLAN.reports_of_metrics_job(wildcards.key))
