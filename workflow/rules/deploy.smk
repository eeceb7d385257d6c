"""One rule a server: bring it up once, measure the cells that the store lacks, stop it."""

for deployment in PLAN.deployments:

    rule:
        name:
            f"deployment_{deployment.rule_name}"
        input:
            sheet=ancient(deployment.sheet),
            needs=ancient(deployment.needs),
        output:
            receipt=deployment.receipt,
        log:
            deployment.log,
        conda:
            "../../envs/crossover.yaml"
        threads: workflow.cores or 1
        resources:
            gpus=deployment.gpus,
        message:
            f"Deployment {deployment.label}: {deployment.missing} of {deployment.total} cells missing."
        shell:
            "crossover deploy {input.sheet} --store results --receipt {output.receipt} --log {log}"
