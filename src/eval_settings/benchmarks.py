"""The named data sets as a family of eval settings; each is declared in its own file."""

from testbed.eval_settings.benchmark_families.benchmark import BENCHMARKS
from testbed.registry import registry

registry.add_eval_setting_family(BENCHMARKS)
