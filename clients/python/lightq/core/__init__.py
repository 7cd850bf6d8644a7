"""The protocol without input and output: bytes in, bytes out. The blocking and the asyncio client share it."""
