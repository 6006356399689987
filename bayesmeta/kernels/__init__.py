"""The numba loops: arrays and named tuples of arrays in and out, nothing of ours imported.

Inside a task a belief is (mean, root, variance): the posterior mean, the *upper* triangular root
with root' root = Sigma_t, so that row i of ``root`` is column i of the Cholesky factor, and the
noise variance.
"""

SINGULAR = 1e-12
"""A gram is singular where lambda_min of V_ij / sqrt(V_ii V_jj) is below this times d."""
