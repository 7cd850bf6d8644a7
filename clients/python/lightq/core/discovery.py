"""The broker's address, key and credentials: from arguments, the environment, and the files of the same machine
(docs/protocol.md, "Files for the same machine")."""
from __future__ import annotations

import dataclasses
import fcntl
import ipaddress
import json
import os
import pathlib
import socket
import stat
import typing

from ..errors import InvalidArgument

DEFAULT_URI = "tcp://127.0.0.1:5000"
DEFAULT_ADMIN = "lightq_admin"
_FILE_BYTES_MAX = 64 * 1024


@dataclasses.dataclass
class Place:
    """A broker's address, and the credentials for it."""
    uri: str
    user: str = ""
    password: str = dataclasses.field(default="", repr=False)
    admin: str = ""
    admin_password: str = dataclasses.field(default="", repr=False)
    server_key: str = ""
    client_key_file: str = ""
    insecure: bool = False

    def credentials(self) -> typing.Dict[str, str]:
        """Returns the members for commands on a topic."""
        if self.user:
            return {"user_id": self.user, "password": self.password}
        return self.administration()

    def administration(self) -> typing.Dict[str, str]:
        """Returns the members for commands of administrators."""
        if self.admin:
            return {"admin_user_id": self.admin, "admin_password": self.admin_password}
        return {"admin_user_id": self.user, "admin_password": self.password} if self.user else {}


def data_directories(chosen: str = "") -> typing.List[pathlib.Path]:
    """Returns the directories in which a broker of this machine may keep its data, in the order to search."""
    named = chosen or os.environ.get("LIGHTQ_DATA_DIR", "")
    if named:
        return [pathlib.Path(named)]
    found, state, home = [pathlib.Path("/var/lib/lightq")], os.environ.get("XDG_STATE_HOME"), os.environ.get("HOME")
    own = pathlib.Path(state) / "lightq" if state else pathlib.Path(home) / ".local/state/lightq" if home else None
    if own is not None:
        found.insert(len(found) if os.geteuid() == 0 else 0, own)
    return found


def _small_file(path: pathlib.Path, is_private: bool = False) -> typing.Optional[bytes]:
    """Returns a file's content, or None. Errors: InvalidArgument if its owner is not trusted, or if others may read a
    private file."""
    try:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_NOFOLLOW if is_private else 0)
        descriptor = os.open(path, flags)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        facts, directory = os.fstat(descriptor), os.stat(path.parent)
        if not stat.S_ISREG(facts.st_mode):
            return None
        if facts.st_uid not in (0, os.geteuid(), directory.st_uid):
            raise InvalidArgument(f"{path} belongs to the user {facts.st_uid}, who is not trusted")
        if is_private and facts.st_mode & 0o077:
            raise InvalidArgument(f"other users may read {path}: chmod 600 {path}")
        return file.read(_FILE_BYTES_MAX)


def _json_file(path: pathlib.Path, is_private: bool = False) -> typing.Dict[str, typing.Any]:
    data = _small_file(path, is_private)
    if data is None:
        return {}
    try:
        parsed = json.loads(data)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _is_locked(path: pathlib.Path) -> bool:
    """Tells whether another process holds the lock of a file or directory."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _is_running(directory: pathlib.Path, broker: typing.Dict[str, typing.Any]) -> bool:
    """A killed broker leaves its broker.json. It counts only while the directory is locked, or its socket answers."""
    if _is_locked(directory) or _is_locked(directory / "lock"):
        return True
    if not broker.get("control_socket"):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        return probe.connect_ex(str(directory / broker["control_socket"])) == 0


def split_tcp(uri: str) -> typing.Tuple[str, str]:
    """Returns host and port of `tcp://HOST:PORT`, or empty texts."""
    if not uri.startswith("tcp://"):
        return "", ""
    host, _, port = uri[len("tcp://"):].rpartition(":")
    return host.strip("[]"), port


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _addresses(host: str) -> typing.Set[str]:
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
    except OSError:
        return set()


def _is_local(uri: str, bound: str) -> bool:
    """Tells whether `uri` is certainly the address `bound` of this machine's broker. It may receive a password."""
    if uri == bound:
        return True
    (host, port), (bound_host, bound_port) = split_tcp(uri), split_tcp(bound)
    return bool(port) and port == bound_port and _is_loopback(host) and (
        bound_host in ("0.0.0.0", "*", "::") or _is_loopback(bound_host))


def _may_be_local(uri: str, bound: str) -> bool:
    """Tells whether `uri` may be the address `bound`. In doubt, its key is required there."""
    if _is_local(uri, bound):
        return True
    (host, port), (bound_host, bound_port) = split_tcp(uri), split_tcp(bound)
    if not host or port != bound_port:
        return False
    own = _addresses(bound_host) if bound_host not in ("0.0.0.0", "*", "::") else _addresses(socket.gethostname())
    found = _addresses(host)
    return bool(found & own) or any(map(_is_loopback, found)) and (bound_host in ("0.0.0.0", "*", "::") or any(map(_is_loopback, own)))


def _control_uri(data_dir: str) -> str:
    named = os.environ.get("LIGHTQ_BROKER", "")
    if named:
        return named
    for name in "broker.json", "server_key.json":
        for directory in data_directories(data_dir):
            found = _json_file(directory / name)
            if found.get("control_uri") and (name != "broker.json" or _is_running(directory, found)):
                return str(found["control_uri"])
    return DEFAULT_URI


def _find_admin(place: Place, data_dir: str) -> None:
    """Takes the password of admin.json. All requests then go through the control socket in that directory."""
    for directory in data_directories(data_dir):
        broker = _json_file(directory / "broker.json")
        if not broker.get("control_socket") or not _is_local(place.uri, str(broker.get("control_uri"))):
            continue
        if not _is_running(directory, broker):
            continue
        admin = _json_file(directory / "admin.json", is_private=True)
        if not admin.get("admin_password") or place.admin not in ("", admin.get("admin_user_id")):
            continue
        place.admin, place.admin_password = str(admin["admin_user_id"]), str(admin["admin_password"])
        place.uri = f"ipc://{directory / broker['control_socket']}"
        return


def _find_key(place: Place, uri: str, data_dir: str) -> None:
    for directory in data_directories(data_dir):
        running, stopped = _json_file(directory / "broker.json"), _json_file(directory / "server_key.json")
        runs = bool(running) and _may_be_local(uri, str(running.get("control_uri")))
        for found in ([running] if runs else []) + [stopped]:
            if found.get("server_key") and _may_be_local(uri, str(found.get("control_uri"))):
                place.server_key = str(found["server_key"])
                return
        if runs:
            return


def discover(uri: str = "", user: str = "", password: str = "", admin: str = "", admin_password: str = "",
             server_key: str = "", client_key_file: str = "", insecure: bool = False, data_dir: str = "") -> Place:
    """Fills in empty arguments, as the command line does. Errors: InvalidArgument."""
    environment = os.environ.get
    place = Place(uri or _control_uri(data_dir), user, password, admin, admin_password, server_key or environment("LIGHTQ_SERVER_KEY", ""),
                  client_key_file or environment("LIGHTQ_CLIENT_KEY_FILE", ""), insecure or _is_true(environment("LIGHTQ_INSECURE", "")))
    if "@" in place.uri:
        raise InvalidArgument("the URI contains a user or a password: give them as arguments")
    if not place.user and environment("LIGHTQ_USER"):
        place.user, place.password = environment("LIGHTQ_USER", ""), environment("LIGHTQ_PASSWORD", "")
    if not place.admin and (environment("LIGHTQ_ADMIN_USER") or environment("LIGHTQ_ADMIN_PASSWORD")):
        place.admin = environment("LIGHTQ_ADMIN_USER") or DEFAULT_ADMIN
        place.admin_password = environment("LIGHTQ_ADMIN_PASSWORD", "")
    named_uri = place.uri
    if not (place.admin_password or (not place.admin and place.user)):
        _find_admin(place, data_dir)
    if not place.server_key:
        _find_key(place, named_uri, data_dir)
    return place


def _is_true(value: str) -> bool:
    return value == "true" or value.isdigit() and value.strip("0") != ""


def check_exposure(uri: str, place: Place) -> None:
    """Errors: InvalidArgument if a secret would be sent to another machine in clear."""
    host, _ = split_tcp(uri)
    if not host or place.server_key or place.insecure or _is_loopback(host):
        return
    found = _addresses(host)
    if not found or not all(map(_is_loopback, found)):
        raise InvalidArgument(f"{uri} is another machine, and nothing is encrypted: give server_key, or insecure=True")
