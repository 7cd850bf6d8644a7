package lightq

import "context"

// with returns fields and further ones.
func with(more Fields, names ...any) Fields {
	made := Fields{}
	for name, value := range more {
		made[name] = value
	}
	for i := 0; i < len(names); i += 2 {
		made[names[i].(string)] = names[i+1]
	}
	return made
}

// Ping asks whether the broker is there.
func (q *Client) Ping(ctx context.Context) (Reply, error) { return q.Command(ctx, "ping", nil) }

// BrokerVersion returns the broker's version.
func (q *Client) BrokerVersion(ctx context.Context) (Reply, error) {
	return q.Command(ctx, "version", nil)
}

// CreateTopic creates a topic. The type is file, queue_file, queue or direct.
func (q *Client) CreateTopic(ctx context.Context, topic, brokerType string, settings Fields) (Reply, error) {
	return q.Command(ctx, "create_topic", with(settings, "topic", topic, "broker_type", brokerType))
}

// SetTopic changes settings of a topic.
func (q *Client) SetTopic(ctx context.Context, topic string, settings Fields) (Reply, error) {
	return q.Command(ctx, "set_topic", with(settings, "topic", topic))
}

// DeleteTopic deletes a topic and its messages.
func (q *Client) DeleteTopic(ctx context.Context, topic string) (Reply, error) {
	return q.Command(ctx, "delete_topic", Fields{"topic": topic})
}

// ListTopics lists all topics.
func (q *Client) ListTopics(ctx context.Context) (Reply, error) {
	return q.Command(ctx, "list_topics", nil)
}

// Stats returns a topic's statistics; with an empty topic, the broker's.
func (q *Client) Stats(ctx context.Context, topic string) (Reply, error) {
	if topic == "" {
		return q.Command(ctx, "stats", nil)
	}
	return q.Command(ctx, "stats", Fields{"topic": topic})
}

// StatsAll returns the statistics of topics, behind the one that is named.
func (q *Client) StatsAll(ctx context.Context, after string) (Reply, error) {
	if after == "" {
		return q.Command(ctx, "stats_all", nil)
	}
	return q.Command(ctx, "stats_all", Fields{"after": after})
}

// ofGroup sends a command for a group; with an empty group, for the topic.
func (q *Client) ofGroup(ctx context.Context, cmd, topic, group string, more Fields) (Reply, error) {
	if group == "" {
		return q.Command(ctx, cmd, with(more, "topic", topic))
	}
	return q.Command(ctx, cmd, with(more, "topic", topic, "group", group))
}

// Pause stops the deliveries of a group; with an empty group, of the topic.
func (q *Client) Pause(ctx context.Context, topic, group string) (Reply, error) {
	return q.ofGroup(ctx, "pause", topic, group, nil)
}

// Resume ends a pause.
func (q *Client) Resume(ctx context.Context, topic, group string) (Reply, error) {
	return q.ofGroup(ctx, "resume", topic, group, nil)
}

// Purge lets a group skip the waiting messages; with an empty group, it removes the topic's messages.
func (q *Client) Purge(ctx context.Context, topic, group string, more Fields) (Reply, error) {
	return q.ofGroup(ctx, "purge", topic, group, more)
}

// SetGroup changes settings of a group.
func (q *Client) SetGroup(ctx context.Context, topic, group string, settings Fields) (Reply, error) {
	return q.ofGroup(ctx, "set_group", topic, group, settings)
}

// DeleteGroup deletes a group without consumers.
func (q *Client) DeleteGroup(ctx context.Context, topic, group string) (Reply, error) {
	return q.ofGroup(ctx, "delete_group", topic, group, nil)
}

// ListDead lists dead messages of a group.
func (q *Client) ListDead(ctx context.Context, topic, group string, selection Fields) (Reply, error) {
	return q.ofGroup(ctx, "list_dead", topic, group, selection)
}

// RetryDead gives dead messages back to their group.
func (q *Client) RetryDead(ctx context.Context, topic, group string, selection Fields) (Reply, error) {
	return q.ofGroup(ctx, "retry_dead", topic, group, selection)
}

// PurgeDead removes dead messages.
func (q *Client) PurgeDead(ctx context.Context, topic, group string, selection Fields) (Reply, error) {
	return q.ofGroup(ctx, "purge_dead", topic, group, selection)
}

// ListDelayed lists messages that wait to be delivered later.
func (q *Client) ListDelayed(ctx context.Context, topic string, selection Fields) (Reply, error) {
	return q.Command(ctx, "list_delayed", with(selection, "topic", topic))
}

// CancelDelayed removes such messages.
func (q *Client) CancelDelayed(ctx context.Context, topic string, selection Fields) (Reply, error) {
	return q.Command(ctx, "cancel_delayed", with(selection, "topic", topic))
}

// Right is what a user may do with a topic, or with all topics whose names match.
type Right struct {
	Topic  string   `json:"topic"`
	Rights []string `json:"rights"` // produce, consume, manage and others
}

// CreateUser creates a user.
func (q *Client) CreateUser(ctx context.Context, user, password string, admin bool, rights ...Right) (Reply, error) {
	if rights == nil {
		rights = []Right{}
	}
	return q.Command(ctx, "create_user", Fields{"user_id": user, "password": password, "rights": rights, "admin": admin})
}

// DeleteUser deletes a user.
func (q *Client) DeleteUser(ctx context.Context, user string) (Reply, error) {
	return q.Command(ctx, "delete_user", Fields{"user_id": user})
}

// Grant gives rights on a topic to a user.
func (q *Client) Grant(ctx context.Context, user, topic string, rights ...string) (Reply, error) {
	return q.Command(ctx, "grant", Fields{"user_id": user, "topic": topic, "rights": rights})
}

// Revoke takes rights on a topic away from a user.
func (q *Client) Revoke(ctx context.Context, user, topic string, rights ...string) (Reply, error) {
	return q.Command(ctx, "revoke", Fields{"user_id": user, "topic": topic, "rights": rights})
}

// SetPassword changes the password of a user. It needs an administrator.
func (q *Client) SetPassword(ctx context.Context, user, password string) (Reply, error) {
	return q.Command(ctx, "set_password", Fields{"user_id": user, "new_password": password})
}

// ListUsers lists the users.
func (q *Client) ListUsers(ctx context.Context) (Reply, error) {
	return q.Command(ctx, "list_users", nil)
}
