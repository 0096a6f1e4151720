// Package roam keeps one connection to a machine alive while the phone walks through networks: when to look for a better
// route, how a new connection replaces the old one, when to try again.
//
// Decide is the decision as a table, Monitor feeds it with path and discovery updates over time, Ladder spaces the
// attempts to reconnect; none of them waits. Session is the driver: it makes before it breaks.
package roam
