package localplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are below the ranges from which Linux (32768) and macOS (49152) choose the local ports of outgoing connections.
// Any client could take a port from those ranges while an API server restarts.
const firstPort, lastPort = 20000, 32767

const portAttempts = 100

// A transientError is a failure of a component that may not occur at the next start: another process used its port, or
// the component panicked. The controllers of Kubernetes panic once in some thousand starts, because klog's logger is
// replaced while informers begin to log.
type transientError struct{ error }

func (e *transientError) Unwrap() error { return e.error }

// ports contains the ports that this process has assigned to its planes, even while no process listens on them.
var ports = struct {
	sync.Mutex
	taken map[int]bool
}{taken: map[int]bool{}}

// takePort returns a port of 127.0.0.1 that is free now. Another process may still listen on it before the caller does.
func takePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	var errs error
	for range portAttempts {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if ports.taken[port] {
			continue
		}
		listener, err := net.Listen("tcp", loopback(port))
		if err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		_ = listener.Close()
		ports.taken[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("find a free port of 127.0.0.1 between %d and %d: %w", firstPort, lastPort, errs)
}

func releasePorts(released ...int) {
	ports.Lock()
	defer ports.Unlock()
	for _, port := range released {
		delete(ports.taken, port)
	}
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
