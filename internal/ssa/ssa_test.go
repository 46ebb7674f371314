package ssa

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	kind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	name = client.ObjectKey{Namespace: "shop", Name: "prices"}
)

// fakeServer is an API server that has the error for each request, and records the requests that write.
type fakeServer struct {
	client.Client
	err     error
	applied client.ApplyOptions
	deleted struct {
		object  client.Object
		options client.DeleteOptions
	}
}

func (f *fakeServer) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetName(key.Name)
	into.SetUID("u")
	return f.err
}

func (f *fakeServer) Apply(_ context.Context, config runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	f.applied.ApplyOptions(options)
	// The client of controller-runtime replaces the content in the same way.
	config.(interface{ SetUnstructuredContent(map[string]any) }).SetUnstructuredContent(map[string]any{"response": true})
	return f.err
}

func (f *fakeServer) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	f.deleted.object = object
	f.deleted.options.ApplyOptions(options)
	return f.err
}

func TestApply_ReturnsTheResponse(t *testing.T) {
	server := &fakeServer{}
	config := New(kind, name)
	response, err := Apply(t.Context(), server, config, "manager", client.ForceOwnership, client.DryRunAll)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"response": true}, response.Object)
	require.Equal(t, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": "shop", "name": "prices"}}, config.Object, "the config is not changed")
	require.Equal(t, "manager", server.applied.FieldManager)
	require.True(t, *server.applied.Force)
	require.Equal(t, []string{metav1.DryRunAll}, server.applied.DryRun)

	_, err = Apply(t.Context(), server, config, "manager")
	require.NoError(t, err)
	server = &fakeServer{err: apierrors.NewBadRequest("invalid")}
	_, err = Apply(t.Context(), server, config, "manager")
	require.ErrorIs(t, err, server.err)
	require.Nil(t, server.applied.Force, "only ForceOwnership takes fields from other managers")
}

func TestMetadata_AbsentAndUnserved(t *testing.T) {
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	for reason, test := range map[string]struct {
		err               error
		exists, succeeds  bool
		readErr, unserved bool
	}{
		"the object exists": {exists: true, succeeds: true},
		"the object does not exist": {err: apierrors.NewNotFound(resource, name.Name), succeeds: true,
			readErr: true},
		"the path is not served": {err: apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, name.Name,
			"404 page not found", 0, true), readErr: true, unserved: true},
		"discovery does not have the kind": {err: &meta.NoKindMatchError{GroupKind: kind.GroupKind()}, readErr: true,
			unserved: true},
		"the response of a broken server has no status": {err: apierrors.NewGenericServerResponse(
			http.StatusInternalServerError, "get", resource, name.Name, "panic", 0, true), readErr: true},
		"the request is forbidden": {err: apierrors.NewForbidden(resource, name.Name, nil), readErr: true},
	} {
		server := &fakeServer{err: test.err}
		found, err := Metadata(t.Context(), server, kind, name)
		require.Equal(t, test.exists, found != nil, reason)
		require.Equal(t, test.succeeds, err == nil, reason)
		require.Equal(t, test.unserved, Unserved(err), reason)
		if found != nil {
			require.Equal(t, kind, found.GroupVersionKind(), reason)
		}
		object, err := Read(t.Context(), server, kind, name)
		require.Equal(t, test.readErr, err != nil, reason)
		require.Equal(t, !test.readErr, object != nil, reason)
	}
}

func TestDelete_IsBoundToTheObservedObject(t *testing.T) {
	observed := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: name.Namespace, Name: name.Name, UID: "u", ResourceVersion: "5",
	}}
	observed.SetGroupVersionKind(kind)
	server := &fakeServer{}
	require.NoError(t,
		Delete(t.Context(), server, observed, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	require.Equal(t, New(kind, name), server.deleted.object)
	require.Equal(t, metav1.DeletePropagationForeground, *server.deleted.options.PropagationPolicy)
	require.Equal(t, types.UID("u"), *server.deleted.options.Preconditions.UID)
	require.Equal(t, "5", *server.deleted.options.Preconditions.ResourceVersion)
}

func TestDefinedKind_ServedVersions(t *testing.T) {
	definition := New(DefinitionKind.WithVersion("v1"), client.ObjectKey{Name: "xs.example.com"})
	got, versions := DefinedKind(definition)
	require.Empty(t, got, "a definition without a spec")
	require.Empty(t, versions)
	definition.Object["spec"] = map[string]any{"group": "example.com", "names": map[string]any{"kind": "X"},
		"versions": []any{
			map[string]any{"name": "v1", "served": true}, map[string]any{"name": "v2", "served": false}, "invalid",
			map[string]any{"served": true}, map[string]any{"name": "v3", "served": true},
		}}
	got, versions = DefinedKind(definition)
	require.Equal(t, schema.GroupKind{Group: "example.com", Kind: "X"}, got)
	require.Equal(t, []string{"v1", "v3"}, versions)
}

func TestEstablished_Conditions(t *testing.T) {
	for reason, test := range map[string]struct {
		status any
		want   bool
	}{
		"no status":            {nil, false},
		"conditions are null":  {map[string]any{"conditions": nil}, false},
		"another condition":    {conditions("NamesAccepted", "True"), false},
		"established is false": {conditions("NamesAccepted", "True", "Established", "False"), false},
		"established":          {conditions("NamesAccepted", "True", "Established", "True"), true},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"status": test.status}}
		require.Equal(t, test.want, Established(object), reason)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"status": conditions("A", "True", "B", "False")}}
	require.Len(t, Conditions(object), 2)
	require.Equal(t, "False", Condition(object, "B")["status"])
	require.Nil(t, Condition(object, "C"))
}

func conditions(typesAndStatuses ...string) map[string]any {
	var list []any
	for pair := range slices.Chunk(typesAndStatuses, 2) {
		list = append(list, map[string]any{"type": pair[0], "status": pair[1]})
	}
	return map[string]any{"conditions": list}
}

// keyOf returns the Key of an entry such as "a=1": the object is a, and the rest is what the inventory records about a.
func keyOf(entry string) Key {
	object, _, _ := strings.Cut(entry, "=")
	return Key{Name: object}
}

func TestAhead_EachObjectOnce(t *testing.T) {
	require.Equal(t, []string{"c=1", "a=1", "b=2"}, Ahead([]string{"b=1", "c=1"}, []string{"a=1", "b=2"}, keyOf),
		"stale entries, then the desired ones in their order")
	require.Equal(t, []string{"c=2", "b=1", "a=2"},
		Ahead([]string{"c=1", "c=2"}, []string{"a=1", "b=1", "a=2"}, keyOf), "the last entry of an object is used")
	require.Equal(t, map[Key]string{{Name: "a"}: "a=2", {Name: "b"}: "b=1"}, Index([]string{"a=1", "b=1", "a=2"}, keyOf))
}

func TestStale_NotDesired(t *testing.T) {
	require.Equal(t, []string{"a=1", "c=1"}, Stale([]string{"a=1", "b=1", "c=1"}, []string{"b=2", "d=1"}, keyOf))
	require.Empty(t, Stale([]string{"a=1"}, []string{"a=2"}, keyOf), "a changed entry is of the same object")
}

// TestInventory_Properties checks that the inventory ahead of the writes has all recorded and all desired objects, and
// that the stale objects are those that the deletion of its other objects leaves.
func TestInventory_Properties(t *testing.T) {
	entries := rapid.SliceOf(rapid.SampledFrom([]string{"a=1", "a=2", "b=1", "b=2", "c=1", "d=1"}))
	rapid.Check(t, func(t *rapid.T) {
		recorded, desired := entries.Draw(t, "recorded"), entries.Draw(t, "desired")
		ahead := Ahead(recorded, desired, keyOf)
		union := Index(recorded, keyOf)
		maps.Copy(union, Index(desired, keyOf))
		require.Equal(t, union, Index(ahead, keyOf))
		require.Len(t, ahead, len(union))
		require.Equal(t, ahead, Ahead(ahead, desired, keyOf), "Ahead is idempotent")
		for _, entry := range Stale(ahead, desired, keyOf) {
			require.NotContains(t, Index(desired, keyOf), keyOf(entry))
		}
		require.Len(t, Stale(ahead, desired, keyOf), len(union)-len(Index(desired, keyOf)))
	})
}
