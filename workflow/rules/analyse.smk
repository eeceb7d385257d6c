"""One job a deployment that reads logs, and one that works out metrics."""


rule parse_logs:
    input:
        sheet=ancient("results/sheets/parse/{key}.json"),
        runs=runs_of_parse_job,
    output:
        receipt="results/receipts/parse/{key}.json",
    log:
        "results/logs/parse/{key}.log",
    conda:
        "../../envs/crossover.yaml"
    message:
        "Read the engine logs of job {wildcards.key}."
    shell:
        "crossover parse {input.sheet} --store results --receipt {output.receipt} 2> {log}"


rule compute_metrics:
    input:
        sheet=ancient("results/sheets/metrics/{key}.json"),
        reports=reports_of_metrics_job,
    output:
        receipt="results/receipts/metrics/{key}.json",
    log:
        "results/logs/metrics/{key}.log",
    conda:
        "../../envs/crossover.yaml"
    message:
        "Work out and audit the metrics of job {wildcards.key}."
    shell:
        "crossover metrics {input.sheet} --store results --receipt {output.receipt} 2> {log}"
