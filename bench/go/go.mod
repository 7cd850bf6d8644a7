module lightq/bench/go

go 1.21

require (
	github.com/grandecola/bigqueue v0.5.0
	github.com/grandecola/mmap v0.6.0
)
