"""A client of the LightQ message broker, over blocking sockets. `lightq.aio` is the same for asyncio.

    with lightq.connect() as q, q.producer("orders") as out:
        out.send(b"order 1", key=b"17")
        out.flush(timeout=5)
"""
from .client import Client, connect
from .consumer import Consumer, Message
from .errors import (AlreadyExists, Closed, ConnectionLost, Error, Fenced, InDoubt, InvalidArgument, NotFound, NotSupported,
                     ProtocolViolation, Refused, Revoked, Timeout, Unauthorized)
from .message import BaseMessage
from .producer import Confirm, Producer
from .reader import Reader
from .version import VERSION as __version__

__all__ = ["AlreadyExists", "BaseMessage", "Client", "Closed", "Confirm", "ConnectionLost", "Consumer", "Error", "Fenced", "InDoubt",
           "InvalidArgument", "Message", "NotFound", "NotSupported", "Producer", "ProtocolViolation", "Reader", "Refused", "Revoked",
           "Timeout", "Unauthorized", "__version__", "connect"]
