"""Tests the command line with a real broker: output streams, exit codes, and older forms of use."""
import json
import os
import signal
import subprocess

import pytest
import zmq

from cli_support import lightq
from support import Address, BINARY, DEADLINE, PASSWORD, USER, numbered, receive, secret_file, until


def test_produced_messages_are_consumed_byte_for_byte(lightq):
    lightq("topic", "create", "t", "--type", "file")
    text = b"first\r\n\n  spaces  \n\xff\xfe not UTF-8 \0 NUL\n" + b"long " * 50_000 + b"\n\nlast, without a newline"
    produced = lightq("produce", "t", stdin=text)
    assert produced.stdout == b""
    consumed = lightq("consume", "t", "-n", "7")
    assert consumed.stdout == text + b"\n"


def test_files_are_sent_line_by_line_in_order(lightq, tmp_path):
    lightq("topic", "create", "t")
    paths = [tmp_path / "a", tmp_path / "b"]
    paths[0].write_text("1\n2\n")
    paths[1].write_text("3")
    lightq("produce", "t", *map(str, paths))
    assert lightq("consume", "t", "--no-follow").stdout == b"1\n2\n3\n"


def test_empty_standard_input_sends_nothing_and_ends(lightq):
    lightq("topic", "create", "t")
    lightq("produce", "t", stdin=b"")
    assert json.loads(lightq("stats", "t", "--json").stdout)["messages_received"] == 0


def test_json_output_is_json(lightq):
    lightq("topic", "create", "t", "--type", "file")
    lightq("produce", "t", stdin=b'say "hi"\n')
    assert [topic["topic"] for topic in json.loads(lightq("topic", "list", "--json").stdout)["topics"]] == ["t"]
    stats = json.loads(lightq("stats", "t", "--json").stdout)
    assert (stats["topic_type"], stats["messages_received"]) == ("file", 1)
    assert json.loads(lightq("stats", "--json").stdout)["topics"] == 1
    lines = lightq("consume", "t", "-n", "1", "--format", "json").stdout.splitlines()
    assert len(lines) == 1 and 'say "hi"' in json.dumps(json.loads(lines[0])).replace('\\"', '"')


def test_errors_are_one_sentence_on_standard_error_and_exit_1(lightq):
    failed = lightq("stats", "absent", code=1)
    assert failed.stdout == b"" and b"absent" in failed.stderr and len(failed.stderr.splitlines()) <= 3
    lightq("topic", "create", "t")
    assert b"already exists" in lightq("topic", "create", "t", code=1).stderr


@pytest.mark.parametrize("arguments", [[], ["frobnicate"], ["produce"], ["consume", "t", "--format", "smoke"],
                                       ["topic", "create", "t", "--type", "turbo"]])
def test_wrong_usage_exits_2(lightq, arguments):
    wrong = lightq(*arguments, code=2)
    assert wrong.stdout == b"" and wrong.stderr


@pytest.mark.parametrize("typed,meant", [(["prodcue", "t"], b"produce"), (["stat"], b"stats"),
                                         (["producer", "10000000", "100"], b"lightq produce"),
                                         (["consumer", "queue", "zmq", "pull"], b"lightq consume")])
def test_a_mistyped_command_and_old_spellings_are_answered_with_the_right_one(lightq, typed, meant):
    assert meant in lightq(*typed, code=2).stderr


@pytest.mark.parametrize("command", [[], ["broker"], ["broker", "key"], ["topic"], ["topic", "create"], ["produce"],
                                     ["consume"], ["stats"], ["ping"], ["bench"]])
def test_help_has_an_example_and_goes_to_standard_output(lightq, command):
    shown = lightq(*command, "--help")
    assert b"lightq " in shown.stdout and shown.stderr == b""


def test_an_error_names_the_address_without_a_broker(lightq):
    lightq.broker.stop()
    lightq.environment.pop("LIGHTQ_BROKER")
    failed = lightq("ping", "--broker", "tcp://127.0.0.1:1", "--request-timeout", "300ms", code=1)
    assert b"tcp://127.0.0.1:1" in failed.stderr
    lightq.broker.start()


def test_each_failed_connection_is_reported_immediately_with_its_cause(lightq):
    lightq.environment.pop("LIGHTQ_BROKER")

    def told(address, code=1, **variables):
        patient = ("--request-timeout", "60s")  # longer than the test waits for anything
        return lightq("ping", *(["--broker", address] if address else []), *patient, code=code, variables=variables).stderr

    refused = told("tcp://127.0.0.1:1")
    assert b"no broker listens at tcp://127.0.0.1:1: Connection refused" in refused and b"is it running?" in refused
    assert refused == told(None, LIGHTQ_BROKER="tcp://127.0.0.1:1")
    assert b"cannot connect to ipc:///nowhere/there.sock: No such file" in told("ipc:///nowhere/there.sock")
    assert b"port 99999 is not 1 to 65535" in told("tcp://127.0.0.1:99999", code=2)


def test_an_error_names_the_topic_the_user_and_the_broker(lightq, tmp_path):
    uri = lightq.environment["LIGHTQ_BROKER"].encode()
    lightq("topic", "create", "t")
    told = lightq("topic", "create", "t", code=1).stderr
    assert b"'t'" in told and b"user 'lightq_admin'" in told and b"broker " + uri in told, told


def test_interrupting_a_consumer_ends_it_cleanly_with_a_summary(lightq):
    lightq("topic", "create", "t")
    consumer = subprocess.Popen([BINARY, "consume", "t"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, env=lightq.environment)
    lightq("produce", "t", stdin=b"one\ntwo\n")
    assert consumer.stdout.readline() + consumer.stdout.readline() == b"one\ntwo\n"
    consumer.send_signal(signal.SIGINT)
    rest, summary = consumer.communicate(timeout=DEADLINE)
    assert consumer.returncode == 0 and rest == b"" and b"2 messages" in summary


def test_a_consumer_reconnects_when_the_broker_restarts(lightq):
    lightq("topic", "create", "t", "--type", "file")
    consumer = subprocess.Popen([BINARY, "consume", "t"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, env=lightq.environment)
    lightq("produce", "t", stdin=b"before\n")
    assert consumer.stdout.readline() == b"before\n"
    # A printed message is not acknowledged yet. If the broker stops before the acknowledgement, it delivers
    # the message again.
    until(lambda: lightq.stats("t")["groups"][0]["committed_offset"] == 1, "its acknowledgement")
    lightq.broker.restart()
    lightq("produce", "t", stdin=b"after\n")
    assert consumer.stdout.readline() == b"after\n"
    consumer.send_signal(signal.SIGINT)
    consumer.communicate(timeout=DEADLINE)
    assert consumer.returncode == 0


def test_no_password_is_taken_on_the_command_line_or_shown(lightq, tmp_path):
    secret_file(tmp_path / "password", PASSWORD)
    user = ["--user", USER, "--password-file", str(tmp_path / "password")]
    made = lightq("topic", "create", "t", *user, "--admin-user", "lightq_admin")
    used = lightq("produce", "t", *user, stdin=b"x\n")
    seen = lightq("stats", "t", *user)
    for done in (made, used, seen):
        assert PASSWORD.encode() not in done.stdout + done.stderr
    secret_file(tmp_path / "wrong", "not-the-password-5")
    refused = lightq("stats", "t", "--user", USER, "--password-file", str(tmp_path / "wrong"), code=1)
    assert b"not-the-password-5" not in refused.stdout + refused.stderr


@pytest.mark.parametrize("way", ["flags", "variables"])
def test_only_given_credentials_are_tried(lightq, tmp_path, way):
    """Even if this machine's admin.json could be read."""
    password = secret_file(tmp_path / "password", "of-nobody-12")
    ghost = ["--user", "ghost", "--password-file", password] if way == "flags" else []
    variables = {} if ghost else {"LIGHTQ_USER": "ghost", "LIGHTQ_PASSWORD": "of-nobody-12"}
    lightq("topic", "create", "t")
    for command in ("topic delete t", "topic purge t", "topic create u", "topic list", "stats", "stats t", "user list",
                    "user grant ghost --manage t", "consume t -n 1", "peek t"):
        told = lightq(*command.split(), *ghost, code=1, variables=variables).stderr
        assert b"user 'ghost' is refused: the user does not exist, or the password is wrong" in told, command
        assert b"--password-file" not in told, "it was given"
    assert lightq.topics() == ["t"]


def test_a_user_may_make_and_delete_topics_with_a_right_of_its_own(lightq, tmp_path):
    password = secret_file(tmp_path / "password", PASSWORD)
    lightq("user", "add", "ann", "--manage", "anns.*", "--new-password-file", password)
    ann = ["--user", "ann", "--password-file", password]
    assert b"for users with a right on it" in lightq("topic", "create", "anns.first", *ann).stderr
    assert lightq("topic", "list", *ann).stdout == b"anns.first\tqueue\n"
    lightq("topic", "delete", "anns.first", *ann)


def test_a_refused_client_receives_the_missing_right_and_the_command_for_it(lightq, tmp_path):
    password = secret_file(tmp_path / "password", PASSWORD)
    lightq("topic", "create", "t")
    lightq("user", "add", "ann", "--consume", "t", "--new-password-file", password)
    ann = ["--user", "ann", "--password-file", password]
    for command, right in (("produce t", "produce"), ("topic create u", "manage"), ("topic purge t", "manage")):
        told = lightq(*command.split(), *ann, code=1).stderr.decode()
        topic = "u" if "create" in command else "t"
        assert f"user 'ann' lacks the right '{right}' on topic '{topic}'" in told, told
        assert f"lightq user grant ann --{right} {topic}" in told and "--password-file" not in told, told
    for command in ("stats", "user list", "user add bob", "user grant ann --manage t"):
        told = lightq(*command.split(), *ann, code=1, variables={"LIGHTQ_NEW_PASSWORD": "of-bob-12"}).stderr
        assert b"user 'ann' is not an administrator" in told and b"--password-file" not in told, told
    assert b"'ann' has no right on topic 'v'" in lightq("stats", "v", *ann, code=1).stderr
    assert lightq("topic", "list", *ann).stdout == b"t\tqueue\n"
    for command in ("topic list", "topic create u", "stats", "stats t", "produce t"):
        told = lightq(*command.split(), code=1, variables={"LIGHTQ_DATA_DIR": str(tmp_path)}).stderr
        assert b"needs a user, and no credentials were given or found" in told and b"--password-file" in told, told


def test_generated_load_arrives_whole(lightq):
    lightq("topic", "create", "t")
    lightq("produce", "t", "-n", "5000", "--size", "100")
    lines = lightq("consume", "t", "-n", "5000").stdout.splitlines()
    assert len(lines) == 5000 and all(len(line) == 100 for line in lines)


def test_the_command_line_and_plain_zeromq_clients_meet_on_one_topic(lightq):
    lightq("topic", "create", "t", "--type", "file")
    control = lightq.broker.control()
    admin = json.loads((lightq.broker.data_dir / "admin.json").read_text())
    credentials = {name: admin[name] for name in ("admin_user_id", "admin_password")}
    producer = lightq.broker.socket(zmq.PUSH, Address.of(control.ok("join", topic="t", type="push", **credentials)))
    for message in numbered(0, 100):
        producer.send(message)
    until(lambda: control.ok("stats", topic="t", **credentials)["messages_received"] == 100, "the messages")
    assert lightq("consume", "t", "-n", "100").stdout.splitlines() == numbered(0, 100)
    lightq("produce", "t", stdin=b"back\n")
    consumer = lightq.broker.socket(zmq.PULL, Address.of(control.ok("join", topic="t", type="pull", **credentials)))
    assert receive(consumer, 1) == [b"back"]
    assert os.path.exists(lightq.broker.data_dir / "broker.json")
