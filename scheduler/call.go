package scheduler

import (
	"context"
	"fmt"
	"sync/atomic"
)

// call is the latest plugin call of a cycle. The error of a cycle contains it.
type call struct {
	at      atomic.Pointer[place] // nil: no plugin was called
	cluster *Cluster              // the cluster that the plugin is called for; nil: the call is for all clusters
}

// reset deletes the call of an earlier cycle.
func (c *call) reset() {
	c.at.Store(nil)
	c.cluster = nil
}

// begin records the plugin and the extension point of the next call.
func (c *call) begin(p *plugin, at point) *place {
	place := &p.places[at]
	c.at.Store(place)
	return place
}

// failed returns the error of the call at an extension point.
func (c *call) failed(at *place, err error) error {
	failure := &PluginError{Err: err}
	if at != nil {
		failure.Plugin, failure.Point = at.plugin, at.point.String()
	}
	if c.cluster != nil {
		failure.Cluster = c.cluster.Name
	}
	return failure
}

// timeoutError returns the error of a cycle that has not finished when its context ends.
func (c *call) timeoutError(ctx context.Context) error {
	at := c.at.Load()
	if at == nil {
		return ctx.Err()
	}
	// The error does not name a cluster: the goroutine of the cycle writes the cluster without a lock.
	return &PluginError{Plugin: at.plugin, Point: at.point.String(), Err: fmt.Errorf("did not return: %w", ctx.Err())}
}

// PanicError is the error of a plugin that panicked, with the value of the panic.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panicked: %v", e.Value) }

// statusError returns the error of a Status that is an error or is invalid at its extension point.
func statusError(status *Status) error {
	if status.err != nil {
		return status.err
	}
	return fmt.Errorf("returned a status that is invalid at this extension point: %s", status.reason)
}
