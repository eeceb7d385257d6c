"""One job a deployment that reads logs, and one that works out metrics."""


def runs_of_parse_job(wildcards):
    """The receipt of the deployment where cells are missing, nothing where the store has them all."""
    return ancient(PLAN.runs_of_parse_job(wildcards.key))


def reports_of_metrics_job(wildcards):
    """The receipt of the parse job where engine reports are missing, nothing where the store has them all."""
    return ancient(PLAN.reports_of_metrics_job(wildcards.key))


rule parse_logs:
    message:
        "Read the engine logs of job {wildcards.key}."
    input:
        sheet=ancient(STORE + "/sheets/parse/{key}.json"),
        runs=runs_of_parse_job,
    output:
        receipt=STORE + "/receipts/parse/{key}.json",
    wildcard_constraints:
        key="[0-9a-f]+",
    params:
        store=STORE,
    log:
        STORE + "/logs/parse/{key}.log",
    shell:
        "crossover parse {input.sheet} --store {params.store} --receipt {output.receipt} 2> {log}"


rule compute_metrics:
    message:
        "Work out and audit the metrics of job {wildcards.key}."
    input:
        sheet=ancient(STORE + "/sheets/metrics/{key}.json"),
        reports=reports_of_metrics_job,
    output:
        receipt=STORE + "/receipts/metrics/{key}.json",
    wildcard_constraints:
        key="[0-9a-f]+",
    params:
        store=STORE,
    log:
        STORE + "/logs/metrics/{key}.log",
    shell:
        "crossover metrics {input.sheet} --store {params.store} --receipt {output.receipt} 2> {log}"
