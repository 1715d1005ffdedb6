"""
The forms in which users have their data, as Python expressions of plain values V.

One expression serves both for a case and for the script that shows it.
"""

from __future__ import annotations

from .draws import Draw

SAME = {
    "array": "V",
    "list": "V.tolist()",
    "tuples": "tuple(map(tuple, V))",
    "columns first": "np.asfortranarray(V)",
    "every second": "np.repeat(V, 2, axis=0)[::2]",
    "backwards": "np.ascontiguousarray(V[::-1])[::-1]",
    "read only": "np.frombuffer(V.tobytes()).reshape(V.shape)",
    "other byte order": "V.astype('>f8')",
    "objects": "V.astype(object)",
    "CSR matrix": "sp.csr_matrix(V)",
    "CSR array": "sp.csr_array(V)",
    "CSC matrix": "sp.csc_matrix(V)",
    "CSC array": "sp.csc_array(V)",
    "COO": "sp.coo_matrix(V)",
    "frame": "pd.DataFrame(V).add_prefix('c')",
    "frame with other index": "pd.DataFrame(V, index=np.arange(len(V))[::-1] * 7).add_prefix('c')",
    "frame with one index": "pd.DataFrame(V, index=['s'] * len(V)).add_prefix('c')",
    "frame without names": "pd.DataFrame(V)",
    "nullable frame": "pd.DataFrame(V).add_prefix('c').astype('Float64')",
    "polars": "pl.DataFrame(V, schema=[f'c{j}' for j in range(V.shape[1])])",
}
"""Forms that hold the very numbers."""

OTHER = {
    "float32": "V.astype(np.float32)",
    "float16": "V.astype(np.float16)",
    "long double": "V.astype(np.longdouble)",
    "int64": "np.nan_to_num(V).astype(np.int64)",
    "int8": "np.nan_to_num(V).astype(np.int8)",
    "uint8": "np.nan_to_num(np.abs(V)).astype(np.uint8)",
    "bool": "V > 0",
    "sparse float32": "sp.csr_matrix(V.astype(np.float32))",
    "float32 frame": "pd.DataFrame(V.astype(np.float32)).add_prefix('c')",
    "frame with truth values": "pd.DataFrame(V).add_prefix('c').assign(flag=V[:, 0] > 0)",
    "frame of whole numbers": "pd.DataFrame(np.nan_to_num(V).astype(np.int64)).add_prefix('c')",
    "frame with nullable numbers": "pd.DataFrame(np.nan_to_num(np.sign(V))).add_prefix('c').convert_dtypes()",
    "polars with truth values": "pl.from_pandas(pd.DataFrame(V).add_prefix('c').assign(flag=V[:, 0] > 0))",
}
"""Forms that hold other numbers, but numbers."""

ODD = {
    "text": "V.astype(str)",
    "text frame": "pd.DataFrame(V.astype(str)).add_prefix('c')",
    "complex": "V.astype(complex)",
    "masked": "np.ma.masked_greater(V, 0.0)",
    "vector": "V[:, 0]",
    "scalar": "float(V[0, 0])",
    "no rows": "V[:0]",
    "no columns": "V[:, :0]",
    "three axes": "V[:, :, None]",
    "nothing": "None",
    "ragged": "[row[: 1 + place % 2] for place, row in enumerate(V.tolist())]",
    "sets": "[set(row) for row in V.tolist()]",
    "dates": "np.nan_to_num(V).astype('datetime64[s]')",
    "frame with dates": "pd.DataFrame(V).add_prefix('c').assign(day=pd.date_range('2024-01-01', periods=len(V)))",
    "frame with words": "pd.DataFrame(V).add_prefix('c').assign(kind=['a', 'b', None, 'c'] [len(V) % 4])",
    "frame with categories": "pd.DataFrame(V).add_prefix('c').assign(kind=pd.Categorical(['a'] * len(V)))",
    "frame with numbered categories": "pd.DataFrame(V).add_prefix('c').assign(kind=pd.Categorical([1] * len(V)))",
    "frame with gaps": "pd.DataFrame(V).add_prefix('c').assign(gap=[None] * len(V))",
    "frame with one name": "pd.DataFrame(np.hstack([V, V]), columns=['c'] * (2 * V.shape[1]))",
    "frame with two levels": "pd.concat({'a': pd.DataFrame(V)}, axis=1)",
    "series": "pd.Series(V[:, 0])",
    "lazy polars": "pl.DataFrame(V, schema=[f'c{j}' for j in range(V.shape[1])]).lazy()",
    "polars with words": "pl.DataFrame({'c0': V[:, 0], 'word': ['w'] * len(V)})",
    "polars with gaps": "pl.DataFrame({'c0': V[:, 0], 'gap': [None] * len(V)})",
}
"""Forms that nothing can be learned from, or only with a decision that is not ours."""

VIEWS = {"column": "V[:, 0]", "list column": "V[:, 0].tolist()", "series": "pd.Series(V[:, 0])"}
"""Forms of a view that is one column."""

STACKS = {
    "list": "list(V)",
    "tuple": "tuple(V)",
    "dict": "{f'k{m}': K for m, K in enumerate(V)}",
    "stack": "stack_kernels({f'k{m}': K for m, K in enumerate(V)})",
    "array": "np.stack(V, axis=-1)",
    "float32": "np.stack(V, axis=-1).astype(np.float32)",
    "list of float32": "[K.astype(np.float32) for K in V]",
    "objects": "np.stack(V, axis=-1).astype(object)",
    "whole numbers": "[np.nan_to_num(K).astype(np.int64) for K in V]",
    "one matrix": "V[0]",
    "frames": "{f'k{m}': pd.DataFrame(K) for m, K in enumerate(V)}",
}
"""Forms of kernel matrices V, shape (n_kernels, n_rows, n_columns)."""

ODD_STACKS = {
    "kernels first": "V",
    "text": "V.astype(str)",
    "complex": "V.astype(complex)",
    "sparse": "[sp.csr_matrix(K) for K in V]",
    "not square": "[K[:-1] for K in V]",
    "different sizes": "[V[0], V[0][:-1, :-1]]",
    "empty": "[]",
    "four axes": "V[None]",
}

TARGETS = {
    "array": "np.array(V)",
    "list": "V",
    "tuple": "tuple(V)",
    "objects": "np.array(V, dtype=object)",
    "series": "pd.Series(V)",
    "series with other index": "pd.Series(V, index=np.arange(len(V))[::-1] * 7)",
    "polars": "pl.Series(V, strict=False)",
}
"""Forms of one target V a sample."""

ODD_TARGETS = {
    "column": "np.array(V, dtype=object)[:, None]",
    "too short": "V[:-1]",
    "text": "np.array(V).astype(str)",
    "nothing": "None",
    "complex": "np.ones(len(V)) * 1j",
    "three axes": "np.zeros((len(V), 1, 1))",
    "dates": "pd.Series(pd.date_range('2024-01-01', periods=len(V)))",
    "scalar": "1.0",
    "nested": "[[value] * (1 + place % 2) for place, value in enumerate(V)]",
    "dict": "dict(enumerate(V))",
}

TABLES_OF_TARGETS = {
    "array": "np.array(V)",
    "list": "V",
    "frame": "pd.DataFrame(V).add_prefix('y')",
    "columns first": "np.asfortranarray(V)",
}
"""Forms of several targets V a sample."""


def form(draw: Draw) -> str:
    """Draw the form of a table."""
    name: str = draw.pick("form", ["array"] * 8 + list(SAME) + list(OTHER), odd=list(ODD))
    return (SAME | OTHER | ODD)[name]


def new_form(draw: Draw, expression: str) -> str:
    """Draw the form of new samples: for the most part that of training."""
    return form(draw) if draw.maybe(0.1) else expression
