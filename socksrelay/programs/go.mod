module github.com/seed-5a7f77c4/deadair/socksrelay/programs

go 1.26.0

replace github.com/seed-5a7f77c4/deadair => ../..

tool github.com/seed-5a7f77c4/deadair/socksrelay/cmd/socksrelay

require (
	github.com/coder/websocket v1.8.15
	github.com/stretchr/testify v1.12.1
	golang.org/x/net v0.62.0
)

require (
	github.com/armon/go-socks5 v0.0.0-20160902184237-e75332964ef5 // indirect
	github.com/seed-5a7f77c4/deadair v0.0.0-00010101000000-000000000000 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.50.0 // indirect
)
