package localplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports come from below the ranges that Linux (32768) and macOS (49152) take the local ends of outgoing connections
// from. A port of those could be taken by any client in the moment in which an API server restarts.
const firstPort, lastPort = 20000, 32767

const portAttempts = 100

// A transientError is the failure of a component that another start may not have: it found another process on its port,
// or it panicked. The controllers of Kubernetes do so once in some thousand starts: klog's logger is replaced while
// informers begin to log.
type transientError struct{ error }

func (e *transientError) Unwrap() error { return e.error }

// ports remembers what this process has given to its planes, also while nobody listens there.
var ports = struct {
	sync.Mutex
	taken map[int]bool
}{taken: map[int]bool{}}

// takePort finds a port of 127.0.0.1 that is free now. Another process may still be faster to listen there.
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
