"""The outline of an image, its codecs, its checksum and the wire format beneath."""

from __future__ import annotations

import bz2
import gzip
import itertools
import struct
import subprocess
import sys
import zlib

import cramjam
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.fsimage.boundaries import find_boundaries
from engine.fsimage.codecs import CodecError, codec_name, decompress, raw_limit
from engine.fsimage.container import freeze, open_container
from engine.fsimage.errors import ImageDamaged
from engine.fsimage.integrity import Trouble
from engine.fsimage.load import compile_kernels
from engine.fsimage.varints import OVERLONG, TRUNCATED, read_uvarint
from engine.fsimage.wire import WireError, decode
from engine.fsimage.wire import read_uvarint as read_plainly
from engine.measure.clock import SystemClock
from engine.measure.phases import PhaseTree
from engine.native.kernel import bare
from tests.fsimage.protobuf_writer import ROOT, delimited, directory, entry, field, file, varint, write_image

TREE = [directory(ROOT, b""), *(file(10 + k, b"f%03d" % k, [(k, 1, k)]) for k in range(100))]
ENTRIES = [entry(ROOT, range(10, 110))]


def framed(pack, piece: int = 1000):
    """Return Hadoop's block framing over `pack`."""

    def compress(data: bytes) -> bytes:
        out = b""
        for at in range(0, len(data), piece):
            chunk = bytes(pack(data[at : at + piece]))
            out += struct.pack(">II", len(data[at : at + piece]), len(chunk)) + chunk
        return out

    return compress


def lz4(data: bytes) -> bytes:
    return bytes(cramjam.lz4.compress_block(data, store_size=False))


CODECS = {
    "DefaultCodec": zlib.compress,
    "DeflateCodec": zlib.compress,
    "GzipCodec": gzip.compress,
    "BZip2Codec": bz2.compress,
    "Lz4Codec": framed(lz4),
    "SnappyCodec": framed(cramjam.snappy.compress_raw),
    "ZStandardCodec": lambda data: bytes(cramjam.zstd.compress(data)),
}


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_gives_back_its_bytes_also_from_streams_one_behind_the_other(codec):
    data = b"".join(b"%d," % k for k in range(20_000))
    pack = CODECS[codec]

    one = decompress(f"org.apache.hadoop.io.compress.{codec}", memoryview(pack(data)))
    three = decompress(codec, memoryview(pack(data) + pack(b"") + pack(data[:7])))

    assert one.tobytes() == data
    assert three.tobytes() == data + data[:7]
    assert decompress(codec, memoryview(b"")).size == 0


@pytest.mark.parametrize("codec", CODECS)
def test_a_stream_cut_or_spoiled_is_an_error(codec):
    packed = CODECS[codec](bytes(range(256)) * 40)

    for spoiled in (packed[:-5], packed[: len(packed) // 2], b"\x07" * 40):
        with pytest.raises(CodecError):
            decompress(codec, memoryview(spoiled))


@pytest.mark.parametrize("codec", ["DefaultCodec", "GzipCodec", "BZip2Codec", "ZStandardCodec"])
def test_what_expands_beyond_the_limit_is_an_error(codec):
    packed = CODECS[codec](bytes(64 << 20))

    assert raw_limit(len(packed)) < 64 << 20
    with pytest.raises(CodecError, match=r"expand to more than|do not decode within"):
        decompress(codec, memoryview(packed))


@pytest.mark.parametrize("codec", CODECS)
def test_images_of_every_codec_load(tmp_path, load, codec):
    name = f"org.apache.hadoop.io.compress.{codec}"
    image = write_image(tmp_path / "i", TREE, ENTRIES, codec=name, compress=CODECS[codec])

    loaded = load(image)

    assert loaded.integrity.is_clean
    assert loaded.namespace.rows == len(TREE)
    assert codec_name(loaded.namespace.header.codec) == codec.removesuffix("Codec").lower()


def test_sections_that_reach_out_of_the_file_or_stand_twice_are_damage(tmp_path):
    def doubled(listed):
        return [*listed, listed[0]]

    def outside(listed):
        return [*listed, field(4, field(1, b"X") + field(2, 1 << 62) + field(3, 8))]

    for order, words in ((doubled, "'NS_INFO' twice"), (outside, "of 4,611,686,018,427,387,904 bytes")):
        with pytest.raises(ImageDamaged, match=words):
            open_container(write_image(tmp_path / "i", TREE, ENTRIES, order=order))


def test_parts_that_do_not_tile_their_section_are_not_trusted(tmp_path, load):
    def with_parts(first, second):
        def order(listed):
            inode = decode(memoryview(listed[1]), 0, len(listed[1])).data(4)
            whole = decode(inode, 0, len(inode))
            at, length = whole.number(3), whole.number(2)
            sub = [(at, first), (at + second, length - second)]
            subs = [field(4, field(1, b"INODE_SUB") + field(2, size) + field(3, start)) for start, size in sub]
            return [listed[0], *subs, *listed[1:]]

        return order

    head = len(delimited(field(1, 20000) + field(2, len(TREE)))) + len(delimited(TREE[0]))
    good = write_image(tmp_path / "a", TREE, ENTRIES, order=with_parts(head, head))
    gap = write_image(tmp_path / "b", TREE, ENTRIES, order=with_parts(head - 1, head))

    assert len(open_container(good).parts("INODE")) == 2
    assert len(open_container(gap).parts("INODE")) == 1
    assert load(good).namespace.rows == load(gap).namespace.rows == len(TREE)


def test_the_checksum_says_match_mismatch_or_nothing(tmp_path, load):
    import hashlib

    image = write_image(tmp_path / "i", TREE, ENTRIES)
    alone = load(image).wait_for_checksum()
    sidecar = tmp_path / "i.md5"
    sidecar.write_text(f"{hashlib.md5(image.read_bytes()).hexdigest()} *i\n")
    right = load(image).wait_for_checksum()
    sidecar.write_text(f"{'0' * 32} *i\n")
    wrong = load(image).wait_for_checksum()
    sidecar.write_bytes(b"\x1b[31m nothing of the kind")
    unreadable = load(image).wait_for_checksum()

    assert (alone.expected, alone.is_match, alone.problem) == (None, False, "")
    assert right.is_match
    assert right.problem == ""
    assert not wrong.is_match
    assert "the .md5 file says 00000000" in wrong.problem
    assert "32 hex digits" in unreadable.problem


def test_blocks_map_to_files_and_doubles_are_reported(tmp_path, load):
    whole = load(write_image(tmp_path / "i", TREE, ENTRIES), block_map=True)
    twice = [*TREE[:-1], file(109, b"f099", [(5, 1, 1)])]
    double = load(write_image(tmp_path / "j", twice, ENTRIES), block_map=True)

    blocks = whole.namespace.blocks.block_id
    assert [whole.block_map.row(blocks, k) for k in range(100)] == list(range(100))
    assert whole.integrity.is_clean
    assert whole.phases[-1].name == "SafeMode"
    assert double.integrity.count(Trouble.DUPLICATE_BLOCK) == 1
    assert "block 5 of inode 109" in double.integrity.problems[0].text


def test_compiling_is_a_phase_of_its_own():
    tree = PhaseTree(SystemClock())

    compile_kernels(tree)
    phase = tree.snapshot()[0]

    assert phase.name == "CompilingKernels"
    assert phase.count == phase.total > 10


@bare
def read_one(data, at, end):
    return read_uvarint(data, at, end)


@given(st.integers(0, (1 << 64) - 1), st.binary(max_size=12), st.binary(max_size=12))
def test_varints_read_as_plain_python_reads_them(value, before, after):
    data = before + varint(value) + after
    end = len(before) + len(varint(value))

    assert read_one(freeze(data), len(before), end) == (value, end)
    assert read_plainly(memoryview(data), len(before), end) == (value, end)
    for cut in range(len(before), end):
        assert read_one(freeze(data), len(before), cut)[1] == TRUNCATED


@given(st.binary(min_size=1, max_size=24))
def test_any_bytes_read_the_same_both_ways(data):
    number, after = read_one(freeze(data), 0, len(data))

    try:
        assert (number, after) == read_plainly(memoryview(data), 0, len(data))
    except WireError as error:
        assert after == (OVERLONG if "64 bits" in error.found else TRUNCATED)


@given(st.lists(st.binary(max_size=300), max_size=60), st.integers(1, 500), st.integers(1, 5))
def test_boundaries_cut_between_messages_and_lose_none(messages, size, room):
    data = freeze(b"".join(map(delimited, messages)))
    offsets, firsts, state = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(2, np.int64)
    starts, numbers, at = [], [], 0

    while at < data.size:
        count = find_boundaries(data, at, data.size, size, offsets, firsts, state)
        starts += offsets[:count].tolist()
        numbers += firsts[:count].tolist()
        at = int(state[1])

    ends = np.cumsum([0] + [len(delimited(message)) for message in messages])
    assert state[0] == len(messages)
    assert [int(ends[n]) for n in numbers] == starts
    assert all(b - a >= min(size, 1) for a, b in itertools.pairwise(starts))


def test_reading_an_outline_loads_no_compiler(tmp_path):
    image = write_image(tmp_path / "i", TREE, ENTRIES)
    program = (
        "import sys, pathlib\nfrom engine.fsimage.container import open_container\n"
        "from engine.fsimage.sections import read_inode_header\n"
        f"c = open_container(pathlib.Path({str(image)!r}))\n"
        "print(read_inode_header(c.read_named('INODE').data)[1], 'numba' in sys.modules)\n"
    )

    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert out.stdout.split() == [str(len(TREE)), "False"]
