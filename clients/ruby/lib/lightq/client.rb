# frozen_string_literal: true

require "json"
require_relative "aside"
require_relative "commands"
require_relative "consumer"
require_relative "producer"
require_relative "reader"

module LightQ
  # A broker, and the credentials for it. Threads may share a client.
  class Client
    include Commands

    LEVELS = %i[default received flushed].freeze
    COMPRESSIONS = %i[none lz4 zstd].freeze
    TRANSPORTS = %i[auto tcp ipc].freeze
    private_constant :LEVELS, :COMPRESSIONS, :TRANSPORTS

    # `options`: those of lightq_options.
    def initialize(options, transport)
      @transport = Native.choice(transport || :auto, TRANSPORTS, "transport")
      @lock, @calls = Thread::Mutex.new, 0
      memory = Native::OPTIONS.memory(options)
      address = Aside.run(Native::C_CLIENT_FREE.method(:call)) { Native.open { |place| Native::C_CONNECT.call(memory, place) } }
      @resource = Resource.new(address, Native::C_CLIENT_FREE)
      ObjectSpace.define_finalizer(self, @resource.finalizer)
    end

    # Checks that the broker replies.
    def ping
      command("ping")
    end

    # Sends any command of docs/protocol.md, with the client's credentials. Fields that are nil are left out. Returns the
    # reply. Errors: the broker's; Timeout (the broker may have carried it out).
    def command(cmd, **fields)
      json = JSON.generate({ cmd: cmd, **fields.compact })
      reply = call do |address|
        place = Fiddle::Pointer.malloc(Fiddle::SIZEOF_VOIDP, Fiddle::RUBY_FREE)
        Native.check(Native::C_COMMAND.call(address, Native.text(json, "the command"), place))
        text = place.ptr
        begin
          Native.utf8(text.to_s)
        ensure
          Native::C_FREE.call(text)
        end
      end
      JSON.parse(reply)
    rescue JSON::GeneratorError => e
      raise InvalidArgument, e.message
    end

    # Opens a producer. With a block, yields it, and closes it afterwards. `level`: a confirm says that a message is in the
    # log (:received) or survives a power cut (:flushed); the default is the topic's. `delayed`: messages may have a delay.
    # `identity`: continues after another producer, with its id and an epoch one higher. `retry_refused`: messages that the
    # broker refuses, for example because the topic is full, are sent again later. `resend_in_doubt`: messages are sent
    # again under a new id if the broker has forgotten the producer; some may then be stored twice. `compression`: :lz4 or
    # :zstd. `more`: other fields of lightq_producer_options. Errors: Timeout, NotFound, Unauthorized …
    def producer(topic, level: :default, delayed: false, identity: nil, retry_refused: true, resend_in_doubt: false,
                 compression: :none, **more, &block)
      known = identity && identity_memory(identity)
      options = { level: Native.choice(level, LEVELS, "level"), delayed: delayed, identity: known,
                  no_retry_refused: !Native.flag(retry_refused, "retry_refused"),
                  resend_in_doubt: resend_in_doubt, compression: Native.choice(compression, COMPRESSIONS, "compression") }
      with(open(Producer, topic, Native::PRODUCER_OPTIONS, Native::C_PRODUCER_OPEN, more, options), &block)
    end

    # Opens a consumer: a member of a group, by default of the group `default`. With `own` it has a cursor of its own, which the
    # broker keeps if `group` names it. With a block, yields it, and closes it afterwards. `start`: :first, :next, :last, an
    # offset or a Time, where a new group begins. `holds`: the cursor keeps messages from being dropped. `automatic`: a message
    # counts as processed when it is sent. `prefetch`: messages that are requested ahead; by default as many as the program
    # works off in 0.1 s. `ack_timeout`: seconds for a message; 0: the broker's. `more`: other fields of
    # lightq_consumer_options. Errors: Timeout, NotFound, Unauthorized …
    def consumer(topic, group: nil, own: false, start: :first, holds: false, automatic: false, prefetch: nil, ack_timeout: 0,
                 **more, &block)
      from, value = Consumer.place(start)
      raise InvalidArgument, "prefetch is 1 or more" unless prefetch.nil? || (prefetch.is_a?(Integer) && prefetch.positive?)

      options = { group: Native.text(group, "the group"), own: own, from: from, from_value: value, holds: holds,
                  automatic: automatic, prefetch_messages: prefetch || 0,
                  ack_timeout_ms: Native.milliseconds(ack_timeout, "ack_timeout") }
      with(open(Consumer, topic, Native::CONSUMER_OPTIONS, Native::C_CONSUMER_OPEN, more, options), &block)
    end

    # Opens a reader, which reads by offset. With a block, yields it, and closes it afterwards.
    def reader(topic, **more, &block)
      with(open(Reader, topic, Native::READER_OPTIONS, Native::C_READER_OPEN, more, {}), &block)
    end

    # Ends the client. Its producers, consumers and readers stay usable. A second call does nothing.
    def close
      ObjectSpace.undefine_finalizer(self)
      @lock.synchronize do
        @is_closed = true
        @resource.free if @calls.zero?
      end
      nil
    end

    def closed?
      @is_closed ? true : false
    end

    def inspect
      "#<#{self.class}#{" (closed)" if closed?}>" # without the credentials
    end

    private

    # Makes a call that may wait, with the handle.
    def call(discard = nil)
      Aside.run(discard) do
        enter
        begin
          yield @resource.address
        ensure
          leave
        end
      end
    end

    def enter
      @lock.synchronize do
        raise Closed, "this client is closed" if @is_closed

        @calls += 1
      end
    end

    def leave
      @lock.synchronize do
        @calls -= 1
        @resource.free if @is_closed && @calls.zero?
      end
    end

    def open(kind, topic, layout, opener, more, options)
      unknown = more.keys - (layout.types.keys - [:size])
      raise ArgumentError, "unknown options: #{unknown.join(", ")}" unless unknown.empty?

      name = Native.text(topic, "the topic") || raise(InvalidArgument, "the topic has no name")
      transport = more[:transport] || @transport
      transport = Native.choice(transport, TRANSPORTS, "transport") unless transport.is_a?(Integer)
      given = { **options, **more, transport: transport }
      memory = layout.memory(given.to_h { |field, value| [field, Native.option(layout.types[field], value, field.to_s)] })
      address = call(kind::FREE.method(:call)) do |client|
        Native.open { |place| opener.call(client, name, memory, place) }
      end
      kind.new(name, address)
    end

    def identity_memory(identity)
      id, epoch, secret = *identity
      raise InvalidArgument, "the secret is no String of 16 bytes" unless secret.nil? || (secret.is_a?(String) && secret.bytesize == 16)

      memory = Native::IDENTITY.memory
      memory[0, Native::IDENTITY.bytes] = Native::IDENTITY.pack(
        id: Native.number(id, "the id"), epoch: Native.number(epoch, "the epoch", 0xffff), has_secret: !secret.nil?, secret: secret || ""
      )
      memory
    end

    # After an exception in the block, the object is closed with little patience, and the exception stays.
    def with(made)
      return made unless block_given?

      is_done = false
      begin
        result = yield made
        is_done = true
        result
      ensure
        is_done ? made.close : close_soon(made)
      end
    end

    def close_soon(made)
      made.is_a?(Reader) ? made.close : made.close(timeout: 1)
    rescue Error
      nil
    end
  end
end
