"""Entries that need no GPU: weights, images, clients, prompts."""


rule weights:
    input:
        sheet=ancient("results/sheets/weights/{key}.json"),
    output:
        receipt="results/receipts/weights/{key}.json",
    log:
        "results/logs/weights/{key}.log",
    conda:
        "../../envs/crossover.yaml"
    message:
        "Bring weights {wildcards.key} here and list their digests."
    shell:
        "crossover prepare {input.sheet} --store results --receipt {output.receipt} 2> >(tee {log} >&2)"


rule image:
    input:
        sheet=ancient("results/sheets/image/{key}.json"),
    output:
        receipt="results/receipts/image/{key}.json",
    log:
        "results/logs/image/{key}.log",
    conda:
        "../../envs/crossover.yaml"
    message:
        "Make sure that image {wildcards.key} is here."
    shell:
        "crossover prepare {input.sheet} --store results --receipt {output.receipt} 2> >(tee {log} >&2)"


rule client:
    input:
        sheet=ancient("results/sheets/client/{key}.json"),
    output:
        receipt="results/receipts/client/{key}.json",
    log:
        "results/logs/client/{key}.log",
    conda:
        "../../envs/crossover.yaml"
    message:
        "Install load-test client {wildcards.key}."
    shell:
        "crossover prepare {input.sheet} --store results --receipt {output.receipt} 2> >(tee {log} >&2)"


rule prompts:
    input:
        sheet=ancient("results/sheets/prompts/{key}.json"),
        weights=weights_of_prompts,
    output:
        receipt="results/receipts/prompts/{key}.json",
    log:
        "results/logs/prompts/{key}.log",
    conda:
        "../../envs/crossover.yaml"
    message:
        "Build the prompts that are missing, job {wildcards.key}."
    shell:
        "crossover prepare {input.sheet} --store results --receipt {output.receipt} 2> >(tee {log} >&2)"
