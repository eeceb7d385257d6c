"""Draws the report; its receipt holds the report's key, so that another plan is another report."""


rule plan_report:
    input:
        metrics=ancient(PLAN.metrics_receipts),
    output:
        sheet=PLAN.report_sheet,
    log:
        f"results/logs/report/{PLAN.experiment}.plan.log",
    localrule: True
    conda:
        "../../envs/crossover.yaml"
    params:
        experiment=PLAN.experiment_file,
        retest=PLAN.retest,
    message:
        "List what the report of {PLAN.experiment} shows."
    shell:
        "crossover plan {params.experiment} --retest '{params.retest}' --store results"
        " --report-sheet {output.sheet} 2> {log}"


rule render_report:
    input:
        sheet=ancient(PLAN.report_sheet),
    output:
        receipt=REPORT_RECEIPT,
    log:
        f"results/logs/report/{PLAN.experiment}.log",
    localrule: True
    conda:
        "../../envs/crossover.yaml"
    params:
        out=f"reports/{PLAN.experiment}",
    message:
        "Draw the report of {PLAN.experiment}."
    shell:
        "crossover report {input.sheet} --out {params.out} --receipt {output.receipt} 2> {log}"
