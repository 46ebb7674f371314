package install

import (
	"context"
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/crdinstall"
	"github.com/muster-sdk/muster/internal/ssa"
	"github.com/muster-sdk/muster/membership/agent"
)

const removalInterval = 200 * time.Millisecond

// uninstall removes the objects in reverse order. The inventory is deleted after all its objects except its namespace.
func (s *site) uninstall(ctx context.Context) error {
	there, err := s.metadata(ctx, s.inventoryObject())
	if err != nil {
		return err
	}
	if there != nil && s.owns(there) {
		if err := s.uninstallRecorded(ctx); err != nil {
			return err
		}
	}
	// After an interruption only the namespace remains. It contains only objects of Kubernetes, so this does not wait for
	// its removal.
	return s.remove(ctx, object{APIVersion: "v1", Kind: "Namespace", Name: s.namespace})
}

func (s *site) uninstallRecorded(ctx context.Context) error {
	all, err := s.inventory(ctx)
	if err != nil {
		return err
	}
	slices.Reverse(all)
	isNamespace := func(one object) bool { return one.groupKind() == ssa.NamespaceKind }
	if err := s.removeAll(ctx, slices.DeleteFunc(slices.Clone(all), isNamespace)); err != nil {
		return err
	}
	// The agent deletes these two itself, but it may have been interrupted, or may never have started.
	for _, name := range []string{agent.DefaultBootstrapSecret, agent.DefaultStoreSecret} {
		secret, err := s.metadata(ctx, object{APIVersion: "v1", Kind: "Secret", Namespace: s.namespace, Name: name})
		if err == nil && secret != nil {
			err = s.delete(ctx, secret)
		}
		if err != nil {
			return err
		}
	}
	elsewhere := slices.DeleteFunc(all, func(one object) bool { return !isNamespace(one) || one.Name == s.namespace })
	return s.removeAll(ctx, append(elsewhere, s.inventoryObject()))
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
	if one.groupKind() == ssa.DefinitionKind {
		if _, err := crdinstall.Remove(ctx, s.client, one.Name, s.claim); err != nil {
			return fmt.Errorf("on the member: %w", err)
		}
		return nil // it stays if objects of it exist, which would be deleted with it
	}
	// Foreground deletion: the pods of a workload are removed before it. A role with aggregation must be deleted at once,
	// before its parts: otherwise Kubernetes updates it with an apply that would create it again.
	how := metav1.DeletePropagationForeground
	if one.groupKind().Group == rbacv1.GroupName {
		how = metav1.DeletePropagationBackground
	}
	return s.delete(ctx, there, client.PropagationPolicy(how))
}

// delete starts the deletion of an observed object.
func (s *site) delete(ctx context.Context, there *metav1.PartialObjectMetadata, options ...client.DeleteOption) error {
	if err := client.IgnoreNotFound(ssa.Delete(ctx, s.client, there, options...)); err != nil {
		return fmt.Errorf("delete %s on the member: %w", objectOf(there), err)
	}
	return nil
}

// find returns the metadata of an object of this member; nil: it does not exist, or belongs to another owner.
func (s *site) find(ctx context.Context, one object) (*metav1.PartialObjectMetadata, error) {
	there, err := s.metadata(ctx, one)
	switch {
	case ssa.Unserved(err), err == nil && there != nil && !s.owns(there):
		return nil, nil
	default:
		return there, err
	}
}

// metadata reads the metadata of an object; nil: it does not exist.
func (s *site) metadata(ctx context.Context, one object) (*metav1.PartialObjectMetadata, error) {
	there, err := ssa.Metadata(ctx, s.client, one.kind(), one.objectKey())
	if err != nil {
		return nil, fmt.Errorf("get %s on the member: %w", one, err)
	}
	return there, nil
}

// claim returns the reason why a definition must not be removed; empty: it may be removed.
func (s *site) claim(there metav1.Object) string {
	if s.owns(there) {
		return ""
	}
	return "the definition belongs to another owner"
}
