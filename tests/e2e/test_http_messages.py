"""Tests of messages over HTTP: publish, receive and settle them."""
import base64
import json
import threading

import pytest

from http_support import ASKER, HttpClient, RawPeer, administrator, basic, broker  # noqa: F401
from support import Secrets, until

PASSWORD = Secrets.plant("planted-message-secret-1618")
MESSAGES = "/api/v1/topics/orders/messages"


def take(http, path=MESSAGES, **parameters):
    query = "&".join(f"{name}={value}" for name, value in {"group": "g", **parameters}.items())
    response = http.get(f"{path}?{query}")
    assert response.status == 200, response.body
    return response.json()


def settle(http, lease, what, **parameters):
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return http.ask("POST", f"/api/v1/topics/orders/leases/{lease}/{what}?{query}")


def payloads(taken):
    return [message["payload"] for message in taken["messages"]]


# --- Publish ---

def test_a_message_is_published_received_and_acknowledged(http):
    published = http.ask("POST", MESSAGES, b"one")
    assert published.status == 200, published.body
    assert published.json() == {"first_offset": 0, "messages": 1, "flushed": True}
    taken = take(http)
    assert payloads(taken) == ["one"] and taken["messages"][0]["delivery"] == 1 and taken["lost"] == 0
    done = settle(http, taken["lease"], "acknowledge")
    assert done.json() == {"messages": 1, "in_flight": 0, "late": []}
    assert take(http)["messages"] == []
    assert settle(http, taken["lease"], "acknowledge").status == 410


def test_headers_are_attributes(http):
    done = http.ask("POST", f"{MESSAGES}?confirm=received", b"\x00\xff", **{
        "Lightq-Key": "k1", "Lightq-Id": "id 1", "Lightq-Time": "1700000000000000", "Lightq-Header-Colour": "red"})
    assert done.status == 200, done.body
    message = take(http)["messages"][0]
    assert base64.b64decode(message["payload_base64"]) == b"\x00\xff" and "payload" not in message
    assert (message["key"], message["time_us"]) == ("k1", 1700000000000000)
    assert message["headers"] == [{"name": "lightq-id", "value": "id 1"}, {"name": "colour", "value": "red"}]


def test_lines_are_messages(http):
    lines = [{"payload": "a"}, {"payload_base64": base64.b64encode(b"\xfe").decode(), "key": "k"},
             {"payload": "ü\n\"\\", "headers": [{"name": "n", "value": "v"}]}]
    body = "\n".join(json.dumps(line) for line in lines) + "\n"
    done = http.ask("POST", MESSAGES, body.encode(), Content_Type="application/x-ndjson; charset=utf-8")
    assert done.json() == {"first_offset": 0, "messages": 3, "flushed": True}
    messages = take(http, max=10)["messages"]
    assert [message["offset"] for message in messages] == [0, 1, 2]
    assert messages[0]["payload"] == "a" and messages[1]["payload_base64"] == "/g==" and messages[1]["key"] == "k"
    assert messages[2]["payload"] == "ü\n\"\\" and messages[2]["headers"] == [{"name": "n", "value": "v"}]


def test_many_lines_fit_a_small_topic(http, control):
    control.ok("create_topic", **ASKER, topic="small", broker_type="queue", ring_bytes=1 << 17)
    body = "".join(json.dumps({"payload": "x" * 1000}) + "\n" for _ in range(100))
    done = http.ask("POST", "/api/v1/topics/small/messages", body.encode(), Content_Type="application/x-ndjson")
    assert done.json() == {"first_offset": 0, "messages": 100, "flushed": False}


@pytest.mark.parametrize("body, words", [
    (b"", "no message"), (b"{", "line 1"), (b'{"payload":"a"}\n[]', "line 2: not an object"), (b'{"paylod":"a"}', "paylod"),
    (b'{"payload":1}', "payload"), (b'{"payload_base64":"?"}', "base64"), (b'{"payload":"a","payload_base64":"YQ=="}', "beside"),
    (b'{"headers":[{"name":"lightq-dead-x","value":""}]}', "only the broker"), (b'{"ttl_ms":0}', "ttl_ms"), (b'{"payload":"\xff"}', "line 1")])
def test_wrong_lines_store_nothing(http, body, words):
    refused = http.ask("POST", MESSAGES, body, Content_Type="application/x-ndjson")
    assert refused.status == 400 and words in refused.json()["detail"], refused.body
    assert refused.json()["code"] in ("invalid_request", "invalid_json")
    assert http.ask("POST", MESSAGES, b"first").json()["first_offset"] == 0


@pytest.mark.parametrize("headers", [{"Lightq-Nothing": "1"}, {"Lightq-Ttl": "x"}, {"Lightq-Time": "-1"}, {"Lightq-Id": "i" * 200}])
def test_wrong_headers_store_nothing(http, headers):
    refused = http.ask("POST", MESSAGES, b"a", **headers)
    assert refused.status in (400, 413), refused.body
    assert http.ask("POST", MESSAGES, b"first").json()["first_offset"] == 0


def test_a_transient_topic_confirms_no_flush(http, control):
    control.ok("create_topic", **ASKER, topic="memory", broker_type="queue")
    path = "/api/v1/topics/memory/messages"
    refused = http.ask("POST", f"{path}?confirm=flushed", b"a")
    assert (refused.status, refused.json()["code"]) == (422, "not_supported")
    assert http.ask("POST", path, b"a").json() == {"first_offset": 0, "messages": 1, "flushed": False}


def test_a_full_topic_answers_after_the_time_to_wait(http, control):
    control.ok("create_topic", **ASKER, topic="full", broker_type="queue", ring_bytes=1 << 16)
    path = "/api/v1/topics/full/messages"
    assert take(http, path)["messages"] == []  # the group holds messages from now on
    statuses = []
    while not statuses or statuses[-1] == 200:
        assert len(statuses) < 200
        statuses.append(http.ask("POST", f"{path}?wait=1", b"x" * 10_000).status)
    assert statuses[-1] == 429
    control.ok("create_topic", **ASKER, topic="strict", broker_type="queue", ring_bytes=1 << 16, overflow="reject")
    path = "/api/v1/topics/strict/messages"
    assert take(http, path)["messages"] == []
    while (last := http.ask("POST", path, b"x" * 10_000)).status == 200:
        pass
    assert (last.status, last.json()["code"], last.json()["detail"]) == (429, "limit_reached", "the topic is full")


@pytest.mark.clear
def test_a_message_waits_for_space(broker, http, control):
    control.ok("create_topic", **ASKER, topic="full", broker_type="queue", ring_bytes=1 << 16)
    path = "/api/v1/topics/full/messages"
    assert take(http, path)["messages"] == []
    while http.ask("POST", f"{path}?wait=0", b"x" * 10_000).status == 200:
        pass
    other = RawPeer(broker)
    login = "".join(f"{name}: {value}\r\n" for name, value in basic().items())
    other.say(f"POST {path}?wait=20000 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{login}Content-Length: 5000\r\n\r\n" + "y" * 5000)
    until(lambda: control.ok("stats", **ASKER, topic="full")["blocked_by"] != "", lambda: "the message waits")
    taken = take(http, path, max=100)
    assert http.ask("POST", f"/api/v1/topics/full/leases/{taken['lease']}/acknowledge").status == 200
    assert other.hear().startswith(b"HTTP/1.1 200 ")


# --- Receive and settle ---

def publish(http, count):
    body = "".join(json.dumps({"payload": f"m{i}"}) + "\n" for i in range(count))
    assert http.ask("POST", MESSAGES, body.encode(), Content_Type="application/x-ndjson").status == 200


def test_each_request_takes_its_own_messages(http):
    publish(http, 5)
    one, two = take(http, max=2), take(http, max=2)
    assert (payloads(one), payloads(two)) == (["m0", "m1"], ["m2", "m3"])
    done = settle(http, one["lease"], "acknowledge", offsets="1")
    assert done.json() == {"messages": 1, "in_flight": 1, "late": []}
    assert settle(http, one["lease"], "acknowledge", offsets="0-1").json() == {"messages": 1, "in_flight": 0, "late": []}
    assert settle(http, two["lease"], "release").json()["messages"] == 2
    again = take(http, max=2)
    assert payloads(again) == ["m2", "m3"] and {message["delivery"] for message in again["messages"]} == {1}


def test_retry_and_dead(http, control):
    publish(http, 2)
    taken = take(http, max=2)
    assert settle(http, taken["lease"], "dead", offsets="0", reason="not%20wanted").json()["messages"] == 1
    assert settle(http, taken["lease"], "retry", offsets="1").json()["messages"] == 1
    again = take(http, max=2, wait=10_000)
    assert [(message["payload"], message["delivery"]) for message in again["messages"]] == [("m1", 2)]
    dead = http.get("/api/v1/topics/orders/groups/g/dead").json()
    assert [message["reason"] for message in dead["messages"]] == ["not wanted"]


def test_a_lease_ends_and_its_messages_are_delivered_again(http):
    publish(http, 1)
    taken = take(http, lease=1000)
    again = take(http, wait=20_000)
    assert payloads(again) == ["m0"] and again["messages"][0]["delivery"] == 2
    late = settle(http, taken["lease"], "acknowledge")
    assert late.status == 410 or late.json()["messages"] == 0
    assert settle(http, again["lease"], "acknowledge").json()["messages"] == 1


def test_a_lease_is_extended(http, control):
    publish(http, 1)
    taken = take(http, lease=1000)
    assert settle(http, taken["lease"], "extend", ms=60_000).json() == {"messages": 1, "in_flight": 1, "late": []}
    assert take(http, wait=2500)["messages"] == []
    assert settle(http, taken["lease"], "acknowledge").json()["messages"] == 1


def test_a_request_waits_for_a_message(broker, http):
    results = []
    waiting = threading.Thread(target=lambda: results.append(take(HttpClient(broker, basic()), wait=20_000)))
    take(http)
    waiting.start()
    publish(http, 1)
    waiting.join()
    assert payloads(results[0]) == ["m0"]


@pytest.mark.clear
def test_messages_of_a_client_that_has_gone_are_given_to_others(broker, http, control):
    take(http)
    gone = RawPeer(broker)
    login = "".join(f"{name}: {value}\r\n" for name, value in basic().items())
    gone.say(f"GET {MESSAGES}?group=g&wait=25000 HTTP/1.1\r\nHost: localhost\r\n{login}\r\n")
    until(lambda: control.ok("stats", **ASKER, topic="orders")["groups"][0]["consumers"] == 1, lambda: "the request waits")
    gone.close()
    publish(http, 1)
    taken = take(http, wait=20_000)
    assert payloads(taken) == ["m0"] and taken["messages"][0]["delivery"] == 1


def test_acknowledged_at_once_needs_no_lease(http):
    publish(http, 2)
    taken = take(http, ack="now", max=1)
    assert payloads(taken) == ["m0"] and "lease" not in taken
    assert payloads(take(http, ack="now", max=5)) == ["m1"]


def test_one_message_as_bytes(http):
    publish(http, 1)
    response = http.get(f"{MESSAGES}?group=g", Accept="application/octet-stream")
    assert (response.status, response.body, response.headers["Lightq-Offset"]) == (200, b"m0", "0")
    assert settle(http, response.headers["Lightq-Lease"], "acknowledge").json()["messages"] == 1
    assert http.get(f"{MESSAGES}?group=g", Accept="application/octet-stream").status == 204
    assert http.get(f"{MESSAGES}?group=g&max=2", Accept="application/octet-stream").status == 400


@pytest.mark.parametrize("query", ["max=0", "max=1001", "wait=30001", "lease=1", "from=middle", "group=-", "nothing=1", "ack=x", "lease=4294967295"])
def test_wrong_parameters(http, query):
    assert http.get(f"{MESSAGES}?{query}").status == 400


@pytest.mark.parametrize("offsets", ["", "x", "1,", "2,1", "3-2", "1,1", "-1", "1-", "99999999999999999999"])
def test_wrong_offsets(http, offsets):
    publish(http, 1)
    taken = take(http)
    assert settle(http, taken["lease"], "acknowledge", offsets=offsets).status == 400
    assert settle(http, taken["lease"], "acknowledge").json()["messages"] == 1


def test_head_takes_nothing(http):
    publish(http, 1)
    assert http.ask("HEAD", f"{MESSAGES}?group=g").status == 405
    assert payloads(take(http)) == ["m0"]


def test_a_restart_gives_leased_messages_back(broker, http):
    publish(http, 1)
    lease = take(http)["lease"]
    broker.stop()
    broker.start()
    again = HttpClient(broker, basic())
    assert settle(again, lease, "acknowledge").status == 410
    assert payloads(take(again, wait=20_000)) == ["m0"]


# --- Rights ---

def make_user(control, name, *rights):
    control.ok("create_user", **ASKER, user_id=name, password=PASSWORD, rights=[{"topic": pattern, "rights": [right]} for pattern, right in rights])
    return basic(name, PASSWORD)


def test_rights_are_those_of_sessions(broker, http, control):
    producer = HttpClient(broker, make_user(control, "producer", ("orders", "produce")))
    consumer = HttpClient(broker, make_user(control, "consumer", ("orders:g", "consume")))
    assert producer.ask("POST", MESSAGES, b"a").status == 200
    assert consumer.ask("POST", MESSAGES, b"a").status == 403
    assert producer.get(f"{MESSAGES}?group=g").status == 403
    assert consumer.get(f"{MESSAGES}?group=other").status == 403
    lease = take(consumer)["lease"]
    assert settle(http, lease, "acknowledge").status == 410, "a lease is its client's own"
    assert settle(producer, lease, "acknowledge").status == 403
    assert settle(consumer, lease, "acknowledge").json()["messages"] == 1
    assert HttpClient(broker).get(f"{MESSAGES}?group=g").status == 401
    lines = HttpClient(broker).ask("POST", MESSAGES, b"no line of JSON", Content_Type="application/x-ndjson")
    assert lines.status == 401, "the lines are not parsed"
    assert HttpClient(broker, basic("consumer", "wrong")).get(f"{MESSAGES}?group=g").status == 401
    missing = consumer.get("/api/v1/topics/nothing/messages?group=g")
    assert missing.status == 403, "a user without a right does not learn whether a topic exists"
    assert http.get("/api/v1/topics/nothing/messages?group=g").status == 404


@pytest.mark.clear
def test_a_request_that_waits_ends_with_its_right(broker, http, control):
    consumer = make_user(control, "consumer", ("orders", "consume"))
    take(http)
    peer = RawPeer(broker)
    login = "".join(f"{name}: {value}\r\n" for name, value in consumer.items())
    peer.say(f"GET {MESSAGES}?group=g&wait=20000 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{login}\r\n")
    until(lambda: control.ok("stats", **ASKER, topic="orders")["groups"][0]["consumers"] == 1, lambda: "the request waits")
    control.ok("revoke", **ASKER, user_id="consumer", topic="orders", rights=["consume"])
    assert peer.hear().startswith(b"HTTP/1.1 403 "), "before its time is over"
    publish(http, 1)
    assert payloads(take(http)) == ["m0"]


def test_a_lease_ends_with_its_right(broker, http, control):
    consumer = HttpClient(broker, make_user(control, "consumer", ("orders", "consume")))
    publish(http, 1)
    lease = take(consumer)["lease"]
    control.ok("revoke", **ASKER, user_id="consumer", topic="orders", rights=["consume"])
    again = take(http, wait=10_000)
    assert payloads(again) == ["m0"] and again["messages"][0]["delivery"] == 1
    control.ok("grant", **ASKER, user_id="consumer", topic="orders", rights=["consume"])
    assert settle(consumer, lease, "acknowledge").status == 410


def test_an_open_topic_needs_no_login_but_no_page_of_another_site(broker, http, control):
    control.ok("create_topic", **ASKER, topic="open", broker_type="queue", open=True)
    anybody = HttpClient(broker)
    path = "/api/v1/topics/open/messages"
    assert anybody.ask("POST", path, b"a").status == 200
    assert anybody.get(f"{path}?group=g", Sec_Fetch_Site="cross-site").status == 403
    assert anybody.ask("POST", path, b"b", Origin="http://other.example").status == 403
    taken = take(anybody, path)
    assert payloads(taken) == ["a"]
    assert anybody.ask("POST", f"/api/v1/topics/open/leases/{taken['lease']}/acknowledge").json()["messages"] == 1


@pytest.mark.clear
def test_a_deleted_topic_answers_requests_that_wait(broker, http, control):
    peer = RawPeer(broker)
    login = "".join(f"{name}: {value}\r\n" for name, value in basic().items())
    peer.say(f"GET {MESSAGES}?group=g&wait=20000 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{login}\r\n")
    until(lambda: control.ok("stats", **ASKER, topic="orders")["groups"], lambda: "the request waits")
    control.ok("delete_topic", **ASKER, topic="orders")
    assert peer.hear().startswith(b"HTTP/1.1 404 ")


@pytest.mark.clear
def test_the_broker_stops_while_requests_wait(broker, http):
    peer = RawPeer(broker)
    login = "".join(f"{name}: {value}\r\n" for name, value in basic().items())
    peer.say(f"GET {MESSAGES}?group=g&wait=20000 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{login}\r\n")
    until(lambda: http.get("/api/v1/topics/orders").json()["groups"], lambda: "the request waits")
    broker.stop()
    heard = peer.hear()
    assert heard == b"" or heard.startswith(b"HTTP/1.1 503 ")


@pytest.mark.clear
def test_contents_under_way_are_bounded(broker, http):
    """Each source may have 256 connections with 1 MiB each; all contents together have 64 MiB."""
    peers = []
    for _ in range(66):
        peer = RawPeer(broker)
        peer.say(b"POST /api/v1/topics/orders/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1048576\r\n\r\n" + b"x" * ((1 << 20) - 1))
        peers.append(peer)
    until(lambda: http.get("/api/v1/stats").json()["limits_reached"]["http_bodies_bytes_total"] >= 1, lambda: "the limit is reached")
    for peer in peers:
        peer.close()
    until(lambda: http.ask("POST", MESSAGES, b"x" * 100_000).status == 200, lambda: "there is space again")
