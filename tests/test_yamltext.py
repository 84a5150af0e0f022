"""YAML: numbers as YAML 1.2 has them, and texts that look like numbers stay texts."""

import pytest
import yaml
from tables import cases

from testbed.yamltext import YamlError, from_yaml, to_yaml

TEXTS = "1:30", "12:30:45", "1_000", "0b11", "1.2.3", "12e456x", "--5"  # numbers of YAML 1.1, or none


@cases(
    ("written", "value"),
    [("010", 10), ("08", 8), ("-5", -5), ("0o17", 15), ("0xff", 255), ("1e1", 10.0), ("1e-5", 1e-5), (".5", 0.5)]
    + [(text, text) for text in TEXTS],
)
def test_a_number_is_what_yaml_1_2_reads(written, value):
    read = from_yaml(f"a: {written}")["a"]
    assert (read, type(read)) == (value, type(value))


@cases("text", [*TEXTS, "010", "12e4567", "1e5", "0o17", "0xff", "5", ".5", "true", "2024-01-01"])
def test_a_text_stays_a_text_for_readers_of_both_versions(text):
    assert from_yaml(to_yaml({"revision": text})) == {"revision": text}
    assert yaml.safe_load(to_yaml({"revision": text})) == {"revision": text}


def test_numbers_that_are_equal_are_one_key():
    with pytest.raises(YamlError, match="10 is given twice"):
        from_yaml("{10: a, 010: b}")
