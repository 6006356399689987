"""The numba loops: arrays and named tuples of arrays in and out, nothing of ours imported.

Inside a task a belief is (mean, root, variance): the posterior mean, the *upper* triangular root
with root' root = Sigma_t, so that row i of ``root`` is column i of the Cholesky factor, and the
noise variance.
"""
