"""Fixtures of the report's tests: the sheet factory, and one whole report made once."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


FACTORY = _load("sheet_factory")


@pytest.fixture(scope="session")
def sheets() -> ModuleType:
    """The sheet factory's module."""
    return FACTORY
