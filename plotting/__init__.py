"""Figures and tables of stored results."""

if __name__ != "testbed.plotting":
    raise ImportError(f"import this package as 'testbed.plotting', not as {__name__!r} (pip install -e . comes first)")
