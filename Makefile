# Every target is one command that a person might want; `make` lists them.
GO ?= go
SEED ?=
export DEADAIR_SEED := $(SEED)

.DEFAULT_GOAL := help
.PHONY: help demo test quick race determinism stranger modules bench lint fuzz mutate

help: ## show this list
	@echo "Deadair: network failures, in Go tests, in no time. Targets:"
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16 | sed 's/^/  make /'
