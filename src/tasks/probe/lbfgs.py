"""Logistic regression by L-BFGS, as CLIP fits its linear probes: multinomial, or binary for two classes."""

from __future__ import annotations

from typing import Any

import torch

_MOST_ITERATIONS = 1000  # CLIP's max_iter
# scikit-learn's tolerance for the largest entry of the gradient of the mean loss. On the digits, 1e-5 and 1e-6 were
# slower and made the search depend more on rounding.
_GRADIENT_TOLERANCE = 1e-4
_LINE_SEARCH = 50  # scikit-learn's
_MOST_NUMBERS = 2**24  # float64 numbers of features or logits at a time


def fit_lbfgs(
    features: torch.Tensor, targets: torch.Tensor, classes: int, penalty: float
) -> tuple[torch.Tensor, torch.Tensor, int, bool]:
    """Minimizes the sum of the cross-entropies plus half the penalty times the squared weights; the bias is free.

    The optimum, the start at zero and the stopping criterion are those of scikit-learn's LogisticRegression with
    C = 1 / penalty. Computed in float64 if the device supports it.

    Of two classes scikit-learn fits one vector w of weights, that of the second. Here they have −w / 2 and w / 2, whose
    squares add up to half as much, so that the penalty counts twice.

    Args:
        features: Float32 [n, D].
        targets: Class indices, int64 [n], on the same device. A missing class gets a very low bias, so that it
            is not predicted.
        classes: C.
        penalty: L2 strength, at least 0.

    Returns:
        Weights [C, D] and bias [C], float32 on the CPU; the number of iterations; whether it converged.
    """
    import numpy as np
    from scipy.optimize import minimize

    width = features.shape[1]
    objective = _Objective(features, targets, classes, 2 * penalty if classes == 2 else penalty)
    found = minimize(
        objective,
        np.zeros(classes * (width + 1)),
        method="L-BFGS-B",
        jac=True,
        options={
            "maxiter": _MOST_ITERATIONS,
            "maxls": _LINE_SEARCH,
            "gtol": _GRADIENT_TOLERANCE,
            "ftol": 64 * np.finfo(float).eps,
        },
    )
    solution = torch.from_numpy(np.asarray(found.x)).float()
    weight = solution[: classes * width].view(classes, width)
    return weight, solution[classes * width :], int(found.nit), bool(found.success)


class _Objective:
    """The mean of the loss over the samples, and its gradient, for scipy."""

    def __init__(self, features: torch.Tensor, targets: torch.Tensor, classes: int, penalty: float) -> None:
        self.exact = torch.float32 if features.device.type == "mps" else torch.float64
        self.targets, self.classes, self.penalty = targets, classes, penalty
        count, width = features.shape
        self.rows = max(1, _MOST_NUMBERS // max(width, classes))
        # Converted once if it fits into memory, else block by block at every evaluation.
        self.features = features.to(self.exact) if count <= self.rows else features

    def __call__(self, vector: Any) -> tuple[float, Any]:
        """The loss and its gradient, float64 [C·D + C], at some weights and biases."""
        count, width = self.features.shape
        given = torch.from_numpy(vector).to(self.features.device, self.exact)
        weight, bias = given[: self.classes * width].view(self.classes, width), given[self.classes * width :]
        gradient = torch.zeros_like(given)
        weight_gradient = gradient[: self.classes * width].view(self.classes, width)
        bias_gradient = gradient[self.classes * width :]
        loss = torch.zeros((), dtype=self.exact, device=given.device)
        for start in range(0, count, self.rows):
            block = self.features[start : start + self.rows].to(self.exact)
            labels = self.targets[None, start : start + self.rows]
            logs = torch.addmm(bias[:, None], weight, block.T).log_softmax(0)  # [C, rows]
            loss -= logs.gather(0, labels).sum()
            errors = logs.exp_()
            errors -= torch.zeros_like(errors).scatter_(0, labels, 1.0)
            weight_gradient.addmm_(errors, block)
            bias_gradient += errors.sum(1)
        weight_gradient.add_(weight, alpha=self.penalty)
        loss += 0.5 * self.penalty * weight.square().sum()
        return float(loss) / count, (gradient / count).double().cpu().numpy()
