"""``testbed import``, ``testbed people``, ``testbed corrupt``, and the commands of ``testbed export``."""
