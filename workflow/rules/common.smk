"""Reads the experiment and plans it; every rule below takes its paths from the plan."""

from pathlib import Path

from crossover.workflow import load_plan

STORE = config.get("store", "results")
REPORTS = config.get("reports", "reports")

# With --configfile the experiment itself is the configuration; its file is the first one given.
PLAN = load_plan(
    experiment=workflow.configfiles[0] if workflow.configfiles else config.get("experiment", "default"),
    retest=str(config.get("retest", "")),
    store=Path(STORE),
    main_process=workflow.is_main_process,
)
REPORT_RECEIPT = PLAN.report_receipt
