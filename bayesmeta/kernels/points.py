"""Normals that lie evenly: fixed points of the unit cube, shifted at random."""

from __future__ import annotations

import math

import numpy as np

from bayesmeta.kernels.jit import kernel

CENTRAL = (
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
    4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
    1.3314166789178437745e2, 3.3871328727963666080e0,
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
    2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
    4.2313330701600911252e1, 1.0,
)  # fmt: skip
MIDDLE = (
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
    1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
    4.63033784615654529590e0, 1.42343711074968357734e0,
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
    1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
    2.05319162663775882187e0, 1.0,
)  # fmt: skip
TAIL = (
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
    2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
    5.46378491116411436990e0, 6.65790464350110377720e0,
    2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
    7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
    5.99832206555887937690e-1, 1.0,
)  # fmt: skip
"""Coefficients of AS 241: near the median, in the tails, far out in them."""


@kernel
def normal_quantile(p):
    """The inverse of the normal distribution function in (0, 1): Wichura's algorithm AS 241."""
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        return q * _ratio(r, CENTRAL)
    r = math.sqrt(-math.log(min(p, 1.0 - p)))
    x = _ratio(r - 1.6, MIDDLE) if r <= 5.0 else _ratio(r - 5.0, TAIL)
    return -x if q < 0.0 else x


@kernel
def _ratio(r, coefficients):
    """Of two polynomials of degree 7, the highest power first."""
    above, below = coefficients[0], coefficients[8]
    for k in range(1, 8):
        above = above * r + coefficients[k]
        below = below * r + coefficients[8 + k]
    return above / below


@kernel
def shifted_normals(points, dim, draws, step):
    """Normals of antithetic pairs: fixed ``points`` of the unit cube, all shifted by one uniform
    vector and brought back into the cube, through the quantile function, and their negatives.

    Every point by itself is uniform, so averages over them are unbiased; together they lie more
    evenly than independent ones. The shift is the step's normals through their distribution
    function.
    """
    pairs = points.shape[0] // dim
    out = np.empty((1, 2 * pairs * dim))
    for i in range(dim):
        shift = 0.5 * math.erfc(-draws[step, i] / math.sqrt(2.0))
        for m in range(pairs):
            u = points[m * dim + i] + shift
            z = normal_quantile(max(u - math.floor(u), 2.0**-60))
            out[0, 2 * m * dim + i], out[0, (2 * m + 1) * dim + i] = z, -z
    return out
