# frozen_string_literal: true

module LightQ
  VERSION = "0.1.0"
end
