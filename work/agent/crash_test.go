package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// crash stops an agent at one of its writes: it blocks all later requests.
type crash struct {
	at       int  // the write, from 1; 0: none
	answered bool // the request is executed and its response is lost; otherwise the request is not sent

	mu      sync.Mutex
	n       int
	write   string // the request at which the agent crashed
	crashed chan struct{}
}

var errCrashed = errors.New("the network is gone")

func (c *crash) intercept(request *http.Request, next http.RoundTripper) (*http.Response, error) {
	described := describe(request)
	c.mu.Lock()
	// A crash at a read has the same effect as a crash before the next write. Events are sent at any time.
	if request.Method != http.MethodGet && !strings.Contains(described, " events") {
		c.n++
	}
	now := c.at > 0 && c.n == c.at && c.write == ""
	before := c.at == 0 || c.n < c.at
	if now {
		c.write = described
		defer close(c.crashed)
	}
	c.mu.Unlock()
	switch {
	case before:
		return next.RoundTrip(request)
	case now && c.answered:
		if response, err := next.RoundTrip(request); err == nil {
			_ = response.Body.Close()
		}
	}
	return nil, errCrashed
}

// TestCrash stops the agent at each write of the lifecycle of a Work, and lets another agent continue.
func TestCrash(t *testing.T) {
	t.Parallel()
	writes := 0
	t.Run("whole", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			whole := &crash{}
			runLifecycle(t, whole)
			writes = whole.n
		})
	})
	require.Greater(t, writes, 10)
	for at := 1; at <= writes; at++ {
		for _, how := range []mustertest.Loss{mustertest.ResponseLost, mustertest.RequestLost} {
			if testkit.RaceDetector && !testkit.Crashes(at, how) {
				continue
			}
			answered := how == mustertest.ResponseLost
			t.Run(fmt.Sprintf("%d-answered-%t", at, answered), func(t *testing.T) {
				testkit.Virtual(t, func(t *testing.T) {
					runLifecycle(t, &crash{at: at, answered: answered, crashed: make(chan struct{})})
				})
			})
		}
	}
}

// runLifecycle runs the lifecycle of a Work: creation, update and deletion. It checks the objects on the member after
// each step.
func runLifecycle(t *testing.T, c *crash) {
	t.Helper()
	f := newMemoryFixture(t)
	f.toHub.intercept(c.intercept)
	f.toMember.intercept(c.intercept)
	stop := f.start()
	done := make(chan struct{})
	successor := make(chan struct{})
	go func() { // starts another agent after the crash
		defer close(successor)
		select {
		case <-done:
		case <-c.crashed:
			t.Logf("crashed at %s", c.write)
			stop()
			f.toHub.intercept(nil)
			f.toMember.intercept(nil)
			f.start()
		}
	}()
	defer func() { close(done); <-successor }()

	work := f.work("shop", "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"), secret("s"))+"}")
	f.ready(work)
	f.awaitObjects(work, "ConfigMap a v", "ConfigMap b v", "Secret s")
	f.change(work, "{"+manifests(configMap("a", "{k: w}"), configMap("c", "{k: v}"), secret("s"))+"}")
	f.ready(work)
	f.awaitObjects(work, "ConfigMap a w", "ConfigMap c v", "Secret s")
	f.delete(work)
	f.gone(work)
	require.Nil(t, f.applied(work), "the Work is deleted after its objects on the member")
	f.awaitObjects(work)
}

func secret(name string) string {
	return "{apiVersion: v1, kind: Secret, metadata: {name: " + name + ", namespace: NS}, stringData: {password: hunter2}}"
}

// awaitObjects waits until the member and the inventory of the Work have exactly these objects, as in "ConfigMap a v"
// with the value of k, each with its UID.
func (f *fixture) awaitObjects(work *v1alpha1.Work, want ...string) {
	f.T.Helper()
	f.Eventually("the objects exist and are recorded", func() error {
		var live, recorded []string
		uids := map[string]bool{}
		var configMaps corev1.ConfigMapList
		if err := f.member.List(context.Background(), &configMaps, client.InNamespace(f.name),
			client.MatchingLabels{v1alpha1.AppliedLabel: "true"}); err != nil {
			return err
		}
		for _, o := range configMaps.Items {
			live = append(live, "ConfigMap "+o.Name+" "+o.Data["k"])
			uids[string(o.UID)] = true
		}
		var secrets corev1.SecretList
		if err := f.member.List(context.Background(), &secrets, client.InNamespace(f.name),
			client.MatchingLabels{v1alpha1.AppliedLabel: "true"}); err != nil {
			return err
		}
		for _, o := range secrets.Items {
			live = append(live, "Secret "+o.Name)
			uids[string(o.UID)] = true
		}
		if err := equal(strings.Join(want, ", "), strings.Join(live, ", ")); err != nil {
			return err
		}
		applied := f.applied(work)
		if applied == nil {
			return equal(len(want), 0)
		}
		for _, entry := range applied.Status.Resources {
			recorded = append(recorded, entry.String())
			if !uids[string(entry.UID)] {
				return fmt.Errorf("the inventory has %s with UID %q, which does not exist", entry, entry.UID)
			}
		}
		return equal(len(want), len(recorded))
	})
}
