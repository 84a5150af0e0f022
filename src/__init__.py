"""Evaluates vision, vision-language and text-embedding models under many settings, and stores every output.

    import testbed

    results = testbed.evaluate("digits-cnn", ["digits", "digits-c.*"])
    results.frame

The names below are imported when they are first used.
"""

from __future__ import annotations

import os
from importlib import import_module

if __name__ != "testbed":
    raise ImportError(f"import this package as 'testbed', not as {__name__!r} (pip install -e . makes it importable)")

__path__[:] = map(os.path.realpath, __path__)  # an editable install finds this folder by a link (setup.py)

_start = import_module("testbed.process.at_start")
if _start.is_program():  # before other modules are imported, which takes a while
    _start.leave_at_signals()

from typing import TYPE_CHECKING, Any  # noqa: E402

if TYPE_CHECKING:
    from testbed.api.definitions import register_eval_setting, register_model
    from testbed.api.evaluate import evaluate
    from testbed.api.results import Results, results
    from testbed.db.store import Store
    from testbed.errors import TestbedError

__version__ = "0.1.0"

import_module("testbed.tracing.audit").install()  # what a script reads before its first evaluation also counts

_LAZY = {
    "Results": "testbed.api.results",
    "Store": "testbed.db.store",
    "TestbedError": "testbed.errors",
    "evaluate": "testbed.api.evaluate",
    "register_eval_setting": "testbed.api.definitions",
    "register_model": "testbed.api.definitions",
    "results": "testbed.api.results",
}

__all__ = [
    "Results",
    "Store",
    "TestbedError",
    "evaluate",
    "register_eval_setting",
    "register_model",
    "results",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'testbed' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
