"""Variables that tell the tests something, such as LIGHTQ_BINARY. They are taken out of the environment, which the programs
that the tests start are given: `lightq` refuses variables that it does not know."""
import os

TAKEN = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("LIGHTQ_")}


def variable(name, default=None):
    return TAKEN.get(name, default)
