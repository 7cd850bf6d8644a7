# frozen_string_literal: true

module LightQ
  # The base of all errors. `code` is a word of docs/protocol.md, such as `topic_not_found`. `retryable?`: the
  # same call may succeed later, without a change of the program. `fate`, only of the reasons that
  # Producer#on_settled passes on: :refused (certainly not stored) or :unknown.
  class Error < StandardError
    attr_reader :code, :fate

    CODE = "internal"

    def initialize(text = nil, code: nil, retryable: false, fate: nil)
      super(text)
      @code = code || self.class::CODE
      @retryable, @fate = retryable, fate
    end

    def retryable?
      @retryable
    end
    alias retryable retryable?
  end

  # There is no such topic, group, user, schedule or endpoint, or there is none any more.
  class NotFound < Error
    CODE = "topic_not_found"
  end

  # The name of a topic or user is in use.
  class AlreadyExists < Error
    CODE = "topic_already_exists"
  end

  # The credentials do not permit this, or no longer.
  class Unauthorized < Error
    CODE = "unauthorized_access"
  end

  # The broker has not done it: a limit is reached, a disk is full, a message is too long.
  class Refused < Error
    CODE = "limit_reached"
  end

  # An argument is out of its range. Nothing was sent.
  class InvalidArgument < Error
    CODE = "invalid_argument"
  end

  # The broker, this topic or the installed library cannot do this.
  class NotSupported < Error
    CODE = "not_supported"
  end

  # Another process has taken over this producer or cursor.
  class Fenced < Error
    CODE = "in_use"
  end

  # Another thread is in a call on this object. Each producer, consumer and reader is for one thread at a time.
  class InUse < Error
    CODE = "in_use"
  end

  # The message is not in flight to this consumer any more: it goes to another one.
  class Revoked < Error
    CODE = "revoked"
  end

  # The messages may be stored or not. To send them again may store them twice.
  class InDoubt < Error
    CODE = "unknown_producer"
  end

  # The time of a call has passed.
  class Timeout < Error
    CODE = "timeout"
  end

  # The object was closed, or belongs to the parent process.
  class Closed < Error
    CODE = "closed"
  end

  # There is no connection to the broker, or it has ended.
  class ConnectionLost < Error
    CODE = "io_error"
  end

  # The classes of the words of docs/protocol.md. Other words are of the class Error.
  CLASSES = {
    NotFound => %w[topic_not_found group_not_found user_not_found schedule_not_found endpoint_not_found],
    AlreadyExists => %w[topic_already_exists user_already_exists],
    Unauthorized => %w[unauthorized_access],
    Refused => %w[limit_reached no_space too_large busy shutting_down corrupt group_in_use request_too_large address_in_use],
    InvalidArgument => %w[invalid_argument invalid_request invalid_cmd invalid_json],
    NotSupported => %w[not_supported foreign_format],
    Fenced => %w[in_use], Revoked => %w[revoked], Timeout => %w[timeout], Closed => %w[closed], ConnectionLost => %w[io_error]
  }.flat_map { |kind, words| words.map { |word| [word, kind] } }.to_h.freeze
  private_constant :CLASSES
end
