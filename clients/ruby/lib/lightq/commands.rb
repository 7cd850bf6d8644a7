# frozen_string_literal: true

module LightQ
  # The commands of the control socket as functions of `command`. docs/protocol.md lists the fields and the members of
  # each reply, which is a Hash with Strings as keys. Errors are the broker's.
  module Commands
    def version
      command("version")
    end

    def create_topic(topic, broker_type: "file", **settings)
      command("create_topic", topic: topic, broker_type: broker_type, **settings)
    end

    def set_topic(topic, **settings)
      command("set_topic", topic: topic, **settings)
    end

    def delete_topic(topic)
      command("delete_topic", topic: topic)
    end

    def list_topics
      command("list_topics")
    end

    # Returns a topic's statistics; without a topic, the broker's.
    def stats(topic = nil)
      command("stats", topic: topic)
    end

    def stats_all(**selection)
      command("stats_all", **selection)
    end

    def pause(topic, group: nil)
      command("pause", topic: topic, group: group)
    end

    def resume(topic, group: nil)
      command("resume", topic: topic, group: group)
    end

    def purge(topic, group: nil, **more)
      command("purge", topic: topic, group: group, **more)
    end

    def set_group(topic, group, **settings)
      command("set_group", topic: topic, group: group, **settings)
    end

    def delete_group(topic, group)
      command("delete_group", topic: topic, group: group)
    end

    def list_dead(topic, group, **selection)
      command("list_dead", topic: topic, group: group, **selection)
    end

    def retry_dead(topic, group, **selection)
      command("retry_dead", topic: topic, group: group, **selection)
    end

    def purge_dead(topic, group, **selection)
      command("purge_dead", topic: topic, group: group, **selection)
    end

    def list_delayed(topic, **selection)
      command("list_delayed", topic: topic, **selection)
    end

    def cancel_delayed(topic, **selection)
      command("cancel_delayed", topic: topic, **selection)
    end

    def create_user(user_id, password, rights: [], admin: false)
      command("create_user", user_id: user_id, password: password, rights: rights, admin: admin)
    end

    def delete_user(user_id)
      command("delete_user", user_id: user_id)
    end

    def grant(user_id, topic, rights)
      command("grant", user_id: user_id, topic: topic, rights: rights)
    end

    def revoke(user_id, topic, rights)
      command("revoke", user_id: user_id, topic: topic, rights: rights)
    end

    # Changes the password of a user. Needs an administrator.
    def set_password(user_id, new_password)
      command("set_password", user_id: user_id, new_password: new_password)
    end

    def list_users
      command("list_users")
    end
  end
end
