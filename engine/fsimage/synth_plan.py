"""The directories of a made-up namespace: drawn once, kept as a few numbers each; everything else follows from them.

    /user/u000012/t0003_clicks/dt=2025-11-02/part-00007       a partitioned table
    /user/u000012/t0004_logs/000003_0                         a flat one

Directories are numbered in the order in which a legacy image lists their children (k = 0 is the root), so the rows of
an image are known without making them: the children of directory k are rows first_child[k], first_child[k] + 1, ...
Whatever a child is, its name, owner, times, size and blocks, is a function of (seed, k, its index), so any range of
directories can be made on its own, on any thread, in any order. 21 bytes a directory, about 2 an inode.

Distributions, each an integer function of splitmix64 (the same bytes on every machine):

    what                    distribution                                             after
    files in a directory    Pareto, exponent 1, from 1.5 to 2,000; 1 in 20 empty     heavy-tailed directory sizes [1]
    partitions of a table   Pareto, exponent 1, from 6 to 2,000; 1 in 4 is flat      daily partitions of a warehouse
    tables of a user        Pareto, exponent 1, from 6 to 1,000                      few users own most files
    size of a file          log-normal, median 5.7 MiB, sigma 3.3 doublings,         file sizes are near log-normal [1];
                            at most 16 GiB; 1 in 10 empty                            empty markers of jobs
    blocks                  size / 128 MiB, rounded up: 1.2 a file                   1.5 (HDFS-13700, HDFS-17864) [2]
    name                    MapReduce, Spark and Hive output, 8 to 33 bytes          125 bytes a legacy record: 2.5 GB
                                                                                     for 20 M inodes, as in HADOOP-3248
    times                   a day of 2017 to 2025; read since by a skewed chance     most files are read when young [3]

[1] Agrawal, Bolosky, Douceur, Lorch: A Five-Year Study of File-System Metadata, FAST 2007 (desktops: the shapes, not
    the numbers). [2] and Shvachko: HDFS Scalability, ;login: 35(2), 2010. [3] Abad, Roberts, Lu, Campbell: A
    Storage-Centric Analysis of MapReduce Workloads, IISWC 2012. The parameters are ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import typeof, types

from engine.fsimage.columns import I32, U8
from engine.fsimage.columns import I64 as I64Array
from engine.native.kernel import inlined, kernel

ROOT, HOME, USER, TABLE, PARTITION = range(5)
FEWEST = 10  # inodes of the smallest namespace: the root, one of each level, some files
_MOST_FILES, _MOST_PARTITIONS, _MOST_TABLES = 2000, 2000, 1000

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_I64 = types.int64


class Plan(NamedTuple):
    """The directories, by number; a tuple of arrays, since kernels take it as one argument."""

    kind: U8  # [k]
    parent: I32  # [k] number of the parent; -1 for the root
    place: I32  # [k] among the parent's children
    children: I32  # [k]
    first_child: I32  # [k + 1] row
    user: I32  # [k] number of the user whose it is; -1 above


def make_plan(directories: int) -> Plan:
    """Return zeroed arrays."""
    return Plan(
        np.zeros(directories, np.uint8),
        np.zeros(directories, np.int32),
        np.zeros(directories, np.int32),
        np.zeros(directories, np.int32),
        np.zeros(directories + 1, np.int32),
        np.zeros(directories, np.int32),
    )


PLAN = typeof(make_plan(0))


@inlined
def mix(value):  # type: ignore[no-untyped-def]
    """Return 64 bits that look random for each value: splitmix64 (Steele, Lea, Flood 2014)."""
    z = value + _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@inlined
def draw(seed, k, index):  # type: ignore[no-untyped-def]
    """Return the 64 bits that child `index` of directory k is made of."""
    return mix(np.uint64(seed) ^ mix(np.uint64(k) * _GOLDEN + np.uint64(index)))


@inlined
def _pareto(bits, twice_least, most):  # type: ignore[no-untyped-def]
    """Return a whole number of a Pareto distribution with exponent 1: least / u."""
    u = np.int64(bits >> np.uint64(32)) + 1  # 1 to 2^32
    return min((np.int64(twice_least) << np.int64(31)) // u, np.int64(most))


@inlined
def _add(plan, fill, count, kind, parent, index, children, user):  # type: ignore[no-untyped-def]
    if fill:
        plan.kind[count] = np.uint8(kind)
        plan.parent[count] = np.int32(parent)
        plan.place[count] = np.int32(index)
        plan.children[count] = np.int32(children)
        plan.user[count] = np.int32(user)
    return count


@kernel(_I64(_I64, _I64, types.boolean, PLAN, types.Array(types.int64, 1, "C")), bare=True)
def draw_plan(inodes, seed, fill, plan, totals):  # type: ignore[no-untyped-def]
    """Draw directories until there are `inodes` in all, files included; return how many directories that takes.

    With `fill` off nothing is written; with it on, `plan` has that size. totals: int64[1], users.
    """
    _add(plan, fill, 0, ROOT, -1, 0, 1, -1)
    _add(plan, fill, 1, HOME, 0, 0, 0, -1)
    count, left, users = np.int64(2), inodes - 2, np.int64(0)
    while left > 0:
        user = count
        _add(plan, fill, count, USER, 1, users, 0, users)
        count, left = count + 1, left - 1
        tables, made = _pareto(draw(seed, user, -1), 12, _MOST_TABLES), np.int64(0)
        while made < tables and left > 0:
            table = count
            bits = draw(seed, table, -1)
            is_flat = bits & np.uint64(3) == np.uint64(0)
            files = np.int64(0)
            if is_flat:
                files = min(_files(bits), left - 1)
            _add(plan, fill, count, TABLE, user, made, files, users)
            count, left = count + 1, left - 1 - files
            parts, cut = np.int64(0), np.int64(0)
            if not is_flat:
                parts = _pareto(bits, 12, _MOST_PARTITIONS)
            while cut < parts and left > 0:
                files = min(_files(draw(seed, count, -1)), left - 1)
                _add(plan, fill, count, PARTITION, table, cut, files, users)
                count, left, cut = count + 1, left - 1 - files, cut + 1
            if fill and not is_flat:
                plan.children[table] = np.int32(cut)
            made += 1
        if fill:
            plan.children[user] = np.int32(made)
        users += 1
    totals[0] = users
    if fill:
        plan.children[1] = np.int32(users)
        row = np.int64(1)
        for k in range(count):
            plan.first_child[k] = np.int32(row)
            row += plan.children[k]
        plan.first_child[count] = np.int32(row)
    return count


@inlined
def _files(bits):  # type: ignore[no-untyped-def]
    """Return how many files a directory has."""
    if (bits >> np.uint64(8)) % np.uint64(20) == np.uint64(0):
        return np.int64(0)
    return _pareto(bits, 3, _MOST_FILES)


def plan_namespace(inodes: int, seed: int) -> tuple[Plan, int]:
    """Return the plan of a namespace of exactly `inodes` inodes (FEWEST or more), and how many users it has."""
    totals: I64Array = np.zeros(1, np.int64)
    signed = (seed & 0xFFFFFFFFFFFFFFFF ^ 1 << 63) - (1 << 63)
    plan = make_plan(int(draw_plan(inodes, signed, False, make_plan(0), totals)))
    draw_plan(inodes, signed, True, plan, totals)
    return plan, int(totals[0])
