"""The results store: tables and the one class that holds sessions."""

if __name__ != "testbed.db":
    raise ImportError(
        f"import this package as 'testbed.db', not as {__name__!r} (pip install -e . makes it importable)"
    )
