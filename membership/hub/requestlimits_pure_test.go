package hub

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRequestLimits_NewestExceedsLimit checks that the requests of each token are counted separately, and that the
// newest requests of a token are returned one after the other, until the token is within the limit, in whatever order
// they are observed.
func TestRequestLimits_NewestExceedsLimit(t *testing.T) {
	at := func(second int) metav1.Time { return metav1.NewTime(time.Unix(int64(second), 0)) }
	l := newRequestLimits(2)
	require.Empty(t, l.enter("a", "a5", at(5)))
	require.Empty(t, l.enter("b", "b1", at(1)))
	require.Empty(t, l.enter("a", "a4", at(4)))
	require.Empty(t, l.enter("b", "b2", at(2)))
	require.Equal(t, "a5", l.enter("a", "a3", at(3)))
	require.Equal(t, "a5", l.enter("a", "a2", at(2)))
	require.Equal(t, "a4", l.leave("a5"))
	require.Equal(t, "a4", l.enter("a", "a4", at(4)), "a request is counted once")
	require.Empty(t, l.leave("a4"))
	require.Empty(t, l.leave("unknown"))
	require.Equal(t, "b2", l.enter("b", "a3", at(0)), "the token of a request has changed")
	require.Empty(t, l.enter("a", "a6", at(6)))
	for name := range map[string]bool{"a2": true, "a3": true, "a6": true, "b1": true, "b2": true} {
		l.leave(name)
	}
	require.Empty(t, l.of)
	require.Empty(t, l.waiting)
}
