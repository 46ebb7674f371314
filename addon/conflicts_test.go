package addon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/mustertest"
)

// conflicting answers the first write of each verb and resource with a conflict, as if another client had written
// before.
type conflicting struct {
	mu   sync.Mutex
	left map[string]int // by verb and resource
}

func (c *conflicting) roundTripper(next http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		request := r.Method + " " + mustertest.AttributesOf(r).Resource
		c.mu.Lock()
		left, known := c.left[request]
		if !known {
			left = 1
		}
		c.left[request] = left - 1
		c.mu.Unlock()
		if r.Method == http.MethodGet || mustertest.AttributesOf(r).Resource == "events" || left <= 0 {
			return next.RoundTrip(r)
		}
		answer := apierrors.NewConflict(schema.GroupResource{}, request, nil).Status()
		if r.Method == http.MethodPost {
			answer = apierrors.NewAlreadyExists(schema.GroupResource{}, request).Status()
		}
		answer.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		body, err := json.Marshal(answer)
		return &http.Response{
			StatusCode: http.StatusConflict, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(bytes.NewReader(body)), Request: r,
		}, err
	})
}

// tidyReporter is an add-on with access to the hub, and a Job that runs before its removal.
type tidyReporter struct{ reporter }

func (r tidyReporter) Manifests(ctx context.Context, in addon.Input) ([]client.Object, error) {
	return cleaner{r.echo}.Manifests(ctx, in)
}

// TestConflicts checks that conflicts with another client at any write of the lifecycle of an add-on do not change
// the result, and cause no error in the log.
func TestConflicts(t *testing.T) { testkit.Virtual(t, testConflicts) }

func testConflicts(t *testing.T) {
	h := newHub(t)
	err := h.Client.Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.RegistrationNamespace}})
	require.True(t, err == nil || apierrors.IsAlreadyExists(err), err)
	h.members("a", "b")
	h.choose("all", "a", "b")
	h.runAgents()
	h.color("colors", "blue")
	var mu sync.Mutex
	var lines []string
	conflicts := &conflicting{left: map[string]int{}}
	h.wrap = conflicts.roundTripper
	h.manage = func(o *manager.Options) {
		o.Logger = funcr.NewJSON(func(line string) {
			var entry struct{ Error *string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Error != nil {
				mu.Lock()
				lines = append(lines, line)
				mu.Unlock()
			}
		}, funcr.Options{})
	}
	r := h.start(addon.Options{Agents: []addon.Agent{tidyReporter{reporter{echo{h.name("echo")}}}},
		Registration: h.registration()})
	h.createMemberAddon("echo", "b", nil)
	h.addon("echo", func(s *v1alpha1.AddonSpec) {
		h.byPlacement("all")(s)
		s.Configs = []v1alpha1.ConfigKind{{Group: v1alpha1.GroupName, Resource: "addonconfigs",
			Defaults: []v1alpha1.ObjectName{h.reference("colors").ObjectName}}}
	})
	h.updated("echo", "a")
	h.updated("echo", "b")
	h.color("colors", "red")
	for _, member := range []string{"a", "b"} {
		h.Holds(member+" has the new color", func() bool { return h.colorOf("echo", member) == "red" })
	}
	h.choose("all", "b")
	h.waitForRemoval("echo", "a")
	a := h.get("echo")
	require.NoError(t, h.Client.Delete(t.Context(), a, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	h.Holds("all is gone", func() bool { return h.isDeleted(a) && len(h.works("echo", "b")) == 0 })
	mu.Lock()
	logged := slices.Clone(lines)
	mu.Unlock()
	require.Empty(t, logged, "conflicts must not be logged as errors")
	r.stop() // cancels running requests

	conflicts.mu.Lock()
	defer conflicts.mu.Unlock()
	for _, request := range []string{
		"PATCH addons", "PATCH addons/status", "POST memberaddons", "PATCH memberaddons", "PATCH memberaddons/status",
		"DELETE memberaddons",
		"POST works", "PATCH works", "DELETE works",
		"POST roles", "POST rolebindings", "POST serviceaccounts", "POST serviceaccounts/token", "DELETE roles",
		"DELETE rolebindings", "DELETE serviceaccounts",
	} {
		require.Negative(t, conflicts.left[request], "%s: want a conflict and a successful retry", request)
	}
}
