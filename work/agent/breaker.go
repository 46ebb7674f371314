package agent

import (
	"errors"
	"net/http"
	"sync"
	"time"
)

// breaker fails requests immediately while their API server does not respond. After a request failed slowly, breaker
// sends only one request every retryInterval, and fails the others. So a hub behind a network that drops every packet
// does not block the workers that correct drift on the member.
type breaker struct {
	next http.RoundTripper

	mu    sync.Mutex
	until time.Time // when the next request may be sent
}

const (
	slowFailure   = time.Second // a failure that takes longer has blocked a worker
	retryInterval = 5 * time.Second
)

var errUnreachable = errors.New("the API server did not respond to a recent request")

// RoundTrip implements [http.RoundTripper].
func (b *breaker) RoundTrip(request *http.Request) (*http.Response, error) {
	if !b.allow(time.Now()) {
		if request.Body != nil {
			_ = request.Body.Close() // as a RoundTripper must
		}
		return nil, errUnreachable
	}
	began := time.Now()
	response, err := b.next.RoundTrip(request)
	b.record(err == nil, time.Now(), began)
	return response, err
}

// allow reports whether a request may be sent. While the server is unreachable, a permitted request blocks the
// others.
func (b *breaker) allow(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.until.IsZero():
		return true
	case now.Before(b.until):
		return false
	default:
		b.until = now.Add(requestTimeout)
		return true
	}
}

func (b *breaker) record(answered bool, now, began time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case answered:
		b.until = time.Time{}
	case now.Sub(began) >= slowFailure:
		b.until = now.Add(retryInterval)
	case !b.until.IsZero():
		b.until = now // requests fail quickly again
	}
}
