"""Entries that need no GPU: weights, images, prompts."""


def needs_of_step(wildcards):
    """Receipts of the entries that a step reads and the store lacks."""
    return ancient(PLAN.needs_of_step(wildcards.kind, wildcards.key))


rule prepare_entry:
    message:
        "Prepare {wildcards.kind} {wildcards.key}."
    input:
        sheet=ancient(STORE + "/sheets/{kind}/{key}.json"),
        needs=needs_of_step,
    output:
        receipt=STORE + "/receipts/{kind}/{key}.json",
    wildcard_constraints:
        kind="weights|image|prompts",
        key="[0-9a-f]+",
    params:
        store=STORE,
    log:
        STORE + "/logs/{kind}/{key}.log",
    shell:
        "crossover prepare {input.sheet} --store {params.store} --receipt {output.receipt} 2> >(tee {log} >&2)"
