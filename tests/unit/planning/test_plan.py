"""The plan: the retest table of the design, item by item, and what does and does not change a key."""

import json
from pathlib import Path

import pytest
import yaml

from crossover.errors import InputError
from crossover.experiment import expand, load_experiment
from crossover.planning import build_plan
from crossover.planning.cost import predict
from crossover.planning.summary import summarise
from crossover.planning.why import explain
from crossover.recipes import Store

CONFIG = Path(__file__).parents[3] / "config"
TWIN = CONFIG / "experiments" / "kimi-k3-simulated.yaml"


def plan_of(file: Path, store: Store, retest=()):
    experiment = load_experiment(file)
    return build_plan(experiment, expand(experiment, retest), store)


def summary_of(file: Path, store: Store, retest=()):
    plan = plan_of(file, store, retest)
    return summarise(plan, predict(plan))


def measure(plan) -> None:
    """Puts an entry of each kind into the store for every cell, as if it had been measured and evaluated."""
    for deployment in plan.deployments:
        for cell in deployment.cells:
            for kind, recipe in (
                ("run", cell.recipe),
                ("engine_report", cell.report_recipe),
                ("metrics", cell.metrics_recipe),
            ):
                with plan.store.create(kind, recipe, {}) as place:
                    if kind == "run":
                        (place / "server.json").write_text(json.dumps(deployment.server))


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> Store:
    store = Store(tmp_path_factory.mktemp("store"))
    measure(plan_of(TWIN, store))
    return store


# DESIGN section 8, by hand; item 12 without its quality cells, item 14 at one concurrency.
TABLE = {
    1: (1, 2), 2: (2, 4), 3: (0, 0), 4: (0, 0), 5: (1, 2), 6: (1, 2), 7: (1, 2),
    8: (1, 2), 9: (1, 2), 10: (1, 2), 11: (0, 0), 12: (2, 4), 13: (1, 2), 14: (2, 4),
}  # fmt: skip


@pytest.mark.parametrize("item", TABLE)
def test_an_item_adds_what_the_table_says(measured, item) -> None:
    summary = summary_of(TWIN, measured, [item])
    cells = sum(one["cells_missing"] for one in summary["deployments"])
    assert (len(summary["deployments"]), cells) == TABLE[item]


def test_the_base_is_four_cells_in_two_deployments(tmp_path) -> None:
    summary = summary_of(TWIN, Store(tmp_path))
    assert [one["cells_missing"] for one in summary["deployments"]] == [2, 2]


def test_all_items_and_the_base_are_twelve_deployments(tmp_path) -> None:
    summary = summary_of(TWIN, Store(tmp_path), TABLE)
    assert len(summary["deployments"]) == 12
    # Base 4, items 2 and 14 four each, ten new variants with two cells each: 4 + 8 + 20.
    assert sum(one["cells_missing"] for one in summary["deployments"]) == 32


@pytest.mark.parametrize("item", [3, 4])
def test_an_item_of_definitions_reruns_metrics_alone(measured, item) -> None:
    steps = summary_of(TWIN, measured, [item])["steps"]
    assert steps["metrics"] == {"run": 4, "reuse": 0}
    assert steps["engine_report"] == {"run": 0, "reuse": 4}
    assert steps["run"] == {"run": 0, "reuse": 4}


def test_only_new_prompts_are_built_for_another_dataset(measured) -> None:
    steps = summary_of(TWIN, measured, [2])["steps"]
    # Nothing prepared is in this store: two new prompt sets and the warm-up are wanted, the base's are not.
    assert steps["prompts"]["run"] == 3


def variation(tmp_path: Path, change) -> Path:
    data = yaml.safe_load(TWIN.read_text())
    change(data)
    (tmp_path / "experiments").mkdir(exist_ok=True)
    (tmp_path / "experiments" / "kimi-k3-simulated.yaml").write_text(yaml.safe_dump(data, sort_keys=True))
    for folder in ("engines", "retest", "published"):
        if not (tmp_path / folder).exists():
            (tmp_path / folder).symlink_to(CONFIG / folder)
    return tmp_path / "experiments" / "kimi-k3-simulated.yaml"


def keys(plan) -> set[str]:
    return {cell.run_key for deployment in plan.deployments for cell in deployment.cells}


def test_a_new_name_or_order_changes_no_key_and_no_report(tmp_path) -> None:
    def rename(data) -> None:
        data["variants"] = {"the-other": data["variants"]["sglang"], "one": data["variants"]["vllm"]}
        data["title"] = "Another title"

    store = Store(tmp_path / "store")
    before, after = plan_of(TWIN, store), plan_of(variation(tmp_path, rename), store)
    assert keys(before) == keys(after)
    assert before.report_key == after.report_key
    assert {d.key for d in before.deployments} == {d.key for d in after.deployments}


def test_an_argument_changes_the_cells_of_its_variant_alone(tmp_path) -> None:
    def change(data) -> None:
        data["variants"]["vllm"]["arguments"] = {"max-num-seqs": 64}

    store = Store(tmp_path / "store")
    before, after = plan_of(TWIN, store), plan_of(variation(tmp_path, change), store)
    assert len(keys(before) & keys(after)) == 2
    measure(before)
    changed = plan_of(variation(tmp_path, change), store)
    cell = next(d for d in changed.deployments if d.label == "vllm").cells[0]
    found = explain(changed, cell.cell.id)
    run = next(step for step in found["steps"] if step["kind"] == "run")
    assert run["changes"] == [{"field": "server.arguments.max-num-seqs", "old": 32, "new": 64}]


def test_variants_that_want_the_same_server_share_a_deployment(tmp_path) -> None:
    def twin(data) -> None:
        data["variants"]["again"] = data["variants"]["vllm"]

    plan = plan_of(variation(tmp_path, twin), Store(tmp_path / "store"))
    assert sorted(sorted(v.name for v in d.variants) for d in plan.deployments) == [["again", "vllm"], ["sglang"]]
    assert sum(len(d.cells) for d in plan.deployments) == 4


def test_where_it_runs_and_how_long_it_may_start_is_in_no_key(tmp_path) -> None:
    def change(data) -> None:
        data["variants"]["vllm"]["launcher"] |= {"startup_timeout_s": 5, "host": "127.0.0.2"}
        data["hardware"]["cost_per_gpu_hour"] = 4.0

    store = Store(tmp_path / "store")
    assert keys(plan_of(TWIN, store)) == keys(plan_of(variation(tmp_path, change), store))


def test_no_two_cells_of_a_server_share_prompts_and_variants_do(tmp_path) -> None:
    plan = plan_of(TWIN, Store(tmp_path), TABLE)
    base = [d for d in plan.deployments if d.label in ("vllm", "sglang")]
    prompts = [[cell.recipe["prompts"] for cell in d.cells] for d in base]
    assert sorted(prompts[0]) == sorted(prompts[1])
    assert len(set(prompts[0])) == len(prompts[0]) == 6


def test_a_plan_is_priced_in_gpu_hours(tmp_path) -> None:
    def price(data) -> None:
        data["hardware"] |= {"cost_per_gpu_hour": 5.0, "currency": "EUR"}

    summary = summary_of(variation(tmp_path, price), Store(tmp_path / "store"))
    seconds = sum(one["predicted_s"] for one in summary["deployments"])
    assert summary["gpu_hours"] == pytest.approx(seconds * 8 / 3600)
    assert summary["cost"] == pytest.approx(summary["gpu_hours"] * 5.0)
    # Two starts of about ten minutes and four cells of 100.5, 150.8, 295.2 and 225.3 s as published.
    assert seconds == pytest.approx(2 * 620 + 100.5 + 150.8 + 295.2 + 225.3, rel=0.15)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["models"]["kimi-k3"].update(repo="another/Model"),
        lambda data: data["hardware"].update(gpu="NVIDIA H200"),
        lambda data: data["hardware"].update(gpus=4),
        lambda data: [one.update(launcher=EXTERNAL) for one in data["variants"].values()],
    ],
    ids=["another model", "another GPU", "fewer GPUs", "a server that runs already"],
)
def test_what_the_model_was_not_fitted_to_has_no_price_and_is_not_refused(tmp_path, change) -> None:
    def apply(data) -> None:
        for variant in data["variants"].values():
            variant["launcher"] = {"kind": "docker"}
            variant["image"] = "engine@sha256:" + "0" * 64
            variant["arguments"] = {}  # by the coefficients of Kimi-K3 this does not fit into memory
        change(data)

    summary = summary_of(variation(tmp_path, apply), Store(tmp_path / "store"))
    assert [one["gpu_hours"] for one in summary["deployments"]] == [None, None]
    assert (summary["gpu_hours"], summary["findings"]) == (None, [])


EXTERNAL = {"kind": "external", "url": "http://127.0.0.1:8000"}


def test_a_server_that_would_not_start_is_a_finding_and_the_others_are_priced(tmp_path) -> None:
    def change(data) -> None:
        data["variants"]["vllm"]["arguments"] = {"max-model-len": 5_000_000}

    summary = summary_of(variation(tmp_path, change), Store(tmp_path / "store"))
    hours = {one["variant"]: one["gpu_hours"] for one in summary["deployments"]}
    assert hours["vllm"] is None
    assert hours["sglang"] > 0
    assert summary["gpu_hours"] is None
    (finding,) = summary["findings"]
    assert (finding["kind"], finding["subject"]) == ("infeasible", "vllm")
    assert "would not start" in finding["why"]


def test_prompts_of_their_own_lengths_have_no_price(tmp_path) -> None:
    def change(data) -> None:
        (tmp_path / "own.jsonl").write_text('{"prompt": "a b", "output_tokens": 2}\n')
        data["workloads"] = [{"dataset": "jsonl", "options": {"file": str(tmp_path / "own.jsonl")}, "concurrency": 1}]

    summary = summary_of(variation(tmp_path, change), Store(tmp_path / "store"))
    assert summary["gpu_hours"] is None
    assert len(summary["deployments"]) == 2


def test_two_running_servers_that_differ_in_their_address_alone_are_refused(tmp_path) -> None:
    def change(data) -> None:
        one = {"engine": "vllm", "launcher": EXTERNAL, "model": "kimi-k3"}
        data["variants"] = {"first": one, "second": {**one, "launcher": {**EXTERNAL, "url": "http://127.0.0.1:8001"}}}

    with pytest.raises(
        InputError, match=r"variants\.second: it differs from `first` in nothing but its `url`.*`version`"
    ):
        plan_of(variation(tmp_path, change), Store(tmp_path / "store"))

    def versions(data) -> None:
        change(data)
        for version, variant in zip(("0.27.1", "0.32.0"), data["variants"].values(), strict=True):
            variant["version"] = version

    assert len(plan_of(variation(tmp_path, versions), Store(tmp_path / "store")).deployments) == 2


def test_what_a_dataset_refuses_is_told_with_the_file(tmp_path) -> None:
    file = variation(tmp_path, lambda data: data["workloads"][0].update(dataset="randm"))
    with pytest.raises(InputError) as caught:
        plan_of(file, Store(tmp_path / "store"))
    assert str(caught.value).startswith(f"{file}: workloads.dataset: unknown dataset 'randm'; use one of documents")


def test_a_name_that_can_move_is_said_to_be_unlocked(tmp_path) -> None:
    summary = summary_of(CONFIG / "experiments" / "kimi-k3-b300.yaml", Store(tmp_path))
    subjects = {finding["subject"] for finding in summary["findings"] if finding["kind"] == "unresolved"}
    assert "image vllm/vllm-openai:kimi-k3" in subjects
    assert "weights modelscope:moonshotai/Kimi-K3@master" in subjects
    assert {one["advice"] for one in summary["findings"]} == {"crossover lock kimi-k3-b300"}


def test_the_advice_to_lock_an_experiment_that_stands_elsewhere_names_its_file(tmp_path) -> None:
    file = variation(tmp_path, lambda data: data["models"]["kimi-k3"].update(hub="modelscope", commit="master"))
    advice = [one["advice"] for one in summary_of(file, Store(tmp_path / "store"))["findings"]]
    assert advice == [f"crossover lock {file}"]


def with_clients(tmp_path, change):
    """Returns the plan of the small experiment with other clients, whose definitions are this checkout's."""

    def apply(data) -> None:
        data["workloads"] = [{"dataset": "random", "input_tokens": 100, "output_tokens": 10, "concurrency": 2}]
        change(data)

    return plan_of(variation(tmp_path, apply), Store(tmp_path / "store"))


def test_other_clients_are_in_the_key_only_where_there_are_any(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(CONFIG.parent)
    bare = with_clients(tmp_path, lambda data: None)
    none = with_clients(tmp_path, lambda data: data.update(clients=[]))
    some = with_clients(tmp_path, lambda data: data.update(clients=["guidellm"]))
    assert keys(bare) == keys(none)
    assert keys(bare).isdisjoint(keys(some))
    assert {d.server_key for d in bare.deployments} == {d.server_key for d in some.deployments}
    recipe = some.deployments[0].cells[0].recipe
    client = recipe["clients"]["guidellm"]
    # Under disjoint prompts a client has its own, of the same kind; its environment is prepared before the server.
    assert client["prompts"] != recipe["prompts"]
    assert {("client", client["client"]), ("prompts", client["prompts"])} <= some.wanted_steps
    assert some.steps["prompts", client["prompts"]].recipe["input_tokens"] == 100
    assert summarise(some, predict(some))["steps"]["client"] == {"run": 1, "reuse": 0}
    # Twice the load takes twice as long.
    times = [predict(plan)[plan.deployments[0].server_key].cells_s.values() for plan in (bare, some)]
    assert sum(times[1]) == pytest.approx(2 * sum(times[0]))


@pytest.mark.parametrize("policy", ["reset", "none"])
def test_a_client_sends_the_same_prompts_where_they_may_be_sent_again(tmp_path, monkeypatch, policy) -> None:
    monkeypatch.chdir(CONFIG.parent)
    plan = with_clients(tmp_path, lambda data: data.update(clients=["guidellm", "aiperf"], isolation=policy))
    recipe = plan.deployments[0].cells[0].recipe
    assert [keys["prompts"] for keys in recipe["clients"].values()] == [recipe["prompts"]] * 2


def test_a_workload_has_its_own_clients_or_none(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(CONFIG.parent)

    def change(data) -> None:
        (workload,) = data["workloads"]
        data["clients"] = ["guidellm"]
        data["workloads"] = [
            workload,
            {**workload, "concurrency": 3, "clients": ["vllm-bench", "aiperf"]},
            {**workload, "concurrency": 4, "clients": []},
        ]

    plan = with_clients(tmp_path, change)
    found = [list(cell.recipe.get("clients", {})) for cell in plan.deployments[0].cells]
    assert found == [["guidellm"], ["vllm-bench", "aiperf"], []]


@pytest.mark.parametrize(
    ("load", "what"),
    [
        ({"duration_s": 5, "requests": 2}, "`duration_s` of random/100\\+10/c2"),
        ({"form": "token_ids"}, "`form: token_ids`"),
        ({"concurrency": None, "rate_per_s": 2, "arrivals": "fixed", "requests": 3}, "`arrivals: fixed`"),
    ],
)
def test_a_load_that_other_clients_cannot_give_is_refused(tmp_path, monkeypatch, load, what) -> None:
    monkeypatch.chdir(CONFIG.parent)

    def change(data) -> None:
        data["clients"] = ["guidellm"]
        data["workloads"] = [{k: v for k, v in {**data["workloads"][0], **load}.items() if v is not None}]

    with pytest.raises(InputError, match=what):
        with_clients(tmp_path, change)
