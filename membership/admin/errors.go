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

// Errors that callers can match with errors.Is.
var (
	// ErrNameTaken means that a name belongs to another object.
	ErrNameTaken = errors.New("the name is already in use")
	// ErrClusterTaken means that a cluster is a member already: with another name, of another hub, or with another join
	// mode.
	ErrClusterTaken = errors.New("the cluster is already a member")
	// ErrExpired means that a join token, or its credential, is no longer valid.
	ErrExpired = errors.New("the join token is no longer valid")
	// ErrDenied means that a cluster was not accepted.
	ErrDenied = errors.New("the cluster was denied")
	// ErrNotFound means that a member or a request does not exist.
	ErrNotFound = errors.New("not found")
)

// Side is one of the clusters of a function.
type Side string

// The hub, the member, and the cluster where the agent of a member runs, if that is another one.
const (
	Hub     Side = "hub"
	Member  Side = "member"
	Hosting Side = "hosting cluster"
)

// An UnreachableError means that an API server could not be reached.
type UnreachableError struct {
	Which Side
	// Server is the address of the API server.
	Server string
	// Err is the cause.
	Err error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("the %s at %s cannot be reached: %v", e.Which, e.Server, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// A Finding is one failed check.
type Finding struct {
	// Check is the name of the check, for example "rights on the hub".
	Check string
	// Problem is the error.
	Problem string
	// Fix is the next step.
	Fix string
	// Err is an error that programs can match, for example [ErrNameTaken]. It may be nil.
	Err error
}

// A PreflightError contains all failed checks. Nothing was changed.
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

// A TimeoutError means that a wait has ended without success. Completed steps are not undone; call the function again
// to continue.
type TimeoutError struct {
	// Doing is the step that was waiting.
	Doing string
	// After is the duration of the wait.
	After time.Duration
	// Reason is the last observed reason.
	Reason string
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s: timed out after %s: %s", e.Doing, e.After.Round(time.Millisecond), e.Reason)
}

// Is reports that a TimeoutError matches context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// explain adds the operation and the cluster to an error, and converts network errors to an [*UnreachableError].
func (c *cluster) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	if network, is := errors.AsType[*url.Error](err); is {
		return fmt.Errorf("%s: %w", doing, &UnreachableError{Which: c.side, Server: c.config.Host, Err: network.Err})
	}
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("%s on the %s, whose API server does not know the kind: install the CustomResourceDefinitions: %w",
			doing, c.side, err)
	}
	return fmt.Errorf("%s on the %s: %w", doing, c.side, err)
}
