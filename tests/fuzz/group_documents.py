"""The seed inputs of control_json_fuzz about consumer groups, for make_corpus.py."""
ADMIN = {"admin_user_id": "lightq_admin", "admin_password": "a"}
USER = {"user_id": "u", "password": "p"}
GROUP_DOCUMENTS = {
    "delete_group": {"cmd": "delete_group", "topic": "t", "group": "default", **USER},
    "pause": {"cmd": "pause", "topic": "t", "group": "billing", **USER},
    "resume": {"cmd": "resume", "topic": "t", **ADMIN},
    "purge": {"cmd": "purge", "topic": "t", **USER},
    "reply_purge": {"cmd": "purge", "status": "ok", "messages": 12},
    "set_group": {"cmd": "set_group", "topic": "t", "group": "g", **USER, "max_attempts": 5, "backoff_ms": [1000, 60000],
                  "dead_letter_topic": "d", "dead_waiting_max": 7, "processing_timeout_ms": 0, "pause_when_failing": True, "dead_letter_expired": True},
    "set_group_back": {"cmd": "set_group", "topic": "t", "group": "g", **ADMIN, "max_attempts": 0, "backoff_ms": [],
                       "dead_letter_topic": "", "processing_timeout_ms": None},
    "list_dead": {"cmd": "list_dead", "topic": "t", "group": "g", **USER, "state": "parked", "cause": "attempts", "after_offset": 7,
                  "limit": 2, "failed_since_ms": 1000, "failed_until_ms": 2000, "key": ""},
    "retry_dead": {"cmd": "retry_dead", "topic": "t", "group": "g", **USER, "offsets": [9, 3, 4], "ranges": [[20, 30], [25, 40]]},
    "purge_dead": {"cmd": "purge_dead", "topic": "t", "group": "g", **USER, "cause": "rejected", "key": "tea", "preview": True},
    "reply_purge_dead": {"cmd": "purge_dead", "status": "ok", "messages": 3, "unreadable": 2},
    "reply_retry_letters": {"cmd": "retry_dead", "status": "ok", "messages": 3, "given_back": 2, "published": 1, "group_gone": 4,
                            "topic_gone": 5, "not_allowed": 6, "failed": 7},
    "reply_letters": {"cmd": "list_dead", "status": "ok", "messages": [
        {"offset": 1, "state": "parked", "cause": "attempts", "attempts": 5, "source_topic": "orders", "source_group": "billing",
         "source_offset": 17}]},
    "reply_dead": {"cmd": "list_dead", "status": "ok", "continue_after": 9, "unreadable": 2, "messages": [
        {"offset": 1, "state": "parked", "cause": "attempts", "attempts": 5},
        {"offset": 9, "state": "dead_waiting", "cause": "rejected", "attempts": 1, "first_failure_ms": 1000, "last_failure_ms": 2000,
         "reason": "not an order"}]},
    "change_group": {"op": "group", "id": 1, "group": "g", "optional": True, "max_attempts": 5, "backoff_ms": [1000],
                     "dead_letter_topic": "d", "processing_timeout_ms": 0},
    "change_group_removed": {"op": "group_removed", "id": 1, "group": "g", "optional": True},
}
