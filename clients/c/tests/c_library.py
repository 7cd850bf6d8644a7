"""The functions of the library that the tests call, by ctypes, with the structs that they need."""
import ctypes
import re

from conftest import LIBRARY, ROOT

HEADER = re.sub(r"/\*.*?\*/", "", (ROOT / "include/lightq/lightq.h").read_text(), flags=re.S)
CODES = {name: int(value) for name, value in re.findall(r"\bLIGHTQ_(\w+) = (\d+)", HEADER)}
TYPES = {"size_t": ctypes.c_size_t, "uint64_t": ctypes.c_uint64, "int64_t": ctypes.c_int64, "int": ctypes.c_int}


def struct(name):
    """Returns a class for a struct of the header, whose objects know their size."""
    body = re.search(r"typedef struct " + name + r" \{\n(.*?)\n\}", HEADER, re.S)[1]
    fields = []
    for kind, field in re.findall(r"^\s*(.*?)(\w+);", body, re.M):
        of_kind = TYPES.get(kind.strip()) or (ctypes.c_char_p if kind.strip() == "const char*" else ctypes.c_void_p)
        fields.append((field, of_kind))

    def begin(self, **values):
        ctypes.Structure.__init__(self, ctypes.sizeof(type(self)), **values)
    return type(name, (ctypes.Structure,), {"_fields_": fields, "__init__": begin})


Options, Message, ConsumerOptions, ProducerOptions, Interest, Attributes, ReaderOptions = map(struct, (
    "lightq_options", "lightq_message", "lightq_consumer_options", "lightq_producer_options", "lightq_interest",
    "lightq_attributes", "lightq_reader_options"))
Report = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
Header = type("lightq_header", (ctypes.Structure,), {"_fields_": [("name", ctypes.c_char_p), ("name_bytes", ctypes.c_size_t),
                                                                  ("value", ctypes.c_char_p), ("value_bytes", ctypes.c_size_t)]})
lib = ctypes.CDLL(str(LIBRARY))
lib.lightq_strerror.restype = ctypes.c_char_p
lib.lightq_last_error.restype = ctypes.c_void_p


def last_text():
    return ctypes.string_at(lib.lightq_last_error() + 16).decode()


def word(code):
    return lib.lightq_strerror(code).decode()


def call(name, *arguments):
    """Calls a function and returns the word of its code."""
    return word(getattr(lib, name)(*arguments))


class Handle:
    """A handle that is freed with the object."""

    def __init__(self, kind, opener, *arguments):
        self.kind, self._as_parameter_ = kind, ctypes.c_void_p()
        self.opened = call(opener, *arguments, ctypes.byref(self._as_parameter_))
        self.is_null = self._as_parameter_.value is None

    def free(self):
        code = getattr(lib, f"lightq_{self.kind}_free")(self)
        if self.kind == "client" or code == 0:
            self._as_parameter_ = ctypes.c_void_p()
        return "ok" if self.kind == "client" else word(code)

    def __del__(self):
        if self._as_parameter_:
            self.free()
