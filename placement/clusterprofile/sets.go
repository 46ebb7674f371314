package clusterprofile

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/tenancy"
)

const (
	// setLabel is a label of a namespace and of the ClusterProfiles in it. Its value is the name of a ClusterSet.
	setLabel = group + "/clusterset"
	// bindingAnnotation is an annotation of a ClusterProfile. Its value is the name of the ClusterSetBinding that grants
	// the member to the namespace.
	bindingAnnotation = v1alpha1.GroupName + "/cluster-set-binding"
)

// setNamespaces contains the observed namespaces that have setLabel.
type setNamespaces struct{ store toolscache.Store }

// set returns the ClusterSet of a namespace, or an empty string if it has none.
func (s *setNamespaces) set(namespace string) string {
	if s == nil {
		return ""
	}
	object, _, _ := s.store.GetByKey(namespace) // A store without an indexer does not fail.
	if found, ok := object.(*metav1.PartialObjectMetadata); ok && found.DeletionTimestamp == nil {
		return found.Labels[setLabel]
	}
	return ""
}

// watchSets observes the namespaces of ClusterSets and the rules of tenancy.
func (e *exporter) watchSets(ctx context.Context, x *export) error {
	informer := toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = setLabel
			return e.namespaces.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = setLabel
			return e.namespaces.Watch(ctx, o)
		},
	}, &metav1.PartialObjectMetadata{}, 0, toolscache.Indexers{})
	_ = informer.SetTransform(func(object any) (any, error) { // This fails only on an informer that has begun.
		if m, ok := object.(*metav1.PartialObjectMetadata); ok {
			m.ManagedFields, m.Annotations = nil, nil
		}
		return object, nil
	})
	_ = informer.SetWatchErrorHandlerWithContext(e.failed("namespaces"))
	x.running.Go(func() { informer.RunWithContext(ctx) })
	enqueue := func(namespace string) { e.enqueue(ctx, x, namespace) }
	if err := follow(ctx, informer, func(namespace metav1.Object) { enqueue(namespace.GetName()) }); err != nil {
		return err
	}
	e.sets.Store(&setNamespaces{informer.GetStore()})
	end, err := e.Tenancy.Watch(ctx, enqueue)
	if err != nil {
		return fmt.Errorf("watch the ClusterSetBindings: %w", err)
	}
	context.AfterFunc(ctx, end)
	return nil
}

// enqueue enqueues the profiles of all members in a namespace.
func (e *exporter) enqueue(ctx context.Context, x *export, namespace string) {
	if namespace == e.ProfileNamespace || !x.ready.Load() {
		return
	}
	var members membershipv1alpha1.MemberClusterList
	if err := e.cache.List(ctx, &members, client.UnsafeDisableDeepCopy); err != nil {
		if ctx.Err() == nil {
			e.log.Error(err, "Failed to list MemberClusters")
		}
		return
	}
	for i := range members.Items {
		x.queue.Add(key{Namespace: namespace, Name: members.Items[i].Name})
	}
}

// profilesOf returns the keys of all profiles that a member can have.
func (e *exporter) profilesOf(member metav1.Object) []key {
	keys := []key{{Namespace: e.ProfileNamespace, Name: member.GetName()}}
	if sets := e.sets.Load(); sets != nil {
		for _, namespace := range sets.store.ListKeys() {
			if namespace != e.ProfileNamespace {
				keys = append(keys, key{Namespace: namespace, Name: member.GetName()})
			}
		}
	}
	return keys
}

// decideInSet decides whether a namespace of a ClusterSet may have the profile of a member. have is the existing
// profile, or nil. If several bindings of the set allow the profile, the decision names the binding that the existing
// profile names.
func decideInSet(rules *tenancy.Rules, set string, labels map[string]string,
	have *unstructured.Unstructured) tenancy.Decision {
	cluster := tenancy.Cluster{Labels: labels}
	if have != nil {
		cluster.Binding = have.GetAnnotations()[bindingAnnotation]
	}
	return rules.OfSet(set).Decide(cluster)
}

// profileInSet returns the desired profile of a member in a namespace of a ClusterSet.
func profileInSet(member *membershipv1alpha1.MemberCluster, o Options, namespace, set,
	binding string) *unstructured.Unstructured {
	profile := ProfileOf(member, o)
	profile.SetNamespace(namespace)
	labels := profile.GetLabels()
	labels[setLabel] = set
	profile.SetLabels(labels)
	profile.SetAnnotations(map[string]string{bindingAnnotation: binding})
	return profile
}

// wantedInSet is wantedProfile for the namespace of a ClusterSet. An existing profile is no longer desired only if a
// request ended the permission, or the live namespace no longer belongs to the set. While a ClusterSet or a
// ClusterSetBinding is only missing, the profile stays.
func (e *exporter) wantedInSet(ctx context.Context, k key, have *unstructured.Unstructured,
	member *membershipv1alpha1.MemberCluster) (*unstructured.Unstructured, error) {
	set, rules := e.sets.Load().set(k.Namespace), e.Tenancy.Rules(k.Namespace)
	if set != "" {
		if d := decideInSet(rules, set, member.Labels, have); d.Access == tenancy.Allowed {
			return profileInSet(member, e.Options, k.Namespace, set, d.Binding), nil
		}
	}
	if have == nil {
		return nil, nil
	}
	// A profile of a set lacks the label only if another client has removed it. The profile still belongs to the same set.
	if recorded := have.GetLabels()[setLabel]; set == "" || recorded != "" && recorded != set {
		return nil, e.confirmSet(ctx, k.Namespace, set)
	}
	if decideInSet(rules, set, member.Labels, have).Access != tenancy.Denied {
		return profileInSet(member, e.Options, k.Namespace, set, have.GetAnnotations()[bindingAnnotation]), nil
	}
	return nil, e.confirmDenied(ctx, rules, set, have, member)
}

// confirmDenied returns an error unless the labels of the live member are denied as well.
func (e *exporter) confirmDenied(ctx context.Context, rules *tenancy.Rules, set string, have *unstructured.Unstructured,
	member *membershipv1alpha1.MemberCluster) error {
	live := &membershipv1alpha1.MemberCluster{}
	if err := e.live.Get(ctx, client.ObjectKeyFromObject(member), live); err != nil {
		return err
	}
	if live.UID != member.UID || decideInSet(rules, set, live.Labels, have).Access != tenancy.Denied {
		return errOutdated
	}
	return nil
}

// confirmSet returns an error unless the live namespace exists and has this value of setLabel.
func (e *exporter) confirmSet(ctx context.Context, namespace, set string) error {
	live, err := e.namespaces.Get(ctx, namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && live.DeletionTimestamp != nil {
		return errOutdated // The profile is deleted together with its namespace.
	}
	if err != nil {
		return fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	if live.Labels[setLabel] != set {
		return errOutdated
	}
	return nil
}
