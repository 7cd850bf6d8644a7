module lightq_bench_nats

go 1.19

require lightq_bench_clients v0.1.0

replace lightq_bench_clients => ../go

replace lightq => ../../../clients/go
