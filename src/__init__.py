"""testbed: evaluate vision and vision-language models under many settings, and keep everything they said."""

if __name__ != "testbed":
    raise ImportError(f"import this package as 'testbed', not as {__name__!r} (pip install -e . makes it importable)")

__version__ = "0.1.0"
