"""The categories that a Parquet file says it has, and the order that it keeps of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesmeta.tables.categories import sort_dictionary

if TYPE_CHECKING:
    from pandas import DataFrame


def category_columns(schema: Any) -> dict[str, bool]:
    """Columns of categories by an Arrow schema, and whether the file keeps their order: of text
    that was a pandas categorical, and of dictionaries that are called ordered."""
    import pyarrow as pa

    told = (schema.pandas_metadata or {}).get("columns", [])
    pandas = {one.get("name") for one in told if one.get("pandas_type") == "categorical"}
    found = {}
    for field in schema:
        if pa.types.is_dictionary(field.type):
            kind = field.type.value_type
            text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
            found[field.name] = text and (field.type.ordered or field.name in pandas)
        elif field.name in pandas:
            found[field.name] = False
    return found


def mark_categories(frame: DataFrame, columns: dict[str, bool]) -> None:
    """Make pandas categoricals of these columns where they are there, sorted where the file does
    not keep their order."""
    import pandas as pd

    for name, kept in columns.items():
        if name not in frame.columns or kept:
            continue
        if isinstance(frame[name].dtype, pd.CategoricalDtype):
            sort_dictionary(frame, name)
        else:
            frame[name] = frame[name].astype("category")


def read_whole(path: Path) -> DataFrame:
    """All columns of a file, with its categories."""
    import pandas as pd
    import pyarrow.dataset as ds

    frame = pd.read_parquet(path)
    table = ds.dataset(path, format="parquet")
    columns = category_columns(table.schema)
    once = [name for name, kept in columns.items() if kept]
    orders: dict[str, set[tuple[Any, ...]]] = {name: set() for name in once}
    for batch in table.to_batches(columns=once) if once else ():
        for name in once:
            orders[name].add(tuple(batch.column(name).dictionary.to_pylist()))
    agreed = {name: kept and len(orders[name]) == 1 for name, kept in columns.items()}
    mark_categories(frame, agreed)
    return frame
