"""Names shared by the reader and the writer of Every Eval Ever's records."""

from __future__ import annotations

from testbed.metric_specs import DECLARED

VERSION = "0.3.0"
LIBRARY = "testbed"  # in eval_library, of records that testbed wrote
SAMPLES_SUFFIX = "_samples.jsonl"
RECORD = "-".join("?" * length for length in (8, 4, 4, 4, 12)) + ".json"  # the pattern of a record's file name
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")  # of who evaluated to the model
# In the details of a metric, so that what it declares is read back; the bounds have fields of their own.
METRIC, SLICE, UNIT = "metric", "slice", "unit"
DECLARATIONS = tuple(name for name in DECLARED if name not in ("lowest", "highest"))
UNBOUNDED = ("-Infinity", "Infinity")
# In the metadata of a sample.
SCORE, SCORE_OF, FINISH, DIGEST, GROUP, OUTPUT = "score", "score.", "finish_reason", "digest", "group", "output"
SLICE_OF, TOP, THINKING_BEGUN = "slice.", "top5", "thinking_begun"
NOT_DEFINED = "not_defined"  # which of evaluation's fields, which the schema requires, say nothing
CLASS, TEXT, NONE = "class", "text", "none"  # the kinds of outputs
