// Command socksrelay is a SOCKS5 relay that fails on purpose, for programs in any language. See socksrelay -help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

// Exit codes.
const (
	exitClean   = 0 // ended by a signal
	exitFailure = 1 // a listener could not be opened or failed
	exitUsage   = 2 // wrong flags
)

const help = `socksrelay: a SOCKS5 relay (CONNECT only) that fails on purpose

  socksrelay -allow '127.0.0.1:*' -hole
  curl --socks5-hostname 127.0.0.1:1080 http://127.0.0.1:8000/

Faults are JSON objects, given by -fault (repeatable) or sent to the API. A fault has a name, a phase, an effect, and is
active or not:

  {"name":"slow","phase":"data","effect":"throttle","rate":1000,"on":"down","active":true}

  phase    accept greeting method authentication request dial reply data close
  effect   swallow stall delay throttle slice truncate corrupt reset close half-close answer
  on       up (what the client sends), down, both (default)
  when     afterbytes, afterexchanges, aftertime ("5s"), aftertls: at most one
  which    destination ("host" or "host:port"), user, nth, chance (0 to 1) with seed
  figures  size (slice truncate corrupt), rate (throttle, bytes/s), pause (delay slice; "100ms")
           answer: code (reply code), early (true: success before the dial), bound ("192.0.2.1:9": wrong address)

API (JSON, only on the address of -api; open that address in a browser for the status page):

  curl http://127.0.0.1:1081/api/status
  curl -H 'Content-Type: application/json' -d '{"name":"hole","active":true}' http://127.0.0.1:1081/api/switch
  curl -H 'Content-Type: application/json' -d '{"name":"x","phase":"dial","effect":"answer","code":5,"active":true}' http://127.0.0.1:1081/api/faults
  curl -X DELETE -H 'Content-Type: application/json' 'http://127.0.0.1:1081/api/faults?name=x'

Exit codes: 0 after SIGINT or SIGTERM, 1 when a listener fails, 2 for wrong flags.

Flags:
`

type texts []string

func (t *texts) String() string     { return strings.Join(*t, " ") }
func (t *texts) Set(s string) error { *t = append(*t, s); return nil }

type options struct {
	listen, api, users string
	exposed, hole      bool
	allow, faults      texts
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process the hard way
	os.Exit(run(ctx, os.Args[1:], os.Stderr))
}

// run is the command without the process: it ends when ctx does and returns the exit code.
func run(ctx context.Context, args []string, out io.Writer) int {
	var o options
	flags := flag.NewFlagSet("socksrelay", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.listen, "listen", "127.0.0.1:1080", "address of the relay")
	flags.StringVar(&o.api, "api", "127.0.0.1:1081", "loopback address of API and status page; empty for none")
	flags.BoolVar(&o.exposed, "expose", false, "allow -listen to be other than loopback")
	flags.Var(&o.allow, "allow", "destination that may be dialled, host:port with * as wildcard (repeatable); default: 127.0.0.1:*, [::1]:*, localhost:*")
	flags.StringVar(&o.users, "user", "", "name:password that clients must give")
	flags.BoolVar(&o.hole, "hole", false, "start with the black hole open; it can be closed through the API")
	flags.Var(&o.faults, "fault", "a fault as JSON (repeatable)")
	flags.Usage = func() { fmt.Fprint(out, help); flags.PrintDefaults() }
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return exitClean
	} else if err != nil {
		return exitUsage
	}
	logger := slog.New(slog.NewTextHandler(out, nil))
	if flags.NArg() > 0 {
		logger.Error("wrong flags", "error", fmt.Errorf("%q is not a flag: want only flags", flags.Arg(0)))
		return exitUsage
	}
	d, err := o.daemon(logger)
	if err != nil {
		logger.Error("wrong flags", "error", err)
		return exitUsage
	}
	if err := d.run(ctx, o); err != nil {
		logger.Error("ended", "error", err)
		return exitFailure
	}
	logger.Info("ended by signal")
	return exitClean
}

func (o *options) daemon(logger *slog.Logger) (*daemon, error) {
	if err := checkAddress("listen", o.listen); err != nil {
		return nil, err
	}
	if o.api != "" {
		if err := checkAddress("api", o.api); err != nil {
			return nil, err
		}
		if !isLoopback(o.api) {
			return nil, fmt.Errorf("-api %s is not a loopback address: the API has no password, so it is for this machine only", o.api)
		}
	}
	if !isLoopback(o.listen) && !o.exposed {
		return nil, fmt.Errorf("-listen %s is not a loopback address: add -expose if others are meant to use this relay", o.listen)
	}
	if o.exposed && !isLoopback(o.listen) {
		logger.Warn("the relay is open to other machines", "listen", o.listen)
	}
	for _, pattern := range o.allow {
		if err := checkAddress("allow", pattern); err != nil {
			return nil, err
		}
		if host, port, _ := net.SplitHostPort(pattern); host == "" || strings.Trim(port, "0123456789*") != "" {
			return nil, fmt.Errorf("-allow %q: want a host, and a port of digits or *", pattern)
		}
	}
	config := socksrelay.Config{Dial: new(net.Dialer).DialContext, Logger: logger, Allow: allowList(o.allow)}
	if o.users != "" {
		name, password, ok := strings.Cut(o.users, ":")
		if !ok {
			return nil, fmt.Errorf("-user %q: want name:password", o.users)
		}
		for _, part := range [][2]string{{"name", name}, {"password", password}} {
			if n := len(part[1]); n == 0 || n > 255 {
				return nil, fmt.Errorf("-user: the %s has %d bytes: SOCKS5 carries 1 to 255", part[0], n)
			}
		}
		config.Valid = func(u, p string) bool { return u == name && p == password }
	}
	relay, err := socksrelay.New(config)
	if err != nil {
		return nil, err
	}
	d := &daemon{relay: relay, log: logger, specs: map[string]*entry{}}
	specs := []socksrelay.Spec{
		{Name: "hole", Phase: "data", Effect: "swallow", Active: o.hole},
		{Name: "stall", Phase: "data", Effect: "stall"},
	}
	for _, text := range o.faults {
		var s socksrelay.Spec
		if err := decode(strings.NewReader(text), &s); err != nil {
			return nil, fmt.Errorf("-fault %s: %w", text, err)
		}
		specs = append(specs, s)
	}
	for _, s := range specs {
		if err := d.add(s); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// checkAddress refuses what is not host:port.
func checkAddress(flag, address string) error {
	if !utf8.ValidString(address) {
		return fmt.Errorf("-%s %q: not UTF-8", flag, address)
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("-%s %q: want host:port, an IPv6 address in brackets: %s", flag, address, detail(err))
	}
	return nil
}

// detail is the reason of an address error without the address.
func detail(err error) string {
	var a *net.AddrError
	if errors.As(err, &a) {
		return a.Err
	}
	return err.Error()
}

// allowList is the rule that a destination matches one of the patterns, in which * stands for any text and everything
// else for itself, the brackets of an IPv6 address too. No patterns mean loopback.
func allowList(patterns texts) func(destination string) bool {
	if len(patterns) == 0 {
		patterns = texts{"127.0.0.1:*", "[::1]:*", "localhost:*"}
	}
	var rules []*regexp.Regexp
	for _, p := range patterns {
		rules = append(rules, regexp.MustCompile("^"+strings.ReplaceAll(regexp.QuoteMeta(p), `\*`, ".*")+"$"))
	}
	return func(destination string) bool {
		return slices.ContainsFunc(rules, func(p *regexp.Regexp) bool { return p.MatchString(destination) })
	}
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// run serves until ctx ends, which is success, or until a listener fails.
func (d *daemon) run(ctx context.Context, o options) error {
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	d.log.Info("relay", "listen", l.Addr().String())
	failed := make(chan error, 2)
	go func() { failed <- d.relay.Serve(l) }()
	defer d.relay.Close()
	if o.api != "" {
		a, err := net.Listen("tcp", o.api)
		if err != nil {
			return err
		}
		d.log.Info("api", "url", "http://"+a.Addr().String()+"/")
		server := &http.Server{Handler: d.handler(), ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute}
		go func() { failed <- server.Serve(a) }()
		defer server.Close()
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}
