package crdinstall

import (
	"context"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answers is a reader of one object, as an API server may show it.
type answers struct {
	client.Client
	status map[string]any
	mapper meta.RESTMapper

	unanswered *int // how many requests for objects are not answered yet; nil: none
}

func (a answers) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return nil
}

func (a answers) RESTMapper() meta.RESTMapper { return a.mapper }

func (a answers) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.(*unstructured.Unstructured).Object["status"] = a.status
	return nil
}

func (a answers) List(context.Context, client.ObjectList, ...client.ListOption) error {
	if a.unanswered == nil || *a.unanswered == 0 {
		return nil
	}
	*a.unanswered--
	return apierrors.NewNotFound(schema.GroupResource{}, "")
}

// TestInstallWaitsForAnswers has an API server whose discovery is that of a definition which was removed just before:
// it says that the new one is established before it answers requests for it.
func TestInstallWaitsForAnswers(t *testing.T) {
	files := fstest.MapFS{"x.yaml": {Data: []byte(
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: xs.example.com}, spec: {
		group: example.com, names: {kind: X}, versions: [{name: v1, served: true}]}}`)}}
	established := map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	synctest.Test(t, func(t *testing.T) {
		unanswered := 3
		mapper := &lagging{requests: map[string]int{}}
		require.NoError(t, Install(t.Context(), answers{status: established, mapper: mapper, unanswered: &unanswered}, files))
		require.Zero(t, unanswered, "it returns when a request was answered")
	})
}

func TestNotEstablished(t *testing.T) {
	condition := func(kind, status, message string) any {
		return map[string]any{"type": kind, "status": status, "message": message}
	}
	for _, test := range []struct {
		reason string
		status map[string]any
		want   string
	}{
		{"no status yet", nil, "x: the API server has not processed the definition"},
		{"an API server shows null before it has looked at a definition", map[string]any{"conditions": nil},
			"x: the API server has not processed the definition"},
		{"what is wrong with it is said", map[string]any{
			"conditions": []any{condition("NamesAccepted", "False", "the name is taken")}}, "x: the name is taken"},
		{"established", map[string]any{"conditions": []any{condition("NamesAccepted", "True", ""),
			condition("Established", "True", "")}}, ""},
	} {
		definition := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x"}}}
		got, err := notEstablished(t.Context(), answers{status: test.status}, definition)
		require.NoError(t, err, test.reason)
		require.Equal(t, test.want, got, test.reason)
	}
}

// lagging is the discovery of an API server that does not have a version for the first so many requests.
type lagging struct {
	meta.RESTMapper
	requests map[string]int
	lag      int
}

func (l *lagging) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	asked := kind.WithVersion(versions[0]).String()
	l.requests[asked]++
	if l.requests[asked] <= l.lag {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return &meta.RESTMapping{}, nil
}

// The API server says Established before it serves anything: who creates an object at once must not be told that there
// is no such kind.
func TestInstallWaitsForDiscovery(t *testing.T) {
	files := fstest.MapFS{"x.yaml": {Data: []byte(
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: xs.example.com}, spec: {
		group: example.com, names: {kind: X}, versions: [{name: v1, served: true}, {name: v2, served: false}, {name: v3,
		  served: true}]}}`)}}
	established := map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	synctest.Test(t, func(t *testing.T) {
		mapper := &lagging{requests: map[string]int{}, lag: 2}
		require.NoError(t, Install(t.Context(), answers{status: established, mapper: mapper}, files))
		// The first version is asked for again while the other one is waited for.
		require.Equal(t, map[string]int{"example.com/v1, Kind=X": 5, "example.com/v3, Kind=X": 3}, mapper.requests)
	})
	synctest.Test(t, func(t *testing.T) {
		never := &lagging{requests: map[string]int{}, lag: 1 << 30}
		err := Install(t.Context(), answers{status: established, mapper: never}, files)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "xs.example.com: discovery of the API server does not contain version v1")
	})
}
