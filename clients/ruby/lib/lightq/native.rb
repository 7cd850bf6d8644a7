# frozen_string_literal: true

require "fiddle"
require_relative "errors"
require_relative "layout"

module LightQ
  # liblightq.so.0 by Fiddle: its functions as constants, its structs as layouts, its codes as errors.
  module Native
    OK = 0
    TIMEOUT = 25
    CLOSED = 26
    LIMIT_REACHED = 15
    STATES = %i[connecting open in_doubt failed closed].freeze
    FATES = %i[confirmed refused unknown].freeze

    begin
      LIBRARY = Fiddle.dlopen("liblightq.so.0")
    rescue Fiddle::DLError => e
      raise LoadError, "the library liblightq.so.0 (Debian: liblightq0) cannot be loaded: #{e.message}"
    end

    CONNECTION = "int transport, flag over_zmq no_shared_memory, int heartbeat_ms attempt_timeout_ms backoff_ms backoff_max_ms"
    LAYOUTS = {
      OPTIONS: ["lightq_options", "size_t size, text uri user password admin_user admin_password server_key client_key_file data_dir, " \
                                  "flag no_discovery insecure, int request_timeout_ms connect_timeout_ms"],
      INTEREST: ["lightq_interest", "size_t size, int fd events timeout_ms reserved"],
      HEADER: ["lightq_header", "ptr name, size_t name_bytes, ptr value, size_t value_bytes"],
      IDENTITY: ["lightq_identity", "size_t size, u64 id, int epoch has_secret, bytes16 secret"],
      PRODUCER_OPTIONS: ["lightq_producer_options",
                         "size_t size, text name, ptr identity, u64 batch_bytes window_bytes memory_bytes_max, int level compression, " \
                         "flag delayed full_batches, int linger_ms, flag no_retry_refused resend_in_doubt, #{CONNECTION}"],
      ATTRIBUTES: ["lightq_attributes", "size_t size, ptr key, size_t key_bytes, ptr headers, size_t header_count, ptr id, size_t id_bytes, " \
                                        "i64 time_us delay_ms deliver_at_us ttl_ms"],
      REPORT: ["lightq_report", "size_t size, u64 begin end, int fate code, ptr text, i64 delayed_first"],
      PRODUCER_STATS: ["lightq_producer_stats", "size_t size, u64 sent confirmed refused unknown lost unconfirmed opens"],
      CONSUMER_OPTIONS: ["lightq_consumer_options",
                         "size_t size, text group name, u64 from_value incarnation prefetch_bytes, int from, flag own holds automatic, " \
                         "int prefetch_messages prefetch_time_ms ack_timeout_ms, flag may_not_be_busy, #{CONNECTION} frame_bytes_max"],
      MESSAGE: ["lightq_message", "size_t size, ptr body, size_t body_bytes, ptr key, size_t key_bytes header_count, u64 offset lease lost, " \
                                  "i64 time_us producer_time_us, ptr attributes, int kinds delivery expired reserved"],
      RANGE: ["lightq_range", "u64 begin end"],
      CONSUMER_STATS: ["lightq_consumer_stats",
                       "size_t size, u64 received again acknowledged rejected late revoked lost opens new_logs unacknowledged"],
      READER_OPTIONS: ["lightq_reader_options", "size_t size, text name, #{CONNECTION} frame_bytes_max"]
    }.to_h { |constant, (name, fields)| [constant, Layout.new(name, fields)] }.freeze
    LAYOUTS.each { |name, layout| const_set(name, layout) }

    TYPES = {
      "p" => Fiddle::TYPE_VOIDP, "i" => Fiddle::TYPE_INT, "z" => Fiddle::TYPE_SIZE_T, "u" => -Fiddle::TYPE_LONG_LONG,
      "l" => Fiddle::TYPE_LONG_LONG, "v" => Fiddle::TYPE_VOID
    }.freeze
    # Functions that may wait. Other threads of Ruby run meanwhile.
    WAITING = {
      "connect" => "ppi", "command" => "pppi", "producer_open" => "ppppi", "consumer_open" => "ppppi", "reader_open" => "ppppi",
      "seek" => "piupii", "consumer_close" => "pii", "fetch" => "puuupii"
    }.freeze
    # Functions that return at once, also with a timeout of 0. They keep Ruby's lock: to give it away and wait
    # for it would take longer than the call. The last letter is the type of the result.
    QUICK = {
      "last_error" => "p", "strerror" => "ip", "retryable" => "ii", "version" => "p", "free" => "pv", "client_free" => "pv",
      "send_numbered" => "ppzpipi", "flush" => "pii", "wait_settled" => "puii", "producer_poll" => "pii", "producer_interest" => "ppi",
      "producer_keep_reports" => "pi", "next_report" => "ppi", "producer_resolve" => "pii", "producer_state" => "pi",
      "producer_identity" => "ppi", "producer_get_stats" => "ppi", "producer_close" => "pii", "producer_free" => "pi",
      "next" => "ppii", "message_headers" => "ppzz", "ack" => "ppi", "release" => "ppi", "retry" => "ppli", "dead" => "pppi",
      "extend" => "ppli", "ack_range" => "puupi", "ack_before" => "pupi", "revoked" => "ppi", "watch_open" => "pppi",
      "watch_revoked" => "pi", "watch_free" => "pv", "consumer_pause" => "pii", "consumer_poll" => "pi", "consumer_interest" => "ppi",
      "consumer_wait_open" => "pii", "consumer_flush" => "pii", "consumer_state" => "pi", "consumer_get_stats" => "ppi",
      "consumer_late" => "ppzpi", "consumer_free" => "pi", "next_fetched" => "ppi", "reader_free" => "pi"
    }.freeze
    { WAITING => false, QUICK => true }.each do |functions, need_gvl|
      functions.each do |name, letters|
        types = letters.chars.map { |letter| TYPES.fetch(letter) }
        function = Fiddle::Function.new(LIBRARY["lightq_#{name}"], types[0...-1], types[-1], need_gvl: need_gvl)
        const_set("C_#{name.upcase}", function)
      end
    rescue Fiddle::DLError => e
      raise LoadError, "the library liblightq.so.0 is too old for this client: #{e.message}"
    end

    # The offsets of code, retryable and text in lightq_error.
    ERROR_HEAD = "i4"
    ERROR_TEXT = 4 * Fiddle::SIZEOF_INT
    private_constant :TYPES, :WAITING, :QUICK, :CONNECTION, :ERROR_HEAD, :ERROR_TEXT

    class << self
      def version
        C_VERSION.call.to_s
      end

      # Returns the error of this thread's last call, which has returned `code`.
      def error(code)
        last = C_LAST_ERROR.call
        known = last[0, ERROR_TEXT].unpack(ERROR_HEAD)
        text = known[0] == code ? utf8((last + ERROR_TEXT).to_s) : ""
        error_of(code, text)
      end

      def error_of(code, text, fate = nil)
        word = C_STRERROR.call(code).to_s
        text = text.empty? ? word : "#{word}: #{text}"
        (CLASSES[word] || Error).new(text, code: word, retryable: C_RETRYABLE.call(code) == 1, fate: fate)
      end

      def check(code)
        raise error(code) unless code == OK
      end

      # Opens a handle: `call(place)` writes it to the place. Returns its address.
      def open
        place = Fiddle::Pointer.malloc(Fiddle::SIZEOF_VOIDP, Fiddle::RUBY_FREE)
        check(yield(place))
        place.ptr.to_i
      end

      # Returns a text for C: UTF-8 without zero bytes, or nil.
      def text(value, what)
        return nil if value.nil? || value == ""
        raise InvalidArgument, "#{what} is no text: #{value.class}" unless value.is_a?(String) || value.is_a?(Symbol)

        text = value.to_s.encode(Encoding::UTF_8)
        raise InvalidArgument, "#{what} has a zero byte" if text.include?("\0")

        text
      rescue EncodingError => e
        raise InvalidArgument, "#{what}: #{e.message}"
      end

      # Returns whole milliseconds or microseconds of seconds. `nil` is 0.
      def time(seconds, per_second, what)
        return 0 if seconds.nil?

        scaled = (seconds * per_second).ceil
        raise InvalidArgument, "#{what} is out of its range: #{seconds}" unless scaled.between?(0, (1 << 63) - 1)

        scaled
      rescue NoMethodError, TypeError, FloatDomainError, RangeError
        raise InvalidArgument, "#{what} is no number of seconds: #{seconds.inspect}"
      end

      # Returns microseconds since 1970 of a Time, or a number of seconds. `nil` is 0.
      def moment(given, what)
        raise InvalidArgument, "#{what} is no time: #{given.class}" unless given.nil? || given.is_a?(Time) || given.is_a?(Numeric)

        time(given.is_a?(Time) ? given.to_r : given, 1_000_000, what)
      end

      # Returns milliseconds for a field of type int.
      def milliseconds(seconds, what)
        given = time(seconds, 1000, what)
        raise InvalidArgument, "#{what} is out of its range: #{seconds}" if given > 0x7fffffff

        given
      end

      def number(value, what, most = (1 << 64) - 1, least = 0)
        return value if value.is_a?(Integer) && value.between?(least, most)

        raise InvalidArgument, "#{what} is no number of #{least} to #{most}: #{value.inspect}"
      end

      def flag(value, what)
        raise InvalidArgument, "#{what} is true or false, and no #{value.class}" unless [nil, true, false, 0, 1].include?(value)

        [true, 1].include?(value)
      end

      # Returns the value of an option for a field of this type of Layout. `nil` is the default.
      def option(type, value, what)
        return nil if value.nil?

        case type
        when "text" then text(value, what)
        when "flag" then flag(value, what)
        when "int" then number(value, what, 0x7fffffff, -0x80000000)
        when "u64" then number(value, what)
        else value
        end
      end

      def choice(value, words, what)
        found = words.map(&:to_s).index(value.to_s) if value.is_a?(String) || value.is_a?(Symbol)
        found || raise(InvalidArgument, "#{what} is one of #{words.inspect}, and not #{value.inspect}")
      end

      # Returns a copy of bytes of the library.
      def bytes(address, count)
        count.zero? ? String.new : Fiddle::Pointer.new(address)[0, count]
      end

      def utf8(text)
        text.dup.force_encoding(Encoding::UTF_8)
      end
    end
  end
end
