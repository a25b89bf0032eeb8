"""Images with wounds, and what must be true of a load of one: it ends in an error with a place, or in a sound tree."""

from __future__ import annotations

import random
import zlib
from pathlib import Path

import numpy as np

from engine.fsimage.columns import DETACHED, Namespace
from engine.fsimage.errors import ImageError
from engine.fsimage.load import load_image
from engine.fsimage.tree import path_of
from engine.measure.clock import SystemClock
from tests.fsimage.legacy_writer import ROOT as LEGACY_ROOT
from tests.fsimage.legacy_writer import Dir, File, write_legacy
from tests.fsimage.protobuf_writer import ROOT, directory, entry, file, write_image

DEFLATE = "org.apache.hadoop.io.compress.DefaultCodec"
TREE = [directory(ROOT, b""), directory(2, b"a"), file(3, b"f", [(1, 1, 100)]), file(4, b"g")]
ENTRIES = [entry(ROOT, [2, 4]), entry(2, [3])]


def mutate(data: bytes, chance: random.Random) -> bytes:
    """Return `data` with one to four wounds: flipped, overwritten, cut, doubled or exchanged bytes."""
    spoiled = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(spoiled))
        match chance.randrange(6):
            case 0:
                spoiled[at] ^= 1 << chance.randrange(8)
            case 1:
                spoiled[at : at + 8] = chance.choice([b"\xff" * 8, b"\x00" * 8, b"\x7f" + b"\xff" * 7, b"\x80" * 8])
            case 2:
                spoiled[at : at + chance.randrange(64)] = b""
            case 3:
                spoiled[at:at] = spoiled[at : at + chance.randrange(64)]
            case 4:
                spoiled[at] = chance.randrange(256)
            case 5 if chance.random() < 0.2:
                del spoiled[at:]
        if len(spoiled) < 2:
            spoiled += b"\x00\x00"
    return bytes(spoiled)


def victims_of(images: Path | None, folder: Path) -> list[bytes]:
    """Return images of every kind, small enough to be loaded thousands of times; without `images`, those made here."""
    found = []
    if images is not None:
        for pattern in ("fsimages/legacy/*.img", "fsimages/protobuf/hfsa-small-*.img", "fsimages/protobuf/dyn*26.img"):
            found += [path.read_bytes() for path in sorted(images.glob(pattern))]
        rich = images / "hdfs" / "fsimage"
        names = ("plain", "parallel", "snappy", "parallel_gzip")
        found += [(rich / f"rich_{name}.fsimage").read_bytes() for name in names]
    tree = [LEGACY_ROOT, Dir(b"/a"), File(b"/a/f", blocks=[(1, 2, 3)]), File(b"/g")]
    found += [write_legacy(folder / str(version), version, tree).read_bytes() for version in (-9, -23, -42, -43, -51)]
    found.append(write_image(folder / "p", TREE, ENTRIES, codec=DEFLATE, compress=zlib.compress).read_bytes())
    return found


def load_wounded(path: Path, threads: int) -> bool:
    """Load an image that may be anything; return whether it loaded. Whatever it is, what comes of it holds together."""
    try:
        namespace = load_image(path, clock=SystemClock(), threads=threads, check_md5=False).namespace
    except ImageError as error:
        assert str(error).isprintable(), error
        return False
    check_sound(namespace)
    return True


def check_sound(namespace: Namespace) -> None:
    """Assert what every user of a namespace relies on."""
    rows = namespace.rows
    assert (np.diff(namespace.inodes.name_start) >= 0).all()
    assert namespace.tree.child_start[-1] == len(namespace.tree.children)
    assert ((namespace.inodes.parent >= DETACHED) & (namespace.inodes.parent < rows)).all()
    for row in range(0, rows, 97):
        path_of(namespace, row)
