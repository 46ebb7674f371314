package crdtest

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Complaint is what the API server and Validate have in common.
type Complaint struct{ Kind, Field, Message string }

// Complaints are those of the API server in an error.
func Complaints(t *testing.T, err error) []Complaint {
	t.Helper()
	var status *apierrors.StatusError
	require.ErrorAs(t, err, &status)
	var found []Complaint
	for _, cause := range status.ErrStatus.Details.Causes {
		// Not about a field: that rules were skipped because of the other complaints.
		if cause.Field != "<nil>" {
			found = append(found, Complaint{string(cause.Type), cause.Field, cause.Message})
		}
	}
	return found
}

// Validated are those of Validate.
func Validated(errs field.ErrorList) []Complaint {
	var found []Complaint
	for _, e := range errs {
		found = append(found, Complaint{string(e.Type), e.Field, e.ErrorBody()})
	}
	return found
}

// One has the test fail, and go on, unless there is one complaint, whose field begins with that of the one that is
// wanted, and whose message contains its message.
func One(t *testing.T, reason string, want Complaint, got []Complaint) {
	t.Helper()
	if len(got) != 1 || !strings.HasPrefix(got[0].Field, want.Field) || !strings.Contains(got[0].Message, want.Message) {
		t.Errorf("%s: want one complaint about %s that says %q, got %+v", reason, want.Field, want.Message, got)
	}
}

var index = regexp.MustCompile(`\[\d+\]`)

// BrokenBy reports whether one of the complaints is that the rule was broken.
func (r Rule) BrokenBy(complaints []Complaint) bool {
	return slices.ContainsFunc(complaints, func(c Complaint) bool {
		return c.Kind == r.Kind && index.ReplaceAllString(c.Field, "[]") == r.Field && strings.Contains(c.Message, r.Message)
	})
}

// Versions are the definitions of a plane by name, and what changes with each write.
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
