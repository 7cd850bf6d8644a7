package lightq

// The reactions to codes of a session: docs/session.md, "Codes" and "Again".
var (
	// After these codes a session's object cannot go on. After others it joins and connects again.
	finalCodes = words("unsupported_version", "not_supported", "topic_not_found", "topic_deleted", "too_large", "fenced")
	// Refused batches that the producer sends again at once, gives up, or cannot follow by others.
	againAtOnce = words("corrupt", "out_of_sequence")
	givenUp     = words("too_large", "not_supported")
	endingCodes = words("unauthorized_access", "unknown_producer", "unsupported_version", "topic_not_found", "topic_deleted", "fenced")
)

func words(all ...string) map[string]bool {
	made := map[string]bool{}
	for _, each := range all {
		made[each] = true
	}
	return made
}
