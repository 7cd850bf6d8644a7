"""Bounds on what one client may ask of the broker, as its settings set them."""
import collections
import json

import zmq

from support import ADMIN, ADMIN_PASSWORD, DEADLINE


def asked_at_once(broker, request, count):
    """How often each code, or `ok`, is the answer to so many of one request on one connection, none waiting for another."""
    dealer = broker.socket(zmq.DEALER, broker.control_uri, sndhwm=0, rcvhwm=0)
    for _ in range(count):
        dealer.send_multipart([b"", json.dumps(request).encode()])
    answers = collections.Counter()
    for _ in range(count):
        assert dealer.poll(DEADLINE * 1000), f"{answers.total()} of {count} answers"
        answer = json.loads(dealer.recv_multipart()[-1])
        answers[answer.get("code", "ok")] += 1
    dealer.close()
    return answers


def test_one_address_may_ask_as_often_as_the_setting_says(make_broker):
    broker = make_broker("--requests-per-second", "1")
    answers = asked_at_once(broker, {"cmd": "version"}, 3000)  # half a minute's worth of what is free
    assert answers["ok"] >= 100 and answers["busy"] > 0 and answers.total() == answers["ok"] + answers["busy"], answers
    stats = broker.control().broker_stats()
    assert stats["throttled_requests"] == answers["busy"]


def test_an_address_that_may_ask_much_is_refused_nothing(make_broker):
    broker = make_broker("--requests-per-second", "1000000")
    assert asked_at_once(broker, {"cmd": "version"}, 30_000) == {"ok": 30_000}
    stats = broker.control().ok("stats", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD)
    assert stats["throttled_requests"] == 0
