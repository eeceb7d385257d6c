"""The command of each server of a plan, ready to paste: made by the very functions that launch it, with the weights
where `crossover prepare` puts them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossover.planning.jobs import Deployment, Plan
from crossover.planning.receipts import deployment_sheet

if TYPE_CHECKING:
    from crossover.engines import Engine
    from crossover.launchers import ServerSpec

# Shown where any free port would be taken.
PORT = 8000


def command_lines(plan: Plan) -> dict[str, str]:
    """Returns the command line of each deployment by its label.

    Secrets stand as names of variables, never as values; an argument that is one is hidden. What is not locked yet
    stands as it was declared.
    """
    return {deployment.label: _command_line(plan, deployment) for deployment in plan.deployments}


def _command_line(plan: Plan, deployment: Deployment) -> str:
    from crossover.engines import get_engine

    spec = _spec(plan, deployment)
    engine = get_engine(spec.engine)
    show = _SHOWN.get(str(deployment.variants[0].launcher["kind"]), _plain)
    return show(spec, engine)


def _spec(plan: Plan, deployment: Deployment) -> ServerSpec:
    from crossover.deployment.launch_options import planned_options
    from crossover.deployment.sheet import sheet_of
    from crossover.launchers import ServerSpec

    sheet = sheet_of(deployment_sheet(plan, deployment))
    server = sheet.server
    model = str(server["served_model_name"])
    return ServerSpec(
        engine=str(server["engine"]),
        arguments=server["arguments"],
        model_path=_folder(plan, server["model"]) or model,
        label=sheet.key,
        environment=server["environment"],
        secrets=sheet.secrets,
        draft_path=_folder(plan, server["draft"]),
        served_model_name=model,
        cache_reset=sheet.isolation == "reset",
        options=planned_options(sheet, _origin(plan, server["image"], sheet.launcher)),
    )


def _folder(plan: Plan, key: str | None) -> str | None:
    from crossover.deployment.weights import planned_folder

    if key is None:
        return None
    step = plan.steps["weights", key]
    return str(planned_folder(plan.store, key, step.recipe, step.detail))


def _origin(plan: Plan, key: str, launcher: Mapping[str, Any]) -> tuple[Mapping[str, Any], Path | None]:
    from crossover.environments import find_definition
    from crossover.environments.install import environment_path

    name = launcher.get("environment")
    return plan.steps["image", key].recipe, environment_path(find_definition(str(name))) if name else None


def _address(spec: ServerSpec, engine: Engine | None) -> tuple[str, int]:
    from crossover.launchers.local import choose_address

    asked = engine.address(spec.arguments) if engine else (None, None)
    return choose_address(spec, asked, lambda host: PORT)


def _shell(
    spec: ServerSpec,
    engine: Engine,
    words: Sequence[str],
    environment: Mapping[str, str] | None = None,
    prefix: str = "",
) -> str:
    if environment is None:
        environment = spec.variables(engine)
    given = [f"{prefix}{name}={shlex.quote(value)}" for name, value in environment.items()]
    given += [f'{prefix}{name}="${name}"' for name in spec.secrets]
    return " ".join([*given, _join(words, engine)])


def _join(words: Sequence[str], engine: Engine) -> str:
    from crossover.redaction import redact_command

    return shlex.join(redact_command(words, engine.secret_arguments))


def _plain(spec: ServerSpec, engine: Engine) -> str:
    words = spec.command(engine, _address(spec, engine))
    folder = spec.options.get("python_environment")
    path = f'PATH={shlex.quote(f"{folder}/bin")}:"$PATH" ' if folder else ""
    return path + _shell(spec, engine, words)


def _simulated(spec: ServerSpec, engine: Engine) -> str:
    from crossover.launchers.kinds.simulated import simulation_arguments

    words = ("crossover", "sim", *simulation_arguments(spec, engine, _address(spec, None)))
    return _shell(spec, engine, words)


def _docker(spec: ServerSpec, engine: Engine) -> str:
    from crossover.launchers.docker_run import docker_run
    from crossover.launchers.kinds.docker import container_settings, inside_network

    address = _address(spec, engine)
    within = inside_network(spec, engine, address, _is_path)
    return _join(docker_run(container_settings(spec, within, address), spec.secrets), engine)


def _apptainer(spec: ServerSpec, engine: Engine) -> str:
    from crossover.launchers.containers import inside
    from crossover.launchers.kinds.apptainer import exec_arguments

    within = inside(spec, engine, _address(spec, engine), _is_path)
    program = str(spec.options.get("executable") or "apptainer")
    words = (program, *exec_arguments(spec, within, Path("/var/tmp/crossover")), *within.command)
    return _shell(spec, engine, words, within.environment, "APPTAINERENV_")


def _gpustack(spec: ServerSpec, engine: Engine) -> str:
    """What GPUStack runs, with its own placeholders."""
    from crossover.launchers.gpustack_command import command_line

    line = command_line(spec, engine)
    return _shell(spec, engine, (*line.front, *line.parameters))


def _external(spec: ServerSpec, engine: Engine) -> str:
    return f"# nothing is started: the server at {spec.options.get('url')} is taken as it is"


def _is_path(path: str) -> bool:
    # Where the weights are not fetched yet, their folder is not there either.
    return Path(path).is_absolute()


_SHOWN: dict[str, Callable[[ServerSpec, Engine], str]] = {
    "process": _plain,
    "simulated": _simulated,
    "docker": _docker,
    "apptainer": _apptainer,
    "gpustack": _gpustack,
    "external": _external,
}
