#!/usr/bin/env python3
"""Writes the seed inputs of the fuzz targets: tests/fuzz/make_corpus.py writes tests/fuzz/corpus/TARGET/*.

The files are committed. Run the script again when a format changes. control_json_fuzz uses
docs/protocol.md. zmtp_fuzz, zmtp_dealer_fuzz and curve_fuzz use RFC 37/ZMTP after two bytes for the
target, session_connection_fuzz uses docs/session.md after two such bytes. recovery_fuzz and
encrypted_log_fuzz use docs/log_format.md after one byte, log_tools_fuzz after four bytes for each file.
"""
import hashlib
import json
import pathlib
import re
import struct

from backup_files import backups
from group_documents import ADMIN, GROUP_DOCUMENTS, IMPORTS, USER
from http_requests import HTTP_CONTENTS, HTTP_REQUESTS

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"

# --- control_json_fuzz: requests, replies, and changes of the catalogue. ---------------------------------------------
STATS = {"topic": "t", "topic_type": "queue", "messages_received": 3, "messages_sent": 2, "publishers_count": 1,
         "subscribers_count": 1, "queue_size": 1, "total_bytes_written": 30, "total_bytes_read": 20}
DOCUMENTS = {
    **GROUP_DOCUMENTS,
    "ping": {"cmd": "ping"},
    "create_topic": {"cmd": "create_topic", **ADMIN, "topic": "t", "broker_type": "queue", **USER},
    "create_file_topic": {"cmd": "create_topic", **ADMIN, "topic": "t.1-a_b", "broker_type": "file", **USER, "overflow": "reject",
                          "capacity_bytes": 1 << 30, "segment_bytes": 1 << 20, "retention_bytes": 1 << 29, "retention_ms": 1000,
                          "retention_messages": 9, "open": True, "encrypt_at_rest": True},
    "set_topic": {"cmd": "set_topic", **USER, "topic": "t", "message_ttl_ms": 60_000},
    "delete_topic": {"cmd": "delete_topic", **ADMIN, "topic": "t"}, "list_topics": {"cmd": "list_topics", **ADMIN},
    "join": {"cmd": "join", "connection_type": "zmq", "type": "pull", "topic": "t", **USER, "transport": "ipc"},
    "join_encrypted": {"cmd": "join", "type": "sub", "topic": "t", **USER,
                       "client_key": "HelloWorldHelloWorldHelloWorldHelloWorld"},
    "leave": {"cmd": "leave", "topic": "t", "bind_uri": "tcp://127.0.0.1:5002", **USER},
    "stats": {"cmd": "stats", "topic": "t", **USER},
    "stats_all": {"cmd": "stats_all", **ADMIN, "after": "t", "topics_max": 7},
    "create_user": {"cmd": "create_user", **ADMIN, **USER, "admin": True, "uid": 1000,
                    "rights": [{"topic": "t*", "rights": ["produce", "manage"]}, {"topic": "*.eu", "rights": ["consume"]}]},
    "create_user_of_uid": {"cmd": "create_user", **ADMIN, "user_id": "u", "uid": 0}, "delete_user": {"cmd": "delete_user", **ADMIN, "user_id": "u"},
    "set_password": {"cmd": "set_password", **USER, "new_password": "n"},
    "set_password_of_another": {"cmd": "set_password", **ADMIN, "user_id": "u", "new_password": "n"},
    "set_password_of_topic": {"cmd": "set_password", **ADMIN, "topic": "t", "new_password": "n"},
    "grant": {"cmd": "grant", **ADMIN, "user_id": "u", "topic": "a*b", "rights": ["consume"]},
    "revoke": {"cmd": "revoke", **ADMIN, "user_id": "u", "topic": "a*b", "rights": ["produce", "consume", "manage"]},
    "list_users": {"cmd": "list_users", **ADMIN}, "reload": {"cmd": "reload", **ADMIN},
    "reply_users": {"cmd": "list_users", "status": "ok", "users": [
        {"user_id": "u", "admin": False, "uid": 1000, "rights": [{"topic": "t*", "rights": ["produce"]}]}]},
    "reply_join": {"cmd": "join", "status": "ok", "topic": "t", "bind_uri": "tcp://127.0.0.1:5002"}, "reply_reload": {
        "cmd": "reload", "status": "ok", "changed": ["log_level"], "needs_restart": ["bind", "ports"]},
    "reply_error": {"cmd": "join", "status": "error", "code": "topic_not_found", "description": "topic not found"},
    "reply_list": {"cmd": "list_topics", "status": "ok", "topics": [{"topic": "t", "broker_type": "file", "open": False}]},
    "reply_stats": {"cmd": "stats", "status": "ok", **STATS,
                    "groups": [{"group": "default", "next_offset": 2, "committed_offset": 1, "lag": 1, "lost": 0, "consumers": 1,
                                "parked": 1, "paused_by": "failing",
                                "settings": {"max_attempts": 5, "backoff_ms": [1, 2], "processing_timeout_ms": 3}}],
                    "subscribers": [{"bind_uri": "ipc:///s", "connected": True, "next_offset": 3, "lag": 0, "delivered": 3,
                                     "lost": 0}]},
    "reply_stats_all": {"cmd": "stats_all", "status": "ok", "topics": [
        {**STATS, "groups": [{"group": "default", "lag": 1}], "subscribers": []}, {**STATS, "topic": "u"}],
                        "continue_after": "u"},
    "change_topic_ttl": {"op": "topic_ttl", "id": 1, "message_ttl_ms": 60_000, "optional": True},
    "change_topic_paused": {"op": "topic_paused", "id": 1, "paused": True},
    "change_topic": {"op": "topic", "id": 1, "topic": "t", "broker_type": "queue_file", "ring_bytes": 65536, "credential": 1},
    "change_credential": {"op": "credential", "id": 1, "user_id": "u", "argon2": "$argon2id$v=19$m=65536,t=2,p=1$c2FsdA$aGFzaA"},
    "change_topic_credential": {"op": "topic_credential", "id": 1, "credential": 3},
    "change_user": {"op": "user", "id": 4, "user_id": "u", "generation": 2, "credential": 5, "argon2": "$argon2id$v=19$x",
                    "admin": True, "uid": 7, "rights": [{"topic": "t*", "rights": ["produce", "consume"]}]},
    "change_user_removed": {"op": "user_removed", "id": 4},
    "change_endpoint": {"op": "endpoint", "id": 7, "topic_id": 1, "role": "sub", "transport": "tcp", "port": 5002},
    "change_client_key": {"op": "client_key", "key": "HelloWorldHelloWorldHelloWorldHelloWorld", "topic_id": 1, "role": "pull",
                          "expires_ms": 1 << 41, "user": 3, "generation": 4},
    "change_client_key_removed": {"op": "client_key_removed", "key": "HelloWorldHelloWorldHelloWorldHelloWorld", "topic_id": 1,
                                  "role": "sub"},
    "change_ticket_key": {"op": "ticket_key", "key_id": "5a" * 32},
    "change_administrator": {"op": "administrator", "generation": 7, "argon2": "$argon2id$v=19$m=65536,t=2,p=1$c2FsdA$aGFzaA"},
    "change_next_ids": {"op": "next_ids", "topic": 2, "credential": 2, "endpoint": 8},
}
TEXTS = {
    "deep": b"[" * 40 + b"]" * 40,
    "numbers": b'{"cmd":"stats","topic":"t","a":[1e999,-0,1.5,18446744073709551616,-9223372036854775808]}',
    "escapes": b'{"cmd":"pi\\u006eg","\\u0000":"\\ud83d\\ude00\\ud800"}',
    "not_utf8": b'{"cmd":"ping","x":"\xff\xc0\x80"}',
}


# --- zmtp_fuzz: the kind of connection, the length of a piece less one, the peer's bytes. ----------------------------
INLET, PULL, SUB, CONTROL = 0, 1, 2, 3
GUARDED, OPEN = 4, 8  # added to the kind: the gate, which decides which peers are admitted


def greeting(major=3, minor=1, mechanism=b"NULL"):
    return b"\xff" + bytes(7) + b"\x01\x7f" + bytes([major, minor]) + mechanism.ljust(20, b"\0") + bytes(32)


def frame(body, more=False, command=False):
    flags = more | command << 2
    if len(body) <= 255:
        return struct.pack("!BB", flags, len(body)) + body
    return struct.pack("!BQ", flags | 2, len(body)) + body


def command(name, data=b""):
    return frame(bytes([len(name)]) + name + data, command=True)


def ready(socket_type):
    return command(b"READY", b"\x0bSocket-Type" + struct.pack("!I", len(socket_type)) + socket_type
                   + b"\x08Identity" + bytes(4))


def peer(kind, socket_type, *frames, piece=256, minor=1):
    return bytes([kind, piece - 1]) + greeting(minor=minor) + ready(socket_type) + b"".join(frames)


def ticket(role=0, topic=1, expires_ms=1_800_000_060_000):
    """Returns a ticket made with the key of zmtp_fuzz.cpp, in the format of src/access/ticket.cpp."""
    name = struct.pack("<BBQQQIQ", 1, role, topic, expires_ms, 0, 0, 4711).hex().encode()
    return name, hashlib.blake2b(name, key=bytes(range(32)), digest_size=32).hexdigest().encode()


def plain_peer(kind, socket_type, shown, *frames, piece=256):
    metadata = b"\x0bSocket-Type" + struct.pack("!I", len(socket_type)) + socket_type
    hello = b"".join(bytes([len(text)]) + text for text in shown)
    return (bytes([kind, piece - 1]) + greeting(mechanism=b"PLAIN") + command(b"HELLO", hello)
            + command(b"INITIATE", metadata) + b"".join(frames))


ZMTP = {
    "ticket": plain_peer(INLET + GUARDED, b"PUSH", ticket(), frame(b"one"), frame(b"two")),
    "ticket_in_small_pieces": plain_peer(INLET + GUARDED, b"PUSH", ticket(), frame(b"one"), piece=5),
    "ticket_of_another_role": plain_peer(INLET + GUARDED, b"PUSH", ticket(role=1), frame(b"one")),
    "ticket_that_is_none": plain_peer(INLET + GUARDED, b"PUSH", (b"id", b"secret"), frame(b"one")),
    "ticket_on_an_open_topic": plain_peer(SUB + OPEN, b"SUB", (b"any", b""), frame(b"\x01topic")),
    "ticket_at_the_control_socket": plain_peer(CONTROL, b"REQ", ticket(), frame(b"one")),
    "no_ticket": peer(INLET + GUARDED, b"PUSH", frame(b"one")),
    "no_ticket_on_an_open_topic": peer(PULL + OPEN, b"PULL"),
    "producer": peer(INLET, b"PUSH", frame(b"one"), frame(b""), frame(b"x" * 300)),
    "producer_in_small_pieces": peer(INLET, b"PUSH", frame(b"one"), frame(b"two"), piece=7),
    "producer_of_parts": peer(INLET, b"PUSH", frame(b"a", more=True), frame(b"b"), frame(b"whole")),
    "producer_too_large": peer(INLET, b"PUSH", struct.pack("!BQ", 2, 1 << 40) + b"begin"),
    "producer_3_0": peer(INLET, b"PUSH", frame(b"one"), minor=0),
    "producer_pings": peer(INLET, b"PUSH", command(b"PING", b"\x00\x0acontext"), frame(b"one"), command(b"ERROR", b"\x03bye")),
    "puller": peer(PULL, b"PULL", command(b"PING", b"\x00\x0a")),
    "puller_that_talks": peer(PULL, b"PULL", frame(b"not for us")),
    "subscriber": peer(SUB, b"SUB", command(b"SUBSCRIBE", b"topic"), command(b"CANCEL", b"topic")),
    "subscriber_3_0": peer(SUB, b"SUB", frame(b"\x01"), frame(b"\x01top"), frame(b"\x00top"), minor=0),
    "control_req": peer(CONTROL, b"REQ", frame(b"", more=True), frame(b'{"cmd":"ping"}')),
    "control_dealer": peer(CONTROL, b"DEALER", frame(b'{"cmd":"ping"}'), command(b"PING", b"\x00\x0a"), frame(b"x" * 300)),
    "control_parts": peer(CONTROL, b"DEALER", frame(b"", more=True), frame(b"a", more=True), frame(b"", more=True), frame(b"b")),
    "control_too_large": peer(CONTROL, b"REQ", struct.pack("!BQ", 2, 1 << 40) + b"begin"),
    "other_type": peer(INLET, b"DEALER"),
    "other_mechanism": bytes([INLET, 255]) + greeting(mechanism=b"CURVE"),
    "stranger": bytes([INLET, 255]) + b"GET / HTTP/1.1\r\n\r\n",
}


# --- zmtp_dealer_fuzz: the length of a piece less one, whether a correct handshake comes first, a broker's bytes. ---
DEALER = {
    "handshake": bytes([255, 0]) + greeting() + ready(b"ROUTER") + frame(b"one"),
    "handshake_in_single_bytes": bytes([0, 0]) + greeting() + ready(b"ROUTER") + frame(b"one"),
    "handshake_3_0": bytes([6, 0]) + greeting(minor=0) + ready(b"ROUTER") + frame(b"one"),
    "handshake_of_another_type": bytes([255, 0]) + greeting() + ready(b"PUSH"),
    "handshake_refused": bytes([255, 0]) + greeting() + command(b"ERROR", b"\x13Invalid socket type"),
    "other_mechanism": bytes([255, 0]) + greeting(mechanism=b"CURVE"),
    "older": bytes([255, 0]) + greeting(major=2),
    "stranger": bytes([255, 0]) + b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "messages": bytes([9, 1]) + frame(b"one") + frame(b"") + frame(b"x" * 255) + frame(b"y" * 300) + frame(b"z" * 3000),
    "commands": bytes([2, 1]) + command(b"PING", b"\x00\x0acontext") + frame(b"one") + command(b"SUBSCRIBE", b"x" * 300) + frame(b"two"),
    "error": bytes([255, 1]) + frame(b"one") + command(b"ERROR", b"\x03bye") + frame(b"two"),
    "parts": bytes([255, 1]) + frame(b"one") + frame(b"a", more=True) + frame(b"b"),
    "too_long": bytes([255, 1]) + frame(b"one") + struct.pack("!BQ", 2, 3001) + b"begin",
    "command_too_long": bytes([255, 1]) + struct.pack("!BQ", 6, 4097) + b"begin",
    "malformed": bytes([255, 1]) + frame(b"one") + b"\x08\x01x",
}


# --- tls_cipher_fuzz: the meaning of the rest, the length of a piece less one, the rest. -----------------------------
BEGINNING, BEHIND, CHANGES, SOUND = 0, 1, 2, 3


def extension(kind, data):
    return struct.pack("!HH", kind, len(data)) + data


def tls_record(kind, data):
    return struct.pack("!BHH", kind, 0x0303, len(data)) + data


def client_hello(version=0x0304, ciphers=(0x1301, 0x1302, 0x1303), group=29, key=bytes(range(1, 33))):
    """Returns the ClientHello of RFC 8446, section 4.1.2."""
    extensions = (extension(43, struct.pack("!BH", 2, version)) + extension(10, struct.pack("!HH", 2, group))
                  + extension(13, struct.pack("!HH", 2, 0x0403))
                  + extension(51, struct.pack("!HHH", len(key) + 4, group, len(key)) + key))
    suites = b"".join(struct.pack("!H", each) for each in ciphers)
    body = (struct.pack("!H", 0x0303) + bytes(range(32)) + b"\0" + struct.pack("!H", len(suites)) + suites + b"\x01\0"
            + struct.pack("!H", len(extensions)) + extensions)
    return b"\x01" + struct.pack("!I", len(body))[1:] + body


HELLO = client_hello()
TLS = {
    "hello": bytes([BEGINNING, 255]) + tls_record(22, HELLO),
    "hello_in_small_pieces": bytes([BEGINNING, 3]) + tls_record(22, HELLO),
    "hello_in_many_records": bytes([BEGINNING, 255]) + b"".join(tls_record(22, HELLO[at:at + 5]) for at in range(0, len(HELLO), 5)),
    "hello_of_an_older_version": bytes([BEGINNING, 255]) + tls_record(22, client_hello(version=0x0303)),
    "hello_without_a_cipher_of_ours": bytes([BEGINNING, 255]) + tls_record(22, client_hello(ciphers=(0x1304,))),
    "hello_that_is_asked_again": bytes([BEGINNING, 255]) + tls_record(22, client_hello(key=b"")) * 2,
    "hello_and_garbage": bytes([BEGINNING, 255]) + tls_record(22, HELLO) + tls_record(20, b"\x01") + tls_record(23, bytes(60)),
    "no_tls": bytes([BEGINNING, 255]) + b"GET / HTTP/1.1\r\n\r\n",
    "alert": bytes([BEGINNING, 255]) + tls_record(21, b"\x02\x28"),
    "record_too_long": bytes([BEHIND, 255]) + b"\x17\x03\x03\x48\x00" + bytes(100),
    "garbage_behind": bytes([BEHIND, 255]) + tls_record(23, bytes(60)) + tls_record(22, HELLO),
    "changes": bytes([CHANGES, 255, 5, 0, 1, 60, 0, 255]),
    "conversation": bytes([SOUND, 255, 1, 100, 255, 239, 254, 250, 3]),
    "conversation_in_small_pieces": bytes([SOUND + 4, 6, 1, 100, 255, 239, 254, 250, 3]),
    "conversation_of_much_in_single_bytes": bytes([SOUND, 0, 255, 100]) + bytes([249]) * 119,
}


# --- recovery_fuzz: 1 and the bytes after a sound first page, with checksums made by the target; or 0 and a whole file. ---
EPOCH = 7


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def batch(base, payloads, epoch=EPOCH, count=None):
    records = b"".join(struct.pack("<I", len(payload)) + payload for payload in payloads)
    count = len(payloads) if count is None else count
    head = struct.pack("<4sBBHIIQqQQHHI", b"LQB1", 1, 0, 0, 64 + len(records), count, base, 1, 0, 0, 0, 0, epoch)
    head += struct.pack("<I", crc32c(head[4:16] + head[32:52] + records))
    return head + struct.pack("<I", crc32c(head)) + records


def to_mend(whole):
    """Returns the batch with a smaller length, because the target adds 64 to the length field."""
    length = struct.unpack_from("<I", whole, 8)[0]
    return whole[:8] + struct.pack("<I", length - 64) + whole[12:]


def segment(*parts, seal=None, magic=b"LSEG\r\n\x1a\n"):
    body = b"".join(parts)
    head = struct.pack("<8sIIQQQ20x", magic, 1, EPOCH, 0, 1, 4096 + len(body))
    page = head + struct.pack("<I", crc32c(head))
    if seal is not None:
        tail = struct.pack("<4sIQQqQ20x", b"SEAL", EPOCH, *seal, 1, 1)
        page += tail + struct.pack("<I", crc32c(tail))
    return page.ljust(4096, b"\0") + body


FIRST, SECOND, THIRD = batch(0, [b"a", b""]), batch(2, [b"b" * 100]), batch(3, [b"c"])
END = 4096 + len(FIRST) + len(SECOND)
BROKEN = SECOND[:-1] + b"!"
RECOVERY = {
    "mended": b"\x01" + b"".join(map(to_mend, (FIRST, SECOND, THIRD))) + bytes(256),
    "mended_other_epoch": b"\x01" + to_mend(FIRST) + to_mend(batch(2, [b"old"], epoch=6)) + bytes(64),
    "mended_wrong_offset": b"\x01" + to_mend(FIRST) + to_mend(batch(9, [b"later"])) + bytes(64),
    "mended_wrong_count": b"\x01" + to_mend(FIRST) + to_mend(batch(2, [b"one"], count=2)) + to_mend(THIRD),
    "whole": b"\x00" + segment(FIRST, SECOND, bytes(512)),
    "whole_sealed": b"\x00" + segment(FIRST, SECOND, bytes(512), seal=(END, 3)),
    "whole_torn": b"\x00" + segment(FIRST, SECOND[:70], bytes(512)),
    "whole_damaged": b"\x00" + segment(FIRST, BROKEN, THIRD, bytes(512)),
    "whole_foreign": b"\x00" + segment(FIRST, magic=b"LSEG\r\n\x1a\x00"),
    "blank": b"\x00" + bytes(8192),
}


# --- cursor_table_fuzz and segment_index_fuzz: 0 and a whole file; or 1 and one with checksums made by the target. ---
GOLDEN = pathlib.Path(__file__).parents[1] / "golden"


def cursor_block(name, copies, kind=0x7F, generation=1):
    """Returns a block that the target mends. The first byte of its name chooses which checksums."""
    block = bytearray(2048)
    for place, (sequence, committed) in zip((0, 32, 512, 1024), copies):
        struct.pack_into("<QQ", block, place, sequence, committed)
    struct.pack_into("<QQ", block, 64, 90, 2**64 - 1 - 90)
    struct.pack_into("<BBH28x", block, 1536, kind, len(name), generation)
    block[1568:1568 + len(name)] = name
    return bytes(block)


SOUND = [(4, 40), (5, 50), (3, 30), (2, 20)]
CURSOR_TABLE = {
    "mended": b"\x01" + cursor_block(b"a", SOUND) + cursor_block(b"b", SOUND, 0x63) + cursor_block(b"", SOUND, 1),
    "mended_no_copy": b"\x01" + cursor_block(b"a", SOUND, 0x07) + cursor_block(b"b", SOUND),
    "mended_twice": b"\x01" + cursor_block(b"a", SOUND) + cursor_block(b"a", SOUND),
    "mended_damaged_name": b"\x01" + cursor_block(b"a", SOUND, 0x78) + cursor_block(b"b", SOUND),
    "short": b"\x00" + (GOLDEN / "cursors-table.v1").read_bytes()[:5000],
    "whole": b"\x00" + (GOLDEN / "cursors-table.v1").read_bytes()[:12288],
}

# cursor_file_fuzz: 0 and a whole file; or the version to which the target corrects the header, and a file.
def unfinished(*code, offset=4, version=3):
    return bytes([version]) + struct.pack("<16xQIIQH", 1, 0, 1, offset, 1) + b"a" + bytes(code)


CURSOR_FILE = {
    **{f"{how}{v}": bytes([v * (how == "mended_")]) + (GOLDEN / f"cursors.v{v}").read_bytes() for v in (1, 2, 3, 4, 5) for how in ("v", "mended_")},
    "plain": unfinished(0, 1, 0, 0), "holes": unfinished(16, 3, 0, 4, 1, 2, 6, 1, 232, 7, 2, 0),
    "all_messages": unfinished(16, 3, 0, 4, 3, 0, 1, 0, 1, 5, 0), "two_times": unfinished(16, 3, 0, 4, 0, 2, 5, 2, 0, 2, 2, 6),
    "touching": unfinished(16, 3, 0, 0, 0, 0), "behind_next": unfinished(3, 3, 0, 4, 0, 0), "last": unfinished(1, 2, 0, 0, 0, offset=2**64 - 2),
    "dead": unfinished(16, 4, 0, 4, 2, 2, 1, 2, 0, 0, 2, 0, 2, 6, 2, 6, 1, 3, 1, 5, 6, 1, 3, *[9] * 16, 2, 110, 111, 1, 9, 2, 10, version=4),
    "all_parked": unfinished(5, 2, 0, 0, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0, version=4), "twice": unfinished(5, 2, 0, 0, 0, 1, 1, 0, 2, 0, 0, 1, 5, 6, 0, 0, version=4),
    "long_gap": unfinished(251, *[255] * 8, 1, 13, 0, 132, *[128] * 8, 2, 1, 5, 0, 0),
}
INDEX = (GOLDEN / "segment-index.v1").read_bytes()
SEGMENT_INDEX = {
    "whole": b"\x00" + INDEX,
    "mended": b"\x01" + INDEX,
    "mended_more": b"\x01" + INDEX + INDEX[-24:],
    "mended_fewer": b"\x01" + INDEX[:-24],
    "cut": b"\x00" + INDEX[:-5],
}


# --- producer_file_fuzz: which files to mend (1, 2; 4: to version 2), the first file's length in 32 bytes, both files. ---
def producers(sequence, as_of, *known, count=None):
    """Returns a producer file. Each producer has an id, an expected sequence and an epoch."""
    body = struct.pack("<Q", as_of) + b"".join(struct.pack("<QQqH", id, expected, 1, epoch) for id, expected, epoch in known)
    counted = struct.pack("<QII", sequence, 32 + len(body), len(known) if count is None else count) + body
    return struct.pack("<8sII", b"LPRD\r\n\x1a\n", 1, crc32c(counted)) + counted


def producer_files(mended, first, second=b""):
    first += bytes(-len(first) % 32)
    return bytes([mended, len(first) // 32]) + first + second


PRODUCERS = {
    "golden": producer_files(0, (GOLDEN / "producers.v1").read_bytes()),
    "golden_2": producer_files(0, (GOLDEN / "producers.v2").read_bytes()),
    "mended_2": producer_files(7, (GOLDEN / "producers.v2").read_bytes(), (GOLDEN / "producers.v2").read_bytes()),
    "two": producer_files(0, producers(1, 6, (1, 2, 1), (2, 2, 1), (3, 2, 1)), producers(2, 12, (1, 4, 1), (2, 4, 1), (3, 4, 1))),
    "one_torn": producer_files(0, producers(1, 0), producers(2, 6, (1, 2, 1))[:-3]),
    "ahead": producer_files(0, producers(1, 31, (1, 12, 1))),
    "disagrees": producer_files(0, producers(1, 6, (1, 4, 1), (2, 2, 9), (9, 1, 0))),
    "splits": producer_files(0, producers(1, 7, (1, 3, 1))),
    "many": producer_files(2, b"", producers(1, 0, *((id, 0, 0) for id in range(1, 200)))),
    "lies": producer_files(0, producers(1, 0, (1, 0, 1), count=10_001), producers(2, 0, (0, 0, 0))),
}


# --- log_tools_fuzz: files, each after its flags (1 mended, 2 cursors), its name and its length. ---------------------
def laid_out(*files):
    return b"".join(struct.pack("<BBH", how, which, len(content)) + content for how, which, content in files)


def cursors(sequence, *named):
    body = b"".join(struct.pack("<QH", offset, len(name)) + name for name, offset in named)
    counted = struct.pack("<QII", sequence, 32 + len(body), len(named)) + body
    return struct.pack("<8sII", b"LCUR\r\n\x1a\n", 1, crc32c(counted)) + counted


def cursors_with_ranges(sequence, *named):
    body = b"".join(struct.pack("<QHH", offset, len(name), len(ranges)) + name +
                    b"".join(struct.pack("<QQ", *span) for span in ranges) for name, offset, ranges in named)
    counted = struct.pack("<QII", sequence, 32 + len(body), len(named)) + body
    return struct.pack("<8sII", b"LCUR\r\n\x1a\n", 2, crc32c(struct.pack("<I", 2) + counted)) + counted


def whole(content):
    return RECOVERY[content][1:]


LOG_TOOLS = {
    "one": laid_out((0, 0, whole("whole_sealed"))),
    "two": laid_out((0, 0, whole("whole_sealed")), (1, 3, to_mend(THIRD) + bytes(128))),
    "gap": laid_out((0, 0, whole("whole_sealed")), (1, 9, to_mend(batch(9, [b"later"])) + bytes(64))),
    "overlap": laid_out((0, 0, whole("whole")), (1, 2, to_mend(SECOND) + to_mend(THIRD) + bytes(64))),
    "misnamed": laid_out((0, 5, whole("whole_sealed"))),
    "damaged": laid_out((0, 0, whole("whole_damaged"))),
    "headless": laid_out((0, 0, bytes(64) + whole("whole_sealed")[64:])),
    "torn": laid_out((0, 0, whole("whole_torn"))),
    "blank": laid_out((0, 0, whole("whole_sealed")), (0, 3, bytes(8192))),
    "cursors": laid_out((0, 0, whole("whole")), (2, 0, cursors(1, (b"a", 1))), (2, 1, cursors(2, (b"a", 2), (b"b", 9)))),
    "cursors_with_ranges": laid_out((0, 0, whole("whole")), (2, 0, cursors_with_ranges(1, (b"a", 1, [(2, 3), (5, 90)]))),
                                    (2, 1, cursors_with_ranges(2, (b"a", 0, [(1, 2)]), (b"b", 9, [(10, 20)])))),
    "bad_ranges": laid_out((0, 0, whole("whole")), (2, 0, cursors(1, (b"a", 1))),
                           (2, 1, cursors_with_ranges(2, (b"a", 2, [(2, 3)])))),
    "bad_cursors": laid_out((0, 0, whole("whole")), (2, 0, cursors(1, (b"a", 1))[:-1])),
}


def session_frames():
    """Returns the vectors of docs/session.md, sound and broken."""
    vectors = json.loads((CORPUS.parent.parent / "vectors" / "session_frames.json").read_text())
    both = vectors["sound"] + vectors["broken"]
    return {re.sub(r"\W+", "_", vector["name"]): bytes.fromhex(vector["frame"]) for vector in both}


def described(frame_bytes):
    """Returns the description from which session_connection_fuzz makes this frame. Requires: channel and
    request fit into a byte."""
    body = frame_bytes[20:]
    return bytes([frame_bytes[0], frame_bytes[1], frame_bytes[4], frame_bytes[8]]) + struct.pack("<H", len(body)) + body


def in_memory(what, number):
    """Returns an action of session_connection_fuzz in memory that the broker shares."""
    return struct.pack("<BQ", what, number)


def session_connections():
    """Returns the session frames after a hello: in messages, unchanged, and as descriptions."""
    frames = {name: data for name, data in session_frames().items() if 20 <= len(data) < 60000}
    hello = next(data for name, data in frames.items() if data[0] == 1)
    made = {}
    for name, data in frames.items():
        made["zmtp_" + name] = bytes([1, 255]) + greeting() + ready(b"DEALER") + frame(hello) + frame(data)
        made["made_" + name] = bytes([2, 255]) + described(hello) + described(data)
        made["tls_" + name] = bytes([2 | 4, 255]) + described(hello) + described(data)
        made["curve_" + name] = bytes([1 | 2 | 4, 255]) + described(hello) + described(data)
        if len(data) < 300:
            made["memory_" + name] = bytes([8, 255]) + in_memory(3, len(described(data))) + described(data) + in_memory(2, 4096)
    for name, what, number in (("written", 0, 100), ("written_far", 8, 1 << 63), ("written_of_ours", 4, 4096),
                               ("taken", 1, 7), ("taken_far", 13, 1 << 63), ("waits", 2, 128)):
        made["memory_" + name] = bytes([8, 255]) + in_memory(what, number) + in_memory(3, 0) * 2
    made["memory_over_the_end"] = bytes([8, 255]) + in_memory(2, 11999) + b"x" * 400
    made["zmtp_many_in_one"] = bytes([1, 10]) + greeting() + ready(b"DEALER") + frame(hello + b"".join(frames.values()))
    made["zmtp_pings"] = bytes([1, 10]) + greeting() + ready(b"DEALER") + command(b"PING", b"12ctx") + frame(hello)
    made["zmtp_parts"] = bytes([1, 255]) + greeting() + ready(b"DEALER") + frame(b"", more=True) + frame(hello)
    return made


def curves():
    """Returns inputs of curve_fuzz: the test, the length of a piece less one, and the bytes to send or the
    changes."""
    as_it_is, handshake, frames = 0, 1, 2
    hello = command(b"HELLO", b"\1\0" + bytes(72) + bytes(range(32)) + bytes(8) + bytes(80))
    return {
        "greeting": bytes([as_it_is, 7]) + greeting(mechanism=b"CURVE"),
        "null": bytes([as_it_is, 255]) + greeting() + ready(b"PUSH"),
        "hello": bytes([as_it_is, 255]) + greeting(mechanism=b"CURVE") + hello,
        "hello_and_initiate": bytes([as_it_is, 255]) + greeting(mechanism=b"CURVE") + hello + command(b"INITIATE", bytes(280)),
        "good_handshake": bytes([handshake, 3]),
        "changed_hello": bytes([handshake, 255]) + b"\0\x60\1" + b"\0\0\0",
        "changed_initiate": bytes([handshake, 255]) + b"\0\0\0" + b"\0\x80\4",
        "good_frames": bytes([frames, 0]) + b"\0\5\0" + b"\1\0\1" + b"\x90\0\2" + bytes(9),
        "changed_frames": bytes([frames, 200]) + b"\0\5\0" + b"\1\0\1" + b"\0\x30\1" + b"\0\0\0",
    }


def batches():
    """Returns the batches of the session vectors."""
    places = {5: 20, 10: 36}  # of a produce frame and of a deliver frame
    return {name: data[places[data[0]]:] for name, data in session_frames().items()
            if data[0] in places and len(data) >= places[data[0]] + 64}


# --- encrypted_log_fuzz: 2 and batches that the target encrypts, 0 and unchanged bytes, 1 and a file of keys. --------
ENCRYPTED = {
    "batches": b"\x02" + FIRST + SECOND + THIRD + bytes(100),
    "compressed": b"\x02" + FIRST[:5] + b"\x01" + FIRST[6:] + SECOND[:5] + b"\x02" + SECOND[6:],
    "encrypted_twice": b"\x02" + FIRST[:5] + b"\x10" + FIRST[6:],
    "wrong_checksum": b"\x02" + b"\x01" + FIRST[1:-1] + b"!" + SECOND,
    "with_attributes": b"\x02" + SECOND[:6] + b"\x07" + SECOND[7:],
    "in_clear": b"\x00" + FIRST + SECOND,
    "keys": b"\x01# the one in use\n" + b"0f" * 32 + b"\n\n" + b"Ab" * 32 + b" # older\r\n",
    "keys_of_another_length": b"\x01" + b"0f" * 31 + b"\n",
    "no_keys": b"\x01# none\n",
}


def main():
    seeds = {
        "batch_fuzz": batches(), "curve_fuzz": curves(),
        "zmtp_dealer_fuzz": DEALER,
        "http_messages_fuzz": HTTP_CONTENTS,
        "http_request_fuzz": HTTP_REQUESTS,
        "cursor_file_fuzz": CURSOR_FILE, "cursor_table_fuzz": CURSOR_TABLE,
        "segment_index_fuzz": SEGMENT_INDEX, "producer_file_fuzz": PRODUCERS,
        "control_json_fuzz": {**{name: json.dumps(document).encode() for name, document in DOCUMENTS.items()}, **TEXTS},
        "zmtp_fuzz": ZMTP, "import_fuzz": IMPORTS, "backup_file_fuzz": backups(),
        "recovery_fuzz": RECOVERY, "carried_log_fuzz": {"copies": b"\x01" + b"".join(to_mend(batch(at, [batch(of, [b"kept"], epoch=0)])) for at, of in enumerate((3, 9, 3)))},
        "encrypted_log_fuzz": ENCRYPTED,
        "log_tools_fuzz": LOG_TOOLS,
        "session_frame_fuzz": session_frames(),
        "session_connection_fuzz": session_connections(),
        "tls_cipher_fuzz": TLS,
    }
    for target, files in seeds.items():
        room = CORPUS / target
        room.mkdir(parents=True, exist_ok=True)
        for old in set(path.name for path in room.iterdir()) - set(files):
            (room / old).unlink()
        for name, content in files.items():
            (room / name).write_bytes(content)


if __name__ == "__main__":
    main()
