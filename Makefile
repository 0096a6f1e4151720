# Every target is one command that a person might want; `make` lists them.
GO ?= go
# A seed to replay, such as SEED=0x2a.
ifdef SEED
export DEADAIR_SEED := $(SEED)
endif

# Modules of their own, whose needs the library does not share. PROGRAMS also
# need programs that are not Go: curl and Chromium.
PROGRAMS := socksrelay/programs
MODULES := $(filter-out $(PROGRAMS),$(patsubst %/go.mod,%,$(wildcard suites/*/go.mod netsim/*/go.mod netsim/*/*/go.mod socksrelay/*/go.mod)))

.DEFAULT_GOAL := help
.PHONY: help demo test unit modules programs suites determinism bench headline lint fuzz mutate

help: ## show this list
	@echo "Deadair: network failures, in Go tests, in no time."
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14 | sed 's/^/  make /'

demo: ## play the main job: a proxy goes silent, and the app gets away from it
	@$(GO) run ./scenarios/cmd/deadair

test: lint unit modules ## all tests, with the race detector

unit: ## the tests of this module, with the race detector
	$(GO) test -race ./...

modules: ## the tests of the nested modules: strangers and peers
	@for m in $(MODULES); do echo "== $$m"; (cd $$m && $(GO) vet ./... && $(GO) test ./...) || exit 1; done

programs: ## the relay with curl and Chromium, which must be installed
	@for m in $(PROGRAMS); do echo "== $$m"; (cd $$m && $(GO) vet ./... && $(GO) test ./...) || exit 1; done

suites: ## the Ginkgo suites by themselves; FOCUS='P1 broken' picks some
	$(GO) run github.com/onsi/ginkgo/v2/ginkgo run $(if $(FOCUS),--focus '$(FOCUS)') ./suites/...

lint: ## formatting and vet
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "not gofmt'ed:"; echo "$$out"; exit 1; }
	$(GO) vet ./...

determinism: ## the determinism tests at 1, 2 and 4 processors, again and again
	$(GO) test -race -count=5 -cpu=1,2,4 -run 'Determin|Replay|Repeat' ./clock/... ./netsim/... ./scenarios/...

bench: ## benchmarks beside what one would take instead, as ratios
	$(GO) test -run '^$$' -bench . -benchmem ./clock ./selection/... ./scenarios/privaterouting ./scenarios/transportrace
	cd socksrelay/bench && $(GO) test -run '^$$' -bench . .
	cd netsim/programs && $(GO) test -run '^$$' -bench . . | $(GO) run ./cmd/ratios

headline: ## the main job's tables and plots in docs/, anew: 120 000 trials, minutes
	$(GO) run ./scenarios/cmd/recovery -dir docs/img -page docs/private-routing.md

fuzz: ## each fuzz test for a while; FUZZTIME=30s
	@grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read d; do \
	  for f in $$(grep -ohE '^func Fuzz[A-Za-z0-9_]*' $$d/*_test.go | sed 's/func //'); do \
	    echo "== $$d $$f"; (cd $$d && $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(or $(FUZZTIME),10s) .) || exit 1; done; done

mutate: ## change the operators of selection/ one by one: 95 % must fail a test; PKG=selection/rank for one
	$(GO) run ./selection/cmd/mutate $(PKG)
