"""Misuse of the library: each ends in a code, and never hangs or crashes."""
import ctypes
import json
import os
import re
import threading

import pytest
from c_library import (CODES, HEADER, Attributes, ConsumerOptions, Handle, Interest, Message, Options, ProducerOptions,
                       ReaderOptions, Report, call, last_text, lib)
from support import ADMIN, ADMIN_PASSWORD, DEADLINE, PASSWORD, USER, until

WAIT = DEADLINE * 1000
SHORT = 100


def options_of(broker, **given):
    chosen = {"user": USER.encode(), "password": PASSWORD.encode(), **given}
    return Options(uri=broker.control_uri.encode(), no_discovery=1, **chosen)


def connected(broker, **given):
    client = Handle("client", "lightq_connect", ctypes.byref(options_of(broker, **given)))
    assert client.opened == "ok", last_text()
    return client


def opened(kind, client, options=None, topic=b"t"):
    return Handle(kind, f"lightq_{kind}_open", client, topic, ctypes.byref(options) if options else None)


def sent(out, body=b"one"):
    assert call("lightq_send", out, body, len(body), None, WAIT) == "ok", last_text()


def receiving(client, group, **more):
    """Returns a consumer of a new group, before which nothing lies."""
    return opened("consumer", client, ConsumerOptions(group=group, **{"from": CODES["FROM_NEXT"]}, **more))


def with_message(broker, group):
    """Returns a client, a producer, and a consumer with its message."""
    client = connected(broker)
    out, orders, message = opened("producer", client), receiving(client, group), Message()
    sent(out)
    assert call("lightq_next", orders, ctypes.byref(message), WAIT) == "ok", last_text()
    return client, out, orders, message


def test_null_is_an_error_everywhere():
    """Every function of the header is called with nothing but null and zero."""
    declarations = re.findall(r"^(int|void|size_t|const char \*|const lightq_error \*)\s*(lightq_\w+)\(([^;]*)\);", HEADER, re.M | re.S)
    checked = 0
    for returned, name, parameters in declarations:
        arguments = [None if "*" in each or "callback" in each else ctypes.c_uint64(0) for each in parameters.split(",") if each != "void"]
        code = getattr(lib, name)(*arguments)
        if returned == "int" and not re.search("_free|_fd|_state|_revoked|retryable|_header$|lightq_connect", name):
            assert code == CODES["INVALID_ARGUMENT"], name
            checked += 1
    assert len(declarations) > 50 and checked > 30
    assert lib.lightq_producer_fd(None) == -1 and lib.lightq_consumer_state(None) == CODES["STATE_CLOSED"]
    assert lib.lightq_revoked(None, None) == 1 and lib.lightq_watch_revoked(None) == 1
    assert call("lightq_connect", None, None) == "invalid_argument"


def test_wrong_sizes_are_refused(broker):
    client = connected(broker)
    options = ProducerOptions()
    for size, expected in ((0, "invalid_argument"), (8, "invalid_argument"), (1 << 40, "invalid_argument")):
        options.size = size
        out = opened("producer", client, options)
        assert (out.opened, out.is_null) == (expected, True)
    longer = (ctypes.c_char * (ctypes.sizeof(ProducerOptions) + 8))()  # of a newer header
    newer = ProducerOptions.from_buffer(longer)
    newer.size = len(longer)
    assert opened("producer", client, newer).opened == "ok"
    longer[ctypes.sizeof(ProducerOptions)] = 1
    assert opened("producer", client, newer).opened == "not_supported"
    message = Message()
    message.size = 8
    assert call("lightq_next", opened("consumer", client), ctypes.byref(message), 0) == "invalid_argument"


@pytest.mark.parametrize("made", [
    lambda: ProducerOptions(level=3), lambda: ProducerOptions(compression=16), lambda: ProducerOptions(transport=3),
    lambda: ProducerOptions(heartbeat_ms=-2), lambda: ProducerOptions(linger_ms=-1), lambda: ProducerOptions(backoff_ms=-1),
    lambda: ConsumerOptions(**{"from": 5}), lambda: ConsumerOptions(prefetch_messages=-1), lambda: ConsumerOptions(group=b"a b"),
    lambda: ConsumerOptions(frame_bytes_max=-1), lambda: ReaderOptions(frame_bytes_max=1), lambda: ReaderOptions(name=b"x" * 129)])
def test_options_out_of_their_range_are_refused(broker, made):
    options = made()
    kind = {ProducerOptions: "producer", ConsumerOptions: "consumer", ReaderOptions: "reader"}[type(options)]
    assert opened(kind, connected(broker), options).opened == "invalid_argument"


def test_closed_twice_and_used_after_it(broker):
    client, out, orders, message = with_message(broker, b"twice")
    client.free()  # the others stay usable
    assert call("lightq_ack", orders, ctypes.byref(message)) == "ok"
    assert call("lightq_ack", orders, ctypes.byref(message)) == "revoked"
    assert call("lightq_flush", out, WAIT) == "ok"
    for close, handle in ("lightq_producer_close", out), ("lightq_consumer_close", orders):
        assert call(close, handle, WAIT) == "ok", last_text()
        assert call(close, handle, WAIT) == "closed"
    assert call("lightq_send", out, b"x", 1, None, 0) == "closed"
    assert call("lightq_next", orders, ctypes.byref(message), 0) == "closed"
    for settle in ("lightq_ack", "lightq_release"):
        assert call(settle, orders, ctypes.byref(message)) == "closed"
    assert lib.lightq_producer_state(out) == lib.lightq_consumer_state(orders) == CODES["STATE_CLOSED"]
    assert out.free() == orders.free() == "ok"


def test_no_broker_and_a_wrong_password(broker):
    nobody = Handle("client", "lightq_connect", ctypes.byref(Options(uri=b"tcp://127.0.0.1:1", no_discovery=1)))
    assert (nobody.opened, nobody.is_null) == ("io_error", True)
    assert lib.lightq_retryable(CODES["IO_ERROR"]) == 1 and "127.0.0.1:1" in last_text()
    wrong = connected(broker, password=b"another one")
    assert opened("producer", wrong).opened == "unauthorized_access"
    assert opened("consumer", wrong).opened == "unauthorized_access" and "another one" not in last_text()
    assert opened("producer", connected(broker), topic=b"none").opened == "topic_not_found"
    assert opened("reader", connected(broker), topic=b"a b").opened == "invalid_argument"


def test_a_second_thread_is_refused(broker):
    client = connected(broker)
    orders, words = receiving(client, b"threads"), []
    first = threading.Thread(target=lambda: words.append(call("lightq_next", orders, ctypes.byref(Message()), WAIT)))
    first.start()
    until(lambda: call("lightq_consumer_poll", orders) == "in_use", "the first thread's call")
    assert orders.free() == "in_use" and "one thread at a time" in last_text()
    sent(opened("producer", client))
    first.join(DEADLINE)
    # the producer was freed without a flush: its message may be lost, so another one ends the wait
    if first.is_alive():
        out = opened("producer", client)
        sent(out)
        assert call("lightq_flush", out, WAIT) == "ok"
        first.join(DEADLINE)
    assert words == ["ok"] and orders.free() == "ok"


def test_errors_belong_to_their_thread():
    assert call("lightq_ping", None) == "invalid_argument"
    other = []
    thread = threading.Thread(target=lambda: other.append(ctypes.c_int.from_address(lib.lightq_last_error()).value))
    thread.start()
    thread.join()
    assert other == [0] and last_text() == "the handle is null"


def test_a_child_of_a_fork_gets_closed(broker):
    client, out, orders, message = with_message(broker, b"forked")
    child = os.fork()
    if child == 0:
        found = [call("lightq_send", out, b"x", 1, None, 0), call("lightq_next", orders, ctypes.byref(Message()), 0),
                 call("lightq_ping", client), call("lightq_producer_close", out, 0)]
        for handle in (out, orders, client):
            handle.free()
        os._exit(0 if set(found) == {"closed"} else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert call("lightq_ack", orders, ctypes.byref(message)) == "ok"
    assert call("lightq_consumer_close", orders, WAIT) == call("lightq_producer_close", out, WAIT) == "ok"


def test_bad_messages_are_refused_and_the_producer_stays_usable(broker):
    client = connected(broker)
    out = opened("producer", client)
    for body, size, attributes, expected in (
            (None, 1, None, "invalid_argument"), (b"", (1 << 64) - 1, None, "too_large"), (b"", 1 << 40, None, "too_large"),
            (b"x", 1, Attributes(key_bytes=1), "invalid_argument"), (b"x", 1, Attributes(header_count=1), "invalid_argument"),
            (b"x", 1, Attributes(header_count=1 << 60), "too_large"), (b"x", 1, Attributes(delay_ms=-1), "invalid_argument"),
            (b"x", 1, Attributes(delay_ms=1), "invalid_argument"), (b"x", 1, Attributes(ttl_ms=-1), "invalid_argument"),
            (b"x", 1, Attributes(ttl_ms=(1 << 63) - 1), "invalid_argument")):
        given = ctypes.byref(attributes) if attributes else None
        assert call("lightq_send", out, body, ctypes.c_size_t(size), given, 0) == expected, (size, last_text())
    assert call("lightq_send_confirmed", out, None, 0, None, WAIT) == "ok"  # an empty message
    assert call("lightq_wait_settled", out, ctypes.c_uint64(0), WAIT) == "ok"
    assert call("lightq_wait_settled", out, ctypes.c_uint64(1), -1) == "invalid_argument", "it was never sent"
    assert call("lightq_producer_close", out, WAIT) == "ok"


def test_no_memory_is_a_code(broker):
    """Neither a message nor a command for which there is no memory ends the process."""
    import resource
    child = os.fork()
    if child == 0:
        client = connected(broker)
        out = opened("producer", client, ProducerOptions(memory_bytes_max=1 << 30))
        body = bytes(64 << 20)
        command = b'{"cmd":"ping","x":"' + bytes(range(97, 123)) * (2 << 20) + b'"}'
        pages = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (pages + (1 << 20), resource.RLIM_INFINITY))
        codes = [lib.lightq_send(out, body, len(body), None, 0), lib.lightq_command(client, command, None)]
        usable = lib.lightq_send(out, b"x", 1, None, WAIT)
        os._exit(0 if codes[0] in (CODES["LIMIT_REACHED"], CODES["NO_MEMORY"], CODES["TOO_LARGE"]) and
                 codes[1] in (CODES["NO_MEMORY"], CODES["REQUEST_TOO_LARGE"]) and usable == 0 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_producer_is_not_for_its_own_callback(broker):
    client = connected(broker)
    out, found = opened("producer", client), []

    @Report
    def callback(_user, _report):
        if not found:
            found.extend([out.free(), call("lightq_flush", out, WAIT), call("lightq_producer_close", out, 0),
                          call("lightq_producer_on_report", out, None, None), call("lightq_send", out, b"two", 3, None, WAIT)])

    assert call("lightq_producer_on_report", out, callback, None) == "ok"
    sent(out)
    assert call("lightq_flush", out, WAIT) == "ok"
    assert found == ["in_use"] * 4 + ["ok"]
    assert call("lightq_producer_close", out, WAIT) == "ok"


def test_a_revoked_message_is_an_error(broker):
    client, _, orders, message = with_message(broker, b"revoked")
    watch = ctypes.c_void_p()
    assert call("lightq_watch_open", orders, ctypes.byref(message), ctypes.byref(watch)) == "ok"
    assert lib.lightq_watch_revoked(watch) == lib.lightq_revoked(orders, ctypes.byref(message)) == 0
    assert call("lightq_seek", orders, CODES["FROM_LAST"], ctypes.c_uint64(0), None, WAIT) == "ok", last_text()
    until(lambda: call("lightq_consumer_poll", orders) == "ok" and lib.lightq_revoked(orders, ctypes.byref(message)), "the revocation")
    for settle, more in ("lightq_ack", ()), ("lightq_release", ()), ("lightq_retry", (ctypes.c_int64(0),)), ("lightq_dead", (None,)):
        assert call(settle, orders, ctypes.byref(message), *more) == "revoked", settle
    assert lib.lightq_watch_revoked(watch) == 1
    lib.lightq_watch_free(watch)


def test_a_message_whose_time_has_passed_is_not_late_if_its_acknowledgement_was_refused(broker):
    client, message, late, count = connected(broker), Message(), (ctypes.c_uint64 * 2)(), ctypes.c_size_t(1)
    out, orders = opened("producer", client), receiving(client, b"expiring", ack_timeout_ms=100)
    sent(out)
    assert call("lightq_next", orders, ctypes.byref(message), WAIT) == "ok", last_text()
    until(lambda: call("lightq_consumer_poll", orders) == "ok" and lib.lightq_revoked(orders, ctypes.byref(message)), "the revocation")
    assert call("lightq_ack", orders, ctypes.byref(message)) == "revoked"
    assert call("lightq_consumer_late", orders, late, 1, ctypes.byref(count)) == "ok" and count.value == 0
    assert call("lightq_consumer_close", orders, WAIT) == "ok", last_text()


def test_commands_have_the_credentials_of_the_client(broker):
    admin = connected(broker, user=None, password=None, admin_user=ADMIN.encode(), admin_password=ADMIN_PASSWORD.encode())

    def ask(client, **request):
        reply = ctypes.c_char_p()
        found = call("lightq_command", client, json.dumps(request).encode(), ctypes.byref(reply))
        text = reply.value
        lib.lightq_free(reply)
        return found, json.loads(text) if text else None

    assert call("lightq_create_topic", admin, b"made", b'{"broker_type": "file"}') == "ok", last_text()
    assert call("lightq_create_topic", admin, b"made", None) == "topic_already_exists"
    assert call("lightq_create_topic", admin, b"made2", b"[]") == "invalid_argument"
    assert ask(admin, cmd="create_user", user_id="shop", password="another secret", rights=[
        {"topic": "made", "rights": ["produce", "consume", "manage"]}])[0] == "ok", last_text()
    shop = connected(broker, user=b"shop", password=b"another secret")
    found, stats = ask(shop, cmd="stats", topic="made")
    assert found == "ok" and stats["status"] == "ok" and stats["topic"] == "made"
    assert ask(shop, cmd="list_users") == ("unauthorized_access", None)
    assert [user["user_id"] for user in ask(admin, cmd="list_users")[1]["users"]] == ["shop"]
    assert ask(admin, cmd="list_dead", topic="made", group="g")[0] == "group_not_found"
    assert ask(admin, cmd="nothing")[0] == "invalid_cmd"
    assert call("lightq_command", admin, b"{", None) == "invalid_json"
    assert call("lightq_delete_topic", admin, b"made") == "ok"
    assert call("lightq_stats", admin, b"made", None) == "topic_not_found"


def test_interest_is_that_of_the_connection(broker):
    client = connected(broker)
    orders, interest = receiving(client, b"interest"), Interest()
    assert call("lightq_consumer_interest", orders, ctypes.byref(interest)) == "ok"
    assert interest.fd == lib.lightq_consumer_fd(orders) >= 0 and interest.events & 1 and interest.timeout_ms >= 0
    assert call("lightq_next", orders, ctypes.byref(Message()), SHORT) == "timeout"
