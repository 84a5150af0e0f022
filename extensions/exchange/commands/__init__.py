"""``testbed import``, ``testbed people``, and the commands of ``testbed export``."""
