package membership

import "errors"

// ErrPending is returned by an [Issuer] whose credential is on its way: ask again.
var ErrPending = errors.New("the credential is not there yet")

// InvalidError says that a request can never succeed as it is, and which of its fields is to blame.
type InvalidError struct {
	// Field is the path of the field, such as "spec.credential.certificateRequest".
	Field string
	// Problem says what is wrong with it, and what would be right.
	Problem string
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Problem }
