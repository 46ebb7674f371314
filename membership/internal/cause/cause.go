// Package cause formats connection errors so that repeated errors have the same message.
package cause

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"regexp"
)

// Of returns a short description of why a server could not be reached, without the request. The result is the same for
// repeated errors, so that a log or a condition changes only with the cause. It is empty for nil.
func Of(err error) string {
	if err == nil {
		return ""
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	var timeout net.Error
	var lookup *net.DNSError
	switch {
	case errors.As(err, &lookup):
		// The queried name server and the local port differ at each attempt.
		return (&net.DNSError{Err: lookupProblem(lookup), Name: lookup.Name}).Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	}
	return changing.ReplaceAllString(err.Error(), "")
}

func lookupProblem(err *net.DNSError) string {
	switch {
	case err.IsNotFound:
		return "no such host"
	case err.IsTimeout:
		return "no answer in time"
	default:
		return "the name server fails"
	}
}

// changing matches the parts of messages that differ at each attempt: of package net (the local port), of crypto/x509
// (the time) and of HTTP/2 (the number of the stream).
var changing = regexp.MustCompile(`[^ ]+:\d+->|current time [^ ]+ is |LastStreamID=\d+, `)
