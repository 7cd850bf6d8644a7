"""Tests that docs/log_format.md alone suffices to read and write encrypted batches."""
import pathlib
import struct

import batch_bytes
import encrypted_bytes
import pytest

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "segment-encrypted.v2"


def test_the_cipher_matches_the_published_vectors():
    """The vector of draft-irtf-cfrg-xchacha, A.3.1."""
    plain = (b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
             b"sunscreen would be it.")
    key, nonce, bound = bytes(range(0x80, 0xA0)), bytes(range(0x40, 0x58)), bytes.fromhex("50515253c0c1c2c3c4c5c6c7")
    sealed = encrypted_bytes.seal(key, nonce, plain, bound)
    assert sealed[-16:].hex() == "c0875924c1c7987947deafd8780acf49"
    assert encrypted_bytes.unseal(key, nonce, sealed, bound) == plain


def test_the_golden_file_equals_the_bytes_from_the_document():
    assert GOLDEN.read_bytes() == encrypted_bytes.golden()


def test_a_batch_decodes_to_what_was_encoded():
    key = encrypted_bytes.log_key(encrypted_bytes.MASTER, 7)
    batch = batch_bytes.batch([b"one", b"two"], producer_id=5, offset=9, time_us=3, segment_epoch=4, codec=batch_bytes.LZ4)
    stored = encrypted_bytes.encrypt(key, bytes(24), batch)
    assert len(stored) == len(batch) + 48 and encrypted_bytes.decrypt(key, stored) == batch
    with pytest.raises(ValueError):
        encrypted_bytes.decrypt(encrypted_bytes.log_key(encrypted_bytes.MASTER, 8), stored)
    moved = encrypted_bytes.with_checksums(stored[:16] + struct.pack("<Q", 10) + stored[24:])
    with pytest.raises(ValueError):
        encrypted_bytes.decrypt(key, moved)
