"""Changes to definitions, as data: those that make a stored evaluation stale, and those that must not.

Here is one of each way in which a change is noticed; `tests/identity` has what counts in a definition, form by form.

Each change has a folder with a plug-in of its own, and with the files that the plug-in imports or reads. In file names
and texts, ``@@`` stands for a word of the change's own: all plug-ins are loaded into one process.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from safetensors.numpy import save

# Which cell a change is about: the model, the setting and what the change alters.
MODEL = ("@@", "clean")
SETTING = ("plain", "@@")
PROMPTS = ("towers", "@@")
TOWERS = ("@@", "prompted")
BOTH = ("@@", "@@")

PLUGIN = "change_@@.py"


@dataclass(frozen=True, eq=False)
class Change:
    """A change that must be noticed.

    Attributes:
        name: What is changed.
        cell: The model and the setting that it is about.
        plugin: The source of the plug-in, after a beginning that all share.
        files: The texts of the other files of its folder.
        edits: What is replaced in which file.
        written: Files that are written, written anew, or (None) removed.
        make: A program that makes binary files in its folder, and how it is edited; it is run before and after.
        before: Environment variables until the change.
        after: Environment variables from the change on.
        keeps_times: Whether the rewritten files keep their sizes and times of change.
        metric: The metric whose value is compared.
        processes: Whether the first run has processes of its own.
        twice: Whether a setting ``@@-first`` runs before, which may read and keep what this one uses, too.
        described: Whether the identity tells; else a record does, and samples or metrics that are computed again.
    """

    name: str
    cell: tuple[str, str]
    plugin: str
    files: dict[str, str | bytes] = field(default_factory=dict)
    edits: tuple[tuple[str, str, str], ...] = ()
    written: dict[str, str | bytes | None] = field(default_factory=dict)
    make: tuple[str, str, str] | None = None
    before: dict[str, str] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)
    keeps_times: bool = False
    metric: str = "nll"
    processes: bool = False
    twice: bool = False
    described: bool = True


# What the plug-ins share ------------------------------------------------------------------------------------------

BASE = '''
"""A tiny world: twelve images, networks with fixed weights, and short ways to register them."""

import numpy as np
import torch
from PIL import Image

from testbed.data.source import ImageSource
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.identity.describe import digest_bytes
from testbed.models.model_base import DualEncoder, Model, StandardTransform
from testbed.registry import registry

COUNT = 12
CLASSES = 6


def pixels():
    return np.random.default_rng(7).integers(0, 256, (COUNT, 8, 8, 3), dtype=np.uint8)


class Images(ImageSource):
    name = "tiny"

    def __init__(self):
        self.pixels = pixels()
        self.ids = [f"{index:02d}" for index in range(COUNT)]
        self.targets = [index % CLASSES for index in range(COUNT)]

    def image(self, position):
        return Image.fromarray(self.pixels[position])

    def digests(self, positions):
        return [digest_bytes(self.pixels[position].tobytes()) for position in positions]


class Data:
    def spec(self):
        return {"tiny": COUNT}

    def open(self):
        return Images()


class Net(torch.nn.Module):
    def __init__(self, seed=0):
        super().__init__()
        weight = np.random.default_rng(seed).standard_normal((192, CLASSES)).astype(np.float32)
        self.weight = torch.nn.Parameter(0.3 * torch.from_numpy(weight))

    def forward(self, images):
        return images.flatten(1) @ self.weight


class Towers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        numbers = np.random.default_rng(3).standard_normal((320, 12)).astype(np.float32)
        self.weight = torch.nn.Parameter(torch.from_numpy(numbers))

    def encode_image(self, images):
        return (images.flatten(1) - 0.5) @ self.weight[:192]

    forward = encode_image

    def encode_text(self, tokens):
        place = torch.arange(1, tokens.shape[1] + 1)[None, :, None]
        return torch.sin(self.weight[192 + tokens] * place).sum(dim=1)


def tokenize(texts):
    return torch.tensor([[ord(character) % 128 for character in text[:20].ljust(20)] for text in texts])


def add_model(name, loader=Net, **options):
    options.setdefault("transform", StandardTransform(8, 8))
    registry.add_model(Model(name=name, classifier_loader=loader, eval_batch_size=32, **options))


def add_towers(name, loader, **options):
    options.setdefault("transform", StandardTransform(8, 8))
    registry.add_model(DualEncoder(name=name, encoder_loader=loader, eval_batch_size=32, **options))


def add_setting(name, dataset=None, size=COUNT, **options):
    registry.add_eval_setting(EvalSetting(name=name, dataset=dataset or Data(), size=size, **options))
'''

SHARED = """
from stale_base import Net, Towers, add_model, add_setting, add_towers, tokenize

NAMES = ["ant", "bee", "cat", "dog", "eel", "fox"]

add_model("plain")
add_towers("towers", lambda: (Towers(), tokenize))
add_setting("clean")
add_setting("prompted", class_names=NAMES, templates=["a photo of a {c}"])
"""

BEGINNING = """
import sys
from pathlib import Path

FOLDER = str(Path(__file__).parent)
BASE = str(Path(__file__).parent.parent / "base")
sys.path += [folder for folder in (FOLDER, BASE) if folder not in sys.path]

import numpy as np
import torch
from stale_base import (
    CLASSES, COUNT, Data, Images, Net, Towers, add_model, add_setting, add_towers, digest_bytes, pixels, tokenize
)
"""

SCALED = "def f(x):\n    return x * 0.5\n"
SCALE = (SCALED.split("return ")[1].strip(), "x * 0.8")

NETS = (
    "from stale_base import Net\n\nclass N(Net):\n    def forward(self, x):\n        return super().forward(x * 0.5)\n"
)

# 1. Modules of one's own packages ---------------------------------------------------------------------------------

PACKAGES = (
    Change(
        "what a submodule imports relatively",
        SETTING,
        'import pkg_@@.sub\ndef g(x):\n    return pkg_@@.sub.f(x)\nadd_setting("@@", perturbation_fn_gpu=g)\n',
        files={
            "pkg_@@/__init__.py": "",
            "pkg_@@/sub.py": "from .numbers import K\n\ndef f(x):\n    return x * K\n",
            "pkg_@@/numbers.py": "K = 0.5\n",
        },
        edits=(("pkg_@@/numbers.py", "0.5", "0.8"),),
    ),
    Change(
        "a module that a package imports when it is asked for",
        SETTING,
        'import pkg_@@\ndef g(x):\n    return pkg_@@.f(x)\nadd_setting("@@", perturbation_fn_gpu=g)\n',
        files={
            "pkg_@@/__init__.py": (
                "import importlib\n\n"
                "def __getattr__(name):\n"
                '    if name.startswith("__"):\n'
                "        raise AttributeError(name)\n"
                '    return getattr(importlib.import_module(__name__ + ".lazy"), name)\n'
            ),
            "pkg_@@/lazy.py": SCALED,
        },
        edits=(("pkg_@@/lazy.py", *SCALE),),
    ),
)

# 2. Networks that a loader does not name --------------------------------------------------------------------------

NETWORKS = (
    Change(
        "a folder that torch.hub loads from",
        MODEL,
        'def load():\n    return torch.hub.load(FOLDER + "/hub", "net", source="local")\nadd_model("@@", load)\n',
        files={"hub/hubconf.py": f"dependencies = []\n{NETS}\ndef net():\n    return N()\n"},
        edits=(("hub/hubconf.py", "x * 0.5", "x * 0.8"),),
    ),
    Change(
        "the class of a network that was pickled whole",
        MODEL,
        'def load():\n    return torch.load(FOLDER + "/whole.pt", weights_only=False)\nadd_model("@@", load)\n',
        files={
            "nets_@@.py": NETS,
            "make_@@.py": 'import torch\nfrom nets_@@ import N\n\ntorch.save(N(), "whole.pt")\n',
        },
        edits=(("nets_@@.py", "x * 0.5", "x * 0.8"),),
        make=("make_@@.py", "", ""),
    ),
    Change(
        "a TorchScript file with the same weights",
        MODEL,
        'add_model("@@", lambda: torch.jit.load(FOLDER + "/net.ts"))\n',
        files={
            "make_@@.py": (
                "import torch\nfrom nets_@@ import N\n\n"
                'torch.jit.save(torch.jit.trace(N().eval(), torch.rand(12, 3, 8, 8)), "net.ts")\n'
            ),
            "nets_@@.py": NETS,
        },
        make=("nets_@@.py", "x * 0.5", "x * 0.8"),
    ),
    Change(
        "an attribute of a network that is read from a file when the network is made",
        MODEL,
        'import nets_@@\nadd_model("@@", nets_@@.N)\n',
        files={
            "nets_@@.py": (
                "from pathlib import Path\nfrom stale_base import Net\n\n"
                "class N(Net):\n"
                "    def __init__(self):\n"
                "        super().__init__()\n"
                '        self.scale = float(Path(__file__).with_name("scale.txt").read_text())\n'
                "    def forward(self, x):\n"
                "        return super().forward(x * self.scale)\n"
            ),
            "scale.txt": "0.5",
        },
        written={"scale.txt": "0.8"},
    ),
    Change(
        "the tokenizer of a dual encoder in a module that is imported by name",
        TOWERS,
        'import importlib\nadd_towers("@@", lambda: (Towers(), importlib.import_module("words_@@").tokens))\n',
        files={"words_@@.py": "from stale_base import tokenize\n\ndef tokens(texts):\n    return tokenize(texts)\n"},
        edits=(("words_@@.py", "tokenize(texts)", "tokenize([text.upper() for text in texts])"),),
    ),
)

# 3. Values of helper modules --------------------------------------------------------------------------------------

HELPED = 'import helper_@@\ndef g(x):\n    return x * helper_@@.K\nadd_setting("@@", perturbation_fn_gpu=g)\n'
CONFIGURED = "K = 1.0\n\ndef configure(strength):\n    global K\n    K = strength\n\ndef f(x):\n    return x * K\n"

HELPERS = (
    Change(
        "how a helper is configured",
        SETTING,
        "import helper_@@\nhelper_@@.configure(0.5)\n"
        'def g(x):\n    return helper_@@.f(x)\nadd_setting("@@", perturbation_fn_gpu=g)\n',
        files={"helper_@@.py": CONFIGURED},
        edits=((PLUGIN, "configure(0.5)", "configure(0.8)"),),
    ),
)

# 4. Hooks ---------------------------------------------------------------------------------------------------------

HOOKS = (
    Change(
        "a forward hook that a module imported by name adds",
        MODEL,
        "import importlib\n"
        "def load():\n"
        "    network = Net(44)\n"
        '    importlib.import_module("hooks_@@").add_to(network)\n'
        "    return network\n"
        'add_model("@@", load)\n',
        files={
            "hooks_@@.py": (
                "def add_to(network):\n    network.register_forward_hook(lambda module, given, result: result * 0.5)\n"
            ),
        },
        edits=(("hooks_@@.py", "0.5", "0.8"),),
    ),
)

# 5. Files rewritten with equal size and time of change ------------------------------------------------------------

TIMES = (
    Change(
        "an image with its old size and time",
        SETTING,
        "from testbed.eval_settings.eval_setting_base import StandardDataset\n"
        'add_setting("@@", dataset=StandardDataset(path=FOLDER + "/images"), size=6)\n',
        files={
            "make_@@.py": (
                "from pathlib import Path\nfrom PIL import Image\nfrom stale_base import pixels\n\n"
                "for number, image in enumerate(pixels()[:6]):\n"
                '    folder = Path("images", f"class{number}")\n'
                "    folder.mkdir(parents=True, exist_ok=True)\n"
                '    Image.fromarray(image // 1).save(folder / "image.bmp")\n'
            ),
        },
        make=("make_@@.py", "image // 1", "image // 2"),
        keeps_times=True,
    ),
    Change(
        "a file of weights with its old size and time",
        MODEL,
        "def load():\n"
        "    network = Net()\n"
        '    network.load_state_dict({"weight": torch.from_numpy(np.fromfile(WEIGHTS, np.float32).reshape(192, 6))})\n'
        "    return network\n"
        'WEIGHTS = Path(FOLDER, "weights.bin")\n'
        'add_model("@@", load, weights=WEIGHTS)\n',
        files={
            "make_@@.py": (
                'import numpy as np\n\nnp.linspace(-1, 0.5, 192 * 6, dtype=np.float32).tofile("weights.bin")\n'
            ),
        },
        make=("make_@@.py", "0.5", "0.8"),
        keeps_times=True,
    ),
    Change(
        "a helper module with its old size and time",
        SETTING,
        HELPED,
        files={"helper_@@.py": "K = 0.5\n"},
        edits=(("helper_@@.py", "0.5", "0.8"),),
        keeps_times=True,
    ),
    Change(
        "the plug-in itself with its old size and time",
        SETTING,
        'add_setting("@@", perturbation_fn_gpu=lambda x: x * 0.5)\n',
        edits=((PLUGIN, "x * 0.5", "x * 0.8"),),
        keeps_times=True,
    ),
)

# 6. Files and variables read inside a function --------------------------------------------------------------------

# What Python opens is recorded whatever it is called. What other code opens, such as that of safetensors, is recorded
# where a text of the source file names it.

READ = (
    Change(
        "a file that a perturbation reads",
        SETTING,
        'def g(x):\n    return x * float(Path(FOLDER, "k" + ".txt").read_text())\n'
        'add_setting("@@", perturbation_fn_gpu=g)\n',
        files={"k.txt": "0.5"},
        written={"k.txt": "0.8"},
        described=False,
    ),
    Change(
        "a file that a perturbation of one image reads",
        SETTING,
        "def g(image):\n"
        '    with open(FOLDER + "/k" + ".csv") as file:\n'
        '        return image * float(file.read().split(",")[1])\n'
        'add_setting("@@", perturbation_fn_cpu=g)\n',
        files={"k.csv": "k,0.5,1"},
        written={"k.csv": "k,0.8,1"},
        processes=True,
        described=False,
    ),
    Change(
        "a safetensors file that a perturbation reads",
        SETTING,
        "def g(x):\n"
        "    from safetensors.torch import load_file\n"
        '    return x * load_file(FOLDER + "/k.safetensors")["k"]\n'
        'add_setting("@@", perturbation_fn_gpu=g)\n',
        files={
            "make_@@.py": (
                "import torch\nfrom safetensors.torch import save_file\n\n"
                'save_file({"k": torch.tensor([0.5])}, "k.safetensors")\n'
            ),
        },
        make=("make_@@.py", "0.5", "0.8"),
        described=False,
    ),
    Change(
        "a picture that a perturbation reads by torchvision",
        SETTING,
        "def g(x):\n"
        "    from torchvision.io import decode_image\n"
        '    return x * decode_image(FOLDER + "/overlay.png") / 255\n'
        'add_setting("@@", perturbation_fn_gpu=g)\n',
        files={
            "make_@@.py": (
                "from PIL import Image\nfrom stale_base import pixels\n\n"
                'Image.fromarray(pixels()[3] // 1).save("overlay.png")\n'
            ),
        },
        make=("make_@@.py", "// 1", "// 9"),
        described=False,
    ),
    Change(
        "a picture that a configuration names and torchvision reads",
        SETTING,
        "import json\n"
        "def g(x):\n"
        "    from torchvision.io import decode_image\n"
        '    return x * decode_image(FOLDER + "/" + json.loads(Path(FOLDER, "c.json").read_text())["overlay"]) / 255\n'
        'add_setting("@@", perturbation_fn_gpu=g)\n',
        files={
            "c.json": '{"overlay": "over@@.png"}',
            "make_@@.py": (
                "from PIL import Image\nfrom stale_base import pixels\n\n"
                'Image.fromarray(pixels()[3] // 1).save("over@@.png")\n'
            ),
        },
        make=("make_@@.py", "// 1", "// 9"),
        described=False,
    ),
    Change(
        "a file in the command of a program",
        SETTING,
        "import subprocess\n"
        "def g(x):\n"
        '    return x * float(subprocess.run("cat k.txt", shell=True, cwd=FOLDER, capture_output=True).stdout)\n'
        'add_setting("@@", perturbation_fn_gpu=g)\n',
        files={"k.txt": "0.5"},
        written={"k.txt": "0.8"},
        described=False,
    ),
    Change(
        "a file that the model's transform reads",
        MODEL,
        "def transform(image):\n"
        '    by = float(np.loadtxt(FOLDER + "/k" + ".txt"))\n'
        "    return torch.from_numpy(np.array(image)).permute(2, 0, 1) / 255 * by\n"
        'add_model("@@", transform=transform)\n',
        files={"k.txt": "0.5"},
        written={"k.txt": "0.8"},
        described=False,
    ),
    Change(
        "a file that the tokenizer of a dual encoder reads",
        TOWERS,
        "def tokens(texts):\n"
        '    prefix = Path(FOLDER, "prefix" + ".txt").read_text()\n'
        "    return tokenize([prefix + text for text in texts])\n"
        'add_towers("@@", lambda: (Towers(), tokens))\n',
        files={"prefix.txt": "see "},
        written={"prefix.txt": "the "},
        described=False,
    ),
)

# 7. Code that a description does not reach ------------------------------------------------------------------------

CODE = (
    Change(
        "a function that globals() gives",
        SETTING,
        "def halve(x):\n    return x * 0.5\n"
        'def g(x):\n    return globals()["hal" + "ve"](x)\nadd_setting("@@", perturbation_fn_gpu=g)\n',
        edits=((PLUGIN, "x * 0.5", "x * 0.8"),),
        described=False,
    ),
    Change(
        "a function that is found by its name in a module",
        SETTING,
        "import sys\nimport ops_@@\n"
        'def g(x):\n    return getattr(sys.modules["ops_" + "@@"], "f")(x)\n'
        'add_setting("@@", perturbation_fn_gpu=g)\n',
        files={"ops_@@.py": SCALED},
        edits=(("ops_@@.py", *SCALE),),
        described=False,
    ),
)

# 8. Libraries that are changed when a plug-in is loaded -----------------------------------------------------------

LIBRARIES = (
    Change(
        "torchvision's adjust_gamma",
        SETTING,
        "import torchvision.transforms.functional as F\n# here\n"
        'def g(image):\n    return F.adjust_gamma(image, 2.0)\nadd_setting("@@", perturbation_fn_cpu=g)\n',
        edits=((PLUGIN, "# here\n", "F.adjust_gamma = lambda image, gamma: image * 0.3\n"),),
    ),
    Change(
        "a function of numpy, by a helper",
        SETTING,
        "import helper_@@\n"
        'def g(image):\n    return image * float(np.sinc(0.5))\nadd_setting("@@", perturbation_fn_cpu=g)\n',
        files={"helper_@@.py": "import numpy\n"},
        written={"helper_@@.py": "import numpy\n\nnumpy.sinc = lambda x: 0.2\n"},
    ),
)

# Data and prompts -------------------------------------------------------------------------------------------------

SOURCE = (
    "class Dimmed(Images):\n"
    "    def image(self, position):\n"
    "        return super().image(position).point(lambda value: int(value * {factor}))\n"
    "    def digests(self, positions):\n"
    '        return [digest_bytes(f"@@ {{position}}".encode()) for position in positions]\n'
    "class Own:\n"
    '    def spec(self):\n        return {{"own": "@@"}}\n'
    "    def open(self):\n        return Dimmed()\n"
)

DATA = (
    Change(
        "a module that a data set's open() imports by name",
        SETTING,
        "import importlib\n"
        "class Own:\n"
        '    def spec(self):\n        return {"own": "@@"}\n'
        '    def open(self):\n        return importlib.import_module("data_@@").Dimmed()\n'
        'add_setting("@@", dataset=Own())\n',
        files={"data_@@.py": "from stale_base import Images, digest_bytes\n" + SOURCE.format(factor="0.5")},
        edits=(("data_@@.py", "value * 0.5", "value * 0.8"),),
    ),
    Change(
        "prompts from a file",
        PROMPTS,
        "def templates():\n"
        '    return Path(FOLDER, "prompts.txt").read_text().splitlines()\n'
        'NAMES = ["ant", "bee", "cat", "dog", "eel", "fox"]\n'
        'add_setting("@@", class_names=NAMES, templates=templates)\n',
        files={"prompts.txt": "a photo of a {c}\n"},
        written={"prompts.txt": "one more {c}\n"},
    ),
    Change(
        "groups of classes from a file",
        SETTING,
        "import json\n"
        'def groups():\n    return json.loads(Path(FOLDER, "groups.json").read_text())\n'
        'add_setting("@@", class_groups=groups, size=2, idx_subsample_list=[0, 1])\n',
        files={"groups.json": "[[0, 1], [2, 3]]"},
        written={"groups.json": "[[0, 4], [2, 5]]"},
    ),
    Change(
        "a helper of both the model and the setting",
        BOTH,
        "import importlib\n"
        "def f(x):\n"
        '    return importlib.import_module("ops_@@").f(x)\n'
        "def classify(images, model):\n    return f(model(images))\n"
        'add_model("@@", classify=classify)\n'
        'add_setting("@@", perturbation_fn_gpu=f)\n',
        files={"ops_@@.py": SCALED},
        edits=(("ops_@@.py", *SCALE),),
    ),
)

# What code reads in ways that a definition does not show ----------------------------------------------------------

HERE = 'open(os.path.join(FOLDER, "number_@@.txt")).read()'
ONE, HALF = {"number_@@.txt": "1"}, {"number_@@.txt": "0.5"}
USES_FACTOR = """
def f(images):
    return images * factor()
add_setting("@@", perturbation_fn_gpu=f)
"""
TWICE = """
def g(images):
    return images * factor() * 0.9
add_setting("@@-first", perturbation_fn_gpu=g)
"""
CACHES = "import functools, os\n@functools.lru_cache\ndef factor():\n    return float({})\n"
CACHES_BESIDE = CACHES.format('open(__file__.replace("{}_@@.py", "number_@@.txt")).read()')
OPTIONAL = 'os.path.join(FOLDER, "opti" + "onal")'
CHILD = (
    "import os\ndef in_child(path):\n    here, there = os.pipe()\n    if os.fork() == 0:\n"
    "        os.write(there, open(path).read().encode())\n        os._exit(0)\n"
    "    os.wait()\n    return os.read(here, 9)\n"
)
LINK = (
    "import os\ndef link(path):\n    if not os.path.lexists(path + '.link'):\n"
    "        os.symlink(path, path + '.link')\n    return path + '.link'\n"
)
TENSORS = (
    "from safetensors import safe_open\ndef tensors(path):\n"
    '    with safe_open(path, framework="np") as file:\n        return file.get_tensor("n")\n'
)


def _reads(name: str, value: str, files=None, written=None, first: str = "", **options) -> Change:
    """A setting that uses a number which a function reads once."""
    plugin = f"{first}import functools, importlib, importlib.util, os\n@functools.lru_cache\ndef factor():\n"
    plugin += f"    return float({value})\n{TWICE if options.get('twice') else ''}{USES_FACTOR}"
    return Change(name, SETTING, plugin, files=files or {}, written=written or {}, described=False, **options)


def _uses(name: str, factor: str, files: dict[str, str], written=None, **options) -> Change:
    """A setting that uses a number of a helper."""
    plugin = f"{factor}{TWICE if options.get('twice') else ''}{USES_FACTOR}"
    options = {"described": False, **options}
    return Change(name, SETTING, plugin, files=files, written=written or HALF, **options)


ACCESSES = (
    _reads("a cached file", HERE, ONE, HALF, twice=True),
    _uses(
        "what a helper of a helper keeps",
        "import one_@@\ndef factor():\n    return one_@@.factor()\n",
        {
            **ONE,
            "one_@@.py": "def factor():\n    import two_@@\n    return two_@@.factor()\n",
            "two_@@.py": CACHES_BESIDE.replace("{}", "two"),
        },
        twice=True,
    ),
    _uses(
        "a number of a helper imported by name",
        'import importlib\ndef factor():\n    return importlib.import_module("help" + "er_@@").NUMBER\n',
        {"helper_@@.py": "NUMBER = 1.0\n"},
        {"helper_@@.py": "NUMBER = 0.5\n"},
    ),
    _uses(
        "a number of a helper imported within a function",
        "def factor():\n    import helper_@@\n    return helper_@@.NUMBER\n",
        {"helper_@@.py": "NUMBER = 1.0\n"},
        {"helper_@@.py": "NUMBER = 0.5\n"},
        described=True,
    ),
    *(
        _uses(
            f"a module that appears, tried by {how}",
            "import functools, importlib.util\n@functools.lru_cache\ndef factor():\n    try:\n"
            f"        return {value}.NUMBER\n    except ImportError:\n        return 1.0\n",
            {},
            {"optional_@@.py": "NUMBER = 0.5\n"},
            twice=True,
            described=how == "import",
        )
        for how, value in (
            ("import", '__import__("optional_@@")'),
            (
                "a search for it",
                '(importlib.import_module if importlib.util.find_spec("opt" + "ional_@@") else __import__)'
                '("opt" + "ional_@@")',
            ),
        )
    ),
    _reads(
        "a file read in a thread",
        'next(ThreadPoolExecutor(1).map(np.loadtxt, [os.path.join(FOLDER, "number_@@.txt")]))',
        ONE,
        HALF,
        first="from concurrent.futures import ThreadPoolExecutor\n",
    ),
    _reads(
        "a file read in a forked process",
        'multiprocessing.get_context("fork").Pool(1).map(np.loadtxt, [os.path.join(FOLDER, "number_@@.txt")])[0]',
        ONE,
        HALF,
        first="import multiprocessing\n",
    ),
    _reads("a file read in a child", 'in_child(os.path.join(FOLDER, "number_@@.txt"))', ONE, HALF, first=CHILD),
    _reads(
        "a file read by its descriptor",
        'os.read(os.open(os.path.join(FOLDER, "number_@@.txt"), os.O_RDONLY), 9)',
        ONE,
        HALF,
    ),
    _reads("a file read by a link", 'open(link(os.path.join(FOLDER, "number_@@.txt"))).read()', ONE, HALF, first=LINK),
    _reads("a file of a relative name", 'open("../@@/number_@@.txt").read()', ONE, HALF),
    _reads(
        "a file that is mapped into memory",
        'np.memmap(os.path.join(FOLDER, "bytes"), mode="r")[0] / 100',
        {"bytes": "d"},
        {"bytes": "2"},
    ),
    _reads(
        "tensors by safetensors",
        'tensors(os.path.join(FOLDER, "ten" + "sors"))',
        {"tensors": save({"n": np.array(1.0)})},
        {"tensors": save({"n": np.array(0.5)})},
        first=TENSORS,
    ),
    _reads(
        "the names in a folder",
        'len(os.listdir(os.path.join(FOLDER, "data")))',
        {"data/a.txt": ""},
        {"data/b.txt": ""},
    ),
    _reads(
        "the names that a pattern finds",
        'len(list(Path(FOLDER).glob("data/*.txt")))',
        {"data/a.txt": ""},
        {"data/b.txt": ""},
    ),
    _uses(
        "a file that appears, tried to open",
        f"import os\ndef factor():\n    try:\n        return float(open({OPTIONAL}).read())\n"
        "    except OSError:\n        return 1.0\n",
        {},
        {"optional": "0.5"},
    ),
    _reads(
        "a file that appears, asked whether it is there",
        f"0.5 if os.path.exists({OPTIONAL}) else 1",
        written={"optional": "0.5"},
    ),
    _reads("a file that appears, by os.access", f"0.5 if os.access({OPTIONAL}, os.R_OK) else 1", {}, {"optional": ""}),
    _reads(
        "a file that disappears, asked for by pathlib",
        f"0.5 if Path({OPTIONAL}).is_file() else 1",
        {"optional": ""},
        {"optional": None},
    ),
    _reads(
        "a variable that a library expands",
        'os.path.expandvars("$STALE_" + "@@")',
        before={"STALE_@@": "1"},
        after={"STALE_@@": "0.5"},
    ),
    Change(
        "what a metric reads once",
        SETTING,
        f"import functools, os\n@functools.lru_cache\ndef factor():\n    return float({HERE})\n"
        "def metrics(logits, targets):\n"
        "    return {'share': factor() * float((logits.argmax(1) == targets).float().mean() + 1)}\n"
        'add_setting("@@-first", metrics_fn=metrics, class_sublist=[0, 1, 2, 3])\n'
        'add_setting("@@", metrics_fn=metrics)\n',
        files=ONE,
        written=HALF,
        metric="share",
        twice=True,
        described=False,
    ),
    _uses(
        "what a plug-in reads when it is imported",
        "import os\nclass Kept:\n    def spec(self):\n        return {}\n"
        f"    def __init__(self):\n        self.factor = float({HERE})\n"
        "KEPT = Kept()\ndef factor():\n    return KEPT.factor\n",
        ONE,
    ),
)

# Code that seems to be only written otherwise, and says something else --------------------------------------------

OTHERWISE = (
    Change(
        "a local variable instead of another one",
        SETTING,
        "def f(images):\n    total = 0\n    for step in range(3):\n        total = total + step / 10\n"
        "    return images * total\nadd_setting('@@', perturbation_fn_gpu=f)\n",
        edits=((PLUGIN, "images * total", "images * step"),),
    ),
    Change(
        "another file that is there",
        SETTING,
        "def f(images):\n    return images * float(Path(FOLDER, 'one.txt').read_text())\n"
        "add_setting('@@', perturbation_fn_gpu=f)\n",
        files={"one.txt": "0.5", "two.txt": "0.4"},
        edits=((PLUGIN, "one.txt", "two.txt"),),
    ),
    Change(
        "another checkpoint that is there",
        MODEL,
        "def load():\n    network = Net()\n    network.weight.data *= float(Path(FOLDER, 'one.txt').read_text())\n"
        "    return network\nadd_model('@@', load)\n",
        files={"one.txt": "0.5", "two.txt": "0.4"},
        edits=((PLUGIN, "one.txt", "two.txt"),),
    ),
)

CHANGES = (
    *PACKAGES,
    *NETWORKS,
    *HELPERS,
    *HOOKS,
    *TIMES,
    *READ,
    *CODE,
    *LIBRARIES,
    *DATA,
    *ACCESSES,
    *OTHERWISE,
)

# What must not count ----------------------------------------------------------------------------------------------

# One plug-in that uses a little of everything, which is there many times; its images lie in the data root.
CALM = '''
import importlib
import json

from testbed.eval_settings.eval_setting_base import StandardDataset

import helper_@@
import pkg_@@.sub

STEPS = {"add": 0.1, "times": 0.9}


class CalmNet(Net):
    """A network."""

    def forward(self, x):
        return super().forward(x) * helper_@@.K


def soften(x):
    """Makes images softer."""
    for name, by in STEPS.items():
        x = x + by if name == "add" else x * by
    return pkg_@@.sub.f(x).clamp(0, 1)


def shade(image):
    with open(helper_@@.TABLE) as file:
        return image * json.load(file)["shade"]


def metrics(logits, targets):
    return {"share": float((logits.argmax(1) == targets).float().mean()), "mean": float(logits.mean())}


def load():
    network = importlib.import_module("nets_@@").build(CalmNet)
    network.load_state_dict(torch.load(WEIGHTS, weights_only=True))
    return network


WEIGHTS = Path(FOLDER, "net.pt")
add_model("@@", load, weights=WEIGHTS)
add_setting(
    "@@",
    dataset=StandardDataset(name="calm-images"),
    perturbation_fn_cpu=shade,
    perturbation_fn_gpu=soften,
    metrics_fn=metrics,
)
'''

CALM_FILES = {
    "helper_@@.py": (
        '"""Numbers."""\n\nimport json\nimport os\nfrom pathlib import Path\n\n'
        'TABLE = str(Path(__file__).with_name("table.json"))\n'
        'K = json.loads(Path(TABLE).read_text())["k"] * float(os.environ.get("CALM_SCALE", "1"))\n'
    ),
    "table.json": '{"k": 1.5, "shade": 0.9}',
    "pkg_@@/__init__.py": "",
    "pkg_@@/sub.py": "from .numbers import K\n\n\ndef f(x):\n    return x * K\n",
    "pkg_@@/numbers.py": "K = 0.9\n",
    "nets_@@.py": "def build(kind):\n    return kind()\n",
    "notes.txt": "nobody reads this\n",
    "make_@@.py": 'import torch\nfrom stale_base import Net\n\ntorch.save(Net(4).state_dict(), "net.pt")\n',
}

MAKE_IMAGES = """
from pathlib import Path

from PIL import Image
from stale_base import pixels

for number, image in enumerate(pixels()):
    folder = Path("../data/calm-images", f"class{number % 6}")
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(folder / f"{number}.png")
"""

# One that has nothing to do with it.
OTHER = """
def f(x):
    return x * 1.8


add_model("other")
add_setting("other", perturbation_fn_gpu=f)
"""

# Another one, which is moved as a whole, and some of whose files get other names.
MOVABLE = """
import helper_movable


def soften(x):
    beside, within = Path(__file__).with_name("beside.txt"), Path(FOLDER, "within.txt")
    return x * helper_movable.K * float(beside.read_text()) * float(within.read_text())


def load():
    network = N()
    network.weight.data *= float(Path(FOLDER, "checkpoint.txt").read_text())
    return network


class N(Net):
    def forward(self, x):
        return super().forward(x * helper_movable.K)


add_model("movable", load)
add_setting("movable", perturbation_fn_gpu=soften)
"""

MOVABLE_FILES = {
    "helper_movable.py": (
        'import json\nfrom pathlib import Path\n\nK = json.loads(Path(__file__).with_name("k.json").read_text())\n'
    ),
    "k.json": "0.7",
    "beside.txt": "0.9",
    "within.txt": "0.8",
    "checkpoint.txt": "0.6",
}

SHADE = CALM[CALM.index("def shade") : CALM.index("def metrics")]

# What is edited in the calm plug-in, one after the other: what, the file, and its text before and after.
EDITS = (
    ("the order of definitions", PLUGIN, SHADE, ""),
    ("the order of definitions", PLUGIN, "def soften(x):", f"{SHADE}def soften(x):"),
    ("the order of imports", PLUGIN, "import importlib\nimport json", "import json\nimport importlib"),
    ("an import that is not used", PLUGIN, "import json", "import json\nimport colorsys"),
    ("an import that a helper does not use", "helper_@@.py", "import json\n", "import colorsys\nimport json\n"),
    ("a local variable", PLUGIN, "for name, by in STEPS.items():", "for key, amount in STEPS.items():"),
    ("a local variable", PLUGIN, 'by if name == "add" else x * by', 'amount if key == "add" else x * amount'),
    ("a local variable of a loader", PLUGIN, "network = importlib", "made = importlib"),
    ("a local variable of a loader", PLUGIN, "network.load", "made.load"),
    ("a local variable of a loader", PLUGIN, "return network", "return made"),
    ("type hints", PLUGIN, "def soften(x):", "def soften(x: torch.Tensor) -> torch.Tensor:"),
    ("type hints of a method", PLUGIN, "def forward(self, x):", "def forward(self, x: torch.Tensor) -> torch.Tensor:"),
    ("type hints of a submodule", "pkg_@@/sub.py", "def f(x):", "def f(x: object) -> object:"),
    ("needless brackets", PLUGIN, "x + amount if", "(x + amount) if"),
    ("other quotation marks", PLUGIN, 'key == "add"', "key == 'add'"),
    ("a comment", PLUGIN, "STEPS =", "# The steps.\nSTEPS ="),
    ("a comment in a function", PLUGIN, "    for key", "    # one by one\n    for key"),
    ("a comment in a helper", "helper_@@.py", "TABLE =", "# A file.\nTABLE ="),
    ("a comment in a submodule", "pkg_@@/sub.py", "def f", "# scales\ndef f"),
    ("a comment in a module imported by name", "nets_@@.py", "def", "# makes one\ndef"),
    ("the layout", PLUGIN, '"add": 0.1, "times": 0.9', '\n    "add": 0.1,\n    "times":0.9,\n'),
    ("the layout of a submodule", "pkg_@@/sub.py", "x * K", "(\n        x\n        * K\n    )"),
    ("the docstring of a function", PLUGIN, "Makes images softer.", "Softens images."),
    ("no docstring of a class", PLUGIN, '    """A network."""\n\n', ""),
    ("the docstring of a helper", "helper_@@.py", "Numbers.", "Some numbers."),
    ("a variable that is not used", PLUGIN, "STEPS =", "OTHER = 7\nSTEPS ="),
    ("a function that is not used", PLUGIN, "STEPS =", "def unused(x):\n    return -x\n\n\nSTEPS ="),
    ("a function of a helper that is not used", "helper_@@.py", "TABLE =", "def unused():\n    return 7\n\n\nTABLE ="),
    ("a number of a submodule that is not used", "pkg_@@/sub.py", "def f", "OTHER = 7\n\n\ndef f"),
    ("one more model", PLUGIN, "WEIGHTS =", 'add_model("@@-too")\nWEIGHTS ='),
    ("one more setting", PLUGIN, "WEIGHTS =", 'add_setting("@@-too")\nWEIGHTS ='),
    ("the setting's description", PLUGIN, '    "@@",\n', '    "@@",\n    description="soft",\n'),
    ("the model's type", PLUGIN, "weights=WEIGHTS", 'weights=WEIGHTS, model_type="Small"'),
    ("the layout of a JSON file", "table.json", '{"k": 1.5, "shade": 0.9}', '{\n "shade": 0.9,\n "k": 1.5\n}\n'),
    ("a JSON key that nobody asks for", "table.json", "}", ', "more": 1}'),
    ("line ends", PLUGIN, "\n", "\r\n"),
)
