// Package stranger uses Deadair as somebody would who found it ten minutes ago:
// from a module of its own, with production code that knows nothing of it.
package stranger
