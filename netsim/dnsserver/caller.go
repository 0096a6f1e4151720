package dnsserver

import (
	"context"
	"reflect"
	"time"
)

// callerOf gives the context that a look-up was called with, from the one that net's Dial hook gets: that one has a
// time-out of net's own laid around it, and hides what the caller's says. The wrapper is the cancelCtx of package
// context, which embeds its parent under the exported name Context. Should that change one day, the caller's context
// is taken to have no end; a test of this package notices.
func callerOf(ctx context.Context) context.Context {
	if v := reflect.ValueOf(ctx); v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct {
		if f := v.Elem().FieldByName("Context"); f.IsValid() && f.CanInterface() {
			if caller, ok := f.Interface().(context.Context); ok && caller != nil {
				return caller
			}
		}
	}
	return context.WithoutCancel(ctx)
}

// over is ctx.Err(), but sure of a deadline that is reached at this very instant.
func over(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	return nil
}
