"""Requests to the control socket and their replies: docs/protocol.md."""
from __future__ import annotations

import dataclasses
import json
import typing

from ..errors import InvalidArgument, ProtocolViolation, error_of
from . import policy, salsa
from .discovery import Place, check_exposure, split_tcp
from .zmtp import Keys

Reply = typing.Dict[str, typing.Any]
# Commands that take only an administrator's credentials.
_OF_ADMINISTRATORS = {"create_topic", "delete_topic", "list_topics", "create_user", "delete_user", "grant", "revoke", "list_users",
                      "reload", "stats_all"}
_WITHOUT_CREDENTIALS = {"ping", "version"}
# Commands that may be executed twice. A second join makes another ticket.
_HARMLESS = {"ping", "version", "join", "stats", "stats_all", "list_topics", "list_users", "list_dead", "list_delayed",
             "list_schedules"}
_TICKET_BYTES_MAX = 512


def request_of(place: Place, cmd: str, fields: typing.Mapping[str, typing.Any]) -> bytes:
    """Returns a request with the credentials that the command takes."""
    credentials: typing.Dict[str, typing.Any] = {}
    if cmd in _OF_ADMINISTRATORS or cmd == "stats" and "topic" not in fields:
        credentials = dict(place.administration())
        if cmd == "create_topic" and place.admin and place.user:
            credentials.update(user_id=place.user, password=place.password)  # the topic's own user
    elif cmd not in _WITHOUT_CREDENTIALS:
        credentials = dict(place.credentials())
        if cmd == "set_password":
            credentials = dict(place.administration())
    return json.dumps({"cmd": cmd, **credentials, **fields}).encode()


def may_repeat(cmd: str, is_written: bool) -> bool:
    """Tells whether a request whose connection has ended may be sent again. `is_written`: the broker may have all of it."""
    return not is_written or cmd in _HARMLESS


def reply_of(data: bytes) -> Reply:
    """Returns the reply. Errors: the broker's, as Error."""
    try:
        reply = json.loads(data)
        status = reply["status"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ProtocolViolation("the broker sent a reply that is no JSON object with a status") from None
    if status != "ok":
        raise error_of(str(reply.get("code", "internal")), str(reply.get("description", "")))
    return typing.cast(Reply, reply)


def keys_of(place: Place) -> typing.Optional[Keys]:
    """Returns the keys for the control socket, or None without encryption. Errors: InvalidArgument."""
    if not place.server_key:
        return None
    try:
        server = salsa.z85_decode(place.server_key)
        if not place.client_key_file:
            return Keys(server, *salsa.key_pair())
        secret = salsa.z85_decode(_key_line(place.client_key_file))
    except ValueError as error:
        raise InvalidArgument(str(error)) from None
    return Keys(server, salsa.public_of(secret), secret)


def _key_line(name: str) -> str:
    import pathlib

    from .discovery import _small_file
    data = _small_file(pathlib.Path(name), is_private=True)
    if data is None:
        raise InvalidArgument(f"{name} cannot be read")
    return data.decode("ascii", "replace").split("\n")[0].strip()


@dataclasses.dataclass(frozen=True)
class Address:
    """The result of a join for a session."""
    uri: str
    ticket: str
    certificate_sha256: str = ""

    @property
    def unix_path(self) -> str:
        return self.uri[len("ipc://"):] if self.uri.startswith("ipc://") else ""

    @property
    def host_and_port(self) -> typing.Tuple[str, int]:
        host, port = split_tcp(self.uri)
        return host, int(port)


def transport_of(place: Place, transport: str) -> str:
    """Chooses the Unix socket if the broker is on this machine and does not encrypt. Errors: InvalidArgument."""
    if transport not in ("", "tcp", "ipc"):
        raise InvalidArgument(f"transport is {transport!r}; it is 'tcp' or 'ipc'")
    return transport or ("ipc" if place.uri.startswith("ipc://") and not place.server_key else "tcp")


def address_of(place: Place, reply: Reply) -> Address:
    """Returns where to connect after a join. Errors: InvalidArgument, ProtocolViolation."""
    try:
        uri, ticket = str(reply["bind_uri"]), f"{reply['ticket']['id']}.{reply['ticket']['secret']}"
        certificate = str(reply["tls"]["certificate_sha256"]) if "tls" in reply else ""
    except (KeyError, TypeError):
        raise ProtocolViolation("the broker's reply to a join has no address or ticket") from None
    if not (uri.startswith("ipc://") or split_tcp(uri)[1].isdigit()) or len(ticket) > _TICKET_BYTES_MAX or not ticket.isascii():
        raise ProtocolViolation("the broker's reply to a join has an invalid address or ticket")
    if place.server_key and not certificate and uri.startswith("tcp://"):
        raise ProtocolViolation("the broker encrypts, and its reply to a join names no certificate")
    if not certificate:
        check_exposure(uri, place)
    return Address(uri, ticket, certificate)


def is_final_join(code: str) -> bool:
    return code in policy.FINAL_JOINS
