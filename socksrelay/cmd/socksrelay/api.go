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

// handler is the API. It answers only requests that were made to a loopback name (a page elsewhere whose name was made
// to resolve to this machine is refused) and changes something only for JSON, which a foreign page cannot send
// unasked.
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
			Name   string `json:"name"`
			Active bool   `json:"active"`
		}
		if err := decode(http.MaxBytesReader(w, r.Body, maxBody), &req); err != nil {
			refuse(w, http.StatusBadRequest, err)
		} else if !d.turn(req.Name, req.Active) {
			refuse(w, http.StatusNotFound, fmt.Errorf("no fault %q", req.Name))
		} else {
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
			refuse(w, http.StatusBadRequest, err)
			return
		}
		answer(w, http.StatusCreated, d.status())
	})
	mux.HandleFunc("DELETE /api/faults", func(w http.ResponseWriter, r *http.Request) {
		if name := r.URL.Query().Get("name"); !d.remove(name) {
			refuse(w, http.StatusNotFound, fmt.Errorf("no fault %q", name))
			return
		}
		answer(w, http.StatusOK, d.status())
	})
	return guard(mux)
}

func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if !isLoopback(host) && !isLoopback(host+":80") {
			refuse(w, http.StatusForbidden, fmt.Errorf("host %q is not a loopback name", host))
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
				refuse(w, http.StatusUnsupportedMediaType, errors.New("want Content-Type: application/json"))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// decode reads exactly one JSON value and refuses fields it does not know.
func decode(r io.Reader, v any) error {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("more than one JSON value")
	}
	return nil
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, code int, err error) {
	answer(w, code, map[string]string{"error": err.Error()})
}
