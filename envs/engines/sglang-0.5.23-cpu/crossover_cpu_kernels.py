"""Lets SGLang start where its compiled kernels have no build: importing them gives empty stand-ins.

Imported at each start of the environment's interpreter. SGLang imports `sgl_kernel` and `torchvision` at module level
even when it serves on the CPU with PyTorch's own attention and sampling, where it never calls them. A stand-in answers
every import and every attribute with a class that does nothing, so that a call that does need a kernel gives a wrong
result or an error rather than a fast one: text generation with torch_native attention and pytorch sampling is all that
this environment is for.
"""

import importlib.abc
import importlib.machinery
import sys
import types

STANDS_IN_FOR = ("sgl_kernel", "torchvision")
CLAIMED_VERSION = "0.28.0"  # above every minimum that SGLang checks


def _is_special(name):
    return name.startswith("__")


class _Anything(type):
    """The class of a stand-in: its attributes are itself."""

    def __getattr__(cls, name):
        if _is_special(name):
            raise AttributeError(name)
        return cls


class StandIn(metaclass=_Anything):
    """Takes any argument; used as a decorator it gives back what it decorates."""

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) else self

    def __getattr__(self, name):
        if _is_special(name):
            raise AttributeError(name)
        return self


class StandInModule(types.ModuleType):
    """A module whose every public name is a class of its own, as isinstance and subclassing need."""

    def __getattr__(self, name):
        if _is_special(name):
            raise AttributeError(name)
        made = type(name, (StandIn,), {})
        setattr(self, name, made)
        return made


class StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the stand-ins, packages and submodules alike, after every real finder has failed."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] not in STANDS_IN_FOR:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        module = StandInModule(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        module.__version__ = CLAIMED_VERSION


sys.meta_path.append(StandInFinder())
