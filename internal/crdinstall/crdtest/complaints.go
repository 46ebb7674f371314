package crdtest

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Complaint is a validation error in the form that the API server and Validate have in common.
type Complaint struct{ Kind, Field, Message string }

// Complaints returns the validation errors in an error of the API server.
func Complaints(t *testing.T, err error) []Complaint {
	t.Helper()
	var status *apierrors.StatusError
	require.ErrorAs(t, err, &status)
	var found []Complaint
	for _, cause := range status.ErrStatus.Details.Causes {
		// A cause without a field reports that rules were skipped because of the other causes.
		if cause.Field != "<nil>" {
			found = append(found, Complaint{string(cause.Type), cause.Field, cause.Message})
		}
	}
	return found
}

// Validated returns the validation errors of Validate.
func Validated(errs field.ErrorList) []Complaint {
	var found []Complaint
	for _, e := range errs {
		found = append(found, Complaint{string(e.Type), e.Field, e.ErrorBody()})
	}
	return found
}

// One fails the test, without stopping it, unless there is exactly one complaint, the complaint's field begins with the
// field of want, and its message contains the message of want.
func One(t *testing.T, reason string, want Complaint, got []Complaint) {
	t.Helper()
	if len(got) != 1 || !strings.HasPrefix(got[0].Field, want.Field) || !strings.Contains(got[0].Message, want.Message) {
		t.Errorf("%s: want one complaint about %s that says %q, got %+v", reason, want.Field, want.Message, got)
	}
}

var index = regexp.MustCompile(`\[\d+\]`)

// BrokenBy reports whether one of the complaints is a violation of the rule.
func (r Rule) BrokenBy(complaints []Complaint) bool {
	return slices.ContainsFunc(complaints, func(c Complaint) bool {
		return c.Kind == r.Kind && index.ReplaceAllString(c.Field, "[]") == r.Field && strings.Contains(c.Message, r.Message)
	})
}

// Versions returns the resourceVersions of the definitions of a control plane, by name.
func Versions(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	var definitions apiextensionsv1.CustomResourceDefinitionList
	require.NoError(t, c.List(t.Context(), &definitions))
	found := map[string]string{}
	for i := range definitions.Items {
		found[definitions.Items[i].Name] = definitions.Items[i].ResourceVersion
	}
	return found
}

// InstallsNothing checks that an installation applies no definition, because all of them are installed.
func InstallsNothing(t *testing.T, c client.Client, install func(context.Context, client.Client) error) {
	t.Helper()
	counting := &applyCounter{Client: c}
	require.NoError(t, install(t.Context(), counting))
	require.Empty(t, counting.definitions, "definitions that were applied again without a difference")
}

// applyCounter is a client that records which definitions are applied with it.
type applyCounter struct {
	client.Client
	definitions []string
}

func (a *applyCounter) Apply(ctx context.Context, config runtime.ApplyConfiguration, o ...client.ApplyOption) error {
	object := config.(interface {
		GetKind() string
		GetName() string
	})
	if object.GetKind() == "CustomResourceDefinition" {
		a.definitions = append(a.definitions, object.GetName())
	}
	return a.Client.Apply(ctx, config, o...)
}
