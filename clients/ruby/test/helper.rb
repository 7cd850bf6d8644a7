# frozen_string_literal: true

# For the tests: a broker that clients/conformance/with_broker.py has started, and groups that begin empty.
require "minitest/autorun"
require "timeout"
$LOAD_PATH.unshift File.expand_path("../lib", __dir__)
require "lightq"

module Helper
  DEADLINE = 20 # seconds after which anything counts as stuck

  def teardown
    (@opened || []).each(&:close)
  end

  # Returns a client that is closed at the end of the test. The environment has the broker and the credentials.
  def connected(uri: nil, **how)
    (@opened ||= []) << LightQ.connect(uri, **how)
    @opened.last
  end

  # Returns the name of a group that has these messages alone.
  def group_with(client, *bodies)
    group = "g#{Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)}"
    client.consumer("t", group: group, start: :next) { nil }
    client.producer("t") { |out| bodies.each { |body| out << body } }
    group
  end

  def consumers_of(client, group)
    client.stats("t")["groups"].find { |each| each["group"] == group }["consumers"]
  end

  def until_true(what)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + DEADLINE
    until (value = yield)
      flunk "not within #{DEADLINE} s: #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.002
    end
    value
  end

  # Returns the code with which the block ends in a child process.
  def in_child
    child = fork do
      code = 1
      begin
        code = yield ? 0 : 2
      rescue StandardError => e
        warn e.full_message
      ensure
        exit!(code)
      end
    end
    Process.wait2(child)[1].exitstatus
  end
end
