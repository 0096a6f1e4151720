package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed-5a7f77c4/deadair/socksrelay"
)

//go:embed status.html
var statusPage []byte

const maxBody = 64 << 10

type entry struct {
	spec  socksrelay.Spec
	fault *socksrelay.Fault
}

// daemon is the relay and the faults that the API may change.
type daemon struct {
	relay *socksrelay.Relay
	log   *slog.Logger
	mu    sync.Mutex
	specs map[string]*entry
	order []string
}

func (d *daemon) add(s socksrelay.Spec) error {
	f, err := s.Fault()
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.relay.Add(f); err != nil {
		return err
	}
	d.specs[s.Name] = &entry{s, f}
	d.order = append(d.order, s.Name)
	return nil
}

func (d *daemon) remove(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.specs[name]
	if e == nil {
		return false
	}
	d.relay.Remove(name)
	e.fault.Switch.Off() // also on the connections that have it
	delete(d.specs, name)
	for i, n := range d.order {
		if n == name {
			d.order = append(d.order[:i:i], d.order[i+1:]...)
			break
		}
	}
	return true
}

func (d *daemon) turn(name string, on bool) bool {
	d.mu.Lock()
	e := d.specs[name]
	d.mu.Unlock()
	if e == nil {
		return false
	}
	e.fault.Switch.Set(on)
	d.log.Info("switch", "fault", name, "on", on)
	return true
}

type faultStatus struct {
	socksrelay.Spec
	Hits int64 `json:"hits"`
}

type connStatus struct {
	N           int      `json:"n"`
	Client      string   `json:"client"`
	User        string   `json:"user,omitempty"`
	Destination string   `json:"destination"`
	Phase       string   `json:"phase"`
	Seconds     float64  `json:"seconds"`
	Up          int64    `json:"up"`
	Down        int64    `json:"down"`
	Hit         []string `json:"hit"`
}

func (d *daemon) status() map[string]any {
	faults := []faultStatus{}
	d.mu.Lock()
	for _, name := range d.order {
		e := d.specs[name]
		s := faultStatus{e.spec, e.fault.Hits()}
		s.Active = e.fault.Switch.IsOn()
		faults = append(faults, s)
	}
	d.mu.Unlock()
	conns := []connStatus{}
	for _, c := range d.relay.Connections() {
		s := connStatus{N: c.N, Client: c.Client, User: c.User, Destination: c.Destination, Phase: c.Phase.String(),
			Seconds: time.Since(c.Since).Seconds(), Up: c.Up, Down: c.Down, Hit: []string{}}
		for _, f := range c.Faults {
			if f.Active && f.Hits > 0 {
				s.Hit = append(s.Hit, f.Fault.Name)
			}
		}
		conns = append(conns, s)
	}
	return map[string]any{"faults": faults, "connections": conns}
}

// handler is the API, behind guard.
func (d *daemon) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'")
		w.Write(statusPage)
	})
	mux.HandleFunc("GET /api/status", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, d.status()) })
	mux.HandleFunc("POST /api/switch", func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Name   *string `json:"name"`
			Active *bool   `json:"active"`
		}
		switch err := decode(http.MaxBytesReader(w, r.Body, maxBody), &req); {
		case err != nil:
			refuse(w, badBody(err), err)
		case req.Name == nil:
			refuse(w, http.StatusBadRequest, errors.New(`field "name" is missing`))
		case req.Active == nil:
			refuse(w, http.StatusBadRequest, errors.New(`field "active" is missing: want true or false`))
		case !d.turn(*req.Name, *req.Active):
			refuse(w, http.StatusNotFound, fmt.Errorf("no fault %q", *req.Name))
		default:
			answer(w, http.StatusOK, d.status())
		}
	})
	mux.HandleFunc("POST /api/faults", func(w http.ResponseWriter, r *http.Request) {
		var s socksrelay.Spec
		err := decode(http.MaxBytesReader(w, r.Body, maxBody), &s)
		if err == nil {
			err = d.add(s)
		}
		if err != nil {
			refuse(w, badBody(err), err)
			return
		}
		answer(w, http.StatusCreated, d.status())
	})
	mux.HandleFunc("DELETE /api/faults", func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query(); {
		case !query.Has("name"):
			refuse(w, http.StatusBadRequest, errors.New(`the query parameter "name" is missing`))
		case !d.remove(query.Get("name")):
			refuse(w, http.StatusNotFound, fmt.Errorf("no fault %q", query.Get("name")))
		default:
			answer(w, http.StatusOK, d.status())
		}
	})
	for path, methods := range map[string]string{"/{$}": "GET", "/api/status": "GET", "/api/switch": "POST", "/api/faults": "POST or DELETE"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", strings.ReplaceAll(methods, " or ", ", "))
			refuse(w, http.StatusMethodNotAllowed, fmt.Errorf("%s %s: want %s", r.Method, r.URL.Path, methods))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, fmt.Errorf("no such path: %q", r.URL.Path))
	})
	return guard(mux)
}

// guard keeps web pages of others away, which a browser on this machine lets talk to loopback. It answers only requests
// that were made to a loopback name, so that no page gets in under a name that was made to resolve to this machine, and
// changes something only for requests that come from its own page or from no page at all, and that say that they are
// JSON, which no form can.
func guard(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback(r.Host) && !isLoopback(r.Host+":80") {
			refuse(w, http.StatusForbidden, fmt.Errorf("host %q is not a loopback name", r.Host))
			return
		}
		if err := origin.Check(r); err != nil {
			refuse(w, http.StatusForbidden, err)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
				refuse(w, http.StatusUnsupportedMediaType, fmt.Errorf("Content-Type %q: want application/json", r.Header.Get("Content-Type")))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// decode reads exactly one JSON object and refuses fields it does not know. Its errors name field and value.
func decode(r io.Reader, v any) error {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch err := dec.Decode(v); {
	case err == io.EOF:
		return errors.New("the body is empty: want a JSON object")
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("a JSON %s: want an object", kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("field %q: a %s: want %v", kind.Field, kind.Value, kind.Type)
	case errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("not JSON: %w", err)
	case err != nil:
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return fmt.Errorf("the body is larger than %d bytes: %w", large.Limit, err)
		}
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("more than one JSON value")
	}
	return nil
}

// badBody is the status code for a body that could not be used.
func badBody(err error) int {
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, code int, err error) {
	answer(w, code, map[string]string{"error": err.Error()})
}
