package selection

import (
	"errors"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWatchProblem(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	refused := &url.Error{Op: "Get", URL: "https://hub/api/v1/secrets?timeoutSeconds=417", Err: syscall.ECONNREFUSED}
	const listed, unlisted = true, false
	for _, tc := range []struct {
		reason  string
		err     error
		listed  bool
		failing time.Duration
		want    problem
	}{
		{
			"a forbidden list names the permission and the user", apierrors.NewForbidden(secrets, "",
				errors.New(`User "system:serviceaccount:muster:hub" cannot list resource "secrets"`)), unlisted, 0,
			problem{ReasonForbidden, `the hub's controller is not allowed to read the objects: grant list and watch ` +
				`on secrets "key" in ` +
				`namespace shop to system:serviceaccount:muster:hub`},
		},
		{
			"a forbidden watch without the name of the user", apierrors.NewForbidden(secrets, "", errors.New("no")), listed, 0,
			problem{ReasonForbidden,
				`the hub's controller is not allowed to read the objects: grant list and watch on secrets "key" in ` +
					`namespace shop to the controller`},
		},
		{
			"the kind is no longer served", apierrors.NewGenericServerResponse(404, "list", secrets, "", "", 0, true), listed, 0,
			problem{ReasonUnknownKind,
				"the hub no longer serves secrets of version v1: install the kind again, or correct the selector"},
		},
		{"the kind cannot be listed", apierrors.NewMethodNotSupported(secrets, "list"), unlisted, 0,
			problem{ReasonInvalid, "secrets cannot be listed and watched: remove the selector"}},
		{
			"the API server rejects the selector", apierrors.NewBadRequest("field label not supported: metadata.name"),
			unlisted, 0,
			problem{ReasonInvalid, `the API server rejects the list of secrets "key" in namespace shop: ` +
				`field label not supported: metadata.name: correct the selector`},
		},
		{
			"a failing list without the address", refused, unlisted, 0,
			problem{ReasonNotSynced,
				`listing secrets "key" in namespace shop fails and is retried: connection refused`},
		},
		{"a watch that fails for a minute is no problem", refused, listed, time.Minute, problem{}},
		{
			"a watch that fails for more than a minute", refused, listed, time.Minute + 1,
			problem{ReasonStale,
				`watching secrets "key" in namespace shop fails and is retried: connection refused`},
		},
		{"an expired credential for a second is no problem",
			apierrors.NewUnauthorized("token has expired"), listed, time.Second,
			problem{}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			target := Target{GroupVersionResource: secrets.WithVersion("v1"), Kind: "Secret", Namespace: "shop", Name: "key"}
			require.Equal(t, tc.want, watchProblem(target, tc.listed, tc.failing, tc.err))
		})
	}
}

func TestMappingProblem(t *testing.T) {
	none := &meta.NoKindMatchError{}
	for _, tc := range []struct {
		reason string
		kind   schema.GroupVersionKind
		err    error
		want   problem
	}{
		{"a version that is not served", schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Widget"}, none,
			problem{ReasonUnknownKind, "the hub does not serve kind Widget of example.com/v2: install its " +
				"CustomResourceDefinition, or correct the selector"}},
		{"no version", schema.GroupVersionKind{Group: "example.com", Kind: "Widget"}, none,
			problem{ReasonUnknownKind, "the hub does not serve kind Widget of example.com: install its " +
				"CustomResourceDefinition, or correct the selector"}},
		{"no group", schema.GroupVersionKind{Kind: "Deployment"}, none,
			problem{ReasonUnknownKind, "the hub does not serve kind Deployment of the core group: install its " +
				"CustomResourceDefinition, or correct the selector"}},
		{
			"discovery fails", schema.GroupVersionKind{Kind: "Deployment"},
			&url.Error{Op: "Get", URL: "https://hub/apis", Err: syscall.ECONNREFUSED},
			problem{ReasonNotSynced, "discovering the kinds of the hub fails and is retried: connection refused"},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) { require.Equal(t, tc.want, mappingProblem(tc.kind, tc.err)) })
	}
}
