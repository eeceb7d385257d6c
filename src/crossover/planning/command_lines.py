"""The command line of each server of a plan, ready to paste."""

from __future__ import annotations

import shlex

from crossover.planning.jobs import Deployment, Plan


def command_lines(plan: Plan) -> dict[str, str]:
    """Returns the command line of each deployment by its label; secrets stand as variable names."""
    return {deployment.label: _command_line(deployment) for deployment in plan.deployments}


def _command_line(deployment: Deployment) -> str:
    from crossover.engines import get_engine

    server = deployment.server
    engine = get_engine(str(server["engine"]))
    model = str(server["served_model_name"])
    words = engine.command(
        server["arguments"],
        model_path=f"/models/{server['model']}" if server["model"] else model,
        draft_path=f"/models/{server['draft']}" if server["draft"] else None,
        host=str(deployment.variants[0].launcher.get("host", "127.0.0.1")),
        port=8000,
        served_model_name=model,
    )
    environment = {name: str(value) for name, value in server["environment"].items()}
    secrets = [f'{name}="${name}"' for name in deployment.variants[0].fields.get("secrets", ())]
    assignments = [f"{name}={shlex.quote(value)}" for name, value in environment.items()] + secrets
    return " ".join([*assignments, shlex.join(words)])
