"""Predicts single points with a Gaussian process faster than scikit-learn.

The oracle predicts thousands of single points per suggestion, and scikit-learn spends most of each call on
validating its input. This class computes the same values without validation.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from sklearn.gaussian_process import GaussianProcessRegressor

Floats = npt.NDArray[np.float64]


class QuickRegressor(GaussianProcessRegressor):
    """scikit-learn's regressor for a fitted Matérn 5/2 kernel with one length scale and one target."""

    def predict(self, X: Floats, return_std: bool = False, return_cov: bool = False) -> Any:  # noqa: N803
        """Return mean and standard deviation at points with shape (points, dimensions).

        Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, algorithm 2.1.
        """
        if return_cov or not return_std or not hasattr(self, "L_"):
            return super().predict(X, return_std=return_std, return_cov=return_cov)
        gap = X[:, None, :] - self.X_train_[None, :, :]
        scaled = math.sqrt(5) / self.kernel_.length_scale * np.sqrt(np.einsum("ijk,ijk->ij", gap, gap))
        # Matérn 5/2, shape (points, training points)
        covariance = (1 + scaled + scaled**2 / 3) * np.exp(-scaled)
        mean = self._y_train_mean + self._y_train_std * (covariance @ self.alpha_)
        part = solve_triangular(self.L_, covariance.T, lower=True, check_finite=False)
        # Rounding may give a variance below 0.
        variance = np.maximum(1.0 - np.einsum("ij,ij->j", part, part), 0.0)
        return mean, self._y_train_std * np.sqrt(variance)
