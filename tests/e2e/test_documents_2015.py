"""Tests that the documents of LightQ 2015 are still true word for word, and that its clients, which show no
ticket, work with --open-topics."""
import re

import pytest
import zmq

from support import ADMIN_PASSWORD, until

CREATE = ('{"cmd":"create_topic","admin_user_id":"lightq_admin","admin_password":"%s","topic":"test",'
          '"broker_type":"queue","user_id":"test_user","password":"T0p$3cr31"}' % ADMIN_PASSWORD)
JOIN = ('{"cmd":"join","connection_type":"zmq","type":"%s","topic":"test","user_id":"test_user",'
        '"password":"T0p$3cr31"}')
STATS = '{"cmd":"stats","topic":"test","user_id":"test_user","password":"T0p$3cr31"}'
NUMBERS_2015 = ["messages_received", "messages_sent", "publishers_count", "subscribers_count", "queue_size",
                "total_bytes_written", "total_bytes_read"]


def includes(reply, expected):
    assert {name: reply.get(name) for name in expected} == expected


@pytest.fixture
def ask(control):
    return lambda document: control.send_raw(document.encode())


def test_create_topic_is_answered_as_in_2015(ask):
    includes(ask(CREATE), {"cmd": "create_topic", "status": "ok", "description": "topic created successfully"})


@pytest.mark.parametrize("kind", ["pub", "push", "pull", "sub"])
def test_join_is_answered_as_in_2015(ask, kind):
    ask(CREATE)
    reply = ask(JOIN % kind)
    includes(reply, {"cmd": "join", "status": "ok", "topic": "test"})
    assert re.fullmatch(r"tcp://127\.0\.0\.1:\d+", reply["bind_uri"])


def test_stats_carries_every_number_of_2015(ask):
    ask(CREATE)
    reply = ask(STATS)
    includes(reply, {"cmd": "stats", "status": "ok", "topic": "test", "topic_type": "queue"})
    includes(reply, {name: 0 for name in NUMBERS_2015})


def test_the_counters_of_stats_are_correct(make_broker):
    broker = make_broker("--open-topics")
    control = broker.control()

    def ask(document):
        return control.send_raw(document.encode())

    ask(CREATE)
    producer = broker.socket(zmq.PUSH, ask(JOIN % "push")["bind_uri"])
    until(lambda: ask(STATS)["publishers_count"] == 1, "the producer's handshake")
    for _ in range(10):
        producer.send(b"x" * 7)
    until(lambda: ask(STATS)["messages_received"] == 10, "ten messages")
    includes(ask(STATS), {"messages_sent": 0, "queue_size": 10, "total_bytes_written": 70, "total_bytes_read": 0,
                          "subscribers_count": 0})
    consumer = broker.socket(zmq.PULL, ask(JOIN % "pull")["bind_uri"])
    assert [consumer.recv() for _ in range(10)] == [b"x" * 7] * 10
    until(lambda: ask(STATS)["queue_size"] == 0, "an empty queue")
    includes(ask(STATS), {"messages_received": 10, "messages_sent": 10, "total_bytes_written": 70,
                          "total_bytes_read": 70, "publishers_count": 1, "subscribers_count": 1})


def test_ping_is_answered(ask):
    includes(ask('{"cmd":"ping"}'), {"cmd": "ping", "status": "ok"})


def test_the_errors_of_2015_keep_their_words(ask):
    ask(CREATE)
    again = ask(CREATE)
    includes(again, {"cmd": "create_topic", "status": "error", "code": "topic_already_exists",
                     "description": "topic already exists"})
    includes(ask((JOIN % "pull").replace("T0p$3cr31", "wrong")),
             {"cmd": "join", "status": "error", "code": "unauthorized_access", "description": "unauthorized_access"})
    includes(ask(CREATE.replace(ADMIN_PASSWORD, "wrong")), {"code": "unauthorized_access"})
    includes(ask('{"cmd":"dance"}'), {"status": "error", "code": "invalid_cmd", "description": "invalid_cmd"})
    includes(ask('{"cmd":"stats","topic":"other","admin_user_id":"lightq_admin","admin_password":"%s"}' % ADMIN_PASSWORD),
             {"cmd": "stats", "status": "error", "code": "topic_not_found", "description": "topic not found"})


def test_an_unknown_topic_is_not_revealed_to_unauthenticated_clients(ask):
    ask(CREATE)
    stranger = '{"cmd":"stats","topic":"%s","user_id":"stranger","password":"guess"}'
    assert ask(stranger % "test") == ask(stranger % "other")
    includes(ask(stranger % "other"), {"code": "unauthorized_access"})


def test_a_topic_users_credentials_do_not_reveal_other_topics(ask):
    ask(CREATE)
    includes(ask(STATS.replace('"topic":"test"', '"topic":"other"')), {"code": "topic_not_found"})


def test_an_unknown_broker_type_is_an_error(ask):
    includes(ask(CREATE.replace('"queue"', '"turbo"')), {"status": "error", "code": "invalid_request"})
    assert ask('{"cmd":"list_topics","admin_user_id":"lightq_admin","admin_password":"%s"}'
               % ADMIN_PASSWORD)["topics"] == []


def test_the_socket_connection_type_is_refused_politely(ask):
    ask(CREATE)
    includes(ask((JOIN % "pull").replace('"zmq"', '"socket"')), {"status": "error", "code": "not_supported"})
