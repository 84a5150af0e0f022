"""The results store: tables, and the class whose parts read and write them."""

if __name__ != "testbed.db":
    raise ImportError(
        f"import this package as 'testbed.db', not as {__name__!r} (pip install -e . makes it importable)"
    )
