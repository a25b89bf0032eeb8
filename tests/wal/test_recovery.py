"""Recovery: what is kept, what is cut and what is reported, for each way a log can end or be damaged."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

import pytest

from engine.units import Bytes, Offset
from engine.wal.errors import LogDamaged, NotALog, UnsupportedVersion
from engine.wal.reading import read_records
from engine.wal.recovery import prepare_for_writing, recover
from engine.wal.repair import repair_log
from engine.wal.segment import decode_header, encode_header, segment_name
from tests.wal.build_log import SEGMENT_SIZE, LogBuilder, small_log

FIRST, SECOND, THIRD, FOURTH = (f"0000000{number}.wal" for number in (1, 2, 3, 4))


def patch(path: Path, offset: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def rewrite_header(path: Path, **changes: object) -> None:
    """Change fields of a segment's header, its checksum made right again."""
    header = decode_header(path.read_bytes()[:4096])
    assert header is not None
    patch(path, 0, encode_header(dataclasses.replace(header, **changes)))


def records(folder: Path) -> list[tuple[int, bytes]]:
    return list(read_records(folder))


def snapshot(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def log() -> LogBuilder:
    return small_log()


@pytest.fixture
def folder(log: LogBuilder, tmp_path: Path) -> Path:
    return log.write(tmp_path / "log")


def test_a_whole_log_is_read_whole(log, folder):
    contents = recover(folder)

    assert records(folder) == log.records()
    assert (contents.first_txid, contents.last_txid, contents.records) == (1, 9, 9)
    assert [segment.last_txid for segment in contents.segments] == [3, 5, 9]
    assert [segment.used for segment in contents.segments] == [len(raw) for raw in log.segments.values()]
    assert contents.tail is not None
    assert contents.tail.chain == log.chain
    assert contents.log_id == log.log_id
    assert (contents.torn, contents.dirty_tail, contents.is_sealed) == (None, False, False)


def test_a_sealed_log_says_so(tmp_path):
    assert recover(small_log(sealed=True).write(tmp_path / "log")).is_sealed


def test_recovery_changes_nothing(folder):
    patch(folder / THIRD, 4300, b"torn bytes")
    before = snapshot(folder)

    recover(folder)

    assert snapshot(folder) == before


def test_a_log_goes_on_behind_a_seal(tmp_path):
    log = small_log(sealed=True).data(b"ten").roll().data(b"eleven")

    contents = recover(log.write(tmp_path / "log"))

    assert contents.last_txid == 11
    assert records(tmp_path / "log") == log.records()


def test_a_log_whose_oldest_segments_were_removed_is_whole(log, folder):
    (folder / FIRST).unlink()

    assert recover(folder).first_txid == 4
    assert records(folder) == log.records()[3:]


def test_an_empty_folder_is_a_log_never_written_to(tmp_path):
    contents = recover(tmp_path)

    assert (contents.segments, contents.records, contents.last_txid) == ((), 0, 0)
    assert contents.tail is None
    assert contents.log_id is None


def test_a_log_without_records_knows_what_comes_next(tmp_path):
    contents = recover(LogBuilder().write(tmp_path / "log"))

    assert (contents.first_txid, contents.last_txid, contents.records) == (1, 0, 0)


def test_a_full_segment_ends_where_the_file_does(tmp_path):
    log = LogBuilder().data(bytes(SEGMENT_SIZE - 4096 - 24))

    contents = recover(log.write(tmp_path / "log"))

    assert contents.tail is not None
    assert contents.tail.used == SEGMENT_SIZE
    assert records(tmp_path / "log") == log.records()


@pytest.mark.parametrize("name", [FIRST, SECOND, THIRD])
def test_segments_may_differ_in_size(log, folder, name):
    rewrite_header(folder / name, segment_size=Bytes(4 * SEGMENT_SIZE))
    with (folder / name).open("ab") as file:
        file.write(bytes(3 * SEGMENT_SIZE))

    assert recover(folder).last_txid == 9
    assert records(folder) == log.records()


def test_prepared_segments_are_listed_and_kept(log, folder):
    (folder / FOURTH).write_bytes(bytes(SEGMENT_SIZE))

    contents = recover(folder)

    assert contents.prepared == (folder / FOURTH,)
    assert prepare_for_writing(contents).prepared == (folder / FOURTH,)
    assert records(folder) == log.records()


# Torn tails: in the last segment, behind everything that was promised.


@pytest.mark.parametrize(
    ("offset", "content"),
    [
        (4232, b"\x01"),
        (4232 + 500, b"kept sector, its record lost"),
        (4232 + 8, b"\xff" * 40),
        (SEGMENT_SIZE - 3, b"end"),
    ],
    ids=["one-byte", "behind-zeros", "half-a-header", "last-bytes"],
)
def test_a_torn_tail_is_cut_and_kept_in_a_copy(log, folder, offset, content):
    patch(folder / THIRD, offset, content)
    torn_bytes = (folder / THIRD).read_bytes()

    contents = recover(folder)
    after = prepare_for_writing(contents)

    assert contents.torn is not None
    assert (contents.torn.segment, contents.torn.offset, contents.torn.txid) == (folder / THIRD, 4232, 10)
    assert contents.torn.length == offset + len(content) - 4232
    assert after.broken == (folder / f"{THIRD}.broken",)
    assert after.broken[0].read_bytes() == torn_bytes
    assert (folder / THIRD).read_bytes()[4232:] == bytes(SEGMENT_SIZE - 4232)
    assert recover(folder).torn is None
    assert records(folder) == log.records()


def test_a_last_record_that_does_not_decode_is_torn(log, folder):
    patch(folder / THIRD, 4200 + 24, b"N")  # the payload of txid 9, which nothing says was durable

    contents = recover(folder)

    assert contents.torn is not None
    assert (contents.torn.offset, contents.last_txid) == (4200, 8)
    assert records(folder) == log.records()[:-1]


def test_records_behind_a_torn_one_go_with_it(log, folder):
    patch(folder / THIRD, 4160 + 24, b"E")  # txid 8; txid 9 is whole, and was appended in the same sync

    after = prepare_for_writing(recover(folder))

    assert after.last_txid == 7
    assert (folder / THIRD).read_bytes()[4160:] == bytes(SEGMENT_SIZE - 4160)


def test_a_copy_never_replaces_an_earlier_one(folder):
    for content in (b"one ", b"two ", b"last"):
        patch(folder / THIRD, 4240, content)
        prepare_for_writing(recover(folder))

    names = [f"{THIRD}.broken", f"{THIRD}.2.broken", f"{THIRD}.3.broken"]
    assert [(folder / name).read_bytes()[4240:4244] for name in names] == [b"one ", b"two ", b"last"]
    assert {path.name for path in recover(folder).broken} == set(names)


def test_the_cut_can_be_interrupted_and_begun_again(log, folder):
    patch(folder / THIRD, 4240, b"torn" * 100)
    contents = recover(folder)
    patch(folder / THIRD, 4240, bytes(200))  # zeroed in part, then a crash

    assert contents.torn is not None
    prepare_for_writing(recover(folder))
    assert records(folder) == log.records()


@pytest.mark.parametrize(("size", "offset", "last"), [(4210, 4200, 8), (4232, 4232, 9), (4096, 4096, 5)])
def test_a_last_segment_cut_short_is_damage_for_no_crash_cuts_one(log, folder, size, offset, last):
    truncated(size, THIRD)(folder)

    with pytest.raises(LogDamaged, match=rf"{THIRD}: damaged at byte {offset:,}: found the end of the file at byte"):
        recover(folder)
    after = repair_log(folder, salvage=True).contents

    assert after.last_txid == last
    assert (folder / THIRD).stat().st_size == SEGMENT_SIZE
    assert records(folder) == log.records()[:last]


def test_a_sealed_last_segment_cut_short_lost_nothing_and_is_made_whole_again(tmp_path):
    log = small_log(sealed=True)
    folder = log.write(tmp_path / "sealed")
    truncated(len(log.last), THIRD)(folder)

    contents = recover(folder)
    after = prepare_for_writing(contents)

    assert contents.torn is not None
    assert (contents.torn.length, contents.torn.found) == (0, "the end of the file")
    assert after.broken == ()
    assert (folder / THIRD).stat().st_size == SEGMENT_SIZE
    assert records(folder) == log.records()


def test_what_was_left_half_made_is_removed(log, folder):
    (folder / f"{FOURTH}.tmp").write_bytes(b"half")

    prepare_for_writing(recover(folder))

    assert not (folder / f"{FOURTH}.tmp").exists()


# Recycled space: whole old records behind the new ones, and prepared segments that are not blank.


def recycled(new: LogBuilder, old: LogBuilder) -> bytes:
    """Return the newest segment of `new` over the bytes of the oldest one of `old`."""
    return bytes(new.last) + next(iter(old.files().values()))[len(new.last) :]


@pytest.mark.parametrize("payload", [b"x" * 8, b"x" * 11, b"x" * 100], ids=["aligned", "between", "inside"])
def test_old_records_behind_new_ones_are_neither_read_nor_called_torn(tmp_path, payload):
    old = LogBuilder().data(*[b"old %d" % k for k in range(40)])
    new = LogBuilder().data(*[b"old %d" % k for k in range(40)]).roll().data(payload)
    folder = new.write(tmp_path / "log")
    (folder / SECOND).write_bytes(recycled(new, old))

    contents = recover(folder)
    after = prepare_for_writing(contents)

    assert (contents.last_txid, contents.torn, contents.dirty_tail) == (41, None, True)
    assert after.broken == ()
    assert (folder / SECOND).read_bytes()[len(new.last) :] == bytes(SEGMENT_SIZE - len(new.last))
    assert records(folder) == new.records()


def test_a_recycled_segment_that_is_prepared_stays(log, folder):
    (folder / FOURTH).write_bytes(bytes(4096) + log.files()[FIRST][4096:])

    after = prepare_for_writing(recover(folder))

    assert after.prepared == (folder / FOURTH,)


def test_records_whose_header_never_reached_the_disk_do_not_come_back(tmp_path):
    log = small_log().roll().data(b"ten", b"eleven")
    folder = log.write(tmp_path / "log")
    patch(folder / FOURTH, 0, bytes(4096))

    contents = recover(folder)
    after = prepare_for_writing(contents)

    assert contents.unsafe_prepared == (folder / FOURTH,)
    assert after.prepared == ()
    assert not (folder / FOURTH).exists()
    assert records(folder) == log.records()[:-2]


def test_a_lost_header_before_durable_records_is_damage(tmp_path):
    folder = small_log().roll().data(b"ten").sync().data(b"eleven").write(tmp_path / "log")
    patch(folder / FOURTH, 0, bytes(4096))

    with pytest.raises(LogDamaged, match=r"00000004.wal: damaged at byte 0: found zeros, allowed a segment header"):
        recover(folder)


def test_a_first_segment_whose_header_never_reached_the_disk_is_begun_again(tmp_path):
    folder = LogBuilder().data(b"never acknowledged").write(tmp_path / "log")
    patch(folder / FIRST, 0, bytes(4096))

    after = prepare_for_writing(recover(folder))

    assert (after.segments, after.prepared) == ((), ())
    assert list(folder.iterdir()) == []


def test_a_first_segment_that_lost_its_header_and_held_durable_records_is_damage(tmp_path):
    folder = LogBuilder().data(b"one").sync().data(b"two").write(tmp_path / "log")
    patch(folder / FIRST, 0, bytes(4096))

    with pytest.raises(LogDamaged, match=r"00000001.wal: damaged at byte 0: found zeros"):
        recover(folder)


# Headers that are not whole.


@pytest.mark.parametrize("kept", [0, 1, 7, 8, 20, 40, 80, 83], ids=str)
def test_a_header_torn_by_a_crash_is_cut_with_what_is_behind_it(tmp_path, kept):
    log = small_log().roll().data(b"never acknowledged")
    folder = log.write(tmp_path / "log")
    patch(folder / FOURTH, kept, bytes(4096 - kept))

    contents = recover(folder)
    prepare_for_writing(contents)

    assert contents.last_txid == 9
    assert not (folder / FOURTH).exists()
    assert records(folder) == log.records()[:9]


@pytest.mark.parametrize("number", [1, 4])
@pytest.mark.parametrize("size", [0, 5, 50, 84, 4095])
def test_a_last_segment_shorter_than_its_header_is_damage(log, tmp_path, number, size):
    folder = log.write(tmp_path / "cut")
    for later in range(number + 1, log.number + 1):
        (folder / segment_name(later)).unlink()
    (folder / segment_name(number)).write_bytes(b"TIDEWAL1"[:size].ljust(size, b"\0"))

    with pytest.raises(LogDamaged, match=rf"damaged at byte {size:,}: found the end of the file, allowed a header of"):
        recover(folder)
    repair_log(folder, salvage=True)

    assert not (folder / segment_name(number)).exists()
    assert records(folder) == log.records() if number == 4 else not records(folder)


def test_a_bad_header_that_no_crash_explains_is_damage(folder):
    patch(folder / THIRD, 3, b"X")

    with pytest.raises(LogDamaged, match=r"00000003.wal: damaged at byte 0: found 'TIDXWAL1', allowed 'TIDEWAL1'"):
        recover(folder)


def test_a_torn_header_behind_a_torn_tail_is_damage(tmp_path):
    folder = small_log().roll().data(b"x").write(tmp_path / "log")
    patch(folder / FOURTH, 8, bytes(4088))
    patch(folder / THIRD, 4200 + 24, b"N")

    with pytest.raises(LogDamaged, match=r"00000003.wal: damaged at byte 4,200: .* since 00000004.wal follows it"):
        recover(folder)


def test_a_bad_header_before_durable_records_is_damage(tmp_path):
    folder = small_log().roll().data(b"x").sync().data(b"y").write(tmp_path / "log")
    patch(folder / FOURTH, 80, bytes(4))

    with pytest.raises(LogDamaged, match=r"00000004.wal: damaged at byte 80: found checksum 00000000"):
        recover(folder)


# Damage: bytes that were durable and are not there.


def truncated(size: int, name: str = SECOND):
    def cut(folder: Path) -> None:
        with (folder / name).open("r+b") as file:
            file.truncate(size)

    return cut


DAMAGE = {
    "flip-in-first": (lambda d: patch(d / FIRST, 4130, b"!"), FIRST, 4128, "checksum does not match"),
    "flip-before-durable": (lambda d: patch(d / THIRD, 4096 + 24, b"S"), THIRD, 4096, "the record at byte 4,160"),
    "zeros-before-durable": (lambda d: patch(d / THIRD, 4096, bytes(32)), THIRD, 4096, "found zeros, allowed txid 6"),
    "missing-in-the-middle": (lambda d: (d / SECOND).unlink(), SECOND, 0, "no such file, allowed segment 2"),
    "missing-before-prepared": (
        lambda d: (d / "00000005.wal").write_bytes(bytes(SEGMENT_SIZE)),
        FOURTH,
        0,
        "allowed segment 4, since 00000005.wal is there",
    ),
    "blank-in-the-middle": (
        lambda d: (d / SECOND).write_bytes(bytes(SEGMENT_SIZE)),
        SECOND,
        0,
        "found zeros, allowed a segment header, since 00000003.wal is in use",
    ),
    "cut-short-in-the-middle": (truncated(5000), SECOND, 5000, "the end of the file, allowed a segment of 8,192"),
    "no-header-in-the-middle": (truncated(50), SECOND, 50, "found the end of the file, allowed a header of 4096"),
    "renamed": (lambda d: shutil.copy(d / FIRST, d / FOURTH), FOURTH, 32, "segment number 1, allowed 4"),
    "another-log": (
        lambda d: rewrite_header(d / SECOND, log_id=bytes(16)),
        SECOND,
        16,
        "log id 00000000000000000000000000000000, allowed 000102",
    ),
    "chain-broken": (lambda d: rewrite_header(d / THIRD, previous_chain=1), THIRD, 64, "found chain 00000001, allowed"),
    "txids-skipped": (lambda d: rewrite_header(d / THIRD, first_txid=7), THIRD, 48, "found first txid 7, allowed 6"),
    "ends-elsewhere": (
        lambda d: rewrite_header(d / THIRD, previous_used=Offset(4184)),
        SECOND,
        4176,
        "found the end of the segment, allowed txid 6",
    ),
    "ends-nowhere": (
        lambda d: rewrite_header(d / THIRD, previous_used=Offset(16384)),
        THIRD,
        56,
        "found 16,384 bytes used before",
    ),
    "first-txid-of-the-log": (lambda d: rewrite_header(d / FIRST, first_txid=2), FIRST, 48, "first txid 2, allowed 1"),
}


@pytest.mark.parametrize(("damage", "name", "offset", "text"), DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_names_the_file_the_place_and_what_was_expected(folder, damage, name, offset, text):
    damage(folder)
    before = snapshot(folder)

    with pytest.raises(LogDamaged, match=text) as caught:
        recover(folder)

    assert (caught.value.segment, caught.value.offset) == (folder / name, offset)
    assert snapshot(folder) == before


def test_a_txid_out_of_order_is_damage_though_its_checksum_holds(tmp_path):
    log = LogBuilder().data(b"one")
    log.appended = 5
    folder = log.data(b"six").write(tmp_path / "log")

    with pytest.raises(LogDamaged, match="found a record with another txid, allowed txid 2"):
        recover(folder)


def test_a_segment_of_a_later_version_is_refused_by_version(folder):
    rewrite_header(folder / THIRD, version=2)

    with pytest.raises(
        UnsupportedVersion, match=r"00000003.wal: segment format version 2, this program reads version 1"
    ):
        recover(folder)


def test_a_log_that_begins_with_a_blank_segment_other_than_the_first_is_damage(tmp_path):
    (tmp_path / FOURTH).write_bytes(bytes(SEGMENT_SIZE))

    with pytest.raises(LogDamaged, match=r"00000001.wal: damaged at byte 0: found no such file"):
        recover(tmp_path)


# Folders of something else.


@pytest.mark.parametrize(
    "name", ["notes.txt", "1.wal", "00000001.wal.bak", "precious.tmp", "x.broken", "00000000.wal", "evil\x1b[2J.wal"]
)
def test_a_folder_of_something_else_is_refused(folder, name):
    (folder / name).write_bytes(b"")

    with pytest.raises(NotALog, match="not a tidegauge log: it holds ") as caught:
        recover(folder)

    assert str(caught.value).isprintable()


def test_what_is_no_regular_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / FIRST)
    with pytest.raises(NotALog, match=r"'00000001.wal' is not a regular file"):
        recover(tmp_path)

    (tmp_path / FIRST).unlink()
    (tmp_path / FIRST).symlink_to("/etc/passwd")
    with pytest.raises(NotALog, match=r"'00000001.wal' is not a regular file"):
        recover(tmp_path)


def test_a_segment_name_with_other_contents_is_not_a_log(tmp_path):
    (tmp_path / FIRST).write_bytes(b"SQLite format 3\0".ljust(SEGMENT_SIZE, b"x"))

    with pytest.raises(NotALog, match=r"00000001.wal begins with 'SQLite f'"):
        recover(tmp_path)


def test_a_file_and_a_missing_folder_are_not_logs(tmp_path):
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(NotALog, match="it is a file"):
        recover(tmp_path / "file")
    with pytest.raises(NotALog, match="there is no such folder"):
        recover(tmp_path / "missing")


# Reading records.


@pytest.mark.parametrize("start", range(1, 11))
def test_reading_begins_where_it_is_told(log, folder, start):
    assert list(read_records(folder, start_txid=start)) == log.records()[start - 1 :]


@pytest.mark.parametrize("last", range(10))
def test_reading_stops_behind_the_durable_txid(log, folder, last):
    assert list(read_records(folder, up_to=last)) == log.records()[:last]


def test_reading_to_a_durable_txid_does_not_mind_what_a_writer_does_behind_it(log, folder):
    patch(folder / THIRD, 4160, b"\xff" * 100)

    assert list(read_records(folder, up_to=7)) == log.records()[:7]


def test_a_durable_txid_that_does_not_decode_is_damage(folder):
    patch(folder / THIRD, 4200, b"\xff" * 100)

    with pytest.raises(LogDamaged, match=r"00000003.wal: damaged at byte 4,200: .* allowed txid 9, which was durable"):
        list(read_records(folder, up_to=9))


def test_a_reader_follows_a_writer_that_rolled_meanwhile(log, folder):
    reader = read_records(folder, up_to=11)
    seen = [next(reader) for _ in range(7)]
    log.roll().data(b"ten", b"eleven").sync().write(folder)

    seen += reader

    assert seen == log.records()
