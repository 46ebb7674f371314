package install

import (
	"context"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/crdinstall"
	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/membership/agent"
)

const removalInterval = 200 * time.Millisecond

// uninstall removes the objects in reverse order. The inventory is deleted after all its objects except its namespace.
func (s *site) uninstall(ctx context.Context) error {
	record := object{APIVersion: "v1", Kind: "ConfigMap", Namespace: s.namespace, Name: InventoryName}
	there := metadataOf(record)
	err := s.client.Get(ctx, client.ObjectKeyFromObject(there), there)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("get %s on the member: %w", record, err)
	}
	if err == nil && s.owns(there) {
		if err := s.uninstallRecorded(ctx, record); err != nil {
			return err
		}
	}
	// After an interruption only the namespace remains. It contains only objects of Kubernetes, so this does not wait for
	// its removal.
	return s.remove(ctx, object{APIVersion: "v1", Kind: "Namespace", Name: s.namespace})
}

func (s *site) uninstallRecorded(ctx context.Context, record object) error {
	all, err := s.inventory(ctx)
	if err != nil {
		return err
	}
	var namespaces, others inventory
	for _, each := range all.backwards() {
		if each.groupKind() == namespaceKind {
			namespaces = append(namespaces, each)
		} else {
			others = append(others, each)
		}
	}
	if err := s.removeAll(ctx, others); err != nil {
		return err
	}
	// The agent deletes these two itself, but it may have been interrupted, or may never have started.
	for _, name := range []string{agent.DefaultBootstrapSecret, agent.DefaultStoreSecret} {
		secret := metadataOf(object{APIVersion: "v1", Kind: "Secret", Namespace: s.namespace, Name: name})
		err := s.client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		if err == nil {
			err = s.client.Delete(ctx, secret, precondition.Unchanged(secret))
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Secret %s/%s on the member: %w", s.namespace, name, err)
		}
	}
	var elsewhere inventory
	for _, each := range namespaces {
		if each.Name != s.namespace {
			elsewhere = append(elsewhere, each)
		}
	}
	return s.removeAll(ctx, append(elsewhere, record))
}

// removeAll deletes objects in order, and waits until they are removed.
func (s *site) removeAll(ctx context.Context, all inventory) error {
	for _, each := range all {
		if err := s.remove(ctx, each); err != nil {
			return err
		}
	}
	for _, each := range all {
		err := wait.PollUntilContextCancel(ctx, removalInterval, true, func(ctx context.Context) (bool, error) {
			there, err := s.find(ctx, each)
			return there == nil || there.GetDeletionTimestamp() == nil, err
		})
		if err != nil {
			return fmt.Errorf("wait for the removal of %s from the member: %w", each, err)
		}
	}
	return nil
}

// remove starts the deletion of an object of this member.
func (s *site) remove(ctx context.Context, one object) error {
	there, err := s.find(ctx, one)
	if err != nil || there == nil || there.DeletionTimestamp != nil {
		return err
	}
	if one.groupKind() == definitionKind {
		if _, err := crdinstall.Remove(ctx, s.client, one.Name, s.claim); err != nil {
			return fmt.Errorf("on the member: %w", err)
		}
		return nil // it stays if objects of it exist, which would be deleted with it
	}
	// Not with PartialObjectMetadata: the API server may respond with the whole object, which a metadata client cannot
	// decode for some kinds.
	it := &unstructured.Unstructured{}
	it.SetGroupVersionKind(there.GroupVersionKind())
	it.SetNamespace(one.Namespace)
	it.SetName(one.Name)
	// Foreground deletion: the pods of a workload are removed before it. A role with aggregation must be deleted at once,
	// before its parts: otherwise Kubernetes updates it with an apply that would create it again.
	how := metav1.DeletePropagationForeground
	if one.groupKind().Group == rbacv1.GroupName {
		how = metav1.DeletePropagationBackground
	}
	err = s.client.Delete(ctx, it, precondition.Unchanged(there), client.PropagationPolicy(how))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s on the member: %w", one, err)
	}
	return nil
}

// find returns the metadata of an object of this member; nil: it does not exist, or belongs to another owner.
func (s *site) find(ctx context.Context, one object) (*metav1.PartialObjectMetadata, error) {
	there := metadataOf(one)
	err := s.client.Get(ctx, client.ObjectKeyFromObject(there), there)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get %s on the member: %w", one, err)
	case !s.owns(there):
		return nil, nil
	default:
		return there, nil
	}
}

// claim returns the reason why a definition must not be removed; empty: it may be removed.
func (s *site) claim(there metav1.Object) string {
	if s.owns(there) {
		return ""
	}
	return "the definition belongs to another owner"
}
