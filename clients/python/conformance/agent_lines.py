"""The lines that the Python agents read and write: one JSON object each (clients/conformance/README.md)."""
import json
import sys

import lightq

FEATURES = ["control", "keys", "delayed", "ttl", "leases", "dead", "seek", "read", "tls", "ipc", "epoch"]


def write_line(line):
    """Writes a line, and flushes it: the driver may end the agent at any time after it."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def introduce(name):
    write_line({"client": name, "version": lightq.__version__, "features": FEATURES})


def failed(error):
    return {"ok": False, "error": getattr(error, "code", "internal"), "text": str(error)}


def seconds(command, name, otherwise=10_000):
    return command.get(name, otherwise) / 1000


def described(message):
    line = {"offset": message.offset, "bytes": len(message.body), "delivery": message.delivery}
    if message.key:
        line["key"] = message.key.decode()
    if message.headers:
        line["headers"] = [[name, value.decode()] for name, value in message.headers]
    if message.expired:
        line["expired"] = True
    return line


def bodies_of(command):
    """Yields the bodies that a command `produce` names."""
    sizes = command.get("sizes") or [command["size"]] * command["count"]
    with open(command["file"], "rb") as file:
        for size in sizes:
            yield file.read(size)


def attributes_of(command, number):
    """Returns the arguments of `send` for a message."""
    keys, attributes = command.get("keys"), {}
    if keys:
        attributes["key"] = keys[number % len(keys)]
    if command.get("headers"):
        attributes["headers"] = [(name, value) for name, value in command["headers"]]
    for name, argument in ("delay_ms", "delay"), ("ttl_ms", "ttl"):
        if command.get(name):
            attributes[argument] = command[name] / 1000
    return attributes


def connect_arguments(command):
    name, password = command.get("user", ""), command.get("password", "")
    who = {"admin": name, "admin_password": password} if command.get("admin") else {"user": name, "password": password}
    return {"uri": command["uri"], "server_key": command.get("server_key", ""), "transport": command.get("transport", ""),
            "data_dir": "/nonexistent", **who}


def producer_arguments(command):
    arguments = {"delayed": command.get("delayed", False), "retry_refused": command.get("retry_refused", True),
                 "timeout": seconds(command, "timeout_ms"), "level": command.get("level", "default")}
    if command.get("producer_id"):
        arguments["identity"] = (command["producer_id"], command["epoch"])
    return arguments


def consumer_arguments(command):
    return {"group": command.get("group", ""), "own": command.get("own", False), "start": command.get("from", "first"),
            "prefetch": command.get("prefetch"), "ack_timeout": seconds(command, "ack_timeout_ms", 0),
            "timeout": seconds(command, "timeout_ms")}


class Outcomes:
    """Collects the fates of a producer's messages until the next reply."""

    def __init__(self):
        self.ranges = []

    def settled(self, begin, end, error):
        unknown = error is not None and error.code in ("unknown_producer", "timeout", "closed", "unauthorized_access",
                                                       "topic_not_found", "topic_deleted", "fenced")
        fate = "confirmed" if error is None else "unknown" if unknown else "refused"
        self.ranges.append([begin, end, fate, error.code if error else None])

    def take(self):
        ranges, self.ranges = self.ranges, []
        return ranges


def settle(message, how, command):
    if how == "ack":
        message.ack()
    elif how == "release":
        message.release()
    elif how == "retry":
        message.retry(seconds(command, "delay_ms", 0))
    elif how == "dead":
        message.dead(command.get("reason", ""))
