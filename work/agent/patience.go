package agent

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

// patience spares others the wait for an API server that does not answer: after a request that failed slowly it lets only one
// through at a time every now and then, and fails the rest at once. So a hub behind a network that swallows everything does not keep
// the agent from looking after its member.
type patience struct {
	next http.RoundTripper

	mu    sync.Mutex
	until time.Time // when the next request may try
}

const (
	slowly     = time.Second // a failure that takes longer has blocked a worker
	outOfReach = 5 * time.Second
)

var errOutOfReach = errors.New("it did not answer a moment ago")

// RoundTrip implements [http.RoundTripper].
func (p *patience) RoundTrip(request *http.Request) (*http.Response, error) {
	if !p.enter(time.Now()) {
		if request.Body != nil {
			_ = request.Body.Close() // as a RoundTripper must
		}
		return nil, errOutOfReach
	}
	began := time.Now()
	response, err := p.next.RoundTrip(request)
	p.leave(err == nil, time.Now(), began)
	return response, err
}

// enter reports whether a request may try. While the server is out of reach, the one that may keeps the others from it.
func (p *patience) enter(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.until.IsZero():
		return true
	case now.Before(p.until):
		return false
	default:
		p.until = now.Add(requestTimeout)
		return true
	}
}

func (p *patience) leave(answered bool, now, began time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case answered:
		p.until = time.Time{}
	case now.Sub(began) >= slowly:
		p.until = now.Add(outOfReach)
	case !p.until.IsZero():
		p.until = now // it fails quickly again
	}
}
