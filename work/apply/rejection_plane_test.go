package apply_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestRejected checks that a manifest which the API server rejects is not sent on each reconcile, regardless of other
// changes.
func TestRejected(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	clock := f.fakeClock()
	service := func(port string) apply.Object {
		return f.object("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: NS}, spec: {ports: [{port: " + port +
			"}]}}")
	}
	for _, state := range []string{"absent", "existing"} {
		var first apply.Change
		for i := range 20 {
			change := f.one(service("99999"))
			require.Equal(t, v1alpha1.ReasonRejected, change.Reason, state)
			if i == 0 {
				first = change
				f.counted.take()
				continue
			}
			require.Equal(t, first.Message, change.Message)
			require.Positive(t, change.RetryAfter)
		}
		_, writes := f.counted.take()
		require.Zero(t, writes, state)
		if state == "existing" { // another client changes the object permanently
			for i := range 20 {
				f.patch(service("80").Manifest, fmt.Sprintf("{metadata: {annotations: {busy: '%d'}}}", i))
				require.Equal(t, first.Message, f.one(service("99999")).Message)
			}
			_, writes = f.counted.take()
			require.Zero(t, writes, "no write while another client changes the object")
		}
		clock.SetTime(clock.Now().Add(time.Minute))
		f.one(service("99999"))
		_, writes = f.counted.take()
		require.Equal(t, 1, writes, "the manifest is sent again after the pause")
		require.True(t, f.one(service("80")).Done(), "another manifest is sent at once")
	}
}
