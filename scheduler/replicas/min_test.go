package replicas

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

var errDown = errors.New("connection refused")

func fixedEstimate(estimate ...int32) Estimator {
	return EstimatorFunc(func(context.Context, Requirements, []string) ([]int32, error) { return estimate, nil })
}

func hangingEstimator(until <-chan struct{}) Estimator {
	return EstimatorFunc(func(context.Context, Requirements, []string) ([]int32, error) {
		<-until
		return []int32{0, 0}, nil
	})
}

func waitForDeadline(ctx context.Context, _ Requirements, _ []string) ([]int32, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestMin(t *testing.T) {
	for _, test := range []struct {
		name, reason string
		estimators   map[string]Estimator
		hang         []string // the names of additional estimators that do not return
		want         []int32
		reported     []string // the names of estimators and the beginnings of their errors
		err          string
		took         time.Duration
	}{
		{
			name: "least estimate", reason: "the minimum for each cluster",
			estimators: map[string]Estimator{"a": fixedEstimate(1, 5), "b": fixedEstimate(3, 2)}, want: []int32{1, 2},
		},
		{
			name: "no estimators", reason: "no cluster has a limit",
			want: []int32{Unbounded, Unbounded},
		},
		{
			name: "estimates without a limit", reason: "a limit takes precedence over Unbounded",
			estimators: map[string]Estimator{"a": fixedEstimate(Unbounded, 5),
				"b": fixedEstimate(3, Unbounded)}, want: []int32{3, 5},
		},
		{
			name: "one estimator fails", reason: "the other estimates are used",
			estimators: map[string]Estimator{"good": fixedEstimate(1, 5),
				"down": EstimatorFunc(func(context.Context, Requirements, []string) ([]int32, error) {
					return []int32{0, 0}, errDown
				})},
			want: []int32{1, 5}, reported: []string{"down: connection refused"},
		},
		{
			name: "one estimator panics", reason: "a panic of an estimator is reported with its stack",
			estimators: map[string]Estimator{"good": fixedEstimate(1, 5),
				"wild": EstimatorFunc(func(context.Context, Requirements, []string) ([]int32, error) {
					panic("index out of range")
				})},
			want: []int32{1, 5}, reported: []string{"wild: panic: index out of range\n"},
		},
		{
			name: "nil estimator", reason: "the call of a nil estimator panics",
			estimators: map[string]Estimator{"good": fixedEstimate(1, 5), "nil": nil},
			want:       []int32{1, 5}, reported: []string{"nil: panic: "},
		},
		{
			name: "one estimator ends its goroutine", reason: "as t.FailNow does in the fake of a test",
			estimators: map[string]Estimator{"good": fixedEstimate(1, 5),
				"gone": EstimatorFunc(func(context.Context, Requirements, []string) ([]int32, error) {
					runtime.Goexit()
					return nil, nil
				})},
			want: []int32{1, 5}, reported: []string{"gone: the Estimator ended its goroutine"},
		},
		{
			name: "wrong number of estimates", reason: "the estimates cannot be assigned to clusters",
			estimators: map[string]Estimator{"good": fixedEstimate(1, 5), "few": fixedEstimate(0),
				"many": fixedEstimate(0, 0, 0)},
			want: []int32{1, 5}, reported: []string{"few: the number of estimates of the Estimator is 1 for 2 clusters",
				"many: the number of estimates of the Estimator is 3"},
		},
		{
			name: "negative estimate", reason: "an estimator without a limit must return Unbounded",
			estimators: map[string]Estimator{"good": fixedEstimate(1, 5), "odd": fixedEstimate(3, -1)},
			want:       []int32{1, 5}, reported: []string{"odd: estimate -1 of cluster 1 is negative"},
		},
		{
			name: "slow estimator", reason: "the estimator returns at its deadline",
			estimators: map[string]Estimator{"good": fixedEstimate(1, 5), "slow": EstimatorFunc(waitForDeadline)},
			want:       []int32{1, 5}, reported: []string{"slow: "}, took: DefaultTimeout,
		},
		{
			name: "hanging estimators", reason: "two hanging estimators take one timeout together",
			estimators: map[string]Estimator{"good": fixedEstimate(1, 5)}, hang: []string{"hang", "hang too"},
			want: []int32{1, 5}, reported: []string{"hang: the Estimator did not return: context deadline " +
				"exceeded", "hang too: the Estimator did not return"},
			took: DefaultTimeout,
		},
		{
			name: "all estimators fail", reason: "Unbounded would place replicas on clusters without an estimate",
			estimators: map[string]Estimator{"few": fixedEstimate(0), "many": fixedEstimate(0, 0, 0)},
			reported:   []string{"few: ", "many: "}, err: "no Estimator returned a result: few: the number of estimates " +
				"of the Estimator is 1 for 2 clusters\nmany: the number of estimates of the Estimator is 3 for 2 clusters",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				until := make(chan struct{})
				for _, name := range test.hang {
					test.estimators[name] = hangingEstimator(until)
				}
				var reported []string
				e := Min(test.estimators, MinOptions{Report: func(name string, err error) {
					reported = append(reported, name+": "+err.Error())
				}})
				began := time.Now()
				got, err := e.Estimate(t.Context(), Requirements{}, []string{"east", "west"})
				require.Equal(t, test.took, time.Since(began), test.reason)
				close(until)
				if test.err == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, test.err)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", test.reason, diff)
				}
				require.Len(t, reported, len(test.reported), reported)
				for i, want := range test.reported {
					require.True(t, strings.HasPrefix(reported[i], want), "got %q, want the prefix %q", reported[i], want)
				}
			})
		})
	}
}

func TestMin_WrapsErrors(t *testing.T) {
	e := Min(map[string]Estimator{"down": EstimatorFunc(func(context.Context, Requirements, []string) ([]int32, error) {
		return nil, errDown
	})}, MinOptions{})
	_, err := e.Estimate(t.Context(), Requirements{}, []string{"east"})
	require.ErrorIs(t, err, errDown)
}

// TestMin_HangingEstimator checks that an estimator that does not return occupies a limited number of goroutines, and
// that it is called again after it has returned.
func TestMin_HangingEstimator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := make(chan struct{})
		var calls atomic.Int32
		hanging := EstimatorFunc(func(context.Context, Requirements, []string) ([]int32, error) {
			calls.Add(1)
			<-until
			return []int32{2}, nil
		})
		var last error
		e := Min(map[string]Estimator{"good": fixedEstimate(7), "hanging": hanging},
			MinOptions{Timeout: time.Second, Report: func(_ string, err error) { last = err }})
		began := time.Now()
		for range 3 * maxStuck {
			got, err := e.Estimate(t.Context(), Requirements{}, []string{"east"})
			require.NoError(t, err)
			require.Equal(t, []int32{7}, got)
		}
		require.EqualValues(t, maxStuck, calls.Load())
		require.Equal(t, maxStuck*time.Second, time.Since(began), "a call without the estimator does not wait")
		require.EqualError(t, last, "not called, because 8 earlier calls have not returned")

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 8 * maxStuck { // none of these calls occupies a goroutine
			_, err := e.Estimate(ctx, Requirements{}, []string{"east"})
			require.ErrorIs(t, err, context.Canceled)
		}

		close(until)
		synctest.Wait()
		got, err := e.Estimate(t.Context(), Requirements{}, []string{"east"})
		require.NoError(t, err)
		require.Equal(t, []int32{2}, got)
	})
}

// TestMin_ContextEnds checks that Estimate returns when the caller's context ends, and does not report an error of the
// estimator.
func TestMin_ContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		e := Min(map[string]Estimator{"good": fixedEstimate(7), "slow": EstimatorFunc(waitForDeadline)},
			MinOptions{Report: func(name string, err error) {
				t.Error(name, err)
			}})
		began := time.Now()
		_, err := e.Estimate(ctx, Requirements{}, []string{"east"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
	})
}

// TestMin_CopiesArgumentsAndResults checks that the arguments of a late estimator do not change, and that a returned
// slice, which may be a cache of the estimator, is not changed.
func TestMin_CopiesArgumentsAndResults(t *testing.T) {
	cached := []int32{5, 5}
	var received []string
	caching := EstimatorFunc(func(_ context.Context, _ Requirements, clusters []string) ([]int32, error) {
		received = clusters
		return cached, nil
	})
	clusters := []string{"east", "west"}
	_, err := Min(map[string]Estimator{"a": caching, "b": fixedEstimate(1, 9)}, MinOptions{}).Estimate(t.Context(),
		Requirements{},
		clusters)
	require.NoError(t, err)
	clusters[0] = "north"
	require.Equal(t, []string{"east", "west"}, received)
	require.Equal(t, []int32{5, 5}, cached)
}

func TestFromAvailable(t *testing.T) {
	fleet := map[string]corev1.ResourceList{"east": resources("cpu", "2"), "west": resources("cpu", "1", "memory", "1Gi")}
	e := FromAvailable(func(cluster string) (corev1.ResourceList, bool) {
		list, known := fleet[cluster]
		return list, known
	})
	got, err := e.Estimate(t.Context(), Requirements{Requests: resources("cpu", "300m")},
		[]string{"west", "north", "east"})
	require.NoError(t, err)
	if want := []int32{3, Unbounded, 6}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
