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

// contested is a hub on which another client conflicts with the first write of each kind.
type contested struct {
	mu   sync.Mutex
	left map[string]int // by verb and resource
}

func (c *contested) through(next http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		what := r.Method + " " + mustertest.AttributesOf(r).Resource
		c.mu.Lock()
		left, known := c.left[what]
		if !known {
			left = 1
		}
		c.left[what] = left - 1
		c.mu.Unlock()
		if r.Method == http.MethodGet || mustertest.AttributesOf(r).Resource == "events" || left <= 0 {
			return next.RoundTrip(r)
		}
		answer := apierrors.NewConflict(schema.GroupResource{}, what, nil).Status()
		if r.Method == http.MethodPost {
			answer = apierrors.NewAlreadyExists(schema.GroupResource{}, what).Status()
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
	err := h.client.Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.RegistrationNamespace}})
	require.True(t, err == nil || apierrors.IsAlreadyExists(err), err)
	h.members("a", "b")
	h.choose("all", "a", "b")
	h.obey()
	h.color("colors", "blue")
	var mu sync.Mutex
	var said []string
	quicker := &contested{left: map[string]int{}}
	h.wrap = quicker.through
	h.manage = func(o *manager.Options) {
		o.Logger = funcr.NewJSON(func(line string) {
			var entry struct{ Error *string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Error != nil {
				mu.Lock()
				said = append(said, line)
				mu.Unlock()
			}
		}, funcr.Options{})
	}
	r := h.start(addon.Options{Agents: []addon.Agent{tidyReporter{reporter{echo{h.name("echo")}}}},
		Registration: h.registration()})
	h.own("echo", "b", nil)
	h.addon("echo", func(s *v1alpha1.AddonSpec) {
		h.placed("all")(s)
		s.Configs = []v1alpha1.ConfigKind{{Group: v1alpha1.GroupName, Resource: "addonconfigs",
			Defaults: []v1alpha1.ObjectName{h.reference("colors").ObjectName}}}
	})
	h.updated("echo", "a")
	h.updated("echo", "b")
	h.color("colors", "red")
	for _, member := range []string{"a", "b"} {
		h.eventually(member+" has what is new", func() bool { return h.colorOf("echo", member) == "red" })
	}
	h.choose("all", "b")
	h.hasNot("echo", "a")
	a := h.get("echo")
	require.NoError(t, h.client.Delete(t.Context(), a, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	h.eventually("all is gone", func() bool { return h.gone(a) && len(h.works("echo", "b")) == 0 })
	mu.Lock()
	heard := slices.Clone(said)
	mu.Unlock()
	require.Empty(t, heard, "it is normal")
	r.stop() // which cuts off what is under way

	quicker.mu.Lock()
	defer quicker.mu.Unlock()
	for _, what := range []string{
		"PATCH addons", "PATCH addons/status", "POST memberaddons", "PATCH memberaddons", "PATCH memberaddons/status",
		"DELETE memberaddons",
		"POST works", "PATCH works", "DELETE works",
		"POST roles", "POST rolebindings", "POST serviceaccounts", "POST serviceaccounts/token", "DELETE roles",
		"DELETE rolebindings", "DELETE serviceaccounts",
	} {
		require.Negative(t, quicker.left[what], "%s was contested, and was done in the end", what)
	}
}
