package membership

import "errors"

// ErrPending is returned by an [Issuer] while the credential is being issued. Call it again later.
var ErrPending = errors.New("the credential is not issued yet")

// InvalidError means that a request cannot succeed because of the value of a field.
type InvalidError struct {
	// Field is the path of the field, for example "spec.credential.certificateRequest".
	Field string
	// Problem describes the error and valid values.
	Problem string
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Problem }
