package fleet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// limits limit the cost of the responses of one member for the hub. All connections to the member share them.
type limits struct {
	bytes   int64
	timeout time.Duration
	reading atomic.Int64 // bytes of the responses that are being read
}

// ResponseTooLargeError is the error of a request to a member whose response exceeds Options.MaxResponseBytes, alone or
// together with other responses of the member that are read at the same time.
type ResponseTooLargeError struct {
	// Path of the request.
	Path string
	// Limit in bytes.
	Limit int64
}

func (e *ResponseTooLargeError) Error() string {
	return fmt.Sprintf("response of the member to %s: exceeds the limit of %d bytes for all responses that are "+
		"read at the same time",
		e.Path, e.Limit)
}

// limited is a transport with limits.
type limited struct {
	*limits
	next http.RoundTripper
}

func (l *limits) wrap(next http.RoundTripper) http.RoundTripper { return limited{l, next} }

// WrappedRoundTripper returns the wrapped transport. client-go uses it to close connections.
func (l limited) WrappedRoundTripper() http.RoundTripper { return l.next }

// RoundTrip limits a response. Streams have no limits here: watches decode events one by one, each with a limit of
// client-go, and end when the client closes them.
func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	if isStream(request) {
		return l.next.RoundTrip(request)
	}
	ctx, cancel := context.WithTimeoutCause(request.Context(), l.timeout, fmt.Errorf(
		"response of the member to %s: not complete within %s", request.URL.Path, l.timeout))
	response, err := l.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		defer cancel()
		return nil, causeOf(ctx, err)
	}
	if response.StatusCode == http.StatusSwitchingProtocols {
		cancel() // it has no effect on a connection that was handed over
		return response, nil
	}
	body := &limitedBody{ReadCloser: response.Body, limits: l.limits, ctx: ctx, cancel: cancel, path: request.URL.Path}
	if response.ContentLength > l.bytes {
		_ = body.Close()
		return nil, body.tooLarge()
	}
	response.Body = body
	return response, nil
}

func isStream(request *http.Request) bool {
	query := request.URL.Query()
	return isTrue(query.Get("watch")) || isTrue(query.Get("follow")) || request.Header.Get("Upgrade") != "" ||
		strings.Contains(request.URL.Path, "/watch/")
}

func isTrue(value string) bool { return value == "true" || value == "1" }

// causeOf returns the timeout together with the error that it has caused.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); ctx.Err() != nil &&
		cause != ctx.Err() { //nolint:errorlint // Is the cause another one?
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// limitedBody is the body of a response. One goroutine uses it at a time.
type limitedBody struct {
	io.ReadCloser
	*limits

	ctx    context.Context //nolint:containedctx // of the request, for its cause
	cancel context.CancelFunc
	path   string
	read   int64
}

func (b *limitedBody) tooLarge() error { return &ResponseTooLargeError{Path: b.path, Limit: b.bytes} }

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if b.reading.Add(int64(n)) > b.bytes {
		return 0, b.tooLarge()
	}
	if err != nil && err != io.EOF { //nolint:errorlint // A body returns io.EOF itself.
		err = causeOf(b.ctx, err)
	}
	return n, err
}

func (b *limitedBody) Close() error {
	b.reading.Add(-b.read)
	b.read = 0
	b.cancel()
	return b.ReadCloser.Close()
}
