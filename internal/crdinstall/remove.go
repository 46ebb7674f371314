package crdinstall

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/ssa"
)

// InstalledByLabel is a label of definitions that a hub has installed on a member, and removes again. Its value is the
// UID of the MemberCluster.
const InstalledByLabel = "membership.muster.dev/installed-by"

// Remove deletes a definition and waits until it is removed. It keeps the definition if claim returns a reason for the
// observed definition, or if an object of its kind exists, because the deletion would delete all objects of the kind.
// In these cases, kept contains the reason, such as "things.example.com: there is Thing a". It is empty if the
// definition was removed.
//
// The client must read from the API server, as the client of a manager does by default for an unstructured object.
// Objects that are created between the check and the deletion, which are two consecutive requests, are deleted as well.
// Remove waits for at most 30 seconds, or until the context ends.
func Remove(ctx context.Context, c client.Client, name string,
	claim func(metav1.Object) string) (kept string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	waiting := "the API server has not been asked"
	err = wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (gone bool, err error) {
		there, err := ssa.Read(ctx, c, ssa.DefinitionKind.WithVersion("v1"), client.ObjectKey{Name: name})
		if err != nil {
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}
		if there.GetDeletionTimestamp() != nil {
			waiting = "it is being deleted"
			return false, nil
		}
		if kept = claim(there); kept != "" {
			return true, nil
		}
		if kept, waiting, err = inUse(ctx, c, there); err != nil || kept != "" || waiting != "" {
			return kept != "", err
		}
		waiting = "it is being changed"
		err = ssa.Delete(ctx, c, there)
		if apierrors.IsConflict(err) { // another client changed it, and may own it now
			err = nil
		}
		return false, client.IgnoreNotFound(err)
	})
	switch {
	case err == nil && kept == "":
		meta.MaybeResetRESTMapper(c.RESTMapper()) // otherwise the next Install assumes that the definition is served
		return "", nil
	case err == nil:
		return name + ": " + kept, nil
	case errors.Is(err, context.DeadlineExceeded):
		return "", fmt.Errorf("remove %s: %s: %w", name, waiting, err)
	default:
		return "", fmt.Errorf("remove %s: %w", name, err)
	}
}

// inUse returns an object of the kind of a definition, or the reason why it is not known yet whether one exists.
func inUse(ctx context.Context, c client.Client,
	definition *unstructured.Unstructured) (user, waiting string, err error) {
	if unestablished(definition) != "" {
		return "", "", nil // no object of the kind can exist
	}
	kind, _ := ssa.DefinedKind(definition)
	mapping, err := c.RESTMapper().RESTMapping(kind)
	if err != nil {
		return unserved(c, err)
	}
	// A list of metadata would come from the cache of a manager's client.
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, list, client.Limit(1)); err != nil {
		return unserved(c, err)
	}
	for i := range list.Items {
		return "there is " + kind.Kind + " " + list.Items[i].GetName(), "", nil
	}
	return "", "", nil
}

// unserved is inUse for a definition that the API server does not serve yet, or does not serve any more.
func unserved(c client.Client, err error) (user, waiting string, _ error) {
	if !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return "", "", fmt.Errorf("look whether it is in use: %w", err)
	}
	meta.MaybeResetRESTMapper(c.RESTMapper())
	return "", "it is not served, so whether it is in use is unknown", nil
}

// Claimed returns the reason why a definition does not belong to [Install] alone: a hub or another client has installed
// it or manages it. It returns an empty string if there is no such reason.
func Claimed(definition metav1.Object) string {
	if _, installed := definition.GetLabels()[InstalledByLabel]; installed {
		return "a hub has installed it"
	}
	ours := false
	for _, entry := range definition.GetManagedFields() {
		switch {
		case entry.Subresource != "": // written by the API server
		case entry.Manager == string(FieldOwner):
			ours = true
		default:
			return entry.Manager + " manages it"
		}
	}
	if !ours {
		return "another owner has installed it"
	}
	return ""
}
