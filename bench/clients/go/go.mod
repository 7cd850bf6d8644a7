module lightq_bench_clients

go 1.19

require lightq v0.1.0

replace lightq => ../../../clients/go
