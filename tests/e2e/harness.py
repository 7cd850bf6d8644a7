"""Variables that configure the tests, such as LIGHTQ_BINARY. They are removed from the environment, because
`lightq` refuses variables that it does not know, and programs started by the tests inherit the
environment."""
import os

TAKEN = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("LIGHTQ_")}


def variable(name, default=None):
    return TAKEN.get(name, default)
