package apiserver

import utilruntime "k8s.io/apimachinery/pkg/util/runtime"

// client-go has two handlers for errors that it cannot return, such as those of watches. The first handler logs the
// error. The second one sleeps until a millisecond has passed since the previous error of the process, or since the
// start of the process. In a testing/synctest bubble, where the year is 2000, the second handler sleeps for decades of
// virtual time and blocks the reflector that reported the error. Only the first handler is kept.
//
//nolint:gochecknoinits,reassign // client-go reads the variable without a lock, so no goroutine of it may run yet.
func init() { utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] }
