# frozen_string_literal: true

require_relative "aside"
require_relative "message"
require_relative "session"

module LightQ
  # Receives a topic's messages, as a member of a group or with a cursor of its own.
  #
  # For one thread at a time, its messages included. It has no thread of its own: it sends and receives inside calls
  # only. The broker knows that the program may be busy: it may work on a message for as long as `ack_timeout`, 30
  # minutes by default, without a call. Acknowledgements are gathered: they are sent when the consumer waits, when there
  # are many, or by `flush`.
  class Consumer < Session
    include Enumerable

    FROM = %i[first next last offset time].freeze
    FREE = Native::C_CONSUMER_FREE
    INTEREST = Native::C_CONSUMER_INTEREST
    SETTLERS = { ack: Native::C_ACK, release: Native::C_RELEASE, retry: Native::C_RETRY, dead: Native::C_DEAD }.freeze
    private_constant :INTEREST, :SETTLERS

    # Returns the number and value of a place in a topic: :first, :next, :last, an offset or a Time.
    def self.place(place)
      case place
      when Integer then [FROM.index(:offset), Native.number(place, "the offset")]
      when Time then [FROM.index(:time), Native.time(place.to_r, 1_000_000, "the time")]
      else [Native.choice(place, FROM.first(3), "a place"), 0]
      end
    end

    def initialize(topic, address)
      super(topic, "consumer", address, FREE)
      @message, @settling = Native::MESSAGE.memory, Native::MESSAGE.memory
    end

    # Returns the next message, or nil if none arrives within so many seconds; nil: no limit. Errors: the final failure.
    def receive(timeout: nil)
      turn do |address|
        code = message = nil
        begin
          code = repeat(address, INTEREST, timeout) { received(address) }
          raise Native.error(code) unless [Native::OK, Native::TIMEOUT].include?(code)

          message = Message.from(@message, self) if code == Native::OK
        ensure
          Native::C_RELEASE.call(address, @message) if code == Native::OK && message.nil? # interrupted: nobody has it
        end
        message
      end
    end

    # Yields messages until none arrives for so many seconds, which the block settles. Without a limit it never ends.
    def each(idle_timeout: nil)
      return enum_for(:each, idle_timeout: idle_timeout) unless block_given?

      while (message = receive(timeout: idle_timeout))
        yield message
      end
      self
    end

    # Yields messages as `each` does, and settles each as Message#process does.
    def process(idle_timeout: nil, &block)
      each(idle_timeout: idle_timeout) { |message| message.process(&block) }
    end

    # Sends and receives, for so many seconds at most: messages learn that they are revoked. Errors: the final failure.
    def poll(timeout: 0)
      turn do |address|
        Native.check(Native::C_CONSUMER_POLL.call(address))
        Native.check(Native::C_CONSUMER_POLL.call(address)) if wait(address, INTEREST, deadline_of(timeout))
      end
    end

    # Sends everything that was settled. Errors: Timeout, ConnectionLost, the final failure.
    def flush(timeout: 5)
      turn { |address| check repeat(address, INTEREST, timeout) { Native::C_CONSUMER_FLUSH.call(address, 0) } }
    end

    # Waits until the topic is open again after a broken connection. Errors: Timeout, the final failure.
    def wait_open(timeout: 5)
      turn { |address| check repeat(address, INTEREST, timeout) { Native::C_CONSUMER_WAIT_OPEN.call(address, 0) } }
    end

    # Moves the group, or the own cursor, to :first, :next, :last, an offset or a Time. Returns the new offset. Messages
    # that were received before are revoked. Errors: Timeout, ConnectionLost (moved or not), the broker's.
    def seek(to, timeout: 5)
      from, value = Consumer.place(to)
      milliseconds = Native.milliseconds(timeout, "the timeout")
      Aside.run do
        turn do |address|
          offset = Fiddle::Pointer.malloc(8, Fiddle::RUBY_FREE)
          check Native::C_SEEK.call(address, from, value, offset, milliseconds)
          offset[0, 8].unpack1("Q")
        end
      end
    end

    # Asks for no more messages until `resume`. Those on their way still arrive.
    def pause
      turn { |address| Native.check(Native::C_CONSUMER_PAUSE.call(address, 1)) }
    end

    def resume
      turn { |address| Native.check(Native::C_CONSUMER_PAUSE.call(address, 0)) }
    end

    # Finishes the messages with these offsets that the consumer has. Returns how many were in flight.
    def ack_range(range)
      raise InvalidArgument, "the offsets are no range: #{range.class}" unless range.is_a?(Range)

      first, last = Native.number(range.begin, "the first offset"), Native.number(range.end, "the last offset")
      ended = Native.number(range.exclude_end? ? last : last + 1, "the last offset")
      counted { |address, count| Native::C_ACK_RANGE.call(address, first, ended, count) }
    end

    # Finishes all messages before this offset that were received.
    def ack_before(offset)
      counted { |address, count| Native::C_ACK_BEFORE.call(address, Native.number(offset, "the offset"), count) }
    end

    # See Message. `more`: the further arguments of the library's function.
    def settle(message, how, *more)
      turn { |address| Native.check(SETTLERS.fetch(how).call(address, struct_of(message), *more)) }
    end

    def extend_lease(message, seconds)
      time = Native.time(seconds, 1000, "the time")
      turn { |address| Native.check(Native::C_EXTEND.call(address, struct_of(message), time)) }
    end

    def revoked?(message)
      closed? || turn { |address| Native::C_REVOKED.call(address, struct_of(message)) == 1 }
    end

    def watch(message)
      turn { |address| Watch.new(Native.open { |place| Native::C_WATCH_OPEN.call(address, struct_of(message), place) }) }
    end

    # Returns :connecting, :open, :failed or :closed.
    def state
      state_by(Native::C_CONSUMER_STATE)
    end

    # Returns the counters since the consumer was opened, by their names in lightq.h.
    def stats
      stats_by(Native::C_CONSUMER_GET_STATS, Native::CONSUMER_STATS)
    end

    # Returns the ranges of messages that were settled too late, since the last call.
    def late
      ranges = []
      turn do |address|
        place, count = Native::RANGE.memory, Fiddle::Pointer.malloc(Fiddle::SIZEOF_SIZE_T, Fiddle::RUBY_FREE)
        loop do
          Native.check(Native::C_CONSUMER_LATE.call(address, place, 1, count))
          break if count[0, Fiddle::SIZEOF_SIZE_T].unpack1("J").zero?

          first, last = Native::RANGE.unpack(place)
          ranges << (first...last)
        end
      end
      ranges
    end

    # Sends everything that was settled, waits until the broker has it, gives the other messages back, and ends the
    # session. Errors: Timeout; ConnectionLost or the final failure: settled messages may be delivered again. A second
    # call does nothing.
    def close(timeout: 5)
      return if closed?

      milliseconds = Native.milliseconds(timeout, "the timeout")
      Aside.run do
        turn do |address|
          check Native::C_CONSUMER_CLOSE.call(address, milliseconds)
        ensure
          free
        end
      end
      nil
    end

    private

    # Receives a message that has arrived. Returns the code.
    def received(address)
      code = Native::C_NEXT.call(address, @message, 0)
      return code unless code == Native::TIMEOUT

      code = Native::C_CONSUMER_POLL.call(address)
      code == Native::OK ? Native::C_NEXT.call(address, @message, 0) : code
    end

    def struct_of(message)
      @settling[0, Native::MESSAGE.bytes] = Native::MESSAGE.pack(offset: message.offset, lease: message.lease)
      @settling
    end

    # Raises the error of a code. A connection that has ended counts as closed for the library.
    def check(code)
      return if code == Native::OK

      error = Native.error(code)
      raise error unless code == Native::CLOSED && Process.pid == @process

      raise ConnectionLost.new(error.message, retryable: true)
    end

    def counted
      turn do |address|
        count = Fiddle::Pointer.malloc(8, Fiddle::RUBY_FREE)
        Native.check(yield(address, count))
        count[0, 8].unpack1("Q")
      end
    end
  end
end
