package agent_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestAPIServersDie kills an API server while two agents apply 60 objects each, and starts it again. It is the API
// server of the member of one agent and of the hub of the other one. The other API servers are in memory.
func TestAPIServersDie(t *testing.T) {
	t.Parallel()
	victim := localplane.ForTest(t, localplane.Options{Name: "victim"})
	install(t, newClient(t, victim.Config()))
	ofMember := fixtureOf(t, newMemory(t).Admin(), victim.Config())
	ofHub := fixtureOf(t, victim.Config(), newMemory(t).Admin())
	works := map[*fixture]*v1alpha1.Work{}
	for _, f := range []*fixture{ofMember, ofHub} {
		works[f] = f.applyMany()
	}
	for f := range works {
		f.Eventually("the apply has begun", func() error {
			if f.data("a003", "k") == "" {
				return fmt.Errorf("no object is applied yet")
			}
			return nil
		})
	}
	require.NoError(t, victim.KillAPIServer())
	require.NoError(t, victim.StartAPIServer(context.Background()))
	for f, work := range works {
		f.requireMany(work)
	}
}

const manyObjects = 60

// applyMany starts an agent and creates a Work with many objects. They take several seconds, so that an API server can
// be killed in the midst of them.
func (f *fixture) applyMany() *v1alpha1.Work {
	f.T.Helper()
	f.toMember.intercept(func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if request.Method == http.MethodPatch {
			<-time.After(400 * time.Millisecond)
		}
		return next.RoundTrip(request)
	})
	f.start()
	var texts []string
	for i := range manyObjects {
		texts = append(texts, configMap(fmt.Sprintf("a%03d", i), "{k: v}"))
	}
	return f.work("shop", "{"+manifests(texts...)+"}")
}

// requireMany requires that the Work of applyMany is applied, healed and deleted.
func (f *fixture) requireMany(work *v1alpha1.Work) {
	f.T.Helper()
	f.ready(work)
	applied := f.applied(work)
	require.Len(f.T, applied.Status.Resources, manyObjects)
	var list corev1.ConfigMapList
	require.NoError(f.T, f.member.List(context.Background(), &list, client.InNamespace(f.name),
		client.MatchingLabels{v1alpha1.AppliedLabel: "true"}))
	require.Len(f.T, list.Items, manyObjects)
	uids := map[string]string{}
	for _, o := range list.Items {
		uids[o.Name] = string(o.UID)
	}
	for _, entry := range applied.Status.Resources {
		require.Equal(f.T, uids[entry.Name], string(entry.UID), entry.Name)
	}
	f.patch(f.read("ConfigMap", "a050"), "data: {k: edited}") // the watches are established again
	f.Eventually("ConfigMap a050 has k: v", func() error { return equal("v", f.data("a050", "k")) })
	f.delete(work)
	f.gone(work)
	f.awaitObjects(work)
}

// TestWorkers_BlockedWorkDelaysNoOther checks small Works next to a large one that is blocked, and next to more failing
// Works than there are workers. The requests of the large Work are blocked until the small ones are ready, so the test
// compares no durations.
func TestWorkers_BlockedWorkDelaysNoOther(t *testing.T) {
	testkit.Virtual(t, testWorkersBlockedWorkDelaysNoOther)
}

func testWorkersBlockedWorkDelaysNoOther(t *testing.T) {
	f := newMemoryFixture(t)
	f.options.Apply.Timeout = time.Hour
	release, blocked := make(chan struct{}), make(chan struct{}, 1000)
	f.toMember.intercept(func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/configmaps/big") {
			blocked <- struct{}{}
			select {
			case <-release:
			case <-request.Context().Done():
				return nil, request.Context().Err()
			}
		}
		return next.RoundTrip(request)
	})
	f.start()
	var texts []string
	for i := range 100 {
		texts = append(texts, configMap(fmt.Sprintf("big%03d", i), "{k: v}"))
	}
	big := f.work("big", "{"+manifests(texts...)+"}")
	<-blocked // the large Work is being applied
	for i := range 12 {
		f.work(fmt.Sprintf("broken%d", i),
			"{"+manifests("{apiVersion: example.com/v1, kind: Wheel, metadata: {name: x, namespace: NS}}",
				"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: nowhere}}")+"}")
	}
	var small []*v1alpha1.Work
	for i := range 20 {
		name := fmt.Sprintf("small%d", i)
		small = append(small, f.work(name, "{"+manifests(configMap(name, "{k: v}"))+"}"))
	}
	for _, work := range small {
		f.ready(work)
	}
	require.NoError(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(big), big))
	require.NotEqual(t, "100/100", big.Status.Ready, "the large Work is still blocked")
	close(release)
	f.ready(big)
	f.patch(f.read("ConfigMap", "big050"), "data: {k: edited}")
	f.Eventually("ConfigMap big050 has k: v", func() error { return equal("v", f.data("big050", "k")) })
}

// TestWorkers_RequestsWithoutResponse checks that a Work whose executor's requests get no response blocks no other
// Work.
func TestWorkers_RequestsWithoutResponse(t *testing.T) {
	testkit.Virtual(t, testWorkersRequestsWithoutResponse)
}

func testWorkersRequestsWithoutResponse(t *testing.T) {
	f := newMemoryFixture(t)
	f.options.Apply.Timeout = time.Hour // a request without a response never times out
	f.toMember.intercept(func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !strings.Contains(request.URL.Path, "/namespaces/hole") {
			return next.RoundTrip(request)
		}
		<-request.Context().Done()
		return nil, request.Context().Err()
	})
	f.create(f.member, "{apiVersion: v1, kind: Namespace, metadata: {name: hole-NS}}")
	f.start()
	for i := range 3 {
		f.work(fmt.Sprintf("hole%d", i),
			"{"+manifests("{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: hole-NS}}")+"}")
	}
	for i := range 10 {
		name := fmt.Sprintf("a%d", i)
		f.ready(f.work(name, "{"+manifests(configMap(name, "{k: v}"))+"}"))
	}
}
