package apply

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRejection(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var r rejection
	require.Zero(t, r.wait("h", "1", now), "no manifest was rejected")
	sent := 0
	for end := now.Add(time.Hour); now.Before(end); now = now.Add(100 * time.Millisecond) {
		if r.wait("h", "1", now) == 0 {
			sent++
			r = r.again("h", "1", now, errors.New("no"))
		}
	}
	require.LessOrEqual(t, sent, 22, "the longest pause is five minutes")
	require.Greater(t, sent, 12, "the pause has a limit, because the cause may be gone")
	require.Zero(t, r.wait("other", "1", now), "another manifest is sent at once")
	require.LessOrEqual(t, r.wait("h", "2", now), changedResend, "a change of the object may have removed the cause")

	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("no"))
	f := rejection{}
	for range 20 {
		f = f.again("h", "1", now, denied)
	}
	require.Equal(t, lastForbidden, f.wait("h", "1", now), "a permission may be granted at any time")

	require.Equal(t, 1, r.again("other", "1", now, nil).count)
}
