package admin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
)

// Errors that a caller may want to tell apart by errors.Is.
var (
	// ErrNameTaken is about a name that belongs to something else.
	ErrNameTaken = errors.New("the name is taken")
	// ErrClusterTaken is about a cluster that is a member already: under another name, of another hub, or in another way.
	ErrClusterTaken = errors.New("the cluster is taken")
	// ErrExpired is about a join token, or the credential in it, that can be used no more.
	ErrExpired = errors.New("the join token has ended")
	// ErrDenied is about a cluster that was not let in.
	ErrDenied = errors.New("the cluster was denied")
	// ErrNotFound is about a member or request that is not there.
	ErrNotFound = errors.New("not found")
)

// Side is one of the two clusters that these functions speak to.
type Side string

// The two sides.
const (
	Hub    Side = "hub"
	Member Side = "member"
)

// An UnreachableError says that an API server could not be reached at all.
type UnreachableError struct {
	Which Side
	// Server is the address that was tried.
	Server string
	// Err says what happened.
	Err error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the %s at %s cannot be reached: %v", e.Which, e.Server, e.Err)
}

// Unwrap returns what happened.
func (e *UnreachableError) Unwrap() error { return e.Err }

// A Finding is something that stands in the way.
type Finding struct {
	// Check is what was looked at, such as "rights on the hub".
	Check string
	// Problem is what is wrong.
	Problem string
	// Fix is what to do about it.
	Fix string
	// Err is what a program can tell it by, such as [ErrNameTaken]; it may be nil.
	Err error
}

// A PreflightError has all that stood in the way. Nothing has been changed.
type PreflightError struct {
	Findings []Finding
}

func (e *PreflightError) Error() string {
	words := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		words[i] = f.Check + ": " + f.Problem
	}
	return "preflight: " + strings.Join(words, "; ")
}

// Unwrap returns the errors of the findings.
func (e *PreflightError) Unwrap() []error {
	var errs []error
	for _, f := range e.Findings {
		if f.Err != nil {
			errs = append(errs, f.Err)
		}
	}
	return errs
}

// A TimeoutError says what was waited for in vain. What had been done before stays; call the function again to go on waiting.
type TimeoutError struct {
	// Doing is what was being done.
	Doing string
	// After is how long was waited.
	After time.Duration
	// Reason is why it was not done, when that was last looked at.
	Reason string
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s: gave up after %s: %s", e.Doing, e.After.Round(time.Millisecond), e.Reason)
}

// Is reports that a TimeoutError is context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// explain says what was tried where, and makes an [*UnreachableError] of what came of the network.
func (c *cluster) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	if network, is := errors.AsType[*url.Error](err); is {
		return fmt.Errorf("%s: %w", doing, &UnreachableError{Which: c.side, Server: c.config.Host, Err: network.Err})
	}
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("%s on the %s, whose API server does not know the kind: install the CustomResourceDefinitions: %w", doing, c.side, err)
	}
	return fmt.Errorf("%s on the %s: %w", doing, c.side, err)
}
