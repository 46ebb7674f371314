// Package panics converts panics of callbacks into errors.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Error is a recovered panic.
type Error struct {
	Value any
	Stack []byte // the stack of the panic
}

func (e *Error) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Recovered calls a function and returns its error; an *Error if it panicked.
func Recovered(call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &Error{value, debug.Stack()}
		}
	}()
	return call()
}
