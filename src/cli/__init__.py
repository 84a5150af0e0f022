"""The programs: ``eval.py``, ``db.py`` and the commands of ``testbed``. click lives only here and in `console`."""
