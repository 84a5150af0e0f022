"""``testbed import``, ``testbed people``, and what ``testbed export`` writes."""
