"""The hyper-parameters of the model."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bemkl.distributions import Gamma, PointMass, Precision

DENSE = Gamma(1.0, 1.0)
"""The paper's uninformative prior of a precision."""

SPARSE = Gamma(1e-10, 1e10)
"""The paper's sparsity-inducing prior: most precisions grow without limit, their weights vanish."""


@dataclass(frozen=True, slots=True, eq=False)
class Priors:
    r"""
    Priors of the precisions that all likelihoods share (paper, section 3).

    Parameters
    ----------
    sample : Gamma
        Prior of :math:`\lambda`, the precisions of the sample weights.
    bias : Gamma
        Prior of :math:`\gamma`, the precisions of the biases.
    kernel : Gamma
        Prior of :math:`\omega`, the precisions of the kernel weights; `SPARSE` and `DENSE` are the paper's two
        scenarios.
    intermediate : PointMass or Gamma
        The precision :math:`\upsilon = 1/\sigma_g^2` of the intermediate outputs: a known value
        (``PointMass.from_std(sigma)``), or a gamma prior to learn it from.

    Examples
    --------
    >>> from bemkl.distributions import PointMass
    >>> priors = Priors(kernel=SPARSE, intermediate=PointMass.from_std(0.1))
    """

    sample: Gamma = field(default=DENSE)
    bias: Gamma = field(default=DENSE)
    kernel: Gamma = field(default=DENSE)
    intermediate: Precision = field(default=PointMass(1.0))

    def __post_init__(self) -> None:
        """Refuse what is not a prior of a precision."""
        for name, allowed in (
            ("sample", (Gamma,)),
            ("bias", (Gamma,)),
            ("kernel", (Gamma,)),
            ("intermediate", (Gamma, PointMass)),
        ):
            value = getattr(self, name)
            if not isinstance(value, allowed) or np.ndim(value.mean):
                expected = " or one ".join(kind.__name__ for kind in allowed)
                raise ValueError(
                    f"{name}: expected one {expected}, got {value!r}. "
                    "Write Gamma(shape, scale), for example Gamma(1.0, 1.0)."
                )
