"""Draws the report; its receipt holds the report's key, so that another plan is another report."""


rule plan_report:
    message:
        "List what the report of {PLAN.experiment} shows."
    localrule: True
    input:
        metrics=ancient(PLAN.metrics_receipts),
    output:
        sheet=PLAN.report_sheet,
    params:
        experiment=PLAN.experiment_file,
        retest=PLAN.retest,
        store=STORE,
    log:
        f"{STORE}/logs/report/{PLAN.experiment}.plan.log",
    shell:
        "crossover plan {params.experiment} --retest '{params.retest}' --store {params.store}"
        " --report-sheet {output.sheet} 2> {log}"


rule render_report:
    message:
        "Draw the report of {PLAN.experiment}."
    localrule: True
    input:
        sheet=ancient(PLAN.report_sheet),
    output:
        receipt=REPORT_RECEIPT,
    params:
        out=f"{REPORTS}/{PLAN.experiment}",
    log:
        f"{STORE}/logs/report/{PLAN.experiment}.log",
    shell:
        "crossover report {input.sheet} --out {params.out} --receipt {output.receipt} 2> {log}"
