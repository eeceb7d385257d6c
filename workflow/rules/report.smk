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
        page=report(
            f"reports/{PLAN.experiment}/index.html",
            caption="../report/page.rst",
            category="Comparison",
            labels={"experiment": PLAN.experiment, "form": "page"},
        ),
        markdown=report(
            f"reports/{PLAN.experiment}/report.md",
            caption="../report/markdown.rst",
            category="Comparison",
            labels={"experiment": PLAN.experiment, "form": "Markdown"},
        ),
    log:
        f"results/logs/report/{PLAN.experiment}.log",
    localrule: True
    conda:
        "../../envs/crossover.yaml"
    message:
        "Draw the report of {PLAN.experiment}."
    shell:
        "crossover report {input.sheet} --out $(dirname {output.page}) --receipt {output.receipt} 2> {log}"
