module github.com/seed-5a7f77c4/deadair/netsim/conntest/peers

go 1.26.0

require (
	github.com/seed-5a7f77c4/deadair v0.0.0
	github.com/stretchr/testify v1.12.1
	github.com/valyala/fasthttp v1.40.0
	google.golang.org/grpc v1.75.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

replace github.com/seed-5a7f77c4/deadair => ../../..
