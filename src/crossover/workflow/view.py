"""A plan as the rules see it: only strings, counts and lists of paths."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from crossover.commands._plans import make_plan
from crossover.errors import CrossoverError
from crossover.planning import Plan, receipts
from crossover.planning.jobs import Deployment


@dataclass(frozen=True)
class DeploymentView:
    """One generated rule: its name, its message's figures and its paths."""

    rule_name: str
    label: str
    missing: int
    total: int
    gpus: int
    sheet: str
    needs: list[str]
    receipt: str
    log: str


class WorkflowPlan:
    """A plan with the paths of its receipts and sheets."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._store = plan.store.root
        self._by_parse_key = {deployment.parse_key: deployment for deployment in plan.deployments}
        self._by_metrics_key = {deployment.metrics_key: deployment for deployment in plan.deployments}

    @property
    def experiment(self) -> str:
        return self._plan.experiment.name

    @property
    def experiment_file(self) -> str:
        return str(self._plan.experiment.file)

    @property
    def retest(self) -> str:
        """The applied retest items as `--retest` takes them."""
        return ",".join(str(item.id) for item in self._plan.expansion.items)

    @cached_property
    def deployments(self) -> list[DeploymentView]:
        """The servers with cells that the store lacks."""
        taken: set[str] = set()
        return [self._view(d, taken) for d in self._plan.deployments if self._plan.missing(d)]

    @property
    def report_receipt(self) -> str:
        return str(receipts.report_receipt(self._plan))

    @property
    def report_sheet(self) -> str:
        return str(receipts.sheet_path(self._store, "report", Path(self.report_receipt).stem))

    @property
    def metrics_receipts(self) -> list[str]:
        return [
            str(receipts.receipt_path(self._store, "metrics", deployment.metrics_key))
            for deployment in self._plan.deployments
        ]

    @property
    def weights_of_prompts(self) -> list[str]:
        """Receipts of the tokenizers that the missing prompts are counted with and the store lacks."""
        return self._receipts(
            need for step in self._plan.missing_steps if step.kind == "prompts" for need in step.needs
        )

    def runs_of_parse_job(self, key: str) -> list[str]:
        """The receipt of the deployment that a parse job waits for; none where all its cells are there."""
        deployment = self._by_parse_key[key]
        if not self._plan.missing(deployment):
            return []
        return [str(receipts.receipt_path(self._store, "deployment", deployment.key))]

    def reports_of_metrics_job(self, key: str) -> list[str]:
        """The receipt of the parse job that a metrics job waits for; none where all engine reports are there."""
        deployment = self._by_metrics_key[key]
        reports = all(self._plan.has("engine_report", cell.engine_report_key) for cell in deployment.cells)
        if reports and not self._plan.missing(deployment):
            return []
        return [str(receipts.receipt_path(self._store, "parse", deployment.parse_key))]

    def _receipts(self, needs: Iterable[tuple[str, str]]) -> list[str]:
        missing = (need for need in needs if not self._plan.has(*need))
        return list(dict.fromkeys(str(receipts.step_receipt(self._plan, kind, key)) for kind, key in missing))

    def _view(self, deployment: Deployment, taken: set[str]) -> DeploymentView:
        name = re.sub(r"\W+", "_", deployment.label)
        while name in taken:
            name += "_"
        taken.add(name)
        return DeploymentView(
            rule_name=name,
            label=deployment.label,
            missing=len(self._plan.missing(deployment)),
            total=len(deployment.cells),
            gpus=int(deployment.server["hardware"]["gpus"] or 0),
            sheet=str(receipts.sheet_path(self._store, "deployment", deployment.key)),
            needs=self._receipts(self._plan.needs(deployment)),
            receipt=str(receipts.receipt_path(self._store, "deployment", deployment.key)),
            log=str(self._store / "logs" / "deployment" / f"{deployment.key}.log"),
        )


def load_plan(*, experiment: str | Path, retest: str, store: Path, main_process: bool) -> WorkflowPlan:
    """Plans an experiment for the rules, and in the main process brings sheets and receipts up to date.

    Args:
        experiment: a name in config/experiments/ or a file.
        retest: retest items such as `1,5,8`, or `all`.
        main_process: false where a cluster job reads the Snakefile again; it must find what the main process left.

    Raises:
        SystemExit: with status 2 after one line on standard error where the input is wrong.
    """
    try:
        plan = make_plan(str(experiment), retest, store)
        view = WorkflowPlan(plan)
        if main_process:
            receipts.revoke_stale_receipts(plan)
            receipts.write_sheets(plan)
    except CrossoverError as error:
        print(f"crossover: {error}", file=sys.stderr)
        raise SystemExit(error.exit_status) from None
    return view
