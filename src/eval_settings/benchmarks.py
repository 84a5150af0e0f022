"""The named data sets as a family of eval settings; each is declared in a file of its own."""

from testbed.eval_settings.base.benchmark import BENCHMARKS
from testbed.registry import registry

registry.add_eval_setting_family(BENCHMARKS)
