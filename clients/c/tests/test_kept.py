"""Reports and read messages that the library keeps, for languages into which it cannot call."""
import ctypes

from c_library import CODES, Attributes, Message, ProducerOptions, call, last_text, lib, struct
from test_misuse import WAIT, connected, opened, receiving, sent

Report = struct("lightq_report")


def reports_of(out):
    """Takes all reports: (begin, end, fate, word of the code, text, first number in the schedule)."""
    found, report = [], Report()
    while call("lightq_next_report", out, ctypes.byref(report)) == "ok":
        text = ctypes.string_at(report.text).decode()
        found.append((report.begin, report.end, report.fate, lib.lightq_strerror(report.code).decode(), text, report.delayed_first))
    assert call("lightq_next_report", out, ctypes.byref(report)) == "timeout"
    return found


def test_reports_are_kept_and_neighbours_joined(broker):
    out = opened("producer", connected(broker))
    assert call("lightq_producer_keep_reports", out) == "ok"
    for _ in range(3):
        sent(out)
        assert call("lightq_flush", out, WAIT) == "ok", last_text()
    assert reports_of(out) == [(0, 3, CODES["CONFIRMED"], "ok", "", -1)] and reports_of(out) == []
    report = Report()
    report.size = 8
    assert call("lightq_next_report", out, ctypes.byref(report)) == "invalid_argument"
    assert call("lightq_producer_on_report", out, None, None) == "ok"  # nothing is kept any more
    sent(out)
    assert call("lightq_producer_close", out, WAIT) == "ok" and reports_of(out) == []


def test_delayed_messages_and_one_without_a_topic_are_reported(broker):
    client = connected(broker)
    out = opened("producer", client, ProducerOptions(delayed=1, no_retry_refused=1))
    assert call("lightq_producer_keep_reports", out) == "ok"
    later = Attributes(delay_ms=3_600_000)
    for _ in range(2):
        assert call("lightq_send", out, b"x", 1, ctypes.byref(later), WAIT) == "ok", last_text()
    assert call("lightq_flush", out, WAIT) == "ok", last_text()
    [(begin, end, fate, _, _, first)] = reports_of(out)
    assert (begin, end, fate) == (0, 2, CODES["CONFIRMED"]) and first >= 0
    broker.control().create("gone", "file")
    gone = opened("producer", client, topic=b"gone")
    assert call("lightq_producer_keep_reports", gone) == "ok"
    broker.control().delete("gone")
    sent(gone)
    assert call("lightq_producer_close", gone, WAIT) != "ok"
    [(begin, end, fate, word, text, _)] = reports_of(gone)
    assert (begin, end) == (0, 1) and fate != CODES["CONFIRMED"] and word == "topic_not_found" and "gone" in text


def test_read_messages_are_kept_with_their_parts(broker):
    broker.control().create("pages", "file")
    client = connected(broker)
    out, reader = opened("producer", client, topic=b"pages"), opened("reader", client, topic=b"pages")
    for number in range(5):
        key = b"key %d" % number
        attributes = Attributes(key=ctypes.cast(ctypes.c_char_p(key), ctypes.c_void_p), key_bytes=len(key))
        assert call("lightq_send", out, b"body %d" % number, 6, ctypes.byref(attributes), WAIT) == "ok"
    assert call("lightq_send", out, None, 0, None, WAIT) == "ok"
    assert call("lightq_flush", out, WAIT) == "ok"
    following, message = ctypes.c_uint64(), Message()

    def fetch(begin, end):
        return call("lightq_fetch", reader, ctypes.c_uint64(begin), ctypes.c_uint64(end), ctypes.c_uint64(0), ctypes.byref(following), WAIT)

    def taken():
        found = []
        while call("lightq_next_fetched", reader, ctypes.byref(message)) == "ok":
            found.append((message.offset, ctypes.string_at(message.body, message.body_bytes), ctypes.string_at(message.key, message.key_bytes)))
        return found

    assert taken() == [] and fetch(0, 100) == "ok", last_text()
    assert taken() == [(n, b"body %d" % n, b"key %d" % n) for n in range(5)] + [(5, b"", b"")] and following.value == 6
    assert fetch(0, 100) == fetch(3, 4) == "ok" and [offset for offset, *_ in taken()] == [3]
    assert fetch(0, 100) == "ok" and fetch(2, 1) == "invalid_argument"
    message.size = 8
    assert call("lightq_next_fetched", reader, ctypes.byref(message)) == "invalid_argument"
    assert reader.free() == "ok"


def test_the_offset_and_the_lease_settle_a_message(broker):
    client = connected(broker)
    out, orders, message = opened("producer", client), receiving(client, b"by_lease"), Message()
    for _ in range(2):
        sent(out)
        assert call("lightq_next", orders, ctypes.byref(message), WAIT) == "ok", last_text()
        known = Message(offset=message.offset, lease=message.lease)
        assert lib.lightq_revoked(orders, ctypes.byref(known)) == 0
        assert call("lightq_ack", orders, ctypes.byref(known)) == "ok"
        assert call("lightq_ack", orders, ctypes.byref(message)) == "revoked"
    assert call("lightq_consumer_close", orders, WAIT) == "ok"
