package crdinstall

import (
	"context"
	"maps"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/internal/ssa"
)

func TestVersionIn_BuildInfo(t *testing.T) {
	muster := func(version string) debug.Module { return debug.Module{Path: module, Version: version} }
	replaced := muster("v0.5.0")
	replaced.Replace = &debug.Module{Path: "../muster"}
	fork := muster("v0.5.0")
	fork.Replace = &debug.Module{Path: "example.com/fork", Version: "v0.6.0"}
	released, pseudo := muster("v0.5.0"), muster("v0.5.1-0.20261122101112-0123456789ab")
	for name, test := range map[string]struct {
		build *debug.BuildInfo
		want  string
	}{
		"no build information": {nil, ""},
		"a dependency of another program": {
			&debug.BuildInfo{Deps: []*debug.Module{{Path: "k8s.io/api", Version: "v1.0.0"}, &released}}, "0.5.0"},
		"a commit between two releases": {&debug.BuildInfo{Deps: []*debug.Module{&pseudo}},
			"0.5.1-0.20261122101112-0123456789ab"},
		"a module replaced by a folder": {&debug.BuildInfo{Deps: []*debug.Module{&replaced}}, ""},
		"a module replaced by a fork":   {&debug.BuildInfo{Deps: []*debug.Module{&fork}}, "0.6.0"},
		"a program of muster":           {&debug.BuildInfo{Main: muster("v0.7.0")}, "0.7.0"},
		"a program of a work tree":      {&debug.BuildInfo{Main: muster("(devel)")}, ""},
		"a program without muster": {
			&debug.BuildInfo{Main: debug.Module{Path: "example.com/other", Version: "v1.0.0"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := versionIn(test.build)
			if test.want == "" {
				require.Nil(t, got)
				return
			}
			require.Equal(t, test.want, got.String())
		})
	}
}

// versions is an API server with definitions that have a version annotation.
type versions struct {
	fakeServer
	installed map[string]string // by name; "" means no annotation
}

func (v versions) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	installed, exists := v.installed[key.Name]
	if !exists {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	definition := into.(*unstructured.Unstructured)
	definition.SetName(key.Name)
	if installed != "" {
		definition.SetAnnotations(map[string]string{VersionAnnotation: installed})
	}
	definition.Object["status"] = map[string]any{
		"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	return nil
}

func (v versions) Apply(_ context.Context, configuration runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	definition := configuration.(interface {
		GetName() string
		GetAnnotations() map[string]string
	})
	v.installed[definition.GetName()] = definition.GetAnnotations()[VersionAnnotation]
	return nil
}

// TestInstall_NoDowngrade checks that an older program applies no definition that a newer one has applied.
func TestInstall_NoDowngrade(t *testing.T) {
	definitions := func() (all []*unstructured.Unstructured) {
		for _, name := range []string{"as", "bs"} {
			definition := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"group": "example.com"}}}
			definition.SetGroupVersionKind(ssa.DefinitionKind.WithVersion("v1"))
			definition.SetName(name)
			all = append(all, definition)
		}
		return all
	}
	for _, test := range []struct {
		name, own                string
		installed, want, wantAll map[string]string // want: after install, wantAll: after keepingNewer
		wantError                string
	}{
		{
			name: "first installation", own: "v0.5.0", installed: map[string]string{},
			want: map[string]string{"as": "v0.5.0", "bs": "v0.5.0"}, wantAll: map[string]string{"as": "v0.5.0", "bs": "v0.5.0"},
		},
		{
			name: "upgrade", own: "v0.10.0", installed: map[string]string{"as": "v0.9.0", "bs": ""},
			want:    map[string]string{"as": "v0.10.0", "bs": "v0.10.0"},
			wantAll: map[string]string{"as": "v0.10.0", "bs": "v0.10.0"},
		},
		{
			name: "older program", own: "v0.5.0", installed: map[string]string{"as": "v0.4.0", "bs": "v0.6.0"},
			want: map[string]string{"as": "v0.4.0", "bs": "v0.6.0"}, wantAll: map[string]string{"as": "v0.5.0", "bs": "v0.6.0"},
			wantError: "install bs: version v0.6.0 of muster has applied the definition, and this program contains v0.5.0: " +
				"run a " +
				"program with v0.6.0 or later, or remove the annotation muster.dev/version from the definition to replace it",
		},
		{
			name: "program without a version", own: "", installed: map[string]string{"as": "v0.4.0", "bs": "v0.6.0"},
			want: map[string]string{"as": "", "bs": ""}, wantAll: map[string]string{"as": "", "bs": ""},
		},
		{
			name: "annotation of another form", own: "v0.5.0", installed: map[string]string{"as": "latest", "bs": "v0.5.0"},
			want: map[string]string{"as": "v0.5.0", "bs": "v0.5.0"}, wantAll: map[string]string{"as": "v0.5.0", "bs": "v0.5.0"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := installer{}
				if test.own != "" {
					i.own = version.MustParseSemantic(test.own)
				}
				server := versions{fakeServer{mapper: &laggingDiscovery{requests: map[string]int{}}}, maps.Clone(test.installed)}
				err := i.install(t.Context(), server, definitions())
				if test.wantError == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, test.wantError)
				}
				require.Equal(t, test.want, server.installed)

				server = versions{fakeServer{mapper: &laggingDiscovery{requests: map[string]int{}}}, maps.Clone(test.installed)}
				require.NoError(t, i.keepingNewer(t.Context(), server, definitions()))
				require.Equal(t, test.wantAll, server.installed)
			})
		})
	}
}

// TestIsApplied checks which installed definitions are applied again.
func TestIsApplied(t *testing.T) {
	parse := func(text string) *unstructured.Unstructured {
		definition := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &definition.Object))
		return definition
	}
	const text = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: xs.example.com},
		spec: {group: example.com, names: {kind: X}, versions: [{name: v1, served: true, schema: {maximum: 3}}]}}`
	config, err := recorded(parse(text), version.MustParseSemantic("v0.5.0"))
	require.NoError(t, err)
	former, err := recorded(parse(strings.Replace(text, "maximum: 3", "maximum: 3, minimum: 1", 1)),
		version.MustParseSemantic("v0.5.0"))
	require.NoError(t, err)
	set := func(value any, fields ...string) func(*unstructured.Unstructured) {
		return func(installed *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedField(installed.Object, value, fields...))
		}
	}
	versions := func(change func(version map[string]any) []any) func(*unstructured.Unstructured) {
		return func(installed *unstructured.Unstructured) {
			all, _, err := unstructured.NestedSlice(installed.Object, "spec", "versions")
			require.NoError(t, err)
			set(change(all[0].(map[string]any)), "spec", "versions")(installed)
		}
	}
	for _, test := range []struct {
		name    string
		change  func(installed *unstructured.Unstructured)
		applied bool
	}{
		{"unchanged", func(*unstructured.Unstructured) {}, true},
		{"the API server adds a default and a status", func(installed *unstructured.Unstructured) {
			set("XList", "spec", "names", "listKind")(installed)
			set(true, "status", "stored")(installed)
		}, true},
		{"a number is decoded as a float", versions(func(version map[string]any) []any {
			version["schema"] = map[string]any{"maximum": float64(3)}
			return []any{version}
		}), true},
		{"another client has changed a field", set("other.com", "spec", "group"), false},
		{"another client has changed a number", versions(func(version map[string]any) []any {
			version["schema"] = map[string]any{"maximum": int64(4)}
			return []any{version}
		}), false},
		{"another client has removed a field", func(installed *unstructured.Unstructured) {
			unstructured.RemoveNestedField(installed.Object, "spec", "names", "kind")
		}, false},
		{"another client has added a version", versions(func(version map[string]any) []any {
			return []any{version, map[string]any{"name": "v2"}}
		}), false},
		{"another client has removed the versions", set([]any{}, "spec", "versions"), false},
		{"the former content has a field that must be removed", func(installed *unstructured.Unstructured) {
			former.DeepCopyInto(installed)
			installed.SetManagedFields(applyEntry)
		}, false},
		{"an earlier release recorded no hash", func(installed *unstructured.Unstructured) {
			unstructured.RemoveNestedField(installed.Object, "metadata", "annotations", HashAnnotation)
		}, false},
		{"another version of the program", set("v0.4.0", "metadata", "annotations", VersionAnnotation), false},
		{"another client owns the fields", func(installed *unstructured.Unstructured) {
			installed.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Apply"}})
		}, false},
		{"it is being deleted", set("2026-01-01T00:00:00Z", "metadata", "deletionTimestamp"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			installed := config.DeepCopy()
			installed.SetManagedFields(applyEntry)
			test.change(installed)
			require.Equal(t, test.applied, isApplied(config, installed))
		})
	}
	require.False(t, isApplied(config, nil), "a definition that does not exist")
}

var applyEntry = []metav1.ManagedFieldsEntry{
	{Manager: string(FieldOwner), Operation: metav1.ManagedFieldsOperationApply},
}
