"""docs/reference/wal-format.md against the code: tables, limits, and an example that a reader made from it reads."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import google_crc32c

from engine.units import Bytes, Nanoseconds, Offset, Txid
from engine.wal import record, segment
from engine.wal.reading import read_records
from engine.wal.record import RecordKind, encode_record
from engine.wal.recovery import recover
from engine.wal.segment import SegmentHeader, encode_header
from tests.wal.build_log import LogBuilder

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "wal-format.md").read_text(encoding="utf-8")
EXAMPLE_ID = b"tidegauge-exampl"


def table_after(heading: str) -> list[tuple[str, ...]]:
    """Return the rows of the first table behind a heading."""
    section = PAGE.split(f"\n### {heading}", 1)[1]
    rows = re.search(r"(?:^\|.*\n)+", section, re.M)
    assert rows is not None
    return [tuple(cell.strip() for cell in line.strip("| \n").split("|")) for line in rows[0].splitlines()[2:]]


def example_files() -> list[bytes]:
    """Return the bytes that the page's hexdumps show."""
    files = []
    for dump in re.findall(r"```hexdump\n(.*?)```", PAGE, re.S):
        content = b""
        for line in dump.splitlines():
            if line == "*":
                continue
            offset = int(line[:8], 16)
            content = content.ljust(offset, b"\0")
            shown = bytes.fromhex(line[8:58])
            text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in shown)
            assert line[58:].strip() == (f"|{text}|" if shown else "")
            content += shown
        files.append(content)
    return files


def test_the_header_table_is_what_the_code_writes():
    values = {
        "magic": int.from_bytes(b"TIDEWAL1", "little"),
        "version": 1,
        "header_bytes": 4096,
        "log_id": int.from_bytes(EXAMPLE_ID, "little"),
        "number": 0x0102030405,
        "segment_size": 1 << 26,
        "first_txid": 0x1112131415161718,
        "previous_used": 0x03FFFFF8,
        "previous_chain": 0x31323334,
        "zero": 0,
        "created_wall_ns": 0x4142434445464748,
        "rest": 0,
    }
    block = encode_header(
        SegmentHeader(
            log_id=EXAMPLE_ID,
            number=values["number"],
            segment_size=Bytes(values["segment_size"]),
            first_txid=Txid(values["first_txid"]),
            previous_used=Offset(values["previous_used"]),
            previous_chain=values["previous_chain"],
            created_wall_ns=Nanoseconds(values["created_wall_ns"]),
        )
    )
    values["crc"] = google_crc32c.value(block[:80])
    end = 0
    for offset, size, field, _ in table_after("The header block"):
        assert int(offset) == end
        end += int(size)
        assert int.from_bytes(block[int(offset) : end], "little") == values.pop(field), field
    assert (end, values) == (4096, {})


def test_the_record_table_is_what_the_code_writes():
    payload = b"\x51\x52\x53\x54\x55"
    raw = encode_record(RecordKind.DATA, Txid(0x1112131415161718), payload, undurable=0x21222324, log_id=EXAMPLE_ID)
    values = {
        "crc": google_crc32c.value(EXAMPLE_ID + payload + raw[4:24]),
        "length": 5,
        "txid": 0x1112131415161718,
        "kind": 1,
        "zero": 0,
        "undurable": 0x21222324,
        "payload": int.from_bytes(payload, "little"),
    }
    end = 0
    for offset, size, field, _ in table_after("A record"):
        assert int(offset) == end
        end += 5 if size == "length" else int(size)
        assert int.from_bytes(raw[int(offset) : end], "little") == values.pop(field), field
    assert values == {}
    assert raw[end:] == bytes(3)


def test_the_limits_are_the_codes():
    numbers = {name: [int(number) for number in re.findall(r"\d+", value)] for name, value in table_after("Limits")}

    assert numbers == {
        "payload": [record.MAX_PAYLOAD],
        "segment_size": [segment.BLOCK, segment.MIN_SEGMENT_SIZE, segment.MAX_SEGMENT_SIZE],
        "txid": [segment.MAX_TXID],
    }


def test_the_example_is_what_a_writer_writes():
    log = LogBuilder(log_id=EXAMPLE_ID).data(b"set a=1", b"set b=2").roll().data(b"").seal()

    assert example_files() == [bytes(content) for content in log.files().values()]
    assert "0xae89bfef" in PAGE
    assert int.from_bytes(log.segments[2][64:68], "little") == 0xAE89BFEF


def test_the_example_recovers(tmp_path):
    for number, content in enumerate(example_files(), 1):
        (tmp_path / f"0000000{number}.wal").write_bytes(content)

    assert recover(tmp_path).is_sealed
    assert list(read_records(tmp_path)) == [(1, b"set a=1"), (2, b"set b=2"), (3, b"")]


def test_a_reader_made_from_the_page_alone_reads_the_example():
    """Nothing of the engine in here: the page's rules, followed to the letter."""

    def step(chain: int, crc: int) -> int:
        return google_crc32c.extend(chain ^ 0xFFFFFFFF, crc.to_bytes(8, "little")) ^ 0xFFFFFFFF

    found, expected, chain, used = [], 1, 0, 0
    for number, file in enumerate(example_files(), 1):
        magic, version, start, log_id, own, size, first, before, before_chain = struct.unpack_from(
            "<8sII16sQQQQI", file
        )
        assert (magic, version, own, size) == (b"TIDEWAL1", 1, number, len(file))
        assert struct.unpack_from("<I", file, 80)[0] == google_crc32c.value(file[:80])
        assert (first, before, before_chain) == (expected, used, chain)
        at = start
        while any(file[at : at + 24]):
            crc, length, txid, kind = struct.unpack_from("<IIQB", file, at)
            payload = file[at + 24 : at + 24 + length]
            assert crc == google_crc32c.value(log_id + payload + file[at + 4 : at + 24])
            assert txid == (expected if kind == 1 else expected - 1)
            if kind == 1:
                found.append(payload)
                expected, chain = expected + 1, step(chain, crc)
            at += 24 + length + -length % 8
        used = at

    assert found == [b"set a=1", b"set b=2", b""]
