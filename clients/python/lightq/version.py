"""The version of the client: that of the broker it was built with."""
VERSION = "0.1.0"
