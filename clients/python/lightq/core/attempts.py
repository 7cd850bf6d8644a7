"""Settings and pauses of the attempts to connect, for both drivers."""
from __future__ import annotations

import hashlib
import random
import ssl

from ..errors import ConnectionLost, Error
from .link import Channel, Link
from .requests import Address

ATTEMPT_SECONDS = 5.0
HEARTBEAT_MS = 5000
FRAME_BYTES_MAX = 1 << 31
RECEIVE_BYTES = 1 << 18


class Backoff:
    """The pause between two attempts: 50 ms, doubled each time up to 2 s, less a random part of up to a half."""

    def __init__(self) -> None:
        self._pause = 0.05

    def reset(self) -> None:
        self._pause = 0.05

    def next(self) -> float:
        pause, self._pause = self._pause, min(2 * self._pause, 2.0)
        return pause * (1 - random.random() / 2)


def new_link(address: Address, channel: Channel, name: str, now: float) -> Link:
    return Link(address.ticket, channel.codecs, HEARTBEAT_MS, name, FRAME_BYTES_MAX, now)


def tls_context() -> ssl.SSLContext:
    """Returns a context that checks nothing: `check_certificate` compares the certificate with that of the join."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def check_certificate(shown: "bytes | None", address: Address) -> None:
    """Errors: ConnectionLost if the other side is not the broker. Nothing may be sent to it."""
    if shown is None or hashlib.sha256(shown).hexdigest() != address.certificate_sha256:
        raise ConnectionLost(f"{address.uri} has another certificate than the join named: it is not the broker")


def as_error(failure: BaseException, what: str) -> Error:
    """Returns an error for one of the system's."""
    if isinstance(failure, Error):
        return failure
    error = ConnectionLost(f"{what}: {failure}")
    error.__cause__ = failure
    return error
