"""Makes files of versions that do not exist yet, from docs/log_format.md, "Newer versions", alone. A broker
of today must refuse some of them and may read others. `python3 -B newer_bytes.py` writes the missing ones
to tests/golden/newer."""
import pathlib
import struct

import batch_bytes
from batch_bytes import crc32c

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "newer"
PAGE, FILE = 4096, 16384
EPOCH, INCARNATION, FIRST = 7, 0x0123456789ABCDEF, 0
TIME_US = 1_800_000_000_000_000
REQUIRED, OPTIONAL = 0x0008, 0x0100  # bits without a meaning in any version
BATCH_REQUIRED = 0x0010  # such a bit of a batch
PARAGRAPH = b"\r\n\x1a\n"


def checked(data, at=60):
    return data[:at] + struct.pack("<I", crc32c(data[:at])) + data[at + 4:]


def header(version=1, flags=0):
    return checked(struct.pack("<8sIIQQQQQI4x", b"LSEG" + PARAGRAPH, version, EPOCH, FIRST, INCARNATION, FILE, 0, 0, flags))


def seal(end, offset, flags=0):
    return checked(struct.pack("<4sIQQqQQI8x4x", b"SEAL", EPOCH, end, offset, TIME_US, INCARNATION, 0, flags))


def checkpoint(flags=0):
    slot = struct.pack("<4sIQQQqQQI", b"CKPT", EPOCH, 1, PAGE, FIRST, 0, 0, FILE, flags)
    return slot + struct.pack("<I", crc32c(slot + struct.pack("<Q", INCARNATION)))


def batch(messages, offset, version=1, codec=0, flags=0):
    whole = bytearray(batch_bytes.batch(messages, producer_id=0, offset=offset, time_us=TIME_US, segment_epoch=EPOCH))
    whole[4], whole[5] = version, codec
    whole[6:8] = struct.pack("<H", flags)
    whole[56:60] = struct.pack("<I", crc32c(bytes(whole[4:16] + whole[32:52] + whole[64:])))
    whole[60:64] = struct.pack("<I", crc32c(bytes(whole[:60])))
    return bytes(whole)


def segment(*batches, header=header(), seal=b"", checkpoint=checkpoint(), zeros=FILE):
    page = (header + seal).ljust(1024, b"\0") + checkpoint
    return (page.ljust(PAGE, b"\0") + b"".join(batches)).ljust(zeros, b"\0")


def plain(count=3):
    return [batch([b"message %d" % i], i) for i in range(count)]


def sealed(flags):
    return segment(*plain(), seal=seal(PAGE + sum(map(len, plain())), 3, flags))


def messages(*texts):
    return segment(*(batch([text], i) for i, text in enumerate(texts)))


def slot_file(magic, version):
    body = b"what a later version keeps there"
    numbers = struct.pack("<QII", 9, 32 + len(body), 1)
    known = struct.pack("<I", version)
    return magic + PARAGRAPH + known + struct.pack("<I", crc32c(known + numbers + body)) + numbers + body


def table(version=1, flags=0, state=2):
    page = checked(struct.pack("<8sIIQI32x4x", b"LCTB" + PARAGRAPH, version, 2048, INCARNATION, flags))
    used = checked(struct.pack("<4sIQ44x4x", b"USED", 1, INCARNATION))
    copy = struct.pack("<QQ", 1, 2)
    copy += struct.pack("<I12x", crc32c(struct.pack("<QQI", INCARNATION, 1, 0) + b"billing" + copy))
    identity = struct.pack("<4sIQQII", b"CURS", state, 1, INCARNATION, 0, 7) + b"billing"
    block = (bytes(32) + copy).ljust(512, b"\0") + copy
    return (page.ljust(512, b"\0") + used).ljust(PAGE, b"\0") + block.ljust(1536, b"\0") \
        + checked(identity.ljust(256, b"\0"), 252).ljust(512, b"\0")


FILES = {
    "segment-version": segment(*plain(), header=header(version=9)),
    "segment-flags": segment(*plain(), header=header(flags=REQUIRED)),
    "segment-checkpoint": segment(*plain(), checkpoint=checkpoint(flags=REQUIRED)),
    "segment-seal": sealed(REQUIRED),
    "segment-batch-version": segment(*plain(), batch([b"m"], 3, version=2)),
    "segment-batch-codec": segment(*plain(), batch([b"m"], 3, codec=9)),
    "segment-batch-flags": segment(*plain(), batch([b"m"], 3, flags=BATCH_REQUIRED)),
    "segment-batch-first": segment(batch([b"m"], 0, flags=BATCH_REQUIRED), batch([b"known"], 1)),
    "segment-sealed-batch": segment(
        *plain(), batch([b"m"], 3, flags=BATCH_REQUIRED), batch([b"last"], 4),
        seal=seal(PAGE + sum(map(len, plain())) + len(batch([b"m"], 3)) + len(batch([b"last"], 4)), 5)),
    "segment-optional": segment(*plain(), batch([b"message 3"], 3, flags=OPTIONAL), header=header(flags=OPTIONAL << 16),
                                checkpoint=checkpoint(flags=OPTIONAL << 16)),
    "cursors": slot_file(b"LCUR", 6),
    "producers": slot_file(b"LPRD", 9),
    "cursor-table-version": table(version=2),
    "cursor-table-flags": table(flags=REQUIRED),
    "cursor-table-cursor": table(state=3),
    "cursor-table-optional": table(flags=OPTIONAL << 16),
    "catalogue-format": messages(b'{"op":"format","version":2}', b'{"op":"next_ids","topic":7,"credential":7,"endpoint":7}'),
    "catalogue-op": messages(b'{"op":"next_ids","topic":7,"credential":7,"endpoint":7}', b'{"op":"quota","topic":3,"bytes":5}'),
    "catalogue-optional": messages(b'{"op":"format","version":1}', b'{"op":"colour","id":3,"optional":true}',
                                   b'{"op":"next_ids","topic":7,"credential":7,"endpoint":7}'),
}


def main():
    GOLDEN.mkdir(exist_ok=True)
    for name, content in FILES.items():
        path = GOLDEN / name
        if not path.exists():
            path.write_bytes(content)


if __name__ == "__main__":
    main()
