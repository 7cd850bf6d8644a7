# frozen_string_literal: true

require_relative "lib/lightq/version"

Gem::Specification.new do |gem|
  gem.name = "lightq"
  gem.version = LightQ::VERSION
  gem.summary = "A client of the message broker LightQ"
  gem.description = "Sends and receives messages that are confirmed, stored once, and acknowledged. It needs the library " \
                    "liblightq.so.0 (Debian: liblightq0), and nothing to compile."
  gem.authors = ["The LightQ authors"]
  gem.license = "Apache-2.0"
  gem.required_ruby_version = ">= 3.0"
  gem.files = Dir["lib/**/*.rb", base: __dir__].sort + ["README.md"]
end
