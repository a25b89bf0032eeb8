"""Numba's types of the columns, for kernel signatures; apart, so that reading a header loads no compiler."""

from __future__ import annotations

from typing import Any

from numba import typeof, types

from engine.fsimage.columns import make_block_columns, make_inode_columns

# numba publishes no types for its types: Any is all mypy could learn here.
INODE_COLUMNS: Any = typeof(make_inode_columns(0))
BLOCK_COLUMNS: Any = typeof(make_block_columns(0))
BYTES = types.Array(types.uint8, 1, "C", readonly=True)  # file bytes: mapped, or decompressed and frozen
HEAP = types.Array(types.uint8, 1, "C")
I64S = types.Array(types.int64, 1, "C")
I32S = types.Array(types.int32, 1, "C")
U32S = types.Array(types.uint32, 1, "C")
I64 = types.int64
