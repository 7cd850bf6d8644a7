# frozen_string_literal: true

# Builds and installs the gem as a newcomer does, and runs the programs of README.md with it.
require "open3"
require "rbconfig"
require "tmpdir"
require_relative "helper"

class TestReadme < Minitest::Test
  include Helper

  FOLDER = File.expand_path("..", __dir__)
  PROGRAMS = File.read(File.join(FOLDER, "README.md"), encoding: "UTF-8").scan(/^```ruby\n(.*?)^```$/m).flatten

  def ruby(place, program)
    environment = { "GEM_HOME" => place, "GEM_PATH" => place, "RUBYLIB" => nil, "RUBYOPT" => nil }
    Open3.capture3(environment, RbConfig.ruby, "-w", "-", stdin_data: program, chdir: place)
  end

  def test_the_programs_run_with_the_installed_gem
    connecting = PROGRAMS.pop
    connected.purge("orders")
    Dir.mktmpdir do |place|
      gem = File.join(place, "lightq.gem")
      told, done = Open3.capture2e("gem", "build", "-q", "-o", gem, "lightq.gemspec", chdir: FOLDER)
      assert done.success?, told
      told, done = Open3.capture2e("gem", "install", "-q", "--local", "--no-document", "-i", place, gem)
      assert done.success?, told
      told, errors, = ruby(place, PROGRAMS[0])
      assert_equal ["billed order 0", "billed order 999", 1000, ""], [*told.lines(chomp: true).values_at(0, -1), told.lines.size, errors]
      told, errors, = ruby(place, PROGRAMS[1])
      assert_match(/\A\d+ text\/plain order 1000\n\z/, told.lines.last)
      assert_empty errors
      place_of_nobody = connecting.sub("broker.example:5000", "127.0.0.1:1")
      _, errors, done = ruby(place, place_of_nobody)
      assert_match(/LightQ::InvalidArgument|LightQ::ConnectionLost/, errors)
      refute done.success?
    end
  end

  def test_all_files_have_no_warnings
    files = Dir[File.join(FOLDER, "{lib,test,conformance}/**/*.rb")]
    assert_operator files.size, :>, 15
    files.each do |file|
      told, = Open3.capture2e(RbConfig.ruby, "-wc", file)
      assert_equal "Syntax OK\n", told, file
    end
  end
end
