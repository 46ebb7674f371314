package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// markedObjects finds the objects of owners by their marks, for a Work whose inventory was lost. It lists all kinds
// of the member and caches the result for [markedObjectsTTL] for all Works: inventories are mostly lost together, with
// their definition.
type markedObjects struct {
	client    client.Client
	discovery discovery.DiscoveryInterface
	log       logr.Logger

	mu     sync.Mutex
	at     time.Time
	byMark map[string][]markedObject
}

type markedObject struct {
	resource v1alpha1.AppliedResource
	managers []string
}

// markedObjectsTTL is how long a list of all marked objects is cached.
const markedObjectsTTL = 30 * time.Second

// ownedBy returns the objects that have the mark of an owner and were written by its field manager. It omits kinds that
// cannot be listed: their objects are then only missing in the inventory.
func (m *markedObjects) ownedBy(ctx context.Context, owner apply.Owner) ([]v1alpha1.AppliedResource, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byMark == nil || time.Since(m.at) > markedObjectsTTL {
		byMark, err := m.list(ctx)
		if err != nil {
			return nil, err
		}
		m.at, m.byMark = time.Now(), byMark
	}
	var found []v1alpha1.AppliedResource
	for _, o := range m.byMark[owner.Mark()] {
		if slices.Contains(o.managers, owner.FieldOwner) {
			found = append(found, o.resource)
		}
	}
	return found, nil
}

func (m *markedObjects) list(ctx context.Context) (map[string][]markedObject, error) {
	groups, err := discovery.ServerPreferredResources(m.discovery)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("discover the kinds of the member: %w", err)
	}
	byMark := map[string][]markedObject{}
	for _, group := range groups {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range group.APIResources {
			if !slices.Contains(resource.Verbs, "list") || strings.Contains(resource.Name, "/") {
				continue
			}
			if err := m.listKind(ctx, version.WithKind(resource.Kind), resource.Name, byMark); err != nil {
				m.log.V(1).Info("Failed to list a kind to rebuild an inventory", "kind", resource.Kind, "group", version.Group,
					"error", err.Error())
			}
		}
	}
	return byMark, ctx.Err()
}

func (m *markedObjects) listKind(ctx context.Context, kind schema.GroupVersionKind, resource string,
	byMark map[string][]markedObject) error {
	options := &client.ListOptions{Limit: 500}
	client.MatchingLabels{v1alpha1.AppliedLabel: "true"}.ApplyToList(options)
	for {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := m.client.List(ctx, list, options); err != nil {
			return err
		}
		for i := range list.Items {
			item := &list.Items[i]
			o := markedObject{resource: v1alpha1.AppliedResource{UID: item.UID, ResourceIdentifier: v1alpha1.ResourceIdentifier{
				Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Resource: resource, Namespace: item.Namespace,
				Name: item.Name,
			}}}
			for _, entry := range item.ManagedFields {
				o.managers = append(o.managers, entry.Manager)
			}
			for name := range item.Annotations {
				if strings.HasPrefix(name, apply.MarkPrefix) {
					byMark[name] = append(byMark[name], o)
				}
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}
