package calls_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/addon/internal/calls"
)

const timeout = 30 * time.Second

var (
	east = types.NamespacedName{Namespace: "member-east", Name: "logs"}
	west = types.NamespacedName{Namespace: "member-west", Name: "logs"}
)

func manifestsFor(owner types.NamespacedName) calls.Key {
	return calls.Key{Owner: owner, Function: "Manifests of add-on logs", Group: "logs"}
}

// newCaller returns a Caller, and the owners that it notifies.
func newCaller(limit int) (*calls.Caller, <-chan types.NamespacedName) {
	notified := make(chan types.NamespacedName, 100)
	return calls.New(calls.Options{Timeout: timeout, Limit: limit,
		Free:    func(owner types.NamespacedName) { notified <- owner },
		Observe: func(calls.Key, time.Duration, error) {}}), notified
}

// returning returns a function that returns a text.
func returning(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, nil }
}

// untilCanceled is a function that returns when its context ends.
func untilCanceled(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

func TestDo_Outcomes(t *testing.T) {
	errLocked := errors.New("the database is locked")
	for _, row := range []struct {
		name, reason string
		function     func(context.Context) (string, error)
		want, err    string
		is           error
	}{
		{"immediate return", "the result must be returned", returning("all"), "all", "", nil},
		{
			"return just before the timeout", "the call must not be overdue before the timeout",
			func(context.Context) (string, error) { pass(timeout - 1); return "all", nil }, "all", "", nil,
		},
		{"error", "the error must be returned unchanged",
			func(context.Context) (string, error) { return "some", errLocked }, "some", "the database is locked", errLocked},
		{"panic", "a panic must not end the process", func(context.Context) (string, error) { panic("a nil map") }, "",
			"panicked: a nil map", nil},
		{"runtime.Goexit", "the caller must not block",
			func(context.Context) (string, error) { runtime.Goexit(); return "", nil }, "", "ended its goroutine", nil},
		{"context is observed", "the error must name the function and the timeout", untilCanceled, "",
			"Manifests of add-on logs took longer than 30s", calls.ErrOverdue},
		{
			"context is ignored", "the caller must not block",
			func(context.Context) (string, error) { pass(time.Hour); return "all", nil }, "",
			"Manifests of add-on logs took longer than 30s", calls.ErrOverdue,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer pass(time.Hour) // by then all have returned
				var observed []error
				c := calls.New(calls.Options{Timeout: timeout, Limit: 1, Free: func(types.NamespacedName) {},
					Observe: func(k calls.Key, took time.Duration, err error) {
						require.Equal(t, manifestsFor(east), k)
						require.LessOrEqual(t, took, timeout)
						observed = append(observed, err)
					}})
				began := time.Now()
				result, err := calls.Do(t.Context(), c, manifestsFor(east), row.function)
				require.LessOrEqual(t, time.Since(began), timeout, row.reason)
				require.Equal(t, []error{err}, observed, row.reason)
				require.Equal(t, row.want, result, row.reason)
				if row.err == "" {
					require.NoError(t, err, row.reason)
					return
				}
				require.EqualError(t, err, row.err, row.reason)
				if row.is != nil {
					require.ErrorIs(t, err, row.is, row.reason)
				}
			})
		})
	}
}

// TestDo_OneCallAtATimePerKey checks that a function which has not returned is not called again for the same key, and
// is called for other keys.
func TestDo_OneCallAtATimePerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCaller(4)
		var running atomic.Int32
		hangs := make(chan struct{})
		stuck := func(context.Context) (string, error) { running.Add(1); <-hangs; return "", nil }
		called := time.Now().UTC().Format(time.RFC3339)
		_, err := calls.Do(t.Context(), c, manifestsFor(east), stuck)
		require.EqualError(t, err, "Manifests of add-on logs took longer than 30s")
		for range 3 {
			pass(time.Hour)
			began := time.Now()
			_, err = calls.Do(t.Context(), c, manifestsFor(east), stuck)
			require.ErrorIs(t, err, calls.ErrOverdue)
			require.EqualError(t, err,
				"Manifests of add-on logs took longer than 30s and has not returned since "+called+
					": the call is repeated after the function returns",
				"the message must not change with time, because it is part of a status")
			require.Zero(t, time.Since(began), "the caller must not block")
			require.EqualValues(t, 1, running.Load())
		}
		c.Forget(east)
		_, err = calls.Do(t.Context(), c, manifestsFor(east), stuck)
		require.ErrorIs(t, err, calls.ErrOverdue, "Forget must not permit a second concurrent call")

		other := manifestsFor(east)
		other.Subject = "configmaps fleet/limits"
		for _, k := range []calls.Key{manifestsFor(west), other,
			{Owner: east, Function: "Health of add-on logs", Group: "logs"}} {
			result, err := calls.Do(t.Context(), c, k, returning("all"))
			require.NoError(t, err)
			require.Equal(t, "all", result)
		}
		close(hangs)
		synctest.Wait()
		result, err := calls.Do(t.Context(), c, manifestsFor(east), returning("all"))
		require.NoError(t, err, "the function has returned and the pause is over")
		require.Equal(t, "all", result)
	})
}

// TestDo_PausesAfterOverdueCalls: a function that is always overdue is called again after growing pauses, up to a
// maximum, which start again after a call in time.
func TestDo_PausesAfterOverdueCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCaller(1)
		var n atomic.Int32
		overdue := func(ctx context.Context) (string, error) { n.Add(1); return untilCanceled(ctx) }
		attempt := func(function func(context.Context) (string, error)) error {
			_, err := calls.Do(t.Context(), c, manifestsFor(east), function)
			synctest.Wait() // the canceled function has returned
			return err
		}
		for i, factor := range []time.Duration{1, 2, 4, 4, 4} {
			require.ErrorIs(t, attempt(overdue), calls.ErrOverdue)
			require.EqualValues(t, i+1, n.Load())
			pass(factor*timeout - 1)
			require.EqualError(t, attempt(overdue), "Manifests of add-on logs took longer than 30s", "error during the pause")
			require.EqualValues(t, i+1, n.Load(), "the function must not be called during the pause")
			pass(1)
		}
		require.NoError(t, attempt(returning("all")))
		require.ErrorIs(t, attempt(overdue), calls.ErrOverdue)
		pass(timeout)
		require.NoError(t, attempt(returning("all")), "want the shortest pause after a call in time")

		require.ErrorIs(t, attempt(overdue), calls.ErrOverdue)
		c.Forget(east)
		require.NoError(t, attempt(returning("all")), "Forget must end the pause")
	})
}

// TestDo_LimitPerGroup: the number of concurrent calls of a group is limited, which does not affect other groups. A
// refused owner is notified when there is room.
func TestDo_LimitPerGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, notified := newCaller(2)
		key := func(name string) calls.Key {
			return calls.Key{Owner: types.NamespacedName{Name: name}, Function: "Health", Group: "logs"}
		}
		hangs := make(chan struct{})
		for _, name := range []string{"a", "b"} {
			go func() {
				_, err := calls.Do(t.Context(), c, key(name), func(context.Context) (string, error) { <-hangs; return "", nil })
				assert.ErrorIs(t, err, calls.ErrOverdue)
			}()
		}
		synctest.Wait()
		for _, name := range []string{"c", "d", "c", "gone", "e"} {
			_, err := calls.Do(t.Context(), c, key(name), returning("all"))
			require.ErrorIs(t, err, calls.ErrBusy)
		}
		for range 3 { // more calls than the limit
			for _, k := range []calls.Key{{Owner: east, Function: "Health", Group: "metrics"},
				{Owner: east, Function: "Health"}} {
				_, err := calls.Do(t.Context(), c, k, returning("all"))
				require.NoError(t, err, "call of another group, or without a group")
			}
		}
		require.Empty(t, notified)
		c.Forget(key("gone").Owner)
		pass(timeout)
		synctest.Wait()
		require.Len(t, notified, 3, "want each refused owner once, without the removed one")
		require.Equal(t, "c", (<-notified).Name, "want the order of the refused calls")
		_, err := calls.Do(t.Context(), c, key("c"), returning("all"))
		require.NoError(t, err, "overdue calls must not count towards the limit")
		close(hangs)
	})
}

// TestDo_ContextEnds: a call returns when the context of its caller ends, which does not count as overdue.
func TestDo_ContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newCaller(1)
		errStop := errors.New("the hub ends")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errStop) })
		began := time.Now()
		_, err := calls.Do(ctx, c, manifestsFor(east), untilCanceled)
		require.Equal(t, time.Second, time.Since(began))
		require.ErrorIs(t, err, errStop)
		require.NotErrorIs(t, err, calls.ErrOverdue)
		synctest.Wait()
		_, err = calls.Do(t.Context(), c, manifestsFor(east), returning("all"))
		require.NoError(t, err, "want no pause after a canceled call")
	})
}

// BenchmarkDo calls a function that returns immediately.
func BenchmarkDo(b *testing.B) {
	c, _ := newCaller(1)
	k, function := manifestsFor(east), returning("all")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := calls.Do(b.Context(), c, k, function); err != nil {
			b.Fatal(err)
		}
	}
}
