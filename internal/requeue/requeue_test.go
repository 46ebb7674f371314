package requeue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/internal/requeue"
)

func TestSoonerAndEarlier_ZeroIsLast(t *testing.T) {
	for _, test := range []struct{ a, b, want time.Duration }{
		{0, 0, 0},
		{0, time.Second, time.Second},
		{time.Second, 2 * time.Second, time.Second},
	} {
		require.Equal(t, test.want, requeue.Sooner(test.a, test.b), "%s, %s", test.a, test.b)
		require.Equal(t, test.want, requeue.Sooner(test.b, test.a), "%s, %s", test.b, test.a)
		at := func(d time.Duration) time.Time {
			if d == 0 {
				return time.Time{}
			}
			return time.Unix(1000, 0).Add(d)
		}
		require.Equal(t, at(test.want), requeue.Earlier(at(test.a), at(test.b)), "%s, %s", test.a, test.b)
		require.Equal(t, at(test.want), requeue.Earlier(at(test.b), at(test.a)), "%s, %s", test.b, test.a)
	}
}
