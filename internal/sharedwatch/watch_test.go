package sharedwatch

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// recorder records the calls of a watch, and stops the watch after a number of calls.
type recorder struct {
	cache.Store
	calls []string
	limit int
	stop  func()
}

func (r *recorder) record(call string) {
	if r.calls = append(r.calls, call); len(r.calls) == r.limit {
		r.stop()
	}
}

func (r *recorder) Lists(request Request)             { r.record(fmt.Sprint("lists ", int(request))) }
func (r *recorder) Watches()                          { r.record("watches") }
func (r *recorder) Failed(request Request, err error) { r.record(fmt.Sprint(int(request), " ", err)) }

func (r *recorder) Replace(objects []any, version string) error {
	r.record(fmt.Sprint("replace ", len(objects)))
	return r.Store.Replace(objects, version)
}

func TestRun_ListsAndWatches(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no"))
	unsupported := apierrors.NewInvalid(schema.GroupKind{}, "", nil)
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"},
		Items: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}}}
	for _, test := range []struct {
		reason  string
		list    []error // errors of the first lists; further lists succeed
		watch   []error // errors of the first watches after a list
		streams error   // error of each watch with initial events
		want    []string
	}{
		{"a list and a watch", nil, nil, unsupported, []string{"lists 0", "replace 1", "watches"}},
		{"a forbidden list is repeated", []error{forbidden}, nil, unsupported,
			[]string{"lists 0", "0 " + forbidden.Error(), "lists 0", "replace 1", "watches"}},
		{"a list follows a forbidden watch", nil, []error{forbidden}, unsupported,
			[]string{"lists 0", "replace 1", "1 " + forbidden.Error(), "lists 0", "replace 1", "watches"}},
		{"a list follows an expired resourceVersion", nil, []error{apierrors.NewResourceExpired("old")}, unsupported,
			[]string{"lists 0", "replace 1", "lists 0", "replace 1", "watches"}},
		{"too many requests: the watch with initial events is repeated", nil, nil, apierrors.NewTooManyRequests("later", 0),
			[]string{"0 later", "0 later", "0 later"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			next := func(errs *[]error) (err error) {
				if len(*errs) > 0 {
					err, *errs = (*errs)[0], (*errs)[1:]
				}
				return err
			}
			requests := Requests{
				object: &metav1.PartialObjectMetadata{},
				list: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
					return list.DeepCopy(), next(&test.list)
				},
				watch: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
					if o.SendInitialEvents != nil {
						return nil, test.streams
					}
					return watch.NewFake(), next(&test.watch)
				},
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			r := &recorder{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), limit: len(test.want), stop: stop}
			Run(ctx, "secrets", requests, r, r)
			require.GreaterOrEqual(t, len(r.calls), len(test.want), "%s", r.calls)
			require.Equal(t, test.want, r.calls[:len(test.want)])
		})
	}
}

// TestRun_EndsDuringBackoff checks that a reflector which waits, because the hub refuses connections, ends immediately.
func TestRun_EndsDuringBackoff(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	over := endingClock{clock.RealClock{}, ctx}.After(time.Hour)
	stop()
	<-over
	<-endingClock{clock.RealClock{}, t.Context()}.After(time.Millisecond)
}

func TestDeadline_Await(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		closed := make(chan struct{})
		close(closed)
		await := func(d Deadline, done <-chan struct{}) time.Duration {
			since := time.Now()
			d.Clock, d.Began, d.Timeout = clock.RealClock{}, began, 5*time.Second
			d.Await(t.Context(), done)
			return time.Since(since)
		}
		require.Zero(t, await(Deadline{}, closed))
		require.Zero(t, await(Deadline{Stopped: closed}, nil))
		<-time.After(2 * time.Second)
		require.Equal(t, 3*time.Second, await(Deadline{}, nil), "the rest of the time")
		require.Zero(t, await(Deadline{}, nil), "the timeout has passed")
	})
}
