"""The errors of the client. Each has the broker's word for its cause."""
from __future__ import annotations

import typing


class Error(Exception):
    """The base of all errors. `code` is a word of docs/protocol.md or docs/session.md, such as
    `topic_not_found`. `retryable`: the same call may succeed later, without a change of the program."""

    code: str = "internal"
    retryable: bool = False

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        if code:
            self.code = code


class NotFound(Error):
    """There is no such topic, group, user, schedule or endpoint, or there is none any more."""

    code = "topic_not_found"


class AlreadyExists(Error):
    """The name of a topic or user is in use."""

    code = "topic_already_exists"


class Unauthorized(Error):
    """The credentials do not permit this, or no longer."""

    code = "unauthorized_access"


class Refused(Error):
    """The broker has not done it: a limit is reached, a disk is full, a message is too long."""

    code = "limit_reached"
    retryable = True


class InvalidArgument(Error, ValueError):
    """An argument is out of its range. Nothing was sent."""

    code = "invalid_argument"


class NotSupported(Error):
    """The broker, or this topic, cannot do this."""

    code = "not_supported"


class Fenced(Error):
    """Another process has taken over this producer or cursor."""

    code = "fenced"


class Revoked(Error):
    """The broker has taken the message back: it goes to another consumer."""

    code = "revoked"


class InDoubt(Error):
    """The messages may be stored or not. To send them again may store them twice."""

    code = "unknown_producer"


class Timeout(Error, TimeoutError):
    """The time of a call has passed. `__cause__` is the last failure to connect, if there was one."""

    code = "timeout"
    retryable = True


class Closed(Error):
    """The object was closed, or belongs to another process."""

    code = "closed"


class ConnectionLost(Error, ConnectionError):
    """There is no connection to the broker, or it has ended."""

    code = "io_error"
    retryable = True


class ProtocolViolation(ConnectionLost):
    """The other side does not speak the protocol."""

    code = "invalid_frame"


_CLASSES: typing.Dict[str, typing.Type[Error]] = {
    **{word: NotFound for word in ("topic_not_found", "topic_deleted", "group_not_found", "user_not_found",
                                   "schedule_not_found", "endpoint_not_found")},
    **{word: AlreadyExists for word in ("topic_already_exists", "user_already_exists")},
    **{word: InvalidArgument for word in ("invalid_argument", "invalid_request", "invalid_cmd", "incarnation_changed")},
    **{word: NotSupported for word in ("not_supported", "unsupported_version")},
    **{word: Refused for word in ("limit_reached", "no_space", "too_large", "busy", "io_error", "corrupt", "shutting_down",
                                  "group_in_use", "request_too_large", "address_in_use", "out_of_sequence")},
    "unauthorized_access": Unauthorized, "fenced": Fenced, "unknown_producer": InDoubt, "in_doubt": InDoubt, "idle": ConnectionLost,
    "invalid_frame": ProtocolViolation,
}
_FINAL = {"too_large", "group_in_use", "request_too_large", "address_in_use", "corrupt"}


def error_of(code: str, text: str) -> Error:
    """Returns the error for a broker's word and sentence."""
    error = _CLASSES.get(code, Error)(f"{code}: {text}" if text else code, code)
    if code in _FINAL:
        error.retryable = False
    return error
