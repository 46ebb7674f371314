package revision_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/crds"
	"github.com/muster-sdk/muster/placement/internal/revision"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

var scheme = mustertest.Scheme(v1alpha1.AddToScheme)

// plane installs the definitions before its garbage collector first discovers kinds: the next discovery is half a
// minute later.
var plane = localplane.Shared{Options: localplane.Options{Name: "revision",
	Prepare: mustertest.Prepare(scheme, crds.Install)}}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

// hub is a namespace of an API server.
type hub struct{ *testkit.Hub }

// newHub returns a namespace of a server in memory.
func newHub(t testing.TB) *hub {
	t.Helper()
	return &hub{testkit.NewMemoryHub(t, scheme, crds.Install)}
}

// newHubOnPlane returns a namespace of the shared plane.
func newHubOnPlane(t testing.TB) *hub {
	t.Helper()
	return &hub{testkit.NewHub(t, plane.ForTest(t).Config(), scheme)}
}

func (h *hub) workSet(name string) *v1alpha1.WorkSet {
	h.T.Helper()
	w := &v1alpha1.WorkSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name},
		Spec: v1alpha1.WorkSetSpec{
			Placements: []v1alpha1.PlacementReference{{Name: "all"}},
			Resources:  []v1alpha1.ResourceSelector{{Kind: "ConfigMap"}},
		},
	}
	h.Create(w)
	return w
}

// transport counts the requests of a store, and can make writes fail.
type transport struct {
	reads, writes atomic.Int64
	fail          func(write int64) error
}

// limit is the maximum number of bytes of content of a part in these stores.
const limit = 3000

// store returns a new Store, as after a restart.
func (h *hub) store(w *transport) *revision.Store {
	config := rest.CopyConfig(h.Config)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			switch {
			case !strings.Contains(r.URL.Path, "worksetrevisions"): // discovery
			case r.Method == http.MethodGet:
				w.reads.Add(1)
			default:
				if n := w.writes.Add(1); w.fail != nil {
					if err := w.fail(n); err != nil {
						return nil, err
					}
				}
			}
			return inner.RoundTrip(r)
		})
	})
	c := mustertest.Client(h.T, config, scheme)
	s := revision.NewStore(c, c)
	s.SetLimit(limit)
	return s
}

// stored returns the WorkSetRevisions of the namespace by name.
func (h *hub) stored() map[string]*v1alpha1.WorkSetRevision {
	h.T.Helper()
	var list v1alpha1.WorkSetRevisionList
	require.NoError(h.T, h.Client.List(h.T.Context(), &list, client.InNamespace(h.Namespace)))
	out := map[string]*v1alpha1.WorkSetRevision{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

// versions returns the resourceVersions, which change with each write.
func (h *hub) versions() map[string]string {
	h.T.Helper()
	out := map[string]string{}
	for name, r := range h.stored() {
		out[name] = string(r.UID) + "@" + r.ResourceVersion
	}
	return out
}

// content returns a Content with one object for each text.
func content(t require.TestingT, texts ...string) *revision.Content {
	c := &revision.Content{}
	for i, text := range texts {
		o, err := bundle.Of(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("o%d", i)},
			"data": map[string]any{"k": text},
		})
		require.NoError(t, err)
		c.Objects = append(c.Objects, o)
	}
	return c
}

// large returns a Content that needs three parts.
func large(t require.TestingT, text string) *revision.Content {
	text = strings.Repeat(text, limit*2/3/len(text))
	return content(t, text+"0", text+"1", text+"2<")
}

func save(t testing.TB, s *revision.Store, w *v1alpha1.WorkSet, c *revision.Content, number int64) revision.Info {
	t.Helper()
	info, err := s.Save(t.Context(), w, c, number)
	require.NoError(t, err)
	return info
}

func list(t testing.TB, s *revision.Store, w *v1alpha1.WorkSet) []revision.Info {
	t.Helper()
	infos, err := s.List(t.Context(), w)
	require.NoError(t, err)
	return infos
}

// requireLoads checks that the hub contains the complete revision.
func (h *hub) requireLoads(w *v1alpha1.WorkSet, info revision.Info) {
	h.T.Helper()
	c, err := h.store(&transport{}).Load(h.T.Context(), w, info.Name)
	require.NoError(h.T, err)
	require.Equal(h.T, info.Hash, c.Hash())
	require.Len(h.T, c.Objects, info.Objects)
}

var errCrashed = errors.New("crashed")
