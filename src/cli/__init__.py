"""The commands of ``testbed``, one file each, and ``eval.py`` and ``db.py``. click lives only here and in `console`."""
