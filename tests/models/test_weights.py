"""What weights are, told by content; what is said when they cannot be loaded; and that loading runs no foreign code."""

from __future__ import annotations

import copy
import importlib
import linecache
import pickle
import socket
import sys
import threading
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from weights_world import Malicious

from testbed.errors import DefinitionError, WeightsError
from testbed.models.base import weights as weights_base
from testbed.models.base.fitting import fit_state_dict, under_own_names
from testbed.models.base.weights import (
    LocalFiles,
    Weights,
    loading,
    of_files,
    of_network,
    of_state,
    require_host,
)
from testbed.models.loading.checkpoint_file import load_state_dict, open_checkpoint
from testbed.models.model_base import Model, StandardTransform


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))


def state(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return {
        "layer.weight": torch.randn(3, 4, generator=generator),
        "layer.bias": torch.randn(3, generator=generator),
        "count": torch.tensor(7),
        "mask": torch.tensor([True, False]),
    }


def model(**options):
    arguments = {
        "name": "m",
        "transform": StandardTransform(8, 8),
        "classifier_loader": lambda: nn.Linear(2, 3),
        "eval_batch_size": 1,
        **options,
    }
    return Model(**arguments)


# Identity of state dicts ------------------------------------------------------------------------------------------


def test_a_state_dict_is_told_by_content_whatever_its_order():
    first = of_state(state())
    assert first.id.startswith("state:")
    assert of_state(OrderedDict(reversed(state().items()))) == first
    assert of_state({key: value.clone() for key, value in state().items()}) == first
    assert first.size_bytes == 12 * 4 + 3 * 4 + 8 + 2


@pytest.mark.parametrize("key", ["layer.weight", "layer.bias", "count", "mask"])
def test_any_changed_tensor_makes_another_state(key):
    changed = state()
    flat = changed[key].view(-1)
    flat[-1] = ~flat[-1] if flat.dtype == torch.bool else flat[-1] + 1
    assert of_state(changed).id != of_state(state()).id


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value.reshape(4, 3),
        lambda value: value.view(torch.int32),
        lambda value: value.double(),
        lambda value: -value,
        lambda value: value + 1e-6,
    ],
)
def test_shape_type_and_bits_count(change):
    changed = {**state(), "layer.weight": change(state()["layer.weight"])}
    assert of_state(changed).id != of_state(state()).id


def test_names_count():
    values = state()
    values["layer.weights"] = values.pop("layer.weight")
    assert of_state(values).id != of_state(state()).id
    a, b = torch.zeros(2), torch.ones(2)
    assert of_state({"a": a, "b": b}).id != of_state({"a": b, "b": a}).id


def test_the_layout_in_memory_does_not_count():
    values = state()
    values["layer.weight"] = values["layer.weight"].t().contiguous().t()
    assert not values["layer.weight"].is_contiguous()
    assert of_state(values) == of_state(state())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.uint8, torch.int64, torch.complex64])
def test_tensors_of_every_type_and_size_have_an_identity(dtype):
    values = {"scalar": torch.ones((), dtype=dtype), "empty": torch.ones((0, 3), dtype=dtype)}
    assert of_state(values) == of_state(dict(values))
    assert of_state(values).id != of_state({**values, "scalar": torch.zeros((), dtype=dtype)}).id


def test_entries_that_are_no_tensors_count_too():
    assert of_state({**state(), "extra": {"version": 1}}).id != of_state({**state(), "extra": {"version": 2}}).id


def test_networks_and_other_objects_are_told_by_what_they_hold():
    torch.manual_seed(0)
    network = nn.Linear(2, 3)
    assert of_network(network).id.startswith("state:")
    assert of_network(network).size_bytes == of_state(network.state_dict()).size_bytes
    assert of_network(network) == of_network(copy.deepcopy(network))
    assert of_network(network) != of_network(nn.Linear(2, 3))

    class Trees:
        def __init__(self, depth):
            self.depth = depth

    assert of_network(Trees(3)).id.startswith("object:")
    assert of_network(Trees(3)) == of_network(Trees(3))
    assert of_network(Trees(3)) != of_network(Trees(4))


# Identity of structures -------------------------------------------------------------------------------------------


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.1))


CHANGES = {
    "eps": lambda made: setattr(made[1], "eps", 1e-3),
    "a stride": lambda made: setattr(made[0], "stride", (2, 2)),
    "an activation": lambda made: made.__setitem__(2, nn.GELU()),
    "a rate of dropout": lambda made: setattr(made[3], "p", 0.2),
    "a forward hook": lambda made: made[2].register_forward_hook(lambda module, images, output: output * 2),
    "a forward-pre hook": lambda made: made.register_forward_pre_hook(lambda module, images: images),
    "a backward hook": lambda made: made.register_full_backward_hook(lambda module, grad_in, grad_out: None),
    "a buffer outside the state dict": lambda made: made.register_buffer("mean", torch.ones(1), persistent=False),
    "a tensor in a field": lambda made: setattr(made, "scale", [torch.ones(2)]),
    "a method of an object": lambda made: setattr(made, "forward", lambda images: images),
    "the order of layers without weights": lambda made: made.append(made.pop(2)),
    "an activation that is a field": lambda made: setattr(made, "act", torch.relu),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_a_state_dict_does_not_show_of_a_network_counts(change):
    changed = network()
    change(changed)
    assert of_network(changed) != of_network(network())
    again = network()
    change(again)
    assert of_network(changed) == of_network(again)


def test_mode_gradients_and_hooks_that_were_removed_do_not_count():
    made = network().eval().requires_grad_(False)
    made.device = torch.device("cpu")
    other = network()
    other.device = torch.device("meta")
    hook = other[0].register_forward_hook(print)
    hook.remove()
    assert of_network(made) == of_network(other)


def test_a_field_that_cannot_be_described_counts_by_its_type():
    def with_field(value):
        made = network()
        made.lock = value
        return made

    assert of_network(with_field(threading.Lock())) == of_network(with_field(threading.Lock()))
    assert of_network(with_field(threading.Lock())) != of_network(with_field(None))


NETS = """
import threading
import torch
from torch import nn

LOCK = threading.Lock()

class Net(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.layer = nn.Linear(1, 1)
        nn.init.ones_(self.layer.weight)
        nn.init.ones_(self.layer.bias)

    def forward(self, images):
        with LOCK:
            return self.layer(images) * VALUE
"""
REGISTERED = """
import timm
from timm.models import register_model

@register_model
def h1_net(pretrained=False, **options):
    return Net()
"""
HUB = """
def mine(**options):
    return Net()
"""


def timm_network(folder):
    import timm

    exec_file(folder / "nets.py", "h1_plugin")
    return timm.create_model("h1_net")


def hub_network(folder):
    return torch.hub.load(str(folder), "mine", source="local")


def imported_network(folder):
    return importlib.import_module("nets").Net()


def exec_file(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


LOADERS = {
    "timm's registry": ("nets.py", NETS + REGISTERED, timm_network),
    "a folder for torch.hub": ("hubconf.py", NETS + HUB, hub_network),
    "a module imported by name": ("nets.py", NETS, imported_network),
}


@pytest.mark.filterwarnings("ignore:Overwriting h1_net")
@pytest.mark.parametrize("lock", [True, False], ids=["with a lock", "without"])
@pytest.mark.parametrize(("file", "source", "load"), LOADERS.values(), ids=LOADERS)
def test_the_code_of_a_network_counts_however_it_was_found(tmp_path, monkeypatch, file, source, load, lock):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    source = source if lock else source.replace("with LOCK", "if True")
    found = []
    for value in ("2", "2", "3"):
        Path(tmp_path / file).write_text(source.replace("VALUE", value))
        linecache.clearcache()
        importlib.invalidate_caches()
        for name in ("nets", "hubconf", "h1_plugin"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        found.append(of_network(load(tmp_path)))
    assert found[0] == found[1] != found[2]


class Tokens:
    def __init__(self, length):
        self.length = length


def test_of_a_pair_the_network_and_its_tokenizer_count():
    pair = (network(), Tokens(77))
    assert of_network(pair) == of_network((network(), Tokens(77)))
    assert of_network(pair) != of_network((network(), Tokens(64)))
    changed = network()
    changed[1].eps = 1e-3
    assert of_network(pair) != of_network((changed, Tokens(77)))
    assert of_network(pair).size_bytes == of_network(network()).size_bytes


# Identity of files ------------------------------------------------------------------------------------------------


def test_equal_content_in_two_files_is_the_same_weights(tmp_path):
    for name in ("a.safetensors", "b.safetensors"):
        save_file(state(), tmp_path / name)
    one, other = of_files([tmp_path / "a.safetensors"]), of_files([tmp_path / "b.safetensors"])
    assert one == other
    assert one.id.startswith("sha256:")
    assert one.size_bytes == (tmp_path / "a.safetensors").stat().st_size
    (tmp_path / "b.safetensors").unlink()
    save_file({**state(), "layer.bias": state()["layer.bias"] + 1}, tmp_path / "b.safetensors")
    assert of_files([tmp_path / "b.safetensors"]).id != one.id


def test_several_files_are_told_by_all_of_them_in_any_order(tmp_path):
    paths = [tmp_path / name for name in "abc"]
    for path in paths:
        path.write_bytes(path.name.encode() * 3)
    whole = of_files(paths)
    assert of_files(paths[::-1]) == whole
    assert whole.size_bytes == 9
    assert of_files(paths[:2]).id != whole.id


# What a definition says about its weights -------------------------------------------------------------------------


def test_weights_by_an_id_of_ones_own():
    assert model(weights="v1").weights() == Weights("named:v1", 0)


def test_weights_in_a_file(tmp_path):
    (tmp_path / "w.bin").write_bytes(b"weights")
    assert model(weights=tmp_path / "w.bin").weights() == of_files([tmp_path / "w.bin"])
    with pytest.raises(WeightsError, match=r"gone\.bin do not exist"):
        model(weights=tmp_path / "gone.bin").weights()
    with pytest.raises(WeightsError, match=r"gone\.bin do not exist"):
        LocalFiles((tmp_path / "gone.bin",)).files(fetch=False)


def test_weights_of_a_source(tmp_path):
    (tmp_path / "w.bin").write_bytes(b"weights")

    class Source:
        def files(self, fetch):
            return [tmp_path / "w.bin"] if fetch else None

    assert model(weights=Source()).weights(fetch=False) is None
    assert model(weights=Source()).weights() == of_files([tmp_path / "w.bin"])


def test_without_a_source_the_loaded_network_is_digested():
    def load():
        torch.manual_seed(5)
        return nn.Linear(2, 3)

    assert model(classifier_loader=load).weights() == of_network(load())


def test_random_weights_are_told_by_their_seed_and_load_nothing():
    def never():
        raise AssertionError("the loader was called")

    made = model(classifier_loader=never, weights="v1")
    assert made.weights(random_seed=3) == Weights("random:3", 0)
    assert made.weights(random_seed=3).id != made.weights(random_seed=4).id


# What is said when a loader fails ---------------------------------------------------------------------------------


def test_a_failing_loader_becomes_one_line_with_the_models_name():
    def fail():
        raise RuntimeError("size mismatch for fc:\nlong list\nof keys")

    with pytest.raises(WeightsError) as caught:
        model(classifier_loader=fail).weights()
    assert "\n" not in str(caught.value)
    for word in ("m:", "cannot be loaded", "RuntimeError", "size mismatch for fc"):
        assert word in str(caught.value)
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_download_of_torch_hub_that_fails_is_told_with_url_and_place():
    def fail():
        print('Downloading: "https://host/w.pth" to /cache/w.pth', file=sys.stderr)
        raise OSError("<urlopen error [Errno -2] Name or service not known>")

    with pytest.raises(WeightsError) as caught, loading("m"):
        fail()
    for word in ("m:", "https://host/w.pth", "/cache/w.pth", "Name or service not known", "--random-weights"):
        assert word in str(caught.value)


def test_errors_of_our_own_pass_unchanged():
    with pytest.raises(DefinitionError, match=r"^as it is$"), loading("m"):
        raise DefinitionError("as it is")


# Whether a host can be reached ------------------------------------------------------------------------------------


@pytest.fixture
def connections(monkeypatch):
    """Where connections were tried; all of them are refused."""
    tried = []

    def refuse(address, timeout=None):
        tried.append(address)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket, "create_connection", refuse)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    return tried


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://example.org/w.pth", ("example.org", 443)),
        ("http://example.org/w.pth", ("example.org", 80)),
        ("https://example.org:8443/w.pth", ("example.org", 8443)),
        ("https://huggingface.co/a/b/resolve/main/w", ("huggingface.co", 443)),
    ],
)
def test_a_host_that_refuses_is_told_with_url_and_place(connections, url, address):
    with pytest.raises(WeightsError) as caught:
        require_host("m", url, "/place/w.pth")
    assert connections == [address]
    for word in ("m:", url, "/place/w.pth", address[0], "cannot be reached", "Connection refused", "--random-weights"):
        assert word in str(caught.value)


@pytest.mark.parametrize("variable", ["https_proxy", "HTTPS_PROXY", "all_proxy"])
def test_behind_a_proxy_the_proxy_is_asked(connections, monkeypatch, variable):
    monkeypatch.setenv(variable, "http://proxy.lab:3128")
    with pytest.raises(WeightsError, match=r"proxy\.lab cannot be reached"):
        require_host("m", "https://example.org/w.pth", "/place")
    assert connections == [("proxy.lab", 3128)]


@pytest.mark.parametrize("value", ["1", "true", "ON"])
def test_an_offline_hub_is_not_asked(connections, monkeypatch, value):
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    with pytest.raises(WeightsError, match="HF_HUB_OFFLINE is set"):
        require_host("m", "https://huggingface.co/a/b/resolve/main/w", "/place")
    assert connections == []


def test_a_host_that_never_answers_is_given_up(connections, monkeypatch):
    release = threading.Event()

    def hang(address, timeout=None):
        release.wait(30)
        raise OSError("too late")

    monkeypatch.setattr(socket, "create_connection", hang)
    monkeypatch.setattr(weights_base, "PROBE_SECONDS", 0.05)
    try:
        with pytest.raises(WeightsError, match="no answer within"):
            require_host("m", "https://example.org/w.pth", "/place")
    finally:
        release.set()


def test_a_host_that_answers_is_no_error(connections, monkeypatch):
    class Open:
        def close(self):
            connections.append("closed")

    monkeypatch.setattr(socket, "create_connection", lambda address, timeout=None: Open())
    require_host("m", "https://example.org/w.pth", "/place")
    assert connections == ["closed"]


# Reading checkpoints ----------------------------------------------------------------------------------------------


def saved(tmp_path, content):
    torch.save(content, tmp_path / "w.pth")
    return tmp_path / "w.pth"


def assert_is_state(loaded):
    loaded = under_own_names(state(), loaded, "w").state
    assert loaded.keys() == state().keys()
    assert all(torch.equal(value, loaded[key]) for key, value in state().items())


@pytest.mark.parametrize(
    "wrap",
    [
        lambda plain: plain,
        lambda plain: {"state_dict": plain, "epoch": 3, "optimizer": {"lr": 0.1}},
        lambda plain: {"model": plain, "args": {"lr": 0.1}},
        lambda plain: {"model_ema": plain, "model": {"other": torch.zeros(1)}},
        lambda plain: {"state_dict_ema": plain, "state_dict": {"other": torch.zeros(1)}},
        lambda plain: {f"module.{key}": value for key, value in plain.items()},
        lambda plain: {"state_dict": {f"module.{key}": value for key, value in plain.items()}},
        lambda plain: {f"_orig_mod.{key}": value for key, value in plain.items()},
        lambda plain: {f"module._orig_mod.{key}": value for key, value in plain.items()},
        lambda plain: {f"_orig_mod.module.{key}": value for key, value in plain.items()},
        OrderedDict,
    ],
)
def test_a_state_dict_is_found_in_its_wrapping(tmp_path, wrap):
    assert_is_state(load_state_dict(saved(tmp_path, wrap(state()))))


def test_a_prefix_that_not_all_names_have_stays(tmp_path):
    content = {"module.a": torch.zeros(1), "b": torch.zeros(1)}
    assert load_state_dict(saved(tmp_path, content)).keys() == content.keys()


def test_a_safetensors_file_is_read(tmp_path):
    save_file(state(), tmp_path / "w.safetensors")
    assert_is_state(load_state_dict(tmp_path / "w.safetensors"))
    save_file({f"module.{key}": value for key, value in state().items()}, tmp_path / "w.safetensors")
    assert_is_state(load_state_dict(tmp_path / "w.safetensors"))


def test_an_entry_can_be_asked_for(tmp_path):
    other = {"weight": torch.ones(2)}
    path = saved(tmp_path, {"model": state(), "ema": other, "epoch": 3})
    assert_is_state(load_state_dict(path))
    assert torch.equal(load_state_dict(path, "ema")["weight"], other["weight"])
    with pytest.raises(WeightsError, match=r"'epoch' is not one of its entries with weights \('model', 'ema'\)"):
        load_state_dict(path, "epoch")


@pytest.mark.parametrize("content", [{}, [1, 2], torch.zeros(3), {"state_dict": {}}, {"epoch": 3}, "text"])
def test_a_file_without_a_state_dict_is_refused(tmp_path, content):
    with pytest.raises(WeightsError, match=r"w\.pth has no state dict"):
        load_state_dict(saved(tmp_path, content))


def damaged(path, kind):
    if kind == "missing":
        return path
    if kind == "folder":
        path.mkdir()
    elif kind == "truncated":
        torch.save(state(), path)
        path.write_bytes(path.read_bytes()[:200])
    else:
        path.write_bytes({"empty": b"", "text": b"hello\nworld", "noise": bytes(range(256))}[kind])
    return path


@pytest.mark.parametrize("kind", ["missing", "folder", "empty", "text", "noise", "truncated"])
@pytest.mark.parametrize("name", ["w.pth", "w.safetensors"])
def test_an_unreadable_file_gives_one_line_that_names_it(tmp_path, name, kind):
    path = damaged(tmp_path / name, kind)
    with pytest.raises(WeightsError) as caught:
        load_state_dict(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    words = {"missing": "does not exist", "folder": "is a folder"}.get(kind, "cannot be read as weights")
    assert words in str(caught.value)


@pytest.mark.parametrize("content", [True, False])
def test_a_file_that_is_cut_off_is_said_to_be_wherever_it_ends(tmp_path, content):
    whole = saved(tmp_path, {"weight": torch.zeros(100_000)}).read_bytes()
    path = tmp_path / "cut.pth"
    for length in (10, 500, 5_000, 50_000, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(WeightsError, match="was not written to its end"):
            open_checkpoint(path, content)


def test_the_malicious_pickle_works_where_it_is_let(tmp_path):
    pickle.loads(pickle.dumps(Malicious(tmp_path / "made"), protocol=2)).close()
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "wrap", [lambda evil: evil, lambda evil: {"state_dict": evil}, lambda evil: {**state(), "x": evil}]
)
@pytest.mark.parametrize(
    "save", [torch.save, lambda content, path: path.write_bytes(pickle.dumps(content, protocol=2))]
)
def test_loading_a_checkpoint_runs_no_code_in_it(tmp_path, save, wrap):
    path = tmp_path / "w.pth"
    save(wrap(Malicious(tmp_path / "made")), path)
    with pytest.raises(WeightsError) as caught:
        load_state_dict(path)
    assert not (tmp_path / "made").exists()
    assert "cannot be read as weights" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_message_about_a_pickled_network_gives_no_dangerous_advice(tmp_path):
    (tmp_path / "w.pth").write_bytes(pickle.dumps(Malicious(tmp_path / "made"), protocol=2))
    with pytest.raises(WeightsError) as pickled:
        load_state_dict(tmp_path / "w.pth")
    with pytest.raises(WeightsError) as network:
        load_state_dict(saved(tmp_path, nn.Linear(2, 3)))
    for caught in (pickled, network):
        assert "\x1b" not in str(caught.value)
        assert "will likely succeed" not in str(caught.value)


# Fitting a state dict into a network ------------------------------------------------------------------------------


def test_a_state_that_fits_is_loaded():
    torch.manual_seed(1)
    source, target = nn.Linear(4, 3), nn.Linear(4, 3)
    fit_state_dict(target, source.state_dict(), "w")
    assert torch.equal(source.weight, target.weight)
    assert torch.equal(source.bias, target.bias)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda own: {"weight": own["weight"]}, ["missing bias"]),
        (lambda own: {**own, "extra": torch.zeros(1)}, ["unexpected extra"]),
        (lambda own: {**own, "weight": torch.zeros(4, 3)}, ["weight is (4, 3), not (3, 4)"]),
        (
            lambda own: {f"x{i}": torch.zeros(1) for i in range(9)},
            ["missing weight and 1 more", "unexpected x0 and 8 more"],
        ),
    ],
)
def test_a_state_that_does_not_fit_is_told_by_its_first_faults(change, words):
    network = nn.Linear(4, 3)
    with pytest.raises(WeightsError) as caught:
        fit_state_dict(network, change(network.state_dict()), "the checkpoint w")
    assert str(caught.value).startswith("the checkpoint w does not fit the architecture: ")
    for word in words:
        assert word in str(caught.value)
