module example.com/stranger

go 1.26.0

replace github.com/seed-5a7f77c4/deadair => ../..

require github.com/seed-5a7f77c4/deadair v0.0.0

require golang.org/x/net v0.62.0 // indirect
