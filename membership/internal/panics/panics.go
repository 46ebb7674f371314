// Package panics keeps what somebody else's code panics with from ending the program.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Error is what a call panicked with.
type Error struct {
	Value any
	Stack []byte // where it did
}

func (e *Error) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Recovered is the error of a call; an *Error where it panicked.
func Recovered(call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &Error{value, debug.Stack()}
		}
	}()
	return call()
}
