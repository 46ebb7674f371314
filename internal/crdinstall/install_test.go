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

// fakeServer is an API server with one definition, which has a given status.
type fakeServer struct {
	client.Client
	status map[string]any
	mapper meta.RESTMapper

	notServed *int // The number of further requests for objects that fail with NotFound; nil: none.
}

func (a fakeServer) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return nil
}

func (a fakeServer) RESTMapper() meta.RESTMapper { return a.mapper }

func (a fakeServer) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.(*unstructured.Unstructured).Object["status"] = a.status
	return nil
}

func (a fakeServer) List(context.Context, client.ObjectList, ...client.ListOption) error {
	if a.notServed == nil || *a.notServed == 0 {
		return nil
	}
	*a.notServed--
	return apierrors.NewNotFound(schema.GroupResource{}, "")
}

// TestInstall_WaitsUntilRequestsAreServed checks that Install waits until a request for objects of the definition
// succeeds. The API server reports Established earlier if its discovery still has a definition that was just removed.
func TestInstall_WaitsUntilRequestsAreServed(t *testing.T) {
	files := fstest.MapFS{"x.yaml": {Data: []byte(
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: xs.example.com}, spec: {
		group: example.com, names: {kind: X}, versions: [{name: v1, served: true}]}}`)}}
	established := map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	synctest.Test(t, func(t *testing.T) {
		notServed := 3
		mapper := &laggingDiscovery{requests: map[string]int{}}
		server := fakeServer{status: established, mapper: mapper, notServed: &notServed}
		require.NoError(t, Install(t.Context(), server, files))
		require.Zero(t, notServed, "Install returns after the first request that succeeds")
	})
}

func TestNotEstablished_Message(t *testing.T) {
	condition := func(kind, status, message string) any {
		return map[string]any{"type": kind, "status": status, "message": message}
	}
	for _, test := range []struct {
		reason string
		status map[string]any
		want   string
	}{
		{"no status yet", nil, "x: the API server has not processed the definition"},
		{"conditions are null before the API server has processed the definition", map[string]any{"conditions": nil},
			"x: the API server has not processed the definition"},
		{"names are not accepted", map[string]any{
			"conditions": []any{condition("NamesAccepted", "False", "the name is taken")}}, "x: the name is taken"},
		{"established", map[string]any{"conditions": []any{condition("NamesAccepted", "True", ""),
			condition("Established", "True", "")}}, ""},
	} {
		definition := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "x"}}}
		got, err := notEstablished(t.Context(), fakeServer{status: test.status}, definition)
		require.NoError(t, err, test.reason)
		require.Equal(t, test.want, got, test.reason)
	}
}

// laggingDiscovery is the discovery of an API server that does not have a version in the first lag requests for it.
type laggingDiscovery struct {
	meta.RESTMapper
	requests map[string]int
	lag      int
}

func (l *laggingDiscovery) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	version := kind.WithVersion(versions[0]).String()
	l.requests[version]++
	if l.requests[version] <= l.lag {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return &meta.RESTMapping{}, nil
}

// TestInstall_WaitsForDiscovery checks that Install waits until discovery has all served versions. The API server
// reports Established earlier, and a client that creates an object at once would get the error that the kind does not
// exist.
func TestInstall_WaitsForDiscovery(t *testing.T) {
	files := fstest.MapFS{"x.yaml": {Data: []byte(
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: xs.example.com}, spec: {
		group: example.com, names: {kind: X}, versions: [{name: v1, served: true}, {name: v2, served: false}, {name: v3,
		  served: true}]}}`)}}
	established := map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	synctest.Test(t, func(t *testing.T) {
		mapper := &laggingDiscovery{requests: map[string]int{}, lag: 2}
		require.NoError(t, Install(t.Context(), fakeServer{status: established, mapper: mapper}, files))
		// Install requests the first version again while it waits for the other version.
		require.Equal(t, map[string]int{"example.com/v1, Kind=X": 5, "example.com/v3, Kind=X": 3}, mapper.requests)
	})
	synctest.Test(t, func(t *testing.T) {
		never := &laggingDiscovery{requests: map[string]int{}, lag: 1 << 30}
		err := Install(t.Context(), fakeServer{status: established, mapper: never}, files)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "xs.example.com: discovery of the API server does not contain version v1")
	})
}
