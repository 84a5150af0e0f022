"""Linear layers whose rows do not depend on the batch that they are in, for networks that run on a CPU."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F


class BatchInvariantLinear(nn.Linear):
    """`torch.nn.Linear` through oneDNN's inner product where that can be: float32 on a CPU, without gradients.

    torch multiplies float32 matrices with MKL, whose kernel goes by the number of rows, so that a row's last bits
    change with the size of its batch. With oneDNN they do not, nor with the number of threads. On an AMD processor it
    is faster as well, where MKL makes no use of AVX-512 (benchmarks/README.md).
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Maps rows [..., K] to rows [..., N]."""
        if not self._suits(input):
            return super().forward(input)
        rows = input.reshape(-1, self.in_features)
        if len(rows) == 1:  # for which oneDNN has another kernel
            rows = rows.expand(2, -1)
        # The weights are laid out anew at each call: a copy that is kept would double what a model takes of memory.
        bias = None if self.bias is None else self.bias.to_mkldnn()
        product = F.linear(rows.to_mkldnn(), self.weight.to_mkldnn(), bias).to_dense()
        return product[: input.shape[:-1].numel()].view(*input.shape[:-1], self.out_features)

    def _suits(self, input: torch.Tensor) -> bool:
        return (
            input.device.type == "cpu"
            and input.dtype == self.weight.dtype == torch.float32
            and input.numel() > 0
            and self.out_features > 0
            and input.shape[-1] == self.in_features
            and not torch.is_grad_enabled()
            and not torch.is_autocast_enabled("cpu")
        )


def make_batch_invariant(network: nn.Module) -> None:
    """Puts `BatchInvariantLinear` in place of a network's linear layers, with the same parameters.

    Layers of a class of their own are left as they are, and all of them where torch was built without oneDNN.
    """
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return
    for layer in network.modules():
        if type(layer) is nn.Linear:
            layer.__class__ = BatchInvariantLinear
