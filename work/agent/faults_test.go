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

	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestAPIServersDie has each of two API servers killed while 200 objects are being applied, and started again.
func TestAPIServersDie(t *testing.T) {
	t.Parallel()
	member := localplane.ForTest(t, localplane.Options{Name: "member"})
	hub := localplane.ForTest(t, localplane.Options{Name: "hub"})
	install(t, newClient(t, member.Config()))
	install(t, newClient(t, hub.Config()))
	w := worldOf(t, hub.Config(), member.Config())
	w.start()
	var texts []string
	for i := range 200 {
		texts = append(texts, configMap(fmt.Sprintf("a%03d", i), "{k: v}"))
	}
	for _, victim := range []*localplane.Plane{member, hub} {
		work := w.work("shop", "{"+manifests(texts...)+"}")
		w.eventually(func() error { // it has begun
			if w.data("a003", "k") == "" {
				return fmt.Errorf("nothing is applied yet")
			}
			return nil
		})
		require.NoError(t, victim.KillAPIServer())
		require.NoError(t, victim.StartAPIServer(context.Background()))
		w.ready(work)
		applied := w.applied(work)
		require.Len(t, applied.Status.Resources, 200)
		var list corev1.ConfigMapList
		require.NoError(t, w.member.List(context.Background(), &list, client.InNamespace(w.name), client.MatchingLabels{v1alpha1.AppliedLabel: "true"}))
		require.Len(t, list.Items, 200)
		uids := map[string]string{}
		for _, o := range list.Items {
			uids[o.Name] = string(o.UID)
		}
		for _, entry := range applied.Status.Resources {
			require.Equal(t, uids[entry.Name], string(entry.UID), entry.Name)
		}
		w.patch(w.read("ConfigMap", "a100"), "data: {k: edited}") // its watches are back
		w.eventually(func() error { return equal("v", w.data("a100", "k")) })
		w.delete(work)
		w.gone(work)
		w.exact(work)
	}
}

// TestOthersAreNotDelayed has many small Works beside one of a thousand manifests, and beside as many that are broken as there
// are workers and more.
func TestOthersAreNotDelayed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.start()
	defer stop()
	var texts []string
	for i := range v1alpha1.MaxManifests {
		texts = append(texts, configMap(fmt.Sprintf("big%03d", i), "{k: v}"))
	}
	began := time.Now()
	big := w.work("big", "{"+manifests(texts...)+"}")
	for i := range 12 {
		w.work(fmt.Sprintf("broken%d", i), "{"+manifests("{apiVersion: example.com/v1, kind: Wheel, metadata: {name: x, namespace: NS}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: nowhere}}")+"}")
	}
	var small []*v1alpha1.Work
	for i := range 20 {
		name := fmt.Sprintf("small%d", i)
		small = append(small, w.work(name, "{"+manifests(configMap(name, "{k: v}"))+"}"))
	}
	for _, work := range small {
		w.ready(work)
	}
	others := time.Since(began)
	require.NoError(t, w.hub.Get(t.Context(), client.ObjectKeyFromObject(big), big))
	require.NotEqual(t, fmt.Sprintf("%d/%[1]d", v1alpha1.MaxManifests), big.Status.Ready, "those that began last are ready first")
	w.ready(big)
	t.Logf("the others took %s, the big one %s", others, time.Since(began))

	began = time.Now()
	w.patch(w.read("ConfigMap", "big500"), "data: {k: edited}")
	w.eventually(func() error { return equal("v", w.data("big500", "k")) })
	t.Logf("one of a thousand healed after %s", time.Since(began))
	w.delete(big)
	w.gone(big)
}

// TestBlackHole has a Work whose executor's requests are swallowed: it holds up nobody.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.options.Apply.Timeout = time.Hour // whoever waits for one of those requests waits for ever
	w.toHost.disturb(func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if !strings.Contains(request.URL.Path, "/namespaces/hole") {
			return next.RoundTrip(request)
		}
		<-request.Context().Done()
		return nil, request.Context().Err()
	})
	w.create(w.member, "{apiVersion: v1, kind: Namespace, metadata: {name: hole-NS}}")
	w.start()
	for i := range 3 {
		w.work(fmt.Sprintf("hole%d", i), "{"+manifests("{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: hole-NS}}")+"}")
	}
	for i := range 10 {
		name := fmt.Sprintf("a%d", i)
		w.ready(w.work(name, "{"+manifests(configMap(name, "{k: v}"))+"}"))
	}
}
