"""The results store: its tables, and the class that reads and writes them."""

if __name__ != "testbed.db":
    raise ImportError(
        f"import this package as 'testbed.db', not as {__name__!r} (pip install -e . makes it importable)"
    )
