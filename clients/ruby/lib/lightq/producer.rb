# frozen_string_literal: true

require_relative "fates"
require_relative "outgoing"
require_relative "session"

module LightQ
  # The id with which another process can continue a producer, with an epoch one higher.
  Identity = Struct.new(:id, :epoch, :secret)

  # The fate of a message that was sent.
  class Confirm
    # The number of the message; those of a producer are numbered from 0 on.
    attr_reader :number

    def initialize(producer, number)
      @producer, @number = producer, number
    end

    # Tells whether the fate is known: `wait` then returns or raises at once.
    def done?
      @producer.settled?(number)
    end

    # Waits until the message is stored. Errors: Timeout; the reason why it is not stored, or in doubt.
    def wait(timeout: 30)
      @producer.wait_settled(number, timeout)
    end
  end

  # Sends messages to a topic. Each is stored once, in order, also over broken connections.
  #
  # For one thread at a time. It has no thread of its own: it sends and receives inside calls only. After a long time
  # without a call the broker may end the connection; the next call connects again, and nothing is lost.
  class Producer < Session
    POLL_MESSAGES = 64 # after so many messages `send` takes reports, and passes them on
    FREE = Native::C_PRODUCER_FREE
    INTEREST = Native::C_PRODUCER_INTEREST
    private_constant :POLL_MESSAGES, :INTEREST

    def initialize(topic, address)
      super(topic, "producer", address, FREE)
      @number, @report = Fiddle::Pointer.malloc(8, Fiddle::RUBY_FREE), Native::REPORT.memory
      @fates, @untold = Fates.new, []
      Native.check(Native::C_PRODUCER_KEEP_REPORTS.call(address))
    end

    # Takes a message, and returns a Confirm. It waits only while the memory for unconfirmed messages is full. Times
    # are in seconds, or a Time. `delay` and `deliver_at` need a producer with `delayed`. Errors: InvalidArgument,
    # Refused (too large), Timeout, the final failure: the message was not taken.
    def send(body, timeout: 30, **attributes)
      raise InvalidArgument, "the body is no String: #{body.class}" unless body.is_a?(String)

      extra = attributes.empty? ? nil : Outgoing.attributes(**attributes)
      number = turn do |address|
        Native.check(take(address, body, extra, timeout))
        @number[0, 8].unpack1("Q").tap { |sent| take_reports(address) if (sent % POLL_MESSAGES).zero? }
      end
      tell
      Confirm.new(self, number)
    end

    # Sends a message, and returns the producer.
    def <<(body)
      send(body)
      self
    end

    # Sends everything and waits until it is stored. Errors: Timeout; the reason of a message since the last flush
    # that was not stored; the final failure.
    def flush(timeout: 30)
      turn { |address| flushed(address, timeout) }
    ensure
      tell
    end

    # Sends and receives, for so many seconds at most. Errors: the final failure.
    def poll(timeout: 0)
      turn do |address|
        check(address, Native::C_PRODUCER_POLL.call(address, 0))
        check(address, Native::C_PRODUCER_POLL.call(address, 0)) if wait(address, INTEREST, deadline_of(timeout))
        take_reports(address)
      end
      tell
    end

    # Calls the block in later calls with the fates of messages: the numbers [first, last), and nil or the reason why they are
    # not stored. The reason's `fate` is :refused (certainly not stored) or :unknown. The block runs behind the call's work, so
    # it may use the producer. Its exceptions leave the call.
    def on_settled(&block)
      @callback = block
    end

    # Waits for a message of this number and all before it: see Confirm. After `close` it returns or raises at once.
    def wait_settled(number, timeout = 30)
      Native.number(number, "the number")
      return check_stored(number, closed_error) if closed?

      turn do |address|
        code = repeat(address, INTEREST, timeout) { Native::C_WAIT_SETTLED.call(address, number, 0) }
        failure = code == Native::OK ? nil : failure(address, code)
        take_reports(address)
        check_stored(number, failure)
      end
    ensure
      tell
    end

    def settled?(number)
      Native.number(number, "the number")
      return @fates.settled?(number) if closed?

      turn do |address|
        code = Native::C_WAIT_SETTLED.call(address, number, 0)
        take_reports(address)
        code == Native::OK || @fates.settled?(number)
      end
    ensure
      tell
    end

    # Ends the doubt of a producer that the broker has forgotten: sends its unconfirmed messages again, which may store
    # some twice, or gives them up.
    def resolve(resend:)
      turn { |address| Native.check(Native::C_PRODUCER_RESOLVE.call(address, resend ? 1 : 0)) }
    end

    # Returns :connecting, :open, :in_doubt, :failed or :closed.
    def state
      state_by(Native::C_PRODUCER_STATE)
    end

    def identity
      turn do |address|
        memory = Native::IDENTITY.memory
        Native.check(Native::C_PRODUCER_IDENTITY.call(address, memory))
        _, id, epoch, has_secret, secret = Native::IDENTITY.unpack(memory)
        Identity.new(id, epoch, has_secret == 1 ? secret : nil)
      end
    end

    # Returns the counters since the producer was opened, by their names in lightq.h.
    def stats
      stats_by(Native::C_PRODUCER_GET_STATS, Native::PRODUCER_STATS)
    end

    # Flushes and ends the session. Messages that are not confirmed in time are given up. Errors: those of `flush`. A
    # second call does nothing.
    def close(timeout: 30)
      return if closed?

      begin
        turn do |address|
          flushed(address, timeout)
        ensure
          Native::C_PRODUCER_CLOSE.call(address, 0)
          take_reports(address)
          @fates.close
          free
        end
      ensure
        tell
      end
    end

    private

    # Returns the code. The message was taken if it is OK.
    def take(address, body, extra, timeout)
      code = Native::C_SEND_NUMBERED.call(address, body, body.bytesize, extra, 0, @number)
      return code unless full?(address, code)

      deadline = deadline_of(timeout)
      while full?(address, code)
        raise Timeout.new("no memory was free for another message", retryable: true) unless wait(address, INTEREST, deadline)

        check(address, Native::C_PRODUCER_POLL.call(address, 0))
        code = Native::C_SEND_NUMBERED.call(address, body, body.bytesize, extra, 0, @number)
      end
      code
    end

    def full?(address, code)
      code == Native::LIMIT_REACHED && usable?(address)
    end

    def usable?(address)
      %i[connecting open].include?(state_of(address))
    end

    def state_of(address)
      Native::STATES.fetch(Native::C_PRODUCER_STATE.call(address))
    end

    # Returns the error of a call. A producer in doubt counts as closed for the library.
    def failure(address, code)
      error = Native.error(code)
      return error unless code == Native::CLOSED && state_of(address) == :in_doubt

      InDoubt.new(error.message)
    end

    def check(address, code)
      raise failure(address, code) unless code == Native::OK
    end

    # Goes on after a message was refused, so that the fates of all are known when it is raised.
    def flushed(address, timeout)
      refused = nil
      code = repeat(address, INTEREST, timeout) do
        each = Native::C_FLUSH.call(address, 0)
        until [Native::OK, Native::TIMEOUT].include?(each) || !usable?(address)
          refused ||= Native.error(each)
          each = Native::C_FLUSH.call(address, 0)
        end
        each
      end
      failed = code == Native::OK ? nil : failure(address, code)
      take_reports(address)
      raise refused || failed if refused || failed
    end

    # Takes the reports that the library has kept.
    def take_reports(address)
      while Native::C_NEXT_REPORT.call(address, @report) == Native::OK
        _, first, last, fate, code, text = Native::REPORT.unpack(@report)
        error = code == Native::OK ? nil : unstored_error(Native::FATES.fetch(fate), code, Fiddle::Pointer.new(text).to_s)
        if error.nil?
          @fates.settled(last)
        elsif error.fate == :unknown && code == Native::LIMIT_REACHED # the library has forgotten some fates of this range
          @fates.forget(last)
        else
          @fates.fail(first, last, error)
        end
        @untold << [first, last, error] if @callback
      end
    end

    def unstored_error(fate, code, text)
      error = Native.error_of(code, Native.utf8(text), fate)
      return error if fate == :refused || error.is_a?(Fenced) || error.is_a?(Unauthorized) || error.is_a?(NotFound)

      InDoubt.new("stored or not: #{error.message}", code: error.code, fate: fate)
    end

    # Returns if a message is stored. `failure`: why the library does not say that it is settled, or nil.
    def check_stored(number, failure)
      raise failure if failure && !@fates.settled?(number)

      reason = @fates.reason_of(number)
      raise reason if reason
      return unless @fates.forgotten?(number)

      raise unstored_error(:unknown, Native::LIMIT_REACHED,
                           "the fate of message #{number} is not known any more, because too many messages were not stored")
    end

    # Passes the reports on. No call on the handle runs meanwhile.
    def tell
      while (settled = @untold.shift)
        @callback&.call(*settled)
      end
    end
  end
end
