"""The numba loops: bare arrays in, bare arrays out, nothing of ours imported.

Posterior state inside a task is (mean, root): the posterior mean and the *upper* triangular root
with root' root = Sigma_t, so that row i of ``root`` is column i of the Cholesky factor.
"""
