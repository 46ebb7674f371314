package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/internal/ssa"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// ManifestError is the error of a manifest that cannot be applied unless it is changed. It names the invalid field.
type ManifestError struct {
	// Field is the path of the field, such as "metadata.namespace".
	Field string
	// Problem describes why the field is invalid.
	Problem string
}

func (e *ManifestError) Error() string { return e.Field + ": " + e.Problem }

// failed returns the result for an object whose apply failed.
func (t *task) failed(err error) Change {
	reason, message := explain(err, t.id)
	change := t.change(reportOnly(Failed, reason, message))
	if reason == v1alpha1.ReasonTerminating {
		change.Action = Skipped
		return change
	}
	change.Err = err
	if rejected, ok := errors.AsType[*withheldError](err); ok {
		change.RetryAfter = rejected.wait
	}
	return change
}

// explain returns the reason and the message for an error.
func explain(err error, id v1alpha1.ResourceIdentifier) (reason, message string) {
	var invalid *ManifestError
	switch {
	case errors.As(err, &invalid):
		return v1alpha1.ReasonInvalid, invalid.Error()
	case ssa.Unserved(err):
		return v1alpha1.ReasonUnknownKind, fmt.Sprintf("The member does not serve kind %s (%s). Install its "+
			"CustomResourceDefinition on the member, or use a version that the member serves.",
			id.Kind, schema.GroupVersion{Group: id.Group, Version: id.Version})
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return v1alpha1.ReasonTerminating, fmt.Sprintf("Namespace %s is being deleted on the member.", id.Namespace)
	case apierrors.IsForbidden(err):
		return v1alpha1.ReasonForbidden, fmt.Sprintf("The member denied the request: %v", err)
	case apierrors.IsNotFound(err) && id.Namespace != "":
		return v1alpha1.ReasonFailed, fmt.Sprintf(
			"The object was not found. Check that namespace %s exists on the member: %v", id.Namespace, err)
	case permanent(err):
		return v1alpha1.ReasonRejected, "The API server of the member rejected the object: " + rejectionMessage(err, id)
	case errors.Is(err, context.DeadlineExceeded):
		return v1alpha1.ReasonFailed, "The request to the API server of the member timed out."
	default:
		return v1alpha1.ReasonFailed, err.Error()
	}
}

// permanent reports whether the API server would reject the same request again.
func permanent(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err) || apierrors.IsUnsupportedMediaType(err) ||
		violatesSchema(err)
}

// violatesSchema reports whether the manifest does not match the schema of its kind. The API server reports that as an
// internal error.
func violatesSchema(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError &&
		schemaError.MatchString(err.Error())
}

var schemaError = regexp.MustCompile(`failed to (create typed patch|convert new) object|field not declared in schema`)

// rejectionMessage returns the message of the API server, which contains values. For a Secret it returns only the names
// of the fields.
func rejectionMessage(err error, id v1alpha1.ResourceIdentifier) string {
	if !isSecret(id.GroupVersionKind()) {
		return err.Error()
	}
	var fields []string
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			fields = append(fields, cause.Field)
		}
	}
	if match := schemaField.FindStringSubmatch(err.Error()); match != nil {
		fields = append(fields, match[1])
	}
	if len(fields) == 0 {
		return "some values are invalid, such as base64 in data"
	}
	return "invalid values in " + strings.Join(fields, ", ")
}

// schemaField finds the field in the message of a schema error.
var schemaField = regexp.MustCompile(`(\.[-.\w]+): (?:field not declared|expected )`)

// managerName finds the field manager in the message of a conflict.
var managerName = regexp.MustCompile(`^conflict with "(.*?)"`)

// conflictsOf returns the fields that other managers own, if the error is a conflict with field managers.
func conflictsOf(err error) []FieldConflict {
	var status apierrors.APIStatus
	if err == nil || !errors.As(err, &status) || !apierrors.IsConflict(err) || status.Status().Details == nil {
		return nil
	}
	var conflicts []FieldConflict
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		manager := cause.Message
		if match := managerName.FindStringSubmatch(cause.Message); match != nil {
			manager = match[1]
		}
		conflicts = append(conflicts, FieldConflict{Field: cause.Field, Manager: manager})
	}
	return conflicts
}

// changedConcurrently reports whether the object has changed since it was observed.
func changedConcurrently(err error) bool {
	return apierrors.IsAlreadyExists(err) || otherUID(err) ||
		apierrors.IsConflict(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// otherUID reports whether the object was created again: the API server reports another UID as an invalid change.
func otherUID(err error) bool {
	cause, invalid := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return invalid && apierrors.IsInvalid(err) && cause.Field == "metadata.uid"
}

// newConflict returns the error about an object that has changed since it was observed.
func newConflict(t *task, cause error) error {
	return apierrors.NewConflict(schema.GroupResource{Group: t.id.Group, Resource: t.id.Resource}, t.id.Name, cause)
}

var errRecreated = errors.New("the object was recreated")

func anyOf(conflicts []FieldConflict, managers []string) bool {
	return slices.ContainsFunc(conflicts, func(c FieldConflict) bool { return slices.Contains(managers, c.Manager) })
}

func conflictMessage(conflicts []FieldConflict) string {
	return fmt.Sprintf("Other field managers own fields of the object: %s. Remove the fields from the manifest, add "+
		"them to ignoredFields, or let the other managers release the fields.",
		describeConflicts(conflicts))
}

func driftMessage(conflicts []FieldConflict) string {
	return fmt.Sprintf("The object was changed on the member: %s. Set drift to Correct to revert the changes.",
		describeConflicts(conflicts))
}

// describeConflicts describes the first conflicts, as in `.spec.replicas is owned by "kubectl"`.
func describeConflicts(conflicts []FieldConflict) string {
	const most = 3
	var parts []string
	for _, conflict := range conflicts[:min(most, len(conflicts))] {
		parts = append(parts, fmt.Sprintf("%s is owned by %q", conflict.Field, conflict.Manager))
	}
	if more := len(conflicts) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}
