"""Makes encrypted segments in Python, from docs/log_format.md alone: XChaCha20-Poly1305, the keys, the batch,
the header."""
import hashlib
import struct

import batch_bytes

ENCRYPTED = 16
MASK = 0xFFFFFFFF


def quarter(state, a, b, c, d):
    for left, right, other, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[left] = (state[left] + state[right]) & MASK
        mixed = state[other] ^ state[left]
        state[other] = (mixed << bits | mixed >> (32 - bits)) & MASK


def rounds(key, last):
    """Runs ChaCha20's twenty rounds over its constants, the key and 16 more bytes."""
    state = list(struct.unpack("<4I", b"expand 32-byte k") + struct.unpack("<8I", key) + struct.unpack("<4I", last))
    for _ in range(10):
        for column in range(4):
            quarter(state, column, column + 4, column + 8, column + 12)
        for row in range(4):
            quarter(state, row, 4 + (row + 1) % 4, 8 + (row + 2) % 4, 12 + (row + 3) % 4)
    return state


def block(key, counter, nonce):
    begun = struct.unpack("<4I", b"expand 32-byte k") + struct.unpack("<8I", key) + struct.unpack("<I", struct.pack("<I", counter))
    begun += struct.unpack("<3I", nonce)
    mixed = rounds(key, struct.pack("<I", counter) + nonce)
    return struct.pack("<16I", *((one + other) & MASK for one, other in zip(begun, mixed)))


def chacha20(key, nonce, data):
    stream = b"".join(block(key, 1 + at // 64, nonce) for at in range(0, len(data), 64))
    return bytes(one ^ other for one, other in zip(data, stream))


def poly1305(key, data):
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    total = 0
    for at in range(0, len(data), 16):
        total = (total + int.from_bytes(data[at:at + 16] + b"\1", "little")) * r % ((1 << 130) - 5)
    return ((total + int.from_bytes(key[16:], "little")) & ((1 << 128) - 1)).to_bytes(16, "little")


def padded(data):
    return data + bytes(-len(data) % 16)


def subkey_and_nonce(key, nonce):
    """XChaCha20: HChaCha20 of the nonce's first 16 bytes makes a key, which is used with the other 8 bytes."""
    mixed = rounds(key, nonce[:16])
    return struct.pack("<8I", *mixed[:4], *mixed[12:]), bytes(4) + nonce[16:]


def tag_of(key, nonce, encrypted, bound):
    lengths = struct.pack("<QQ", len(bound), len(encrypted))
    return poly1305(block(key, 0, nonce)[:32], padded(bound) + padded(encrypted) + lengths)


def seal(key, nonce, plain, bound):
    key, nonce = subkey_and_nonce(key, nonce)
    encrypted = chacha20(key, nonce, plain)
    return encrypted + tag_of(key, nonce, encrypted, bound)


def unseal(key, nonce, sealed, bound):
    key, nonce = subkey_and_nonce(key, nonce)
    if tag_of(key, nonce, sealed[:-16], bound) != sealed[-16:]:
        raise ValueError("not what was encrypted")
    return chacha20(key, nonce, sealed[:-16])


def log_key(master, incarnation):
    return hashlib.blake2b(b"lightq log key 1" + struct.pack("<Q", incarnation), key=master, digest_size=32).digest()


def key_id(key):
    digest = hashlib.blake2b(b"lightq key id 1 " + bytes(8), key=key, digest_size=32).digest()
    found, = struct.unpack_from("<Q", digest)
    return 1 if found in (0, (1 << 64) - 1) else found


def mask_of(file):
    """Returns the mask that a segment file XORs into the header checksum of each of its batches."""
    flags, = struct.unpack_from("<I", file, 56)
    return struct.unpack_from("<I", file, 128)[0] if flags & 1 else 0


def with_checksums(batch, mask=0):
    """Returns the batch with a new body checksum and a new header checksum."""
    batch = batch[:56] + struct.pack("<I", batch_bytes.crc32c(batch[4:16] + batch[32:52] + batch[64:])) + bytes(4) + batch[64:]
    return batch[:60] + struct.pack("<I", batch_bytes.crc32c(batch[:60]) ^ mask) + batch[64:]


def encrypt(key, nonce, batch):
    """Encrypts a stamped batch. Returns its bytes on disk."""
    header = batch[:5] + bytes([ENCRYPTED]) + batch[6:8] + struct.pack("<I", len(batch) + 48) + batch[12:64]
    prefix = batch[56:60] + batch[5:6] + bytes(3)
    return with_checksums(header + nonce + seal(key, nonce, prefix + batch[64:], header[4:52]))


def decrypt(key, stored, mask=0):
    """Decrypts a batch. The inverse of encrypt."""
    if stored[5] != ENCRYPTED or stored != with_checksums(stored, mask):
        raise ValueError("not an encrypted batch")
    plain = unseal(key, stored[64:88], stored[88:], stored[4:52])
    if plain[5:8] != bytes(3):
        raise ValueError("what is zero is not")
    header = stored[:5] + plain[4:5] + stored[6:8] + struct.pack("<I", len(stored) - 48) + stored[12:56] + plain[:4]
    return header + struct.pack("<I", batch_bytes.crc32c(header)) + plain[8:]


def segment_page(epoch, first_offset, incarnation, file_bytes, of_key):
    header = b"LSEG\r\n\x1a\n" + struct.pack("<IIQQQQQI", 2, epoch, first_offset, incarnation, file_bytes, 0, of_key, 0)
    header += struct.pack("<I", batch_bytes.crc32c(header))
    return header + bytes(4096 - len(header))


MASTER = bytes([0x5A] * 32)
INCARNATION = 0x0123456789ABCDEF


def golden():
    """Returns tests/golden/segment-encrypted.v2, which has two batches."""
    key, epoch = log_key(MASTER, INCARNATION), 0xA1B2C3D4
    batches = [batch_bytes.batch([b"first", b"", b"\0\xff\n"], offset=42, time_us=1_000_000, segment_epoch=epoch),
               batch_bytes.batch([b"x" * 300], offset=45, time_us=999_000, segment_epoch=epoch)]
    file = segment_page(epoch, 42, INCARNATION, 8192, key_id(key))
    for number, batch in enumerate(batches):
        file += encrypt(key, bytes(range(16)) + struct.pack("<Q", number), batch)
    return file + bytes(8192 - len(file))
