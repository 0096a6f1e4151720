package transportrace

import (
	"fmt"
	"hash/fnv"
	"time"
)

// Home is the place whose Wi-Fi the machine is on.
const Home = "home"

// Leg is a stretch of a walk: for so long these networks are there.
type Leg struct {
	For   time.Duration
	Place string
	// WiFi is the Wi-Fi that the phone is on, "" for none; one at Home is the machine's.
	WiFi       string
	Cell, Tail bool
}

// Commute goes from home Wi-Fi through the street, with the tailnet on, and a train's tunnel to the office.
var Commute = []Leg{
	{For: 20 * time.Second, Place: "home", WiFi: Home, Cell: true},
	{For: 20 * time.Second, Place: "street", Cell: true},
	{For: 20 * time.Second, Place: "train", Cell: true, Tail: true},
	{For: 6 * time.Second, Place: "tunnel"},
	{For: 24 * time.Second, Place: "train", Cell: true},
	{For: 20 * time.Second, Place: "office", WiFi: "office", Cell: true},
}

// bonjour is the time that discovery takes to find the machine on a network that it has joined.
const bonjour = 710 * time.Millisecond

// Walk takes the phone through the legs.
func (w *World) Walk(legs ...Leg) {
	for _, leg := range legs {
		w.Enter(leg)
		time.Sleep(leg.For)
	}
}

// Enter gives the phone the networks of a leg. What is new comes up before what is gone goes down.
func (w *World) Enter(leg Leg) {
	w.Logf("the phone is at %s", leg.Place)
	if leg.Cell {
		w.Cell.Up()
	}
	if leg.Tail {
		w.Tail.Up()
	}
	w.Join(leg.WiFi)
	switch {
	case leg.Tail || !w.Tail.IsUp():
	case leg.Cell || leg.WiFi != "":
		w.TailnetOff()
	default:
		w.Tail.Down()
	}
	if !leg.Cell {
		w.Cell.Down()
	}
}

// Join puts the phone on a Wi-Fi, "" for none. Discovery follows.
func (w *World) Join(wifi string) {
	switch {
	case wifi == "":
		w.WiFi.Down()
	case !w.on(wifi):
		w.WiFi.Down()
		w.WiFi.Move(wifi, wifiAddress(wifi))
		w.WiFi.Up()
	}
	if w.discovery.sees() != w.on(Home) {
		w.Net.After(bonjour, "bonjour", func() { w.Discover(w.on(Home)) })
	}
}

// on reports whether the phone is on that Wi-Fi.
func (w *World) on(wifi string) bool {
	a := w.phone.Connectivity().Addrs["wifi"]
	return len(a) > 0 && a[0].String() == wifiAddress(wifi)
}

// wifiAddress is the phone's address on a Wi-Fi, in a /24 of its own.
func wifiAddress(wifi string) string {
	if wifi == Home {
		return "192.168.1.23"
	}
	h := fnv.New32a()
	h.Write([]byte(wifi))
	sum := h.Sum32()
	return fmt.Sprintf("10.%d.%d.23", sum>>8&0xff, sum&0xff)
}
