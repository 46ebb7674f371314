// Package cause has words for what goes wrong on the way to a server, that stay the same for as long as the trouble does.
package cause

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"regexp"
)

// Of says in a few words why a server could not be reached: what went wrong, without what was tried. The same trouble
// is the same words each time, so that it is news once, in a log or a condition. Nil is the empty string.
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
		// Which of its servers was asked, and from which port, differs from try to try.
		return (&net.DNSError{Err: lookupProblem(lookup), Name: lookup.Name}).Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
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

// changing is what differs from try to try in the words of package net (the port of our own side), of crypto/x509 (the
// time) and of HTTP/2 (the number of the stream).
var changing = regexp.MustCompile(`[^ ]+:\d+->|current time [^ ]+ is |LastStreamID=\d+, `)
