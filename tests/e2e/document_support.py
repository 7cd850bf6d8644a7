"""The OpenAPI document that a broker serves: requests that fit it or not, and a check of each answer against it."""
import json
import urllib.parse

import jsonschema
from hypothesis import strategies as st


class Document:
    """Knows the operations of a document. `document`: as it was served."""

    def __init__(self, document):
        self.document = document
        jsonschema.Draft202012Validator.check_schema({"$defs": document["components"]["schemas"]})
        self.operations = [Operation(self, path, method.upper(), operation)
                           for path, operations in document["paths"].items() for method, operation in operations.items()]

    def resolved(self, part):
        """Returns a part of the document, or the part that it refers to."""
        while "$ref" in part:
            found = self.document
            for name in part["$ref"].removeprefix("#/").split("/"):
                found = found[name]
            part = found
        return part

    def check(self, value, schema):
        """Raises if a value does not fit a schema of the document, or has a member that the schema does not name."""
        whole = {**closed(schema), "components": closed(self.document["components"])}
        jsonschema.Draft202012Validator(whole).validate(value)


class Operation:
    def __init__(self, document, path, method, described):
        self.document, self.path, self.method, self.described = document, path, method, described
        self.name = described["operationId"]
        self.parameters = described.get("parameters", [])
        self.needs_login = described.get("security", document.document["security"]) != []
        variables = {name for name in path.split("/") if name.startswith("{")}
        declared = {"{" + parameter["name"] + "}" for parameter in self.parameters if parameter["in"] == "path"}
        assert variables == declared, f"{method} {path}: the path has {variables}, the parameters are {declared}"

    def check(self, response):
        """Raises if the document does not describe this answer, or if it is an error of the server."""
        responses = self.described["responses"]
        assert response.status < 500 or str(response.status) in responses, f"an error of the server: {response.status} {response.body[:500]}"
        described = self.document.resolved(responses.get(str(response.status), responses["default"]))
        if str(response.status) not in responses:
            assert response.status >= 400, f"no answer with status {response.status} is described"
        if "content" not in described:
            assert response.body == b"" and response.headers["Content-Type"] is None
            return
        media = response.headers["Content-Type"]
        assert media in described["content"], f"no answer of type {media} is described with status {response.status}"
        schema = described["content"][media].get("schema")
        if schema is None or media == "text/event-stream":
            return
        lines = response.body.splitlines() if media == "application/x-ndjson" else [response.body]
        for line in lines:
            value = json.loads(line)
            self.document.check(value, schema)
            if response.status >= 400:
                assert value["status"] == response.status

    def requests(self, names, content, members, waits):
        """Returns a strategy of requests: (target, headers, content). `names`: values for the path's variables, by name;
        `content`: an object that the broker accepts, or None; `members`: other values for members of a content; `waits`:
        the parameters that make a request wait, with their most."""
        path = {parameter["name"]: mostly(st.sampled_from(names[parameter["name"]]), texts().filter(bool))
                for parameter in self.parameters if parameter["in"] == "path"}
        query = {parameter["name"]: texts_for(parameter["schema"], waits.get(parameter["name"]))
                 for parameter in self.parameters if parameter["in"] == "query"}
        headers = {parameter["name"]: header_values() for parameter in self.parameters if parameter["in"] == "header"}
        media = {media for response in self.described["responses"].values() for media in self.document.resolved(response).get("content", {})}
        few = mostly(st.just({}), st.fixed_dictionaries({}, optional=query))
        needed = {parameter["name"]: mostly(st.sampled_from(names[parameter["name"]]), query[parameter["name"]])
                  for parameter in self.parameters if parameter["in"] == "query" and parameter.get("required")}
        few = st.builds(lambda more, own: {**more, **own}, few, mostly(st.fixed_dictionaries(needed), st.just({})))
        return st.builds(self.request, st.fixed_dictionaries(path), few, mostly(st.just({}), st.fixed_dictionaries(
            {"Accept": st.sampled_from(sorted(media))}, optional=headers)), self.contents(content, members))

    def request(self, path, query, headers, content):
        target = self.path.format(**{name: urllib.parse.quote(value, safe="") for name, value in path.items()})
        if query:
            target += "?" + urllib.parse.urlencode(query)
        body, media = content
        return target, {**headers, **({"Content-Type": media} if media else {})}, body

    def members_of_content(self, values):
        """Returns values for the members of a content that the document names. `values`: of each that has any."""
        named = [self.document.resolved(media["schema"]).get("properties", {})
                 for media in self.described["requestBody"]["content"].values() if "schema" in media]
        missing = {name for properties in named for name in properties} - set(values)
        assert not missing, f"{self.name} takes members for which the test has no values: {missing}"
        return {name: values[name] for properties in named for name in properties} or values

    def contents(self, content, members):
        """Returns a strategy of contents and their types."""
        if "requestBody" not in self.described:
            return mostly(st.just((None, None)), st.just((b"{}", "application/json")))
        one = st.one_of([st.fixed_dictionaries({name: st.one_of(st.sampled_from(values), json_values())})
                         for name, values in self.members_of_content(members).items()])
        changed = one.map(lambda member: {**(content or {}), **member})
        objects = st.one_of(st.just(content or {}), changed, st.dictionaries(texts(), json_values(), max_size=2)).map(json.dumps)
        made = {"application/json": objects.map(str.encode), "application/octet-stream": st.binary(max_size=200),
                "application/x-ndjson": st.lists(objects, max_size=3).map("\n".join).map(str.encode)}
        return st.one_of([st.tuples(mostly(made[media], st.binary(max_size=40)), st.just(media))
                          for media in self.described["requestBody"]["content"]])


def closed(schema):
    """Returns a schema that refuses members which it does not name. The document's own ones allow those of newer brokers."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: closed(part) for name, part in schema.items()}
    return {**parts, "additionalProperties": False} if isinstance(schema.get("properties"), dict) and "type" in schema else parts


def mostly(usual, other):
    """A strategy that draws one of five values from the other one."""
    return st.integers(0, 4).flatmap(lambda which: other if which == 4 else usual)


def texts():
    """Texts that a URL can carry, also strange ones."""
    return st.one_of(st.sampled_from(["", "..", "%", "a/b", "*", "#", "\u202e", "x" * 300, "\u00fc\U0001f600", "' OR 1", "\n\r", "null"]),
                     st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=20))


def header_values():
    """Values of a header that fit in a line."""
    return st.one_of(st.sampled_from(["", "0", "1", "-1", "9" * 30, "a", "x" * 2000, "1.5", "\u00ff"]),
                     st.text(st.characters(min_codepoint=32, max_codepoint=255, blacklist_characters="\x7f"), max_size=20).map(str.strip))


def json_values():
    return st.recursive(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts()),
                        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts(), inner, max_size=3)), max_leaves=5)


def texts_for(schema, most=None):
    """Texts of a parameter: values that fit its schema, the bounds, and others. `most`: the largest value to send."""
    schema_type = schema.get("type")
    if "enum" in schema:
        fitting = st.sampled_from(schema["enum"])
    elif schema_type == "integer":
        least, largest = schema["minimum"], schema["maximum"]
        bounds = [str(value) for value in (least, least + 1, largest, largest + 1, least - 1, 2**64, -1) if most is None or value <= most]
        fitting = st.one_of(st.sampled_from(bounds), st.integers(least, largest if most is None else most).map(str))
    elif schema_type == "boolean":
        fitting = st.sampled_from(["true", "false"])
    else:
        fitting = st.sampled_from(["first", "next", "0", "3,5-9", "g", "orders"])
    return st.one_of(fitting, fitting, fitting, texts())
