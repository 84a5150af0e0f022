"""Makes a folder of images and two models, to follow docs/first-hour.md without data of your own.

python examples/make_images_and_models.py FOLDER

The images are 80 of scikit-learn's handwritten digits, enlarged to 64 × 64 pixels. The models are torchvision's
shufflenet_v2_x0_5, trained on other digits of that size; `older.pth` is of an earlier epoch.
"""

import sys
from pathlib import Path

import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy, interpolate
from torchvision.models import shufflenet_v2_x0_5
from torchvision.transforms import Normalize

CLASSES = ("0-zero", "1-one", "2-two", "3-three")  # classes are in the order of the folders' names
TESTED = 80
SIZE = 64
EPOCHS, OLDER = 4, 2


def main(folder: Path) -> None:
    """Writes to a folder: photos/<class>/<number>.png, finetuned.pth and older.pth."""
    digits = load_digits(n_class=len(CLASSES))
    images = torch.tensor(digits.images / 16, dtype=torch.float32)[:, None].expand(-1, 3, -1, -1)
    images = interpolate(images, size=SIZE, mode="bilinear")
    targets = torch.tensor(digits.target)
    for number in range(TESTED):
        path = folder / "photos" / CLASSES[int(targets[number])] / f"{number:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = (images[number].permute(1, 2, 0) * 255).to(torch.uint8)
        Image.fromarray(pixels.numpy()).save(path)
    train(images[TESTED:], targets[TESTED:], folder)


def train(images: torch.Tensor, targets: torch.Tensor, folder: Path) -> None:
    """Trains the network and saves its weights twice."""
    torch.manual_seed(0)
    network = shufflenet_v2_x0_5(num_classes=len(CLASSES))
    normalized = Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])(images)
    optimizer = torch.optim.AdamW(network.parameters(), 2e-3)
    for epoch in range(1, EPOCHS + 1):
        for batch in torch.randperm(len(images)).split(32):
            optimizer.zero_grad()
            cross_entropy(network(normalized[batch]), targets[batch]).backward()
            optimizer.step()
        if epoch in (OLDER, EPOCHS):
            name = "finetuned.pth" if epoch == EPOCHS else "older.pth"
            torch.save(network.state_dict(), folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
