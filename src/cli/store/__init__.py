"""The actions of ``db.py`` on the store itself."""
