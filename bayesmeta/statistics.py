"""What tasks leave behind: the sufficient statistics of their rewards."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayesmeta.checks import Array, InputError, array
from bayesmeta.columns import plain_labels
from bayesmeta.display import visible
from bayesmeta.longformat import read_columns, sum_rows
from bayesmeta.residuals import Sums, centred_sums, residual_squares
from bayesmeta.sums import check_grams, check_rows, check_sums
from bayesmeta.units import check_squares

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False, repr=False)
class TaskStatistics:
    """What the rewards of n tasks leave behind for an estimator of (mu, Sigma).

    Sufficient with known noise, and with ``count`` and ``energy`` also for unknown noise. Most
    users make it from a table (``from_frame``) or from arrays in long format (``from_arrays``).

    Parameters
    ----------
    gram : array_like, shape (n, d, d)
        V = A'A of each task, A being its actions (features) row by row; it may be singular.
    moment : array_like, shape (n, d)
        A'x of each task, x being its rewards.
    count : array_like, shape (n,), optional
        Steps of each task.
    energy : array_like, shape (n,), optional
        Sum of squared rewards of each task, x'x.
    tasks, features : sequences of labels, optional
        Kept for tables and plots.
    varying : sequence of bool, shape (d,), optional
        Which features' coefficients differ between tasks; all, where it is not given. The others
        have a mean, and neither a variance nor covariances: the fixed effects of a mixed model.
    log_weights : array_like, shape (n,), optional
        Sums over the steps of each task of the logarithms of their weights, which the sums above
        have in them; half their total belongs to the log-likelihood.

    Examples
    --------
    >>> stats = TaskStatistics.from_arrays(
    ...     task=["a", "a", "b"], reward=[1.0, 2.0, 3.0], features=[[1.0], [2.0], [1.0]]
    ... )
    >>> stats
    TaskStatistics: 2 tasks, d = 1, 3 rows
    >>> stats.moment
    array([[5.],
           [3.]])
    """

    gram: Array
    moment: Array
    count: Array | None = None
    energy: Array | None = None
    tasks: tuple[Hashable, ...] | None = None
    features: tuple[str, ...] | None = None
    varying: tuple[bool, ...] | None = None
    log_weights: Array | None = None

    def __post_init__(self) -> None:
        moment = array("moment", self.moment, (None, None))
        n, d = moment.shape
        if d == 0:
            raise InputError("moment has no features; give at least one")
        gram = array("gram", self.gram, (n, d, d))
        check_grams(gram)
        object.__setattr__(self, "moment", moment)
        object.__setattr__(self, "gram", gram)
        if (moment[np.diagonal(gram, axis1=-2, axis2=-1) == 0] != 0).any():
            raise InputError("moment must be 0 where a feature of a task is always 0")
        for name in ("count", "energy"):
            value = getattr(self, name)
            if value is not None:
                value = array(name, value, (n,))
                if (value < 0).any():
                    raise InputError(f"{name} must not be negative")
                if name == "count" and ((value != np.rint(value)) | (value > 2.0**53)).any():
                    raise InputError(f"{name} must be whole numbers: the steps of each task")
                object.__setattr__(self, name, value)
        self._check_sizes()
        self._check_labels()
        if self.log_weights is not None:
            object.__setattr__(self, "log_weights", array("log_weights", self.log_weights, (n,)))
        check_sums(gram, moment, self.count, self.energy, lambda j: self.task_labels[j])

    def _check_sizes(self) -> None:
        """Refuse features and rewards of sizes that cannot be computed with."""
        check_squares("features", np.diagonal(self.gram, axis1=-2, axis2=-1))
        if self.energy is not None:
            check_squares("rewards", self.energy)

    def _check_labels(self) -> None:
        """Labels are different ones, and say of each feature whether it varies."""
        for name, size in (("tasks", len(self)), ("features", self.dim)):
            labels = getattr(self, name)
            if labels is not None:
                labels = tuple(plain_labels(labels) if name == "tasks" else labels)
                # 1 and "1" are the same in a table or a file
                texts = labels if set(map(type, labels)) == {int} else map(str, labels)
                if len(labels) != size or len(set(texts)) < size:
                    raise InputError(f"{name} must be {size} different labels, got {labels!r:.80}")
                object.__setattr__(self, name, labels)
        if self.varying is not None:
            object.__setattr__(self, "varying", self._checked_varying(self.dim))

    def _checked_varying(self, d: int) -> tuple[bool, ...] | None:
        """One truth value a feature, one of them true; None where all are."""
        given = tuple(bool(one) for one in self.varying or ())
        if len(given) != d or not any(given):
            raise InputError(
                f"varying must say of each of the {d} features whether its coefficient differs "
                "between tasks, and one must"
            )
        return None if all(given) else given

    @property
    def differs(self) -> NDArray[np.bool_]:
        """Which features' coefficients differ between tasks: those with a variance in Sigma."""
        return np.ones(self.dim, dtype=bool) if self.varying is None else np.array(self.varying)

    @classmethod
    def trusted(
        cls,
        gram: Array,
        moment: Array,
        count: Array | None = None,
        energy: Array | None = None,
        *,
        varying: tuple[bool, ...] | None = None,
        log_weights: Array | None = None,
    ) -> TaskStatistics:
        """Wrap arrays known to be valid (a learner's own memory) without checking them."""
        stats = object.__new__(cls)
        stats.__dict__.update(
            gram=gram,
            moment=moment,
            count=count,
            energy=energy,
            tasks=None,
            features=None,
            varying=varying,
            log_weights=log_weights,
        )
        return stats

    def __len__(self) -> int:
        return int(self.moment.shape[0])

    def __repr__(self) -> str:
        rows = "" if self.count is None else f", {int(self.count.sum())} rows"
        named = "" if self.features is None else f" ({', '.join(map(visible, self.features)):.60})"
        return f"TaskStatistics: {len(self)} tasks, d = {self.dim}{named}{rows}"

    @property
    def dim(self) -> int:
        return int(self.moment.shape[1])

    @property
    def feature_labels(self) -> list[str]:
        """The labels of the features, or x1, x2, … where there are none."""
        return list(self.features or [f"x{i + 1}" for i in range(self.dim)])

    @property
    def task_labels(self) -> list[Hashable]:
        """The labels of the tasks, or 1, 2, … where there are none; text unless all are whole
        numbers, since tables and files have no place for tuples or a mixture."""
        labels: list[Hashable] = list(self.tasks or range(1, len(self) + 1))
        numbers = all(issubclass(kind, (int, np.integer)) for kind in set(map(type, labels)))
        return labels if numbers else [str(one) for one in labels]

    @classmethod
    def from_arrays(
        cls,
        task: ArrayLike,
        reward: ArrayLike,
        features: ArrayLike,
        names: Sequence[str] | None = None,
        *,
        weights: ArrayLike | None = None,
        varying: Sequence[bool] | None = None,
    ) -> TaskStatistics:
        """From long format, a row for every step.

        Parameters
        ----------
        task : array_like, shape (rows,)
            Which task a row belongs to: any labels.
        reward : array_like, shape (rows,)
            x.
        features : array_like, shape (rows, d)
            The action taken, row by row of A.
        names : sequence of str, optional
            Labels of the features.
        weights : array_like, shape (rows,), optional
            The noise of a row has the variance sigma^2 / weight. Where the variances of all rows
            are known, give 1 / variance and the noise_sd 1.
        varying : sequence of bool, optional
            Which features' coefficients differ between tasks; all, where it is not given.

        Returns
        -------
        TaskStatistics
        """
        made = sum_rows(task, reward, features, weights)
        stats = cls.trusted(*made.sums, log_weights=made.log_weights)
        for part in made.sums:
            part.setflags(write=False)
        named = None if names is None else tuple(names)
        which = None if varying is None else tuple(varying)
        stats.__dict__.update(tasks=made.tasks, features=named, varying=which)
        stats._check_sizes()
        stats._check_labels()
        check_rows(
            stats.gram,
            stats.moment,
            made.rows,
            made.place,
            lambda j: stats.task_labels[j],
            stats.feature_labels,
        )
        return stats

    @classmethod
    def from_frame(
        cls,
        frame: DataFrame,
        task: str,
        reward: str,
        features: Sequence[str],
        intercept: bool = False,
        *,
        fixed: Sequence[str] = (),
        weights: str | None = None,
    ) -> TaskStatistics:
        """From a pandas table with a row for every step.

        Parameters
        ----------
        frame : pandas.DataFrame
        task, reward : str
            The columns that say which task a row belongs to, and its reward.
        features : sequence of str
            The columns of the features.
        intercept : bool
            Whether to add a first feature, "intercept", that is always 1.
        fixed : sequence of str
            Columns of features whose coefficients are the same in all tasks: what a mixed model
            has among its fixed effects only, such as a property of the tasks.
        weights : str, optional
            The column of the rows' weights: a row's noise has the variance sigma^2 / weight.

        Returns
        -------
        TaskStatistics

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"shop": ["a", "a", "b"], "price": [1, 2, 3], "sales": [5, 4, 2]})
        >>> TaskStatistics.from_frame(frame, "shop", "sales", ["price"], intercept=True)
        TaskStatistics: 2 tasks, d = 2 (intercept, price), 3 rows
        >>> stats = TaskStatistics.from_frame(frame, "shop", "sales", [], True, fixed=["price"])
        >>> stats.varying
        (True, False)
        """
        read = read_columns(frame, task, reward, features, intercept, fixed, weights)
        return cls.from_arrays(
            read.task,
            read.reward,
            read.features,
            read.names,
            weights=read.weights,
            varying=read.varying,
        )

    def units(self) -> Array:
        """The typical length of each feature; dividing by it makes results free of units."""
        squares = np.diagonal(self.gram, axis1=1, axis2=2)
        lengths = np.sqrt(squares.sum(axis=0) / max(len(self), 1))
        return np.where(lengths > 0, lengths, 1.0)

    def scaled(self) -> tuple[Array, Array, Array]:
        """Grams and moments with every feature in its own unit, and the units."""
        units = self.units()
        return self.gram / np.outer(units, units), self.moment / units, units

    def chosen(self, places: NDArray[np.int64] | slice) -> TaskStatistics:
        """The tasks at some places, unnamed."""
        count, energy, logs = (
            None if one is None else one[places]
            for one in (self.count, self.energy, self.log_weights)
        )
        return TaskStatistics.trusted(
            self.gram[places],
            self.moment[places],
            count,
            energy,
            varying=self.varying,
            log_weights=logs,
        )

    def determined(self) -> NDArray[np.bool_]:
        """Which tasks determine their theta by themselves: whose gram is invertible."""
        from bayesmeta.kernels.linalg import have_full_rank

        out: NDArray[np.bool_] = have_full_rank(self.gram)
        return out

    def independent_features(self) -> bool:
        """Whether no feature is a linear combination of others, in all tasks together."""
        from bayesmeta.kernels.linalg import have_full_rank

        return bool(have_full_rank(self.gram.sum(axis=0)[None])[0])

    def require_independent_features(self) -> None:
        """Refuse features that are linear combinations of others, in all tasks together."""
        if not self.independent_features():
            raise InputError(
                "the features of all tasks together are linearly dependent, or so nearly that "
                "numbers of 16 digits cannot tell them apart, so the prior mean is not determined; "
                "leave out a feature that others make up or that is always 0, or take the mean off "
                "one that hardly varies about it (a date)"
            )

    def centred(self) -> tuple[TaskStatistics, Array]:
        """The same tasks with a common theta taken off, that of least squares over all of them, so
        that a large level of the rewards costs no digits; and that theta."""
        sums, centre = centred_sums(self._sums, self.units())
        own = TaskStatistics.trusted(*sums, varying=self.varying, log_weights=self.log_weights)
        return own, centre

    def residuals(self) -> tuple[float, float]:
        """Squares left over by every task's own least squares, summed, and how many are free.

        Tasks are left out whose gram has a rank that is in doubt: an eigenvalue too small for
        ``determined``, but more than rounding leaves.
        """
        return residual_squares(self._sums, self.units())

    @property
    def _sums(self) -> Sums:
        return Sums(self.gram, self.moment, self.count, self.energy)

    @staticmethod
    def concatenate(parts: Iterable[TaskStatistics]) -> TaskStatistics:
        """The statistics of all tasks of all parts; optional fields survive where all have them."""
        parts = list(parts)
        if not parts:
            raise InputError("concatenate needs at least one TaskStatistics")
        if len({part.dim for part in parts}) > 1:
            raise InputError("concatenate needs parts of the same dimension")
        if len({part.features for part in parts if part.features is not None}) > 1:
            raise InputError("concatenate needs the same features in all parts, in the same order")
        if len({part.varying for part in parts}) > 1:
            raise InputError("concatenate needs the same features to differ between tasks in all")
        log_weights = None
        if any(part.log_weights is not None for part in parts):
            log_weights = np.concatenate(
                [
                    np.zeros(len(one)) if one.log_weights is None else one.log_weights
                    for one in parts
                ]
            )  # rows without weights have the weight 1

        def join(name: str) -> Array | None:
            values = [getattr(part, name) for part in parts]
            return None if any(v is None for v in values) else np.concatenate(values)

        labels = [part.tasks for part in parts]
        together = None if None in labels else tuple(t for part in labels for t in part or ())
        return TaskStatistics(
            np.concatenate([part.gram for part in parts]),
            np.concatenate([part.moment for part in parts]),
            join("count"),
            join("energy"),
            together,
            parts[0].features,
            parts[0].varying,
            log_weights,
        )
