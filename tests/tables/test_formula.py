"""Formulas: parted at the bar, coded as R's model.matrix does, refused in one line."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest

import bayesmeta as bm
from bayesmeta.tables.formula import parts_of

TABLE = pd.DataFrame(
    {
        "y": np.arange(1.0, 7.0),
        "x": [0.5, 1, 2, -1, 3, 0],
        "z": [1.0, 2, 4, 8, 16, 32],
        "f": list("bacabc"),
        "h": list("uvvuuv"),
        "g": list("ppqqrr"),
        "a b": range(6),
    }
)
LOGS = [math.log(z) for z in TABLE["z"]]
SQUARES = [0.25, 1, 4, 1, 9, 0]
R = {
    "x": [[1, 0.5], [1, 1], [1, 2], [1, -1], [1, 3], [1, 0]],
    "f": [[1, 1, 0], [1, 0, 0], [1, 0, 1], [1, 0, 0], [1, 1, 0], [1, 0, 1]],
    "0 + f": [[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "0 + f:x": [[0, 0.5, 0], [1, 0, 0], [0, 0, 2], [-1, 0, 0], [0, 3, 0], [0, 0, 0]],
    "f*x": [
        [1, 1, 0, 0.5, 0.5, 0],
        [1, 0, 0, 1, 0, 0],
        [1, 0, 1, 2, 0, 2],
        [1, 0, 0, -1, 0, 0],
        [1, 1, 0, 3, 3, 0],
        [1, 0, 1, 0, 0, 0],
    ],
    "f + h + f:h": [
        [1, 1, 0, 0, 0, 0],
        [1, 0, 0, 1, 0, 0],
        [1, 0, 1, 1, 0, 1],
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 0, 1, 1, 0, 1],
    ],
    "log(z) + I(x**2)": [[1, log, two] for log, two in zip(LOGS, SQUARES, strict=True)],
    "x - 1 + h": [[0.5, 1, 0], [1, 0, 1], [2, 0, 1], [-1, 1, 0], [3, 1, 0], [0, 0, 1]],
    "x:z + x": [[1, 0.5, 0.5], [1, 1, 2], [1, 2, 8], [1, -1, -8], [1, 3, 48], [1, 0, 0]],
    "h:x + f": [
        [1, 1, 0, 0.5, 0],
        [1, 0, 0, 0, 1],
        [1, 0, 1, 0, 2],
        [1, 0, 0, -1, 0],
        [1, 1, 0, 3, 0],
        [1, 0, 1, 0, 0],
    ],
}
"""model.matrix of R 4 for the same table (there, I(x^2))."""


@pytest.mark.parametrize("terms", R)
def test_terms_are_coded_as_in_r(terms: str) -> None:
    """With all of them random, too; rows of another table are coded alike, after pickling."""
    design = bm.tabulate(TABLE, f"y ~ {terms} + ({terms} | g)")
    assert design.rows is not None and design.stats.varying is None
    np.testing.assert_allclose(design.rows.features, R[terms], rtol=1e-15)
    matrix = pickle.loads(pickle.dumps(design.matrix))
    np.testing.assert_allclose(matrix(TABLE[2:4]), R[terms][2:4], rtol=1e-15)
    plain = bm.TaskStatistics.from_arrays(TABLE["g"].tolist(), TABLE["y"], design.rows.features)
    np.testing.assert_array_equal(design.stats.gram, plain.gram)
    np.testing.assert_array_equal(design.stats.moment, plain.moment)


@pytest.mark.parametrize(
    ("formula", "names", "varying"),
    [
        ("y ~ x + (1 | g)", ["intercept", "x"], [True, False]),
        ("y ~ (1 | g) + x + z", ["intercept", "x", "z"], [True, False, False]),
        ("y ~ x + z + (0 + x|g)", ["intercept", "x", "z"], [False, True, False]),
        ("y ~ 0 + x + (0 + x | g)", ["x"], [True]),
        ("y~(1|g)", ["intercept"], [True]),
        ("y ~ 1 + (|g)", ["intercept"], [True]),
        ("y ~ f + x:z + (z:x | g)", ["intercept", "f[T.b]", "f[T.c]", "x:z"], [1, 0, 0, 1]),
        ("y ~ `a b` + (`a b` | `g`)", ["intercept", "a b"], [True, True]),
        ("y ~ center(x) + (center(x) | g)", ["intercept", "center(x)"], [True, True]),
        ("y ~ (x + z)**2 + (x | g)", ["intercept", "x", "z", "x:z"], [1, 1, 0, 0]),
    ],
)
def test_which_features_differ(formula: str, names: list[str], varying: list[bool]) -> None:
    """Those of the term with the bar, in the order of the fixed part."""
    stats = bm.tabulate(TABLE, formula).stats
    assert stats.feature_labels == names
    assert stats.differs.tolist() == [bool(one) for one in varying]


def test_a_transformation_keeps_its_numbers() -> None:
    """center(x) takes off the mean of the table it was made with."""
    design = bm.tabulate(TABLE, "y ~ center(x) + (1 | g)")
    np.testing.assert_allclose(design.matrix(TABLE[:1]), [[1, 0.5 - TABLE["x"].mean()]])


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("", "formula is empty"),
        ("y + x", "one '~'"),
        ("y ~ x ~ z", "one '~'"),
        ("y ~ x", "names no task"),
        ("y ~ x | g", "outside of parentheses"),
        ("y ~ x + (x || g)", "'||'"),
        ("y ~ x + (x | g/h)", "nested or crossed"),
        ("y ~ x + (x | g:h)", "nested or crossed"),
        ("y ~ x + (x | g) + (1 | h)", "has 2 terms with a bar"),
        ("y ~ x + ((x | g))", "inside of another term"),
        ("y ~ log(x | g)", "inside of another term"),
        ("y ~ x - (x | g)", "by a '+'"),
        ("y ~ x + (x | g", "not closed"),
        ("y ~ x) + (x | g)", "a ')' too many"),
        ("log(y) ~ x + (x | g)", "'log(y)' for the reward"),
        ("~ x + (x | g)", "does not name the reward"),
        ("y ~ x + (x | )", "does not name the task"),
        ("y ~ x + + (x | g) +", "formula"),
        ("y ~ x * + (x | g)", "formula"),
        ("y ~ . + (1 | g)", "formula"),
        ("y ~ x + 5 + (1 | g)", "formula"),
        ("y ~ nope + (1 | g)", "there is no column 'nope'"),
        ("y ~ nope(x) + (1 | g)", "there is no column 'nope'"),
        ("y ~ x + (1 | nope)", "there is no column 'nope'"),
        ("y ~ g + (1 | g)", "column 'g' is the task"),
        ("y ~ y + (1 | g)", "column 'y' is the reward"),
        ("y ~ 1 + (x | g)", "'x' differs between tasks but has no mean of its own"),
        ("y ~ 0 + x + (x | g)", "'1' differs between tasks but has no mean"),
        ("y ~ f + (0 + f | g)", "write '0 + f' there, too"),
        ("y ~ x + 2:x + (1 | g)", "different numerical scaling"),
        ("y ~ x + (0 | g)", "has no features"),
        ("y ~ log(x) + (1 | g)", "'log(x)' is not a finite number in row 4"),
        ("y ~ lag(x) + (1 | g)", "lag()"),
        ("y ~ np.nope(x) + (1 | g)", "formula"),
        ("y ~ I(x^2) + (1 | g)", "formula"),
        ("y ~ x\n + (1 | g)", "one line"),
    ],
)
def test_formulas_that_are_refused(formula: str, words: str) -> None:
    """In one line that says what is wrong."""
    with pytest.raises(bm.InputError) as caught:
        bm.tabulate(TABLE, formula)
    said = str(caught.value)
    assert words in said and "\n" not in said and "\x1b" not in said, said


def test_parts() -> None:
    """Quotes and parentheses of functions are not mistaken for the bar's."""
    assert parts_of("y ~ C(f, Treatment('|')) + (1|g)") == (
        "y",
        "C(f, Treatment('|'))",
        "1",
        "g",
    )


def test_whole_numbers_as_categories_are_called_so() -> None:
    """1, not 1.0, also in interactions; what is no whole number stays, and so does text."""
    names = bm.tabulate(TABLE, "y ~ C(z) * f + (1 | g)").stats.feature_labels
    assert "C(z)[T.2]" in names and "C(z)[T.32]:f[T.c]" in names and len(set(names)) == len(names)
    names = bm.tabulate(TABLE, "y ~ 0 + C(x) + (0 + C(x) | g)").stats.feature_labels
    assert list(names[:3]) == ["C(x)[-1]", "C(x)[0]", "C(x)[0.5]"]
    text = TABLE.assign(f=["v1", "2.0", "2", "v1", "2.0", "2"])
    names = bm.tabulate(text, "y ~ C(f) + (1 | g)").stats.feature_labels
    assert list(names) == ["intercept", "C(f)[T.2.0]", "C(f)[T.v1]"]


def test_categories_without_an_intercept_in_both_parts() -> None:
    """As lme4 takes (0 + f | g) beside f: the same model, written with 0 + in both."""
    with pytest.raises(bm.InputError, match=r"which the fixed part lacks; write '0 \+ x \+ f'"):
        bm.tabulate(TABLE, "y ~ x + f + (0 + f | g)")
    found = bm.tabulate(TABLE, "y ~ 0 + x + f + (0 + f | g)").stats
    assert list(found.feature_labels) == ["x", "f[a]", "f[b]", "f[c]"]
    assert found.differs.tolist() == [False, True, True, True]
    with pytest.raises(bm.InputError, match="'x' differs between tasks but has no mean"):
        bm.tabulate(TABLE, "y ~ f + (0 + x | g)")


def test_unknown_categories_are_named() -> None:
    """A category that was not there, by column and row; another task is none of that."""
    for terms in ("f", "C(f)"):
        design = bm.tabulate(TABLE, f"y ~ {terms} + (1 | g)")
        assert design.matrix(TABLE[:2].assign(g="new")).shape == (2, 3)
        with pytest.raises(bm.InputError, match=r"column 'f' has the category 'd' in row 1 .*'a'"):
            design.matrix(TABLE[:2].assign(f="d"))
    with pytest.raises(bm.InputError, match="there is no column 'f'"):
        design.matrix(TABLE[["x"]])
    coded = bm.tabulate(TABLE, "y ~ C(z) + (1 | g)")
    with pytest.raises(bm.InputError, match="categories that were not in the table"):
        coded.matrix(TABLE[:2].assign(z=7.0))


def test_a_categorical_keeps_the_order_of_its_categories() -> None:
    """As a factor of R does; categories without a row are left out."""
    order = pd.Categorical(TABLE["f"], ["c", "none", "a", "b"])
    stats = bm.tabulate(TABLE.assign(f=order), "y ~ f + (1 | g)").stats
    assert stats.feature_labels == ["intercept", "f[T.a]", "f[T.b]"]
