"""A client of the LightQ message broker for asyncio.

    async with lightq.aio.connect() as q:
        async with q.producer("orders") as out:
            await out.send(b"order 1", key=b"17")
            await out.flush(timeout=5)
"""
from ..errors import (AlreadyExists, Closed, ConnectionLost, Error, Fenced, InDoubt, InvalidArgument, NotFound, NotSupported,
                      ProtocolViolation, Refused, Revoked, Timeout, Unauthorized)
from ..message import BaseMessage
from ..version import VERSION as __version__
from .client import Client, connect
from .consumer import Consumer, Message
from .producer import Confirm, Producer
from .reader import Reader

__all__ = ["AlreadyExists", "BaseMessage", "Client", "Closed", "Confirm", "ConnectionLost", "Consumer", "Error", "Fenced", "InDoubt",
           "InvalidArgument", "Message", "NotFound", "NotSupported", "Producer", "ProtocolViolation", "Reader", "Refused", "Revoked",
           "Timeout", "Unauthorized", "__version__", "connect"]
