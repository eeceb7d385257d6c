"""The experiments that repeat a published comparison start the engines as they were published, argument by argument."""

from pathlib import Path

import pytest
import yaml

from crossover.experiment import expand, load_experiment

CONFIG = Path(__file__).parents[3] / "config"


@pytest.mark.parametrize("name", ["kimi-k3-b300", "kimi-k3-simulated", "default"])
@pytest.mark.parametrize("variant", ["vllm", "sglang"])
def test_arguments_and_environment_are_the_published_ones(name, variant) -> None:
    published = yaml.safe_load((CONFIG / "published" / "kimi-k3-b300.yaml").read_text())
    experiment = load_experiment(CONFIG / "experiments" / f"{name}.yaml")
    ours = experiment.variants[variant]
    assert ours.arguments == published["configuration"][variant]["args"]
    assert ours.environment == published["configuration"][variant].get("env", {})
    assert ours.fields["image"] == published["images"][variant]
    assert experiment.hardware["gpu"] == published["hardware"]["gpu"]
    assert experiment.hardware["gpus"] == published["hardware"]["gpus"]


def test_the_upgrade_differs_in_the_image_alone_and_has_the_published_points() -> None:
    published = yaml.safe_load((CONFIG / "published" / "vllm-kimi-k3-optimisation.yaml").read_text())
    experiment = load_experiment(CONFIG / "experiments" / "vllm-upgrade.yaml")
    old, new = experiment.variants["vllm-0.27.1"], experiment.variants["vllm-82a85dc1"]
    assert old.fields["version"] == published["baseline"]["version"]
    assert published["candidate"]["commit"] in new.fields["image"]
    differing = {key for key in {*old.fields, *new.fields} if old.fields.get(key) != new.fields.get(key)}
    assert differing == {"image", "version"}
    server = published["server"]
    assert old.arguments["tensor-parallel-size"] == server["tensor-parallel-size"]
    assert old.arguments["load-format"] == server["load-format"]
    assert old.arguments["enable-prefix-caching"] is server["prefix_caching"]
    assert old.arguments["speculative-config"] == server["speculative"]
    points = {
        (c.workload.input_tokens, c.workload.output_tokens, c.workload.concurrency) for c in expand(experiment).cells
    }
    workload = published["workload"]
    assert points == {(workload["input_tokens"], workload["output_tokens"], c) for c in workload["concurrency"]}
