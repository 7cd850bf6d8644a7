# frozen_string_literal: true

require "io/wait"
require_relative "native"

module LightQ
  # A handle of the library. It is freed once: by its owner, or when the garbage collector takes the owner.
  class Resource
    attr_reader :address

    # `what`: names the handle in the warning about an owner that was not closed; nil: there is none.
    def initialize(address, free, what = nil)
      @address, @free, @what, @lock = address, free, what, Thread::Mutex.new
    end

    # Frees the handle. A second call does nothing.
    def free
      @lock.synchronize do
        address, @address = @address, nil
        @free.call(address) if address
      end
    end

    # Returns the procedure that the garbage collector calls for an owner that was not closed.
    def finalizer
      proc do
        if @address
          warn "#{@what} was not closed; what it had not sent may be lost" if $VERBOSE && @what
          @free.call(@address)
        end
      end
    end
  end
  private_constant :Resource

  # The common part of a producer, consumer and reader: a handle that one thread uses at a time. `function`: one of the
  # library for this kind of handle.
  class Session
    attr_reader :topic

    # `kind` is a word for errors, `free` the function that frees the handle.
    def initialize(topic, kind, address, free)
      @topic, @kind, @turn, @process = topic, kind, Thread::Mutex.new, Process.pid
      @resource = Resource.new(address, free, "a #{kind} of #{topic}")
      ObjectSpace.define_finalizer(self, @resource.finalizer)
    end

    def closed?
      @resource.address.nil?
    end

    def inspect
      "#<#{self.class} #{topic}#{" (closed)" if closed?}>"
    end

    private

    # Makes calls on the handle, and yields its address. Errors: Closed, InUse.
    def turn
      raise InUse, "this #{@kind} is in another call: it is for one thread at a time" if @turn.locked?

      @turn.synchronize do
        yield @resource.address || raise(closed_error)
      end
    end

    def closed_error
      Closed.new("this #{@kind} is closed")
    end

    # Returns the state that `function` tells, as a Symbol.
    def state_by(function)
      closed? ? :closed : turn { |address| Native::STATES.fetch(function.call(address)) }
    end

    # Returns the counters that `function` writes to a struct of this layout.
    def stats_by(function, layout)
      turn do |address|
        memory = layout.memory
        Native.check(function.call(address, memory))
        layout.unpack_hash(memory).except(:size)
      end
    end

    def free
      ObjectSpace.undefine_finalizer(self)
      @resource.free
    end

    def deadline_of(timeout)
      timeout && Process.clock_gettime(Process::CLOCK_MONOTONIC) + timeout
    rescue TypeError
      raise InvalidArgument, "the timeout is no number of seconds: #{timeout.inspect}"
    end

    # Waits until the connection has something to do. Returns false if the deadline has passed, nil: none.
    def wait(address, interest, deadline)
      left = deadline && deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC)
      return false if left && left <= 0

      @interest ||= Native::INTEREST.memory
      Native.check(interest.call(address, @interest))
      _, descriptor, events, timeout_ms = Native::INTEREST.unpack(@interest)
      seconds = [left, timeout_ms.negative? ? nil : timeout_ms / 1000.0].compact.min
      wait_for(descriptor, events, seconds)
      true
    end

    # The bits of `events` are those of IO::READABLE and IO::WRITABLE.
    def wait_for(descriptor, events, seconds)
      return sleep(seconds || 1) if descriptor.negative?

      @io = IO.for_fd(descriptor, autoclose: false) unless @io && @descriptor == descriptor
      @descriptor = descriptor
      @io.wait(events, seconds)
    rescue Errno::EBADF
      @io = nil # the connection has ended meanwhile
    end

    # Repeats a call that does not wait until it does not return TIMEOUT any more, or the time has passed. Returns
    # its code.
    def repeat(address, interest, timeout)
      deadline = deadline_of(timeout)
      loop do
        code = yield
        return code if code != Native::TIMEOUT || !wait(address, interest, deadline)
      end
    end
  end
end
