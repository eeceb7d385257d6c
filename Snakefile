"""Targets and includes only: the rules are in workflow/rules/, the work is in the package `crossover`."""

from snakemake.utils import min_version

min_version("9.0")


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/prepare.smk"
include: "workflow/rules/deploy.smk"
include: "workflow/rules/analyse.smk"
include: "workflow/rules/report.smk"


rule report:
    default_target: True
    input:
        ancient(REPORT_RECEIPT),
    localrule: True
