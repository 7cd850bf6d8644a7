module lightq

go 1.19
