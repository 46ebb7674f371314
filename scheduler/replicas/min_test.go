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

func says(estimate ...int32) Estimator {
	return EstimatorFunc(func(context.Context, Requirements, []string) ([]int32, error) { return estimate, nil })
}

func hangs(until <-chan struct{}) Estimator {
	return EstimatorFunc(func(context.Context, Requirements, []string) ([]int32, error) {
		<-until
		return []int32{0, 0}, nil
	})
}

func obeys(ctx context.Context, _ Requirements, _ []string) ([]int32, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestMin(t *testing.T) {
	for _, test := range []struct {
		name, reason string
		estimators   map[string]Estimator
		hang         []string // these are estimators, too, and hang
		want         []int32
		reported     []string // name and the beginning of the error
		err          string
		took         time.Duration
	}{
		{
			name: "least", reason: "cluster by cluster",
			estimators: map[string]Estimator{"a": says(1, 5), "b": says(3, 2)}, want: []int32{1, 2},
		},
		{
			name: "none", reason: "nobody knows a limit",
			want: []int32{Unbounded, Unbounded},
		},
		{
			name: "knows no limit", reason: "who knows one prevails",
			estimators: map[string]Estimator{"a": says(Unbounded, 5), "b": says(3, Unbounded)}, want: []int32{3, 5},
		},
		{
			name: "fails", reason: "the others are better than nothing",
			estimators: map[string]Estimator{"good": says(1, 5),
				"down": EstimatorFunc(func(context.Context, Requirements, []string) ([]int32, error) {
					return []int32{0, 0}, errDown
				})},
			want: []int32{1, 5}, reported: []string{"down: connection refused"},
		},
		{
			name: "panics", reason: "somebody else's mistake is not to take the scheduler down; the stack says where it is",
			estimators: map[string]Estimator{"good": says(1, 5),
				"wild": EstimatorFunc(func(context.Context, Requirements, []string) ([]int32, error) {
					panic("index out of range")
				})},
			want: []int32{1, 5}, reported: []string{"wild: panic: index out of range\n"},
		},
		{
			name: "nil", reason: "it panics when it is called",
			estimators: map[string]Estimator{"good": says(1, 5), "nil": nil},
			want:       []int32{1, 5}, reported: []string{"nil: panic: "},
		},
		{
			name: "ends its goroutine", reason: "as t.FailNow does in a test's fake",
			estimators: map[string]Estimator{"good": says(1, 5),
				"gone": EstimatorFunc(func(context.Context, Requirements, []string) ([]int32, error) {
					runtime.Goexit()
					return nil, nil
				})},
			want: []int32{1, 5}, reported: []string{"gone: the Estimator ended its goroutine"},
		},
		{
			name: "answers for others", reason: "it would be taken for the estimate of another cluster",
			estimators: map[string]Estimator{"good": says(1, 5), "few": says(0), "many": says(0, 0, 0)},
			want:       []int32{1, 5}, reported: []string{"few: the number of estimates of the Estimator is 1 for 2 clusters",
				"many: the number of estimates of the Estimator is 3"},
		},
		{
			name: "negative", reason: "that is how some say that they do not know: Unbounded would be right",
			estimators: map[string]Estimator{"good": says(1, 5), "odd": says(3, -1)},
			want:       []int32{1, 5}, reported: []string{"odd: estimate -1 of cluster 1 is negative"},
		},
		{
			name: "slow", reason: "one that obeys its deadline",
			estimators: map[string]Estimator{"good": says(1, 5), "slow": EstimatorFunc(obeys)},
			want:       []int32{1, 5}, reported: []string{"slow: "}, took: DefaultTimeout,
		},
		{
			name: "hang", reason: "ones that do not, together no longer than one",
			estimators: map[string]Estimator{"good": says(1, 5)}, hang: []string{"hang", "hang too"},
			want: []int32{1, 5}, reported: []string{"hang: the Estimator did not return: context deadline " +
				"exceeded", "hang too: the Estimator did not return"},
			took: DefaultTimeout,
		},
		{
			name: "all fail", reason: "Unbounded would send replicas to clusters of which nothing is known",
			estimators: map[string]Estimator{"few": says(0), "many": says(0, 0, 0)},
			reported:   []string{"few: ", "many: "}, err: "no Estimator returned a result: few: the number of estimates " +
				"of the Estimator is 1 for 2 clusters\nmany: the number of estimates of the Estimator is 3 for 2 clusters",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				until := make(chan struct{})
				for _, name := range test.hang {
					test.estimators[name] = hangs(until)
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
					require.True(t, strings.HasPrefix(reported[i], want), "%q should begin with %q", reported[i], want)
				}
			})
		})
	}
}

func TestMinWrapsWhatFailed(t *testing.T) {
	e := Min(map[string]Estimator{"down": EstimatorFunc(func(context.Context, Requirements, []string) ([]int32, error) {
		return nil, errDown
	})}, MinOptions{})
	_, err := e.Estimate(t.Context(), Requirements{}, []string{"east"})
	require.ErrorIs(t, err, errDown)
}

// TestMinGivesUp checks that an estimator that does not return occupies a limited number of goroutines, and that it is
// called again after it has returned.
func TestMinGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := make(chan struct{})
		var asked atomic.Int32
		hanging := EstimatorFunc(func(context.Context, Requirements, []string) ([]int32, error) {
			asked.Add(1)
			<-until
			return []int32{2}, nil
		})
		var last error
		e := Min(map[string]Estimator{"good": says(7), "hanging": hanging},
			MinOptions{Timeout: time.Second, Report: func(_ string, err error) { last = err }})
		began := time.Now()
		for range 3 * maxStuck {
			got, err := e.Estimate(t.Context(), Requirements{}, []string{"east"})
			require.NoError(t, err)
			require.Equal(t, []int32{7}, got)
		}
		require.EqualValues(t, maxStuck, asked.Load())
		require.Equal(t, maxStuck*time.Second, time.Since(began), "and when it is not asked nobody waits")
		require.EqualError(t, last, "not called, because 8 earlier calls have not returned")

		called, off := context.WithCancel(t.Context())
		off()
		for range 8 * maxStuck { // none of which makes it worse
			_, err := e.Estimate(called, Requirements{}, []string{"east"})
			require.ErrorIs(t, err, context.Canceled)
		}

		close(until)
		synctest.Wait()
		got, err := e.Estimate(t.Context(), Requirements{}, []string{"east"})
		require.NoError(t, err)
		require.Equal(t, []int32{2}, got)
	})
}

// TestMinIsCalledOff checks that Estimate returns when the caller's context ends, and does not report an error of the
// estimator.
func TestMinIsCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		e := Min(map[string]Estimator{"good": says(7), "slow": EstimatorFunc(obeys)},
			MinOptions{Report: func(name string, err error) {
				t.Error(name, err)
			}})
		began := time.Now()
		_, err := e.Estimate(ctx, Requirements{}, []string{"east"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
	})
}

// TestMinKeepsItsOwn checks that the arguments of a late estimator do not change, and that a returned slice, which may
// be a cache of the estimator, is not changed.
func TestMinKeepsItsOwn(t *testing.T) {
	cached := []int32{5, 5}
	var seen []string
	keeps := EstimatorFunc(func(_ context.Context, _ Requirements, clusters []string) ([]int32, error) {
		seen = clusters
		return cached, nil
	})
	clusters := []string{"east", "west"}
	_, err := Min(map[string]Estimator{"a": keeps, "b": says(1, 9)}, MinOptions{}).Estimate(t.Context(), Requirements{},
		clusters)
	require.NoError(t, err)
	clusters[0] = "north"
	require.Equal(t, []string{"east", "west"}, seen)
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
