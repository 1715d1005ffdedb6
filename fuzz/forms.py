"""
The forms in which users have their data, as Python expressions of plain values V.

One expression serves both for a case and for the script that shows it.
"""

from __future__ import annotations

from fuzz.draws import Draw

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
    "frame with dates as ids": "pd.DataFrame(V, index=pd.date_range('2024', periods=len(V))).add_prefix('c')",
    "frame with fractions as ids": "pd.DataFrame(V, index=np.arange(len(V)) * 0.5).add_prefix('c')",
    "frame with text as ids": "pd.DataFrame(V, index=[str(7 * i) for i in range(len(V))][::-1]).add_prefix('c')",
    "frame with a missing id": "pd.DataFrame(V, index=[np.nan, *range(1, len(V))]).add_prefix('c')",
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
    "frames with ids": "[pd.DataFrame(K).add_prefix('c').add_prefix('r', axis=0) for K in V]",
    "frames with dates as ids": "[pd.DataFrame(K, columns=pd.date_range('2024', periods=K.shape[1])) for K in V]",
    "one frame": "pd.DataFrame(V[0])",
    "one frame with ids": "pd.DataFrame(V[0]).add_prefix('c')",
    "one frame of polars": "pl.DataFrame(V[0])",
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
    "polars with a gap": "pl.Series([*V[:-1], None], strict=False)",
    "polars that begins with a gap": "pl.Series([None, *V[1:]], strict=False)",
    "lazy polars": "pl.DataFrame({'y': np.ones(len(V))}).lazy()",
    "masked": "np.ma.masked_array(np.ones(len(V)), np.arange(len(V)) % 2)",
}

IDS = {
    "text": ("pd.Index([f's{i}' for i in range(N)])", ""),
    "numbers": ("pd.Index(np.arange(N) + 3)", ""),
    "numbers beside text": ("pd.Index(np.arange(N) + 3)", ".map(str)"),
    "text beside numbers": ("pd.Index([str(i + 3) for i in range(N)])", ".map(int)"),
    "numbers as objects": ("pd.Index([np.int64(i + 3) for i in range(N)], dtype=object)", ""),
    "fractions": ("pd.Index(np.arange(N) * 0.5)", ""),
    "dates": ("pd.date_range('2024', periods=N)", ""),
    "periods": ("pd.period_range('2024', periods=N, freq='D')", ""),
    "tuples": ("pd.MultiIndex.from_product([range(N), ['x']])", ""),
    "UUIDs": ("pd.Index([__import__('uuid').UUID(int=i) for i in range(N)])", ""),
    "a NaN": ("pd.Index([np.nan, *range(1, N)])", ""),
    "a None": ("pd.Index([None, *(f's{i}' for i in range(1, N))], dtype=object)", ""),
}
"""Ids of N samples, and what makes of them those that come beside: of another type, and yet the same."""

SCORED = {
    "as they are": "y",
    "huge": "np.full(N, 1e300)",
    "NaN": "np.full(N, np.nan)",
    "None": "None",
    "text": "'abc'",
    "names": "['a'] * N",
    "too short": "np.ones(1)",
    "column": "np.ones((N, 1))",
    "wide": "np.ones((N, 7))",
    "lazy": "pl.DataFrame({'y': np.ones(N)}).lazy()",
    "masked": "np.ma.masked_array(np.ones(N), np.arange(N) % 2)",
    "complex": "np.ones(N) * 1j",
}
"""Targets of N samples that a model is scored with."""

WEIGHTS = {
    "ones": "np.ones(N)",
    "nothing": "None",
    "huge": "np.full(N, 1e300)",
    "small": "np.full(N, 1e-300)",
    "negative": "-np.ones(N)",
    "zeros": "np.zeros(N)",
    "NaN": "np.full(N, np.nan)",
    "text": "'abc'",
    "too long": "np.ones(N + 1)",
    "gaps": "[None] * N",
    "column": "np.ones((N, 1))",
}
"""Weights of N samples that a score has."""

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
