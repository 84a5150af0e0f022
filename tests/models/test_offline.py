"""Without a network: clear words within seconds, whichever library the weights belong to."""

from __future__ import annotations

import socket
import urllib.error

import pytest

from testbed.errors import WeightsError
from testbed.models.model_base import LoadOptions
from testbed.models.open_clip_models import OpenClipFamily
from testbed.models.timm_models import TimmFamily
from testbed.models.torchvision_models import TorchvisionFamily

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@pytest.fixture
def no_network(monkeypatch, torch_home, hub_cache):
    """No name resolves, no cache holds anything, and whoever starts a download fails the test."""

    def unknown(*args, **options):
        raise socket.gaierror(-2, "Name or service not known")

    def never(*args, **options):
        raise AssertionError("a download was started")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr(socket, "create_connection", unknown)
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    for module in ("huggingface_hub", "huggingface_hub.file_download", "timm.models._hub", "open_clip.pretrained"):
        monkeypatch.setattr(f"{module}.hf_hub_download", never)
    monkeypatch.setattr("torch.hub.download_url_to_file", never)
    return torch_home


MODELS = [
    (
        TorchvisionFamily(),
        "resnet50",
        "https://download.pytorch.org/models/resnet50-0676ba61.pth",
        "checkpoints/resnet50-0676ba61.pth",
    ),
    (
        TimmFamily(),
        "timm/resnet18.a1_in1k",
        "https://huggingface.co/timm/resnet18.a1_in1k/resolve/main/model.safetensors",
        "hf download timm/resnet18.a1_in1k model.safetensors",
    ),
    (
        OpenClipFamily(),
        "ViT-B-32,laion2b_s34b_b79k",
        "https://huggingface.co/laion/CLIP-ViT-B-32-laion2B-s34B-b79K/resolve/main/open_clip_model.safetensors",
        "hf download laion/CLIP-ViT-B-32-laion2B-s34B-b79K open_clip_model.safetensors",
    ),
]


@pytest.mark.parametrize("offline", [True, False])
@pytest.mark.parametrize(("family", "name", "url", "place"), MODELS, ids=[model[1] for model in MODELS])
def test_missing_weights_say_what_to_get_and_where_to_put_it(
    no_network, monkeypatch, tmp_path, family, name, url, place, offline
):
    if offline:
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    else:
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    made = family.build(name)
    assert made.weights(fetch=False) is None
    with pytest.raises(WeightsError) as caught:
        made.weights()
    message = str(caught.value)
    assert "\n" not in message
    for word in (f"{name}: ", url, place, str(tmp_path), "--random-weights"):
        assert word in message
    if offline and "huggingface" in url:
        assert "HF_HUB_OFFLINE is set" in message
    else:
        assert "cannot be reached: Name or service not known" in message


def test_an_own_repository_of_the_hub_says_what_to_get(no_network, monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with pytest.raises(WeightsError) as caught:
        OpenClipFamily().build("hf-hub:owner/clip")
    for word in ("https://huggingface.co/owner/clip/resolve/main/open_clip_config.json", "cannot be reached"):
        assert word in str(caught.value)


def test_a_mirror_of_the_hub_is_named(no_network, monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "https://hub.lab")
    with pytest.raises(WeightsError) as caught:
        TimmFamily().build("timm/resnet18.a1_in1k").weights()
    for word in ("hub.lab cannot be reached", "https://hub.lab/timm/resnet18.a1_in1k/resolve/main/model.safetensors"):
        assert word in str(caught.value)


def test_a_download_that_breaks_off_says_the_same(no_network, monkeypatch):
    class Open:
        def close(self):
            pass

    def broken(*args, **options):
        raise ConnectionResetError(104, "Connection reset by peer")

    monkeypatch.setattr(socket, "create_connection", lambda *args, **options: Open())
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr("torch.hub.download_url_to_file", broken)
    monkeypatch.setattr("huggingface_hub.hf_hub_download", broken)
    for family, name, url, _ in MODELS:
        with pytest.raises(WeightsError) as caught:
            family.build(name).weights()
        assert "Connection reset by peer" in str(caught.value)
        assert url in str(caught.value)
    assert list(no_network.iterdir()) == []


def test_loading_without_asking_for_the_weights_first_says_where_torch_hub_wants_them(torch_home, monkeypatch):
    def unknown(*args, **options):
        raise urllib.error.URLError(socket.gaierror(-2, "Name or service not known"))

    monkeypatch.setattr("torch.hub.urlopen", unknown)
    with pytest.raises(WeightsError) as caught:
        TorchvisionFamily().build("squeezenet1_1").load(LoadOptions("cpu"))
    for word in ("squeezenet1_1: ", "https://download.pytorch.org/models/squeezenet1_1-", str(torch_home)):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("family", "name"), [(MODELS[0][0], "squeezenet1_1"), (MODELS[1][0], "timm/test_vit.r160_in1k")]
)
def test_random_weights_need_no_network(no_network, family, name):
    made = family.build(name)
    assert made.weights(random_seed=0).id == "random:0"
    assert made.load(LoadOptions("cpu", random_seed=0)).network is not None
