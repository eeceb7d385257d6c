"""What the Snakefile asks of the package: paths and counts of a plan, in the words of the workflow.

Imports `crossover.experiment` and `crossover.planning`, and nothing of Snakemake: the rules hold the wiring, this
holds the answers.
"""

from crossover.workflow.view import DeploymentView, WorkflowPlan, load_plan

__all__ = ["DeploymentView", "WorkflowPlan", "load_plan"]
