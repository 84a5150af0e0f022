"""Corruptions by name and severity: the field of a setting."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import pytest
import torch

from testbed.corruptions import Corruption, noise, photometric
from testbed.errors import DefinitionError
from testbed.identity import describe, digest

NAMES = {
    "noise.gaussian_noise": noise.gaussian_noise,
    "noise.impulse_noise": noise.impulse_noise,
    "photometric.gaussian_blur": photometric.gaussian_blur,
    "photometric.contrast": photometric.contrast,
    "photometric.brightness": photometric.brightness,
}


@pytest.mark.parametrize("severity", [1, 5])
@pytest.mark.parametrize("name", NAMES)
def test_a_corruption_is_its_function_at_its_severity(name, severity):
    images = torch.rand(2, 3, 16, 12, generator=torch.Generator().manual_seed(0))
    expected = NAMES[name](images, severity, [4, 5])
    torch.testing.assert_close(Corruption(name, severity)(images, [4, 5]), expected, rtol=0, atol=0)
    torch.testing.assert_close(Corruption(name, severity)(images=images, seeds=[4, 5]), expected, rtol=0, atol=0)
    assert Corruption(name, severity).spec() == {"name": name, "severity": severity}


@pytest.mark.parametrize("name", ["gaussian_noise", "noise.fog", "weather.fog", "", "noise.", ".gaussian_noise"])
def test_an_unknown_name_is_refused(name):
    with pytest.raises(DefinitionError, match=f"no corruption '{name}' in testbed.corruptions"):
        Corruption(name, 1)


@pytest.mark.parametrize("name", ["noise.GAUSSIAN_STD", "noise.__doc__"])
def test_a_name_that_is_no_function_is_refused(name):
    with pytest.raises(DefinitionError, match="no corruption"):
        Corruption(name, 1)


@pytest.mark.parametrize("severity", [0, 6, -1, 1.5, "3", None])
def test_an_unknown_severity_is_refused(severity):
    with pytest.raises(DefinitionError) as caught:
        Corruption("noise.gaussian_noise", severity)
    for word in ("severity", "noise.gaussian_noise", "(1, 2, 3, 4, 5)", repr(severity)):
        assert word in str(caught.value)


def test_the_revision_of_the_function_counts(monkeypatch):
    corruption = Corruption("photometric.contrast", 1)
    before = digest(corruption)
    assert corruption.revision == 1
    monkeypatch.setattr(photometric.contrast, "revision", 2, raising=False)
    assert corruption.revision == 2
    assert digest(corruption) != before


def test_identity_is_that_of_name_and_severity():
    same = digest(Corruption("photometric.contrast", 2))
    assert digest(Corruption("photometric.contrast", 2)) == same
    assert digest(Corruption("photometric.contrast", 3)) != same
    assert digest(Corruption("photometric.brightness", 2)) != same
    json.dumps(describe(Corruption("photometric.contrast", 2)))


def test_a_corruption_travels():
    images = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    copy = pickle.loads(pickle.dumps(Corruption("noise.impulse_noise", 2)))
    torch.testing.assert_close(copy(images, [3]), Corruption("noise.impulse_noise", 2)(images, [3]), rtol=0, atol=0)


def test_defining_a_corruption_imports_no_torch():
    script = (
        "import sys; from testbed.corruptions import Corruption; from testbed.corruptions.adversarial import PGD;"
        "Corruption('noise.gaussian_noise', 1); Corruption('photometric.contrast', 1); PGD('linf', 1, 1, 1);"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
