#!/usr/bin/env ruby
# frozen_string_literal: true

# The agent of the Ruby client for the conformance kit: does the commands of clients/conformance/README.md.
require "json"
$LOAD_PATH.unshift File.expand_path("../lib", __dir__)
require "lightq"

REPORTED_MAX = 500 # messages in a line
FEATURES = %w[control keys delayed ttl leases dead seek read tls ipc epoch].freeze

def write_line(line)
  $stdout.write("#{JSON.generate(line)}\n")
  $stdout.flush
end

def failed(error)
  { ok: false, error: error.code, text: error.message }
end

def seconds(command, name, otherwise = 10_000)
  command.fetch(name, otherwise) / 1000.0
end

def described(message)
  line = { offset: message.offset, bytes: message.body.bytesize, delivery: message.delivery }
  line[:key] = message.key.dup.force_encoding("UTF-8") if message.key
  line[:headers] = message.headers.map { |pair| pair.map { |each| each.dup.force_encoding("UTF-8") } } unless message.headers.empty?
  line[:expired] = true if message.expired?
  line
end

def settle(message, how, command)
  case how
  when "ack" then message.ack
  when "release" then message.release
  when "retry" then message.retry(delay: seconds(command, "delay_ms", 0))
  when "dead" then message.dead(command["reason"])
  end
rescue LightQ::Revoked
  nil # it goes to another consumer
end

# Sends messages from files, and collects their fates.
class AgentProducer
  def initialize(producer)
    @producer, @outcomes = producer, []
    producer.on_settled do |first, last, error|
      @outcomes << [first, last, error&.fate || "confirmed", error&.code]
    end
  end

  def do_produce(command)
    sent, keys = 0, command["keys"] || []
    sizes = command["sizes"] || [command["size"]] * command["count"]
    File.open(command["file"], "rb") do |file|
      sizes.each do |size|
        key = keys.empty? ? {} : { key: keys[sent % keys.size] }
        @producer.send(size.zero? ? "" : file.read(size), **key, **attributes(command))
        sent += 1
      end
    end
    { sent: sent }
  rescue LightQ::Error => e
    { **failed(e), sent: sent }
  end

  def do_flush(command)
    @producer.flush(timeout: seconds(command, "timeout_ms"))
  end

  def do_close(command)
    @producer.close(timeout: seconds(command, "timeout_ms"))
  end

  def more
    outcomes, @outcomes = @outcomes, []
    { outcomes: outcomes }
  end

  private

  def attributes(command)
    given = {}
    given[:headers] = command["headers"] if command["headers"]
    given[:delay] = command["delay_ms"] / 1000.0 if command["delay_ms"]
    given[:ttl] = command["ttl_ms"] / 1000.0 if command["ttl_ms"]
    given
  end
end

# Reports messages, writes their bodies to files, and settles them.
class AgentConsumer
  def initialize(consumer)
    @consumer, @held = consumer, {}
  end

  def do_receive(command)
    received, waiting = 0, []
    File.open(command["into"], "ab") do |into|
      while received < command["count"]
        message = @consumer.receive(timeout: waiting.empty? ? seconds(command, "timeout_ms") : 0)
        break if message.nil? && waiting.empty?

        if message
          into.write(message.body)
          waiting << message
          received += 1
        end
        report(into, waiting, command) if message.nil? || waiting.size == REPORTED_MAX
      end
    ensure
      report(into, waiting, command)
    end
    { received: received }
  end

  def do_settle(command)
    command["offsets"].each do |offset|
      message = @held.delete(offset)
      settle(message, command["how"], command) if message
    end
    @consumer.flush(timeout: seconds(command, "timeout_ms"))
  end

  def do_revoked(command)
    deadline, revoked = Time.now + seconds(command, "timeout_ms"), []
    while revoked.empty? && Time.now < deadline
      @consumer.poll(timeout: 0.02)
      revoked = @held.select { |_, message| message.revoked? }.keys
    end
    { revoked: revoked }
  end

  def do_seek(command)
    { offset: @consumer.seek(place_of(command["to"]), timeout: seconds(command, "timeout_ms")) }
  end

  def do_close(command)
    @consumer.close(timeout: seconds(command, "timeout_ms"))
  end

  def more
    {}
  end

  private

  # Reports messages, and settles them only after that.
  def report(into, messages, command)
    return if messages.empty?

    into.flush
    write_line({ messages: messages.map { |message| described(message) } })
    messages.each do |message|
      command["settle"] ? settle(message, command["settle"], command) : @held[message.offset] = message
    end
    messages.clear
  end
end

def place_of(place)
  place.is_a?(Integer) ? place : (place || "first").to_sym
end

# The client, and the producers and consumers by their names.
class Agent
  def initialize
    @objects = {}
  end

  def do_connect(command)
    user, password = command.values_at("user", "password")
    @how = { uri: command["uri"], server_key: command["server_key"], transport: command["transport"], discover: false,
             **(command["admin"] ? { admin: user, admin_password: password } : { user: user, password: password }) }
    @client = connect(command)
  end

  def do_create_topic(command)
    @client.create_topic(command["topic"], broker_type: command["broker_type"])
    nil
  end

  def do_delete_topic(command)
    @client.delete_topic(command["topic"])
    nil
  end

  def do_stats(command)
    { messages_received: @client.stats(command["topic"])["messages_received"] }
  end

  def do_produce_open(command)
    known = command["producer_id"] && [command["producer_id"], command["epoch"]]
    producer = connect(command).producer(command["topic"], delayed: command["delayed"], level: command["level"] || :default, identity: known,
                                                           retry_refused: command.fetch("retry_refused", true))
    @objects[command["as"]] = AgentProducer.new(producer)
    id, epoch, = *producer.identity
    { producer_id: id, epoch: epoch }
  end

  def do_consume_open(command)
    consumer = connect(command).consumer(command["topic"], group: command["group"], own: command["own"], prefetch: command["prefetch"],
                                                           start: place_of(command["from"]),
                                                           ack_timeout: seconds(command, "ack_timeout_ms", 0))
    @objects[command["as"]] = AgentConsumer.new(consumer)
  end

  def do_read(command)
    messages, following = @client.reader(command["topic"]) do |reader|
      reader.read(command["begin"], command["end"], timeout: seconds(command, "timeout_ms"))
    end
    File.open(command["into"], "ab") { |into| messages.each { |message| into.write(message.body) } }
    write_line({ messages: messages.map { |message| described(message) } })
    { next: following }
  end

  # Does one command, and returns its reply.
  def run(command)
    on = command.key?("on") ? @objects.fetch(command["on"]) : self
    begin
      done = on.public_send("do_#{command["do"]}", command)
      reply = { ok: true, **(done.is_a?(Hash) ? done : {}) }
    rescue LightQ::Error => e
      reply = failed(e)
    end
    on.equal?(self) ? reply : { **reply, **on.more }
  end

  private

  # The time to open a producer or consumer is that of its client.
  def connect(command)
    how = @how.dup
    LightQ.connect(how.delete(:uri), **how, timeout: seconds(command, "timeout_ms"))
  end
end

write_line({ client: "Ruby", version: LightQ::VERSION, features: FEATURES })
agent = Agent.new
$stdin.each_line do |line|
  command = JSON.parse(line)
  break if command["do"] == "exit"

  write_line({ **agent.run(command), id: command["id"] })
end
