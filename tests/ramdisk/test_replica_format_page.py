"""The page of the replica format says what the code does: its tables, names and numbers are compared here."""

from __future__ import annotations

import json
import re
import struct

import google_crc32c
import msgspec
import pytest

from engine.ramdisk import journal, replica_file, volumes
from engine.ramdisk.copying import PIECE
from engine.ramdisk.replica_file import FOOTER_SIZE, VERSION, Footer, Kind, decode_footer, file_size
from engine.storage.file_calls import DIRECT_ALIGNMENT
from engine.storage.folders import LOCK_NAME
from tests.programs import ROOT
from tests.ramdisk.store_kit import BLOCK, Kit, content, put

PAGE = (ROOT / "docs" / "reference" / "replica-format.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """Return the rows of the first table whose head is `heading`."""
    lines = PAGE.splitlines()
    start = lines.index(heading) + 2
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_the_footers_table_is_the_footer_of_the_code() -> None:
    rows = [(int(offset), int(size)) for offset, size, _ in table("| offset | size | field |")]

    at, fields = 0, []
    for count, kind in re.findall(r"(\d*)([sIQx])", replica_file._FOOTER.format):
        size = struct.calcsize(f"<{count}{kind}") if kind in "sx" else struct.calcsize(f"<{kind}")
        fields += [(at, size)]
        at += size
    fields.append((at, replica_file._CRC.size))

    assert rows == fields
    assert at + replica_file._CRC.size == FOOTER_SIZE == 128


def test_magic_version_kinds_and_limits_are_those_of_the_code() -> None:
    said = {field.split()[0]: field for _, _, field in table("| offset | size | field |")}

    assert said["magic"] == f"magic `{replica_file._MAGIC.decode()}`"
    assert said["version,"] == f"version, {VERSION}" and f"Version {VERSION} of what a store keeps" in PAGE
    assert [int(n) for n in re.findall(r"[:,] (\d) ", said["kind:"])] == [kind.value for kind in Kind]
    assert "a power of two from 512 to 8 MiB" in said["chunk"] and PIECE == 8 << 20
    assert f"A file's size is a multiple of {DIRECT_ALIGNMENT}" in " ".join(PAGE.split())


@pytest.mark.parametrize("length", [1, 4095, 4096, 70_001])
def test_a_replica_written_by_the_page_alone_is_read(length: int) -> None:
    data, chunk, store = content(length, length), 512, bytes(range(16))
    cells = b"".join(struct.pack("<I", google_crc32c.value(data[at : at + chunk])) for at in range(0, length, chunk))
    body = data + bytes(-length % 8) + cells
    footer = b"TIDERPL1" + struct.pack(
        "<II16sQQQIIII52x", 1, 1, store, 7, 3, length, 2, chunk, len(cells) // 4, google_crc32c.value(cells)
    )
    footer += struct.pack("<I", google_crc32c.value(footer))
    whole = body + bytes(-(len(body) + 128) % 4096) + footer

    found = decode_footer(whole[-128:])

    assert isinstance(found, Footer), found
    assert (found.block_id, found.file_id, found.length, found.index, found.chunk) == (7, 3, length, 2, chunk)
    assert len(whole) == file_size(length, chunk)


def test_the_folders_hold_what_the_page_names(kit: Kit) -> None:
    store = kit.open(held=True)
    put(store, "a", content(1, BLOCK))
    put(store, "b", content(2, BLOCK))
    store.delete("b")
    root = kit.settings.disk_dirs[0]

    assert {path.name for path in root.iterdir()} == {"STORE", "LOCK", "replicas", "journal"}
    assert (volumes.IDENTITY, LOCK_NAME, volumes.REPLICAS, volumes.JOURNAL) == ("STORE", "LOCK", "replicas", "journal")
    assert "disk directory = STORE LOCK replicas/ [journal/]" in PAGE
    identity = json.loads((root / "STORE").read_bytes())
    assert identity["schema"] == "tidegauge.ramdisk/1" and f'("{identity["schema"]}")' in PAGE
    assert set(identity) == {"schema", "store_id", "volume", "volumes"}
    assert all(f"`{key}`" in PAGE for key in identity)
    (ram,) = kit.ram.iterdir()
    assert ram.name == f"tidegauge-{identity['store_id']}" and len(identity["store_id"]) == 32
    assert sorted(re.sub(r"[0-9a-f]{16}|\d+", "n", path.name) for path in ram.iterdir()) == ["n.replica", "spare-n"]
    for stage in ("replica", "copying", "open"):
        assert f'id ".{stage}"' in PAGE and volumes.replica_name(10, stage) == f"000000000000000a.{stage}"


def test_the_journals_records_have_the_items_that_the_page_lists() -> None:
    said = {row[0].strip("`"): len(row[1].split(", ")) for row in table("| record | items | meaning |")}

    code = {}
    for record in (journal.Closed, journal.Persisted, journal.Deleted):
        info = msgspec.inspect.type_info(record)
        assert isinstance(info, msgspec.inspect.StructType) and info.array_like
        code[str(info.tag)] = len(info.fields)

    assert said == code == {"closed": 7, "persisted": 2, "deleted": 1}
    assert journal.IN_RAM == -1 and "volume or -1 for memory" in PAGE
