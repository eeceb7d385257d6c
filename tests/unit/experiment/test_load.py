"""Experiment files: inheritance, defaults, and one line for each kind of mistake."""

from pathlib import Path

import pytest
import yaml

from crossover.errors import InputError
from crossover.experiment import expand, load_experiment

CONFIG = Path(__file__).parents[3] / "config"
BASE = {
    "title": "T",
    "hardware": {"gpu": None, "gpus": 0},
    "variants": {
        "a": {"engine": "vllm", "launcher": {"kind": "simulated", "time_scale": 10}, "arguments": {"x": 1, "y": 2}},
        "b": {"inherits": "a", "arguments": {"y": None, "z": {"deep": True}}},
    },
    "workloads": [{"dataset": "random", "input_tokens": [10, 20], "output_tokens": 5, "concurrency": [1, 2]}],
}


def write(tmp_path: Path, **change) -> Path:
    file = tmp_path / "e.yaml"
    file.write_text(yaml.safe_dump({**BASE, **change}))
    return file


def test_a_variant_inherits_merges_and_removes(tmp_path) -> None:
    variants = load_experiment(write(tmp_path)).variants
    assert variants["b"].arguments == {"x": 1, "z": {"deep": True}}
    assert variants["b"].time_scale == 10
    assert variants["a"].arguments == {"x": 1, "y": 2}


def test_lists_are_multiplied_and_cells_named(tmp_path) -> None:
    cells = expand(load_experiment(write(tmp_path, repeats=2))).cells
    assert len(cells) == 2 * 2 * 2 * 2
    assert cells[0].id == "a/random/10+5/c1/r0"
    assert cells[-1].id == "b/random/20+5/c2/r1"


def test_a_workload_may_name_its_variants(tmp_path) -> None:
    one = {**BASE["workloads"][0], "variants": ["b"]}
    cells = expand(load_experiment(write(tmp_path, workloads=[one]))).cells
    assert {cell.variant.name for cell in cells} == {"b"}


@pytest.mark.parametrize("file", sorted((CONFIG / "experiments").glob("*.yaml")), ids=lambda file: file.stem)
def test_every_experiment_that_ships_loads_with_all_its_items(file) -> None:
    experiment = load_experiment(file)
    assert expand(experiment, experiment.retest).cells


A = BASE["variants"]["a"]
LOAD = BASE["workloads"][0]
MISTAKES = {
    "unknown key": ({"titel": "x"}, "(top level): unknown key `titel`; did you mean `title`?"),
    "unknown nested key": (
        {"variants": {"a": {**A, "launcher": {"kind": "simulated", "time_scal": 1}}}},
        "variants.a.launcher: unknown key `time_scal`; did you mean `time_scale`?",
    ),
    "wrong type": (
        {"hardware": {"gpu": None, "gpus": "eight"}},
        "hardware.gpus: 'eight' has the wrong type; it must be of type integer",
    ),
    "a secret written out": (
        {"variants": {"a": {**A, "environment": {"HF_TOKEN": "hf_x"}}}},
        "variants.a.environment.HF_TOKEN: a secret is written out",
    ),
    "unknown engine": (
        {"variants": {"a": {**A, "engine": "vlm"}}},
        "variants.a.engine: 'vlm' is not known; did you mean `vllm`?",
    ),
    "unknown parent": (
        {"variants": {"a": A, "b": {"inherits": "aa"}}},
        "variants.b.inherits: `aa` is neither a variant nor a file in config/engines/",
    ),
    "unknown model": (
        {"variants": {"a": {**A, "model": "kimi"}}, "models": {"kimi-k3": {"hub": "none"}}},
        "variants.a.model: unknown model `kimi`; did you mean `kimi-k3`?",
    ),
    "unknown variant": (
        {"workloads": [{**LOAD, "variants": ["c"]}]},
        "workloads.0.variants: unknown variant `c`; known: a, b",
    ),
    "negative tokens": (
        {"workloads": [{**LOAD, "output_tokens": -5}]},
        "workloads.0.output_tokens: -5 is too small; it must be at least 1",
    ),
    "negative tokens in a list": (
        {"workloads": [{**LOAD, "input_tokens": [10, -1]}]},
        "workloads.0.input_tokens.1: -1 is too small; it must be at least 1",
    ),
    "no workload": ({"workloads": []}, "workloads: it is empty; it needs at least one entry"),
    "empty list": (
        {"workloads": [{**LOAD, "concurrency": []}]},
        "workloads.0.concurrency: it is empty; it needs at least one entry",
    ),
    "two loads": (
        {"workloads": [{**LOAD, "rate_per_s": 2}]},
        "workloads.0: a workload needs either `concurrency` or `rate_per_s`; give one of the two",
    ),
    "circle": (
        {"variants": {"a": {"inherits": "b"}, "b": {"inherits": "a"}}},
        "variants.a.inherits: inheritance goes in a circle: a -> b -> a",
    ),
    "a key that is needed is misspelt": (
        {"variants": {"a": {**A, "launcher": {"knd": "simulated"}}}},
        "variants.a.launcher: unknown key `knd`; did you mean `kind`?",
    ),
    "a number in quotation marks": (
        {"workloads": [{**LOAD, "output_tokens": "5"}]},
        "workloads.0.output_tokens: '5' has the wrong type; it must be of type integer, without quotation marks",
    ),
    "a number in quotation marks where a list may stand": (
        {"workloads": [{**LOAD, "concurrency": "2"}]},
        "workloads.0.concurrency: '2' has the wrong type; it must be of type integer or a list of integer, without",
    ),
    "a number where a text is wanted": (
        {"variants": {"a": {**A, "version": 0.32}}},
        "variants.a.version: 0.32 has the wrong type; it must be of type string, in quotation marks",
    ),
    "a list where names are wanted": (
        {"variants": [{"engine": "vllm"}]},
        'variants: [{"engine": "vllm"}] has the wrong type; it must be of type object, NAME: ... instead of - ...',
    ),
    "no value": (
        {"workloads": [{**LOAD, "output_tokens": None}]},
        "workloads.0.output_tokens: it is empty; it must be of type integer",
    ),
    "the same length twice": (
        {"workloads": [{**LOAD, "input_tokens": [10, 10]}]},
        "workloads.0.input_tokens: [10, 10] names something twice; name each once",
    ),
    "a percentile too large": (
        {"metrics": {"percentiles": [199]}},
        "metrics.percentiles.0: 199 is too large; it must be less than 100",
    ),
    "a workload twice": ({"workloads": [LOAD, LOAD]}, "workloads: cell a/random/10+5/c1/r0 stands twice"),
    "an external server without address": (
        {"variants": {"a": {"engine": "vllm", "launcher": {"kind": "external"}}}},
        "variants.a.launcher: `url` is missing; give the address",
    ),
    "an address without scheme": (
        {"variants": {"a": {"engine": "vllm", "launcher": {"kind": "external", "url": "127.0.0.1:8000"}}}},
        "variants.a.launcher.url: '127.0.0.1:8000' is no URL; give the address",
    ),
    "a container without image": (
        {"variants": {"a": {"engine": "vllm", "launcher": {"kind": "docker"}}}},
        "variants.a: `image` is missing; the launcher docker starts a container",
    ),
    "no such published table": ({"published": "x.yaml"}, "published: no file x.yaml; give a file"),
    "no such retest plan": ({"retest_plan": "kimi"}, "retest_plan: no retest plan `kimi` in config/retest/; did you"),
    "a closed loop that ends by time": (
        {"workloads": [{**LOAD, "duration_s": 5}]},
        "workloads.0: nothing says how many prompts `duration_s` may need; add `requests`",
    ),
    "no engine": ({"variants": {"a": {"launcher": {"kind": "external"}}}}, "variants.a: `engine` is missing"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gives_one_line_with_file_place_and_remedy(tmp_path, name) -> None:
    change, line = MISTAKES[name]
    file = write(tmp_path, **change)
    with pytest.raises(InputError) as caught:
        expand(load_experiment(file))
    assert str(caught.value).startswith(f"{file}: {line}")
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == 2


def test_an_empty_file_is_told_so(tmp_path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text("")
    with pytest.raises(InputError) as caught:
        load_experiment(file)
    assert str(caught.value) == f"{file}: (top level): it is empty; it must be of type object"


def test_an_open_loop_has_prompts_for_its_duration(tmp_path) -> None:
    load = {"dataset": "random", "input_tokens": 10, "output_tokens": 5, "rate_per_s": 2.5, "duration_s": 5}
    found = [
        load_experiment(write(tmp_path, workloads=[{**load, **more}])).workloads[0] for more in ({}, {"requests": 4})
    ]
    # 2.5 a second over 5 s are 12.5; a started one counts.
    assert [workload.requests for workload in found] == [13, 4]


def test_two_variants_of_one_name_are_named_with_their_line(tmp_path) -> None:
    file = tmp_path / "e.yaml"
    file.write_text("title: T\nvariants:\n  a: {}\n  a: {}\n")
    with pytest.raises(InputError, match="line 4: `a` stands twice"):
        load_experiment(file)


def test_a_matrix_may_not_be_empty(tmp_path) -> None:
    file = write(tmp_path, variants={"a": A, "b": A}, workloads=[{**LOAD, "variants": ["a"]}])
    assert {cell.variant.name for cell in expand(load_experiment(file)).cells} == {"a"}
    twice = write(tmp_path, workloads=[LOAD, LOAD])
    with pytest.raises(InputError, match="stands twice"):
        expand(load_experiment(twice))


def test_an_engine_file_may_inherit_but_not_in_a_circle(tmp_path) -> None:
    for folder in ("experiments", "engines"):
        (tmp_path / folder).mkdir()
    (tmp_path / "engines" / "one.yaml").write_text("inherits: two\narguments: {p: 1}\n")
    (tmp_path / "engines" / "two.yaml").write_text("engine: vllm\nlauncher: {kind: process}\narguments: {q: 2}\n")
    file = tmp_path / "experiments" / "e.yaml"
    file.write_text(yaml.safe_dump({**BASE, "variants": {"a": {"inherits": "one"}}}))
    assert load_experiment(file).variants["a"].arguments == {"q": 2, "p": 1}
    (tmp_path / "engines" / "two.yaml").write_text("inherits: one\n")
    with pytest.raises(InputError, match="circle: one -> two -> one"):
        load_experiment(file)


def test_an_unknown_retest_item_names_the_known_ones() -> None:
    with pytest.raises(InputError, match="no retest item 15; known items: 1, 2, 3"):
        expand(load_experiment(CONFIG / "experiments" / "kimi-k3-simulated.yaml"), [15])


def lay_over(tmp_path: Path, name: str = "over", **own) -> Path:
    file = tmp_path / f"{name}.yaml"
    file.write_text(yaml.safe_dump({"inherits": "e", **own}))
    return file


def test_an_experiment_inherits_another_and_changes_what_it_names(tmp_path) -> None:
    write(tmp_path, seed=7, retest_plan="none-such")
    change = {"a": {"launcher": {"time_scale": 20}, "arguments": {"y": None}}, "b": None}
    experiment = load_experiment(lay_over(tmp_path, title="Over", retest_plan=None, variants=change))
    assert (experiment.name, experiment.title, experiment.settings["seed"]) == ("over", "Over", 7)
    assert list(experiment.variants) == ["a"]
    assert experiment.variants["a"].launcher == {"kind": "simulated", "time_scale": 20}
    assert experiment.variants["a"].arguments == {"x": 1}
    assert experiment.hardware == {"gpu": None, "gpus": 0}  # a null that is a value stays one
    assert len(experiment.workloads) == 4


def test_what_an_experiment_takes_from_a_variants_own_parent_can_be_removed(tmp_path) -> None:
    write(tmp_path)
    experiment = load_experiment(lay_over(tmp_path, variants={"b": {"arguments": {"x": None}}}))
    assert experiment.variants["b"].arguments == {"z": {"deep": True}}


def test_mistakes_of_inheriting_experiments(tmp_path) -> None:
    write(tmp_path)
    with pytest.raises(InputError, match=r"no experiment `ee` in the same folder; did you mean `e`\?"):
        load_experiment(lay_over(tmp_path, inherits="ee"))
    with pytest.raises(InputError, match="inherits: inheritance goes in a circle"):
        load_experiment(lay_over(tmp_path, inherits="over"))
    with pytest.raises(InputError, match=r"over.yaml: \(top level\): unknown key `titel`"):
        load_experiment(lay_over(tmp_path, titel="x"))
    (tmp_path / "e.yaml").write_text("titel: x\n")
    with pytest.raises(InputError, match=r"e.yaml: \(top level\)"):
        load_experiment(lay_over(tmp_path))


def test_a_container_with_a_time_scale_is_a_simulated_one(tmp_path) -> None:
    plain = {"engine": "vllm", "image": "x@sha256:0", "launcher": {"kind": "docker"}}
    scaled = {**plain, "launcher": {"kind": "docker", "time_scale": 40}}
    experiment = load_experiment(write(tmp_path, variants={"real": plain, "stand_in": scaled}))
    real, stand_in = experiment.variants["real"], experiment.variants["stand_in"]
    assert (real.simulated, real.time_scale) == (False, 1.0)
    assert (stand_in.simulated, stand_in.time_scale) == (True, 40.0)
    assert experiment.simulated
