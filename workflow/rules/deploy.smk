"""One rule a server: bring it up once, measure the cells that the store lacks, stop it."""

for deployment in PLAN.deployments:

    rule:
        name:
            f"deployment_{deployment.rule_name}"
        message:
            f"Deployment {deployment.label}: {deployment.missing} of {deployment.total} cells missing."
        input:
            sheet=ancient(deployment.sheet),
            needs=ancient(deployment.needs),
        output:
            receipt=deployment.receipt,
        params:
            store=STORE,
        log:
            deployment.log,
        threads: workflow.cores or 1
        resources:
            gpus=deployment.gpus,
        shell:
            "crossover deploy {input.sheet} --store {params.store} --receipt {output.receipt} --log {log}"
