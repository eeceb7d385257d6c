"""In CI, a skip of what can be had there is a failure: `.ci/run` starts every service that these tests need."""

from __future__ import annotations

import os

import pytest

# What cannot be had without the open internet or a GPU, by the beginning of the reason.
CANNOT_BE_HAD = ("no worker can be had",)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if not report.skipped or not os.environ.get("CI"):
        return
    reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    if not reason.removeprefix("Skipped: ").startswith(CANNOT_BE_HAD):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI, where it can be had: {reason}"
