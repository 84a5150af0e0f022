"""The registry of models and eval settings: discovery of definition files, names, patterns, collections.

    from testbed.registry import registry

    registry.add_model(Model(...))
    registry.add_eval_setting(EvalSetting(...))

Every file in ``src/models/`` and ``src/eval_settings/`` that does so is found automatically. Other packages use the
entry-point group ``testbed.plugins``, single files ``--plugin FILE``.
"""

from testbed.registry.catalog import Catalog
from testbed.registry.table import Family, Registry

registry = Catalog()

__all__ = ["Catalog", "Family", "Registry", "registry"]
