# frozen_string_literal: true

require_relative "native"

module LightQ
  # Tells any thread whether a message was revoked. The consumer finds revocations in its calls, such as `poll`.
  class Watch
    def initialize(address)
      @resource = Resource.new(address, Native::C_WATCH_FREE)
      ObjectSpace.define_finalizer(self, @resource.finalizer)
    end

    def revoked?
      address = @resource.address
      address.nil? || Native::C_WATCH_REVOKED.call(address) == 1
    end
  end

  # A received message. Settle each once: `ack`, `release`, `retry` or `dead`. A later call does nothing. Errors of all:
  # Revoked, if the broker has taken the message back.
  class Message
    # `body` and `key` are binary; `key` is nil without a key. `headers`: pairs of binary Strings. `delivery`: how
    # often it was delivered, this time included. `lost`: messages directly before it that are never delivered.
    attr_reader :body, :key, :headers, :offset, :lease, :delivery, :lost

    def initialize(consumer, values, headers)
      @consumer, @headers, @is_settled = consumer, headers, false
      _, body, body_bytes, key, key_bytes, _, @offset, @lease, @lost, @time_us, @producer_time_us, _, _, @delivery, expired, = values
      @body = Native.bytes(body, body_bytes)
      @key = key_bytes.zero? ? nil : Native.bytes(key, key_bytes)
      @is_expired = expired == 1
    end

    # Returns the message at an address, with its headers. `consumer` is nil for a message that was only read.
    def self.from(memory, consumer)
      values = Native::MESSAGE.unpack(memory)
      new(consumer, values, values[5].zero? ? [].freeze : headers_of(memory, values[5]))
    end

    def self.headers_of(memory, count)
      structs = Fiddle::Pointer.malloc(count * Native::HEADER.bytes, Fiddle::RUBY_FREE)
      Native::C_MESSAGE_HEADERS.call(memory, structs, count)
      Array.new(count) do |at|
        name, name_bytes, value, value_bytes = Native::HEADER.unpack(structs + at * Native::HEADER.bytes)
        [Native.bytes(name, name_bytes), Native.bytes(value, value_bytes)]
      end
    end
    private_class_method :headers_of

    # Returns the value of the first header of this name, or nil.
    def [](name)
      @headers.find { |each, _| each == name.b }&.last
    end

    # Returns the body as UTF-8.
    def text
      Native.utf8(@body)
    end

    # When the log took it.
    def time
      Time.at(0, @time_us, :microsecond)
    end

    # The time that the producer gave it, or nil.
    def producer_time
      @producer_time_us.zero? ? nil : Time.at(0, @producer_time_us, :microsecond)
    end

    # Its time to live was over; only a Reader returns such messages.
    def expired?
      @is_expired
    end

    def settled?
      @is_settled
    end

    # The broker has taken it back, as far as the consumer's last call has found, or the connection has ended.
    def revoked?
      @consumer.nil? || @consumer.revoked?(self)
    end

    # Returns a Watch, which other threads may ask.
    def watch
      raise InvalidArgument, "the message was only read" unless @consumer

      @consumer.watch(self)
    end

    # Finishes the message.
    def ack
      settle(:ack)
    end

    # Gives back a message that the program has not begun: this delivery does not count.
    def release
      settle(:release)
    end

    # The message failed: it is delivered again after so many seconds, or after the group's back-off.
    def retry(delay: 0)
      settle(:retry, Native.time(delay, 1000, "delay"))
    end

    # No consumer can process the message: it goes to the dead letters. At most 256 bytes of the reason are kept.
    def dead(reason = nil)
      settle(:dead, Native.text(reason, "the reason"))
    end

    # Asks for so much time from now.
    def extend_lease(seconds)
      @consumer&.extend_lease(self, seconds)
    end

    # Yields the message, and settles it unless the block has: at the end it is acknowledged, a StandardError rejects it, for
    # another attempt, and everything else that leaves the block releases it: Thread#kill, throw, break, Interrupt.
    # A message that was revoked meanwhile is left alone.
    def process
      how = :release
      result = yield self
      how = :ack
      result
    rescue StandardError
      how = :retry
      raise
    ensure
      begin
        settle(how, *(how == :retry ? [0] : []))
      rescue Revoked
        nil # it goes to another consumer
      rescue Error
        raise if how == :ack
      end
    end

    def inspect
      "#<#{self.class} offset=#{offset} bytes=#{body.bytesize}>"
    end

    private

    def settle(how, *more)
      return if @is_settled || @consumer.nil?

      @consumer.settle(self, how, *more)
      @is_settled = true
    end
  end
end
