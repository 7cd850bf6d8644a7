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
    "set_topic_files": {"cmd": "set_topic", **USER, "topic": "t", "overflow": "reject", "capacity_bytes": 1, "retention_ms": 0},
    "seek_group": {"cmd": "seek_group", **USER, "topic": "t", "group": "g", "time_ms": 5, "preview": True},
    "trace": {"cmd": "trace", "topic": "t", **USER, "offset": 7},
    "change_topic_settings": {"op": "topic_settings", "id": 1, "overflow": "reject", "retention_messages": 3},
    "purge_delayed": {"cmd": "purge", "topic": "t", **USER, "delayed": True},
    "list_delayed": {"cmd": "list_delayed", "topic": "t", **USER, "due_from_us": 1000, "due_until_us": 2000, "id": "order 7",
                     "after_due_us": 1000, "after_number": 7, "limit": 2},
    "cancel_delayed": {"cmd": "cancel_delayed", "topic": "t", **USER, "numbers": [9, 3, 4], "ranges": [[20, 30], [25, 40]],
                       "preview": True},
    "hurry_delayed": {"cmd": "hurry_delayed", "topic": "t", **ADMIN, "id": "order 7"},
    "reschedule_delayed": {"cmd": "reschedule_delayed", "topic": "t", **USER, "numbers": [7], "deliver_at_us": 1800000000000000},
    "reschedule_delayed_by": {"cmd": "reschedule_delayed", "topic": "t", **USER, "id": "order 7", "delay_us": 60000000},
    "reply_delayed": {"cmd": "list_delayed", "status": "ok", "continue_after_due_us": 1000, "continue_after_number": 8, "messages": [
        {"number": 7, "due_us": 1000, "state": "waiting", "bytes": 20, "id": "order 7", "key": "tea"},
        {"number": 8, "due_us": 1000, "state": "moving", "bytes": 5}]},
    "reply_cancel_delayed": {"cmd": "cancel_delayed", "status": "ok", "messages": 2, "too_late": 1, "unknown": 1, "untouched": [
        {"number": 9, "why": "unknown"}, {"number": 10, "why": "too_late"}]},
    "set_schedule": {"cmd": "set_schedule", "topic": "t", "name": "n", **USER, "cron": "0 9 * * MON-FRI", "zone": "Europe/Berlin",
                     "missed": "once", "key": "k", "headers": [{"name": "a", "value": "b"}], "payload": "go"},
    "set_schedule_of_bytes": {"cmd": "set_schedule", "topic": "t", "name": "n", **ADMIN, "cron": "* * * * *", "payload_base64": "AP8="},
    "list_schedules": {"cmd": "list_schedules", "topic": "t", "name": "n", **USER, "after": "t/m", "limit": 2, "times": 3},
    "pause_schedule": {"cmd": "pause_schedule", "topic": "t", "name": "n", **USER},
    "resume_schedule": {"cmd": "resume_schedule", "topic": "t", "name": "n", **ADMIN},
    "remove_schedule": {"cmd": "remove_schedule", "topic": "t", "name": "n", **USER},
    "reply_schedules": {"cmd": "list_schedules", "status": "ok", "continue_after": "t/n", "schedules": [
        {"topic": "t", "name": "n", "cron": "0 9 * * *", "zone": "UTC", "missed": "skip", "headers": [{"name": "a", "value": "b"}],
         "payload_bytes": 2, "payload": "go", "paused": False, "next_ms": [1000, 2000], "fired": 3, "last_ms": 500,
         "waiting_by": "the topic is full"}]},
    "change_schedule": {"op": "schedule", "id": 1, "name": "n", "optional": True, "incarnation": 7, "since_us": 5, "paused": True,
                        "cron": "0 9 * * *", "zone": "UTC", "missed": "once", "payload_base64": "AP8="},
    "change_schedule_removed": {"op": "schedule_removed", "id": 1, "name": "n", "optional": True},
    "change_group": {"op": "group", "id": 1, "group": "g", "optional": True, "max_attempts": 5, "backoff_ms": [1000],
                     "dead_letter_topic": "d", "processing_timeout_ms": 0},
    "change_group_removed": {"op": "group_removed", "id": 1, "group": "g", "optional": True},
}
# Files that the command line imports.
IMPORTS = {
    "message": b'{"offset":7,"payload":"a","key_base64":"/w==","headers":[{"name":"n","value_base64":"AAE="}],"producer_time_us":5}',
    "binary": b'{"payload_base64":"AAE=","headers":[{"name":"lightq-dead-cause","value":"expired"}]}',
    "definitions": b'{"format":1,"topics":[{"topic":"t","broker_type":"file","retention_ms":7,"groups":[{"group":"g","max_attempts":5}]}],'
                   b'"users":[{"user_id":"u","uid":7,"rights":[{"topic":"t*","rights":["consume"]}]}]}',
}
