"""The reactions to codes of a session: docs/session.md, "Codes" and "Again"."""
from __future__ import annotations

# After these codes a session's object cannot go on. After others it joins and connects again.
FINAL = {"unsupported_version", "not_supported", "topic_not_found", "topic_deleted", "too_large", "fenced"}
# Joins that would fail again.
FINAL_JOINS = {"invalid_json", "invalid_cmd", "invalid_request", "request_too_large", "unauthorized_access", "topic_not_found",
               "not_supported", "invalid_argument"}
# Refused batches that the producer sends again at once, gives up, or cannot follow by others.
AGAIN_AT_ONCE = {"corrupt", "out_of_sequence"}
GIVEN_UP = {"too_large", "not_supported"}
ENDING = {"unauthorized_access", "unknown_producer", "unsupported_version", "topic_not_found", "topic_deleted", "fenced"}
